#include <cmath>
#include <limits>
#include <random>

#include "core/error.hpp"
#include "exec/tensor_codec.hpp"
#include "tests/catch.hpp"

using namespace nebula;

namespace {

torch::Tensor sample(int kind, std::int64_t n, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  torch::Tensor tensor = torch::empty({n});
  auto* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = normal(random);
    switch (kind) {
      case 0:
        values[i] = x;
        break;
      case 1:
        values[i] = x * x * x * 100;
        break;  // heavy tails
      case 2:
        values[i] = x * 1e-8F;
        break;
      case 3:
        values[i] = 0.25F;
        break;
      case 4:
        values[i] = 0;
        break;
      default:
        values[i] = x * 1e37F;
        break;
    }
  }
  return tensor;
}

torch::Tensor round_trip(const CodecSettings& settings, const torch::Tensor& tensor) {
  const auto code = encode_tensor(settings, tensor, "test");
  CHECK(std::int64_t(code.size()) == wire_bytes(settings, tensor.numel()));
  return decode_tensor(settings, code, tensor.sizes(), torch::kCPU, "test");
}

}  // namespace

TEST_CASE("every codec of the table has a kernel") {
  std::vector<std::string> names;
  for (const CodecInfo& info : codecs()) names.emplace_back(info.name);
  CHECK(codecs_with_kernels() == names);
}

TEST_CASE("codecs keep to their error bounds on all kinds of tensors") {
  std::mt19937_64 random(3);
  for (int kind = 0; kind < 6; ++kind) {
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{63},
                                 std::int64_t{64}, std::int64_t{1000}, std::int64_t{4096}}) {
      const torch::Tensor x = sample(kind, n, random);
      CAPTURE(kind, n);
      CHECK(torch::equal(round_trip({"float32", 64}, x), x));
      const torch::Tensor half = round_trip({"bf16", 64}, x);
      CHECK(torch::equal(half, x.to(torch::kBFloat16).to(torch::kFloat32)));
      for (const int block : {1, 64, 100}) {
        const torch::Tensor y = round_trip({"int8", block}, x);
        for (std::int64_t start = 0; start < n; start += block) {
          const torch::Tensor part = x.slice(0, start, start + block);
          const double scale = part.abs().max().item<double>() / 127;
          const double error = (y.slice(0, start, start + block) - part).abs().max().item<double>();
          // Half a scale, and float32's own rounding.
          CHECK(error <= scale * (0.5 + 1e-4));
        }
      }
    }
  }
}

TEST_CASE("NaN and infinity are named, not sent in silence") {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    torch::Tensor x = torch::ones({100});
    x[70] = value;
    try {
      encode_tensor({"int8", 64}, x, "activation 3");
      FAIL("was sent");
    } catch (const RunError& error) {
      CHECK(std::string(error.what()).find("activation 3") != std::string::npos);
    }
    // float32 and bf16 carry them as they are.
    CHECK(std::isfinite(round_trip({"bf16", 64}, x)[70].item<float>()) == false);
  }
}

TEST_CASE("a code of another size is refused") {
  const auto code = encode_tensor({"int8", 64}, torch::ones({100}), "test");
  CHECK_THROWS_AS(decode_tensor({"int8", 64}, code, {101}, torch::kCPU, "test"), RunError);
  CHECK_THROWS_AS(decode_tensor({"float32", 64}, code, {100}, torch::kCPU, "test"), RunError);
}
