#pragma once

#include <cstddef>
#include <span>

#include "core/codec.hpp"

// The kernels of the codecs, one file each. They work on plain memory, so that every device's
// tensors can use them after a copy to the host. `code` has exactly wire_bytes(settings, n) bytes.
// Encoders return false when a value is NaN or infinite and the code can't carry it.

namespace nebula {

bool encode_float32(const CodecSettings&, std::span<const float> values, std::byte* code);
void decode_float32(const CodecSettings&, const std::byte* code, std::span<float> values);

/// Rounds to the nearest bf16, ties to even. Relative error at most 2^-8.
bool encode_bf16(const CodecSettings&, std::span<const float> values, std::byte* code);
void decode_bf16(const CodecSettings&, const std::byte* code, std::span<float> values);

/// Blocks of `settings.block` values share the scale max|x| / 127, float32. Layout: all scales,
/// then one signed byte a value. Error at most half a scale.
bool encode_int8(const CodecSettings&, std::span<const float> values, std::byte* code);
void decode_int8(const CodecSettings&, const std::byte* code, std::span<float> values);

}  // namespace nebula
