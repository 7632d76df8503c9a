#include "core/timeline.hpp"

namespace nebula {

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::op:
      return "op";
    case EventKind::wait:
      return "wait";
    case EventKind::encode:
      return "encode";
    case EventKind::decode:
      return "decode";
    case EventKind::transfer:
      return "transfer";
    case EventKind::prepare:
      return "prepare";
    case EventKind::save:
      return "save";
    case EventKind::evaluate:
      return "evaluate";
  }
  return "";
}

}  // namespace nebula
