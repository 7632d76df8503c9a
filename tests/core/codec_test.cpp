#include "core/codec.hpp"

#include "core/error.hpp"
#include "core/step_costs.hpp"
#include "tests/catch.hpp"

using namespace nebula;

TEST_CASE("wire sizes are exact") {
  CHECK(wire_bytes({"float32", 64}, 1000) == 4000);
  CHECK(wire_bytes({"bf16", 64}, 1001) == 2002);
  // 1001 bytes and 16 scales of 4.
  CHECK(wire_bytes({"int8", 64}, 1001) == 1001 + 16 * 4);
  CHECK(wire_bytes({"int8", 64}, 0) == 0);
}

TEST_CASE("an unknown codec is refused with the names there are") {
  CHECK_THROWS_AS(codec_info("int7"), InputError);
  try {
    codec_info("int7");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("float32, bf16, int8") != std::string::npos);
  }
}

TEST_CASE("framing adds a header and TLS's bytes for each record of 16 KiB") {
  CHECK(framed_bytes(0) == wire_header_bytes + tls_record_bytes);
  CHECK(framed_bytes(16384 - wire_header_bytes) == 16384 + tls_record_bytes);
  CHECK(framed_bytes(16384 - wire_header_bytes + 1) == 16385 + 2 * tls_record_bytes);
}
