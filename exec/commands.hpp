#pragma once

#include "core/program.hpp"

namespace nebula {

/// The commands of nebula-exec that write no traces; `train` is in main.cpp.
/// Only what `nebula-exec --help` shows of it; become_tokenizer() runs it.
Command tokenize_command();
/// Replaces this process by the tokenizer's when the verb is `tokenize`.
void become_tokenizer(int argc, char** argv);
Command keys_command();
Command profile_command();
Command launch_command();

}  // namespace nebula
