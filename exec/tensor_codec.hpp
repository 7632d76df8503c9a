#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "core/codec.hpp"

namespace nebula {

/// A float32 tensor of any device as the bytes that travel. Throws RunError naming `what` when it
/// holds a NaN or infinity that the codec can't carry.
std::vector<std::byte> encode_tensor(const CodecSettings& settings, const torch::Tensor& tensor,
                                     const std::string& what);

/// The float32 tensor of the shape back, on the device. Throws RunError naming `what` when the
/// bytes are not of that size.
torch::Tensor decode_tensor(const CodecSettings& settings, std::span<const std::byte> code,
                            torch::IntArrayRef shape, torch::Device device,
                            const std::string& what);

/// Names of the codecs that have kernels, in the order of core's table.
std::vector<std::string> codecs_with_kernels();

}  // namespace nebula
