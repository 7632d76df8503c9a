#pragma once

#include "core/program.hpp"

namespace nebula {

/// The commands of nebula-exec that write no traces; `train` is in main.cpp.
Command tokenize_command();
Command keys_command();
Command profile_command();
Command launch_command();

}  // namespace nebula
