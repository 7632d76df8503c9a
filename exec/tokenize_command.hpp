#pragma once

namespace nebula {

inline constexpr const char* tokenize_summary = "turns text into a file of token ids";

}  // namespace nebula
