#include "core/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

#include "core/error.hpp"

namespace nebula {
namespace {

struct Scale {
  std::string_view name;
  double factor;
};

constexpr std::array seconds_scales = {Scale{"ns", 1e-9}, Scale{"us", 1e-6},  Scale{"ms", 1e-3},
                                       Scale{"s", 1.0},   Scale{"min", 60.0}, Scale{"h", 3600.0}};
constexpr std::array bytes_scales = {
    Scale{"B", 1.0},      Scale{"kB", 1e3},     Scale{"MB", 1e6},
    Scale{"GB", 1e9},     Scale{"TB", 1e12},    Scale{"KiB", 1024.0},
    Scale{"MiB", 0x1p20}, Scale{"GiB", 0x1p30}, Scale{"TiB", 0x1p40}};
constexpr std::array rate_scales = {Scale{"bit/s", 1.0 / 8},   Scale{"kbit/s", 1e3 / 8},
                                    Scale{"Mbit/s", 1e6 / 8},  Scale{"Gbit/s", 1e9 / 8},
                                    Scale{"Tbit/s", 1e12 / 8}, Scale{"B/s", 1.0},
                                    Scale{"kB/s", 1e3},        Scale{"MB/s", 1e6},
                                    Scale{"GB/s", 1e9},        Scale{"TB/s", 1e12}};
constexpr std::array flops_scales = {Scale{"MFLOP/s", 1e6}, Scale{"GFLOP/s", 1e9},
                                     Scale{"TFLOP/s", 1e12}, Scale{"PFLOP/s", 1e15}};
constexpr std::array hour_scales = {Scale{"USD/h", 1.0}};
constexpr std::array gb_scales = {Scale{"USD/GB", 1.0}};

std::span<const Scale> scales(Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return seconds_scales;
    case Unit::bytes:
      return bytes_scales;
    case Unit::bytes_per_s:
      return rate_scales;
    case Unit::flops_per_s:
      return flops_scales;
    case Unit::usd_per_hour:
      return hour_scales;
    case Unit::usd_per_gb:
      return gb_scales;
  }
  return {};
}

std::string three_digits(double value, std::string_view unit) {
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %.*s", decimals, value, int(unit.size()),
                unit.data());
  return text.data();
}

// The largest scale that leaves at least one whole unit.
std::string with_scale(double value, std::span<const Scale> list) {
  const Scale* best = &list.front();
  for (const Scale& scale : list) {
    if (std::abs(value) >= scale.factor * 0.9995) best = &scale;
  }
  return three_digits(value / best->factor, best->name);
}

}  // namespace

double parse_quantity(std::string_view text, Unit unit) {
  const auto fail = [&]() -> double {
    std::string names;
    for (const Scale& scale : scales(unit)) {
      names += names.empty() ? "" : ", ";
      names += scale.name;
    }
    throw InputError("", "'" + std::string(text) + "' is not a quantity here; expected a number " +
                             "with one of the units " + names);
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return fail();
  std::string_view name(end, std::size_t(text.data() + text.size() - end));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Scale& scale : scales(unit)) {
    if (scale.name == name) return number * scale.factor;
  }
  return fail();
}

std::string_view key_suffix(Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return "_s";
    case Unit::bytes:
      return "_bytes";
    case Unit::bytes_per_s:
      return "_bytes_per_s";
    case Unit::flops_per_s:
      return "_flops_per_s";
    case Unit::usd_per_hour:
      return "_usd_per_hour";
    case Unit::usd_per_gb:
      return "_usd_per_gb";
  }
  return "";
}

std::string format_seconds(double seconds) {
  static constexpr std::array list = {Scale{"ns", 1e-9}, Scale{"us", 1e-6}, Scale{"ms", 1e-3},
                                      Scale{"s", 1.0}};
  return seconds == 0 ? "0 s" : with_scale(seconds, list);
}

std::string format_bytes(double bytes) {
  static constexpr std::array list = {Scale{"B", 1.0}, Scale{"KiB", 0x1p10}, Scale{"MiB", 0x1p20},
                                      Scale{"GiB", 0x1p30}, Scale{"TiB", 0x1p40}};
  return with_scale(bytes, list);
}

std::string format_rate(double bytes_per_s) {
  return with_scale(bytes_per_s, std::span(rate_scales).first(5));
}

}  // namespace nebula
