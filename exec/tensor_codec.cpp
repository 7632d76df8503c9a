#include "exec/tensor_codec.hpp"

#include <array>

#include "core/error.hpp"
#include "exec/codecs/codecs.hpp"

namespace nebula {
namespace {

struct Kernel {
  std::string_view name;
  bool (*encode)(const CodecSettings&, std::span<const float>, std::byte*);
  void (*decode)(const CodecSettings&, const std::byte*, std::span<float>);
};

constexpr std::array kernels = {
    Kernel{"float32", encode_float32, decode_float32},
    Kernel{"bf16", encode_bf16, decode_bf16},
    Kernel{"int8", encode_int8, decode_int8},
};

const Kernel& kernel_of(const CodecSettings& settings) {
  for (const Kernel& kernel : kernels) {
    if (kernel.name == settings.name) return kernel;
  }
  throw RunError("codec '" + settings.name + "' has no kernel in this program");
}

std::span<float> values_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), std::size_t(tensor.numel())};
}

}  // namespace

std::vector<std::byte> encode_tensor(const CodecSettings& settings, const torch::Tensor& tensor,
                                     const std::string& what) {
  const torch::Tensor host = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  std::vector<std::byte> code(std::size_t(wire_bytes(settings, host.numel())));
  if (!kernel_of(settings).encode(settings, values_of(host), code.data())) {
    throw RunError(what + " holds a NaN or infinity, which " + settings.name + " can't carry");
  }
  return code;
}

torch::Tensor decode_tensor(const CodecSettings& settings, std::span<const std::byte> code,
                            torch::IntArrayRef shape, torch::Device device,
                            const std::string& what) {
  torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
  const std::int64_t expected = wire_bytes(settings, tensor.numel());
  if (std::int64_t(code.size()) != expected) {
    throw RunError(what + " came with " + std::to_string(code.size()) + " bytes, expected " +
                   std::to_string(expected) + " of " + settings.name);
  }
  kernel_of(settings).decode(settings, code.data(), values_of(tensor));
  return tensor.to(device);
}

std::vector<std::string> codecs_with_kernels() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) names.emplace_back(kernel.name);
  return names;
}

}  // namespace nebula
