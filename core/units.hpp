#pragma once

#include <string>
#include <string_view>

namespace nebula {

/// Physical quantities that files and options write with their unit.
enum class Unit { seconds, bytes, bytes_per_s, flops_per_s, usd_per_hour, usd_per_gb };

/// The value of "40 ms", "8 MiB", "335 Mbit/s", "312 TFLOP/s", "3.67 USD/h" or "0.02 USD/GB" in
/// the base unit (seconds, bytes, bytes/s, FLOP/s, USD/h, USD per 10^9 bytes).
///
/// A bare number is refused: quantities carry their unit. Throws InputError (with an empty
/// `where`) that lists the units accepted.
double parse_quantity(std::string_view text, Unit unit);

/// What a JSON key of this unit ends with: "_s", "_bytes", "_bytes_per_s", "_flops_per_s",
/// "_usd_per_hour", "_usd_per_gb".
std::string_view key_suffix(Unit unit);

/// Three significant digits with a fitting unit: "40.0 ms", "8.00 MiB", "335 Mbit/s".
std::string format_seconds(double seconds);
std::string format_bytes(double bytes);
std::string format_rate(double bytes_per_s);

}  // namespace nebula
