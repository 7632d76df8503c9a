#include "core/units.hpp"

#include "core/error.hpp"
#include "tests/catch.hpp"

using namespace nebula;

TEST_CASE("quantities carry their unit") {
  CHECK(parse_quantity("40 ms", Unit::seconds) == Approx(0.04));
  CHECK(parse_quantity("2min", Unit::seconds) == 120);
  CHECK(parse_quantity("8 MiB", Unit::bytes) == 8388608);
  CHECK(parse_quantity("8 MB", Unit::bytes) == 8000000);
  CHECK(parse_quantity("335 Mbit/s", Unit::bytes_per_s) == Approx(41.875e6));
  CHECK(parse_quantity("2.0 TB/s", Unit::bytes_per_s) == 2e12);
  CHECK(parse_quantity("312 TFLOP/s", Unit::flops_per_s) == 312e12);
  CHECK(parse_quantity("3.67 USD/h", Unit::usd_per_hour) == 3.67);
  CHECK(parse_quantity("0 s", Unit::seconds) == 0);
}

TEST_CASE("what is no quantity is refused") {
  for (const char* text : {"40", "ms", "", "40 MB", "-1 s", "nan s", "inf s", "1e999 s", "4 0 ms",
                           "40 ms ", "0x10 s"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_quantity(text, Unit::seconds), InputError);
  }
}

TEST_CASE("figures are printed with three digits and a unit") {
  CHECK(format_seconds(0.04) == "40.0 ms");
  CHECK(format_seconds(1.2345) == "1.23 s");
  CHECK(format_seconds(123.4) == "123 s");
  CHECK(format_seconds(0) == "0 s");
  CHECK(format_seconds(2.5e-6) == "2.50 us");
  CHECK(format_bytes(8388608) == "8.00 MiB");
  CHECK(format_rate(12.5e6) == "100 Mbit/s");
  CHECK(format_seconds(0.9999) == "1.00 s");
}
