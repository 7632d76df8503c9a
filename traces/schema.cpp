#include "traces/schema.hpp"

#include <cstddef>
#include <initializer_list>
#include <utility>

#include "core/error.hpp"

namespace nebula {
namespace {

constexpr std::uint8_t none = 255;

using Names = std::initializer_list<std::pair<const char*, std::uint8_t>>;

template <typename Enum>
constexpr std::uint8_t code(Enum value) {
  return static_cast<std::uint8_t>(value);
}

H5Id enum_type(Names names) {
  H5Id type(H5Tenum_create(H5T_NATIVE_UINT8), H5Tclose);
  for (const auto& [name, value] : names) H5Tenum_insert(type.get(), name, &value);
  return type;
}

H5Id kind_type() {
  using enum EventKind;
  return enum_type({{"op", code(op)},
                    {"wait", code(wait)},
                    {"encode", code(encode)},
                    {"decode", code(decode)},
                    {"transfer", code(transfer)},
                    {"prepare", code(prepare)},
                    {"save", code(save)},
                    {"evaluate", code(evaluate)}});
}

H5Id op_type() {
  using enum OpKind;
  return enum_type({{"forward", code(forward)},
                    {"backward", code(backward)},
                    {"tie_send", code(tie_send)},
                    {"tie_receive", code(tie_receive)},
                    {"sum_norm", code(sum_norm)},
                    {"share_norm", code(share_norm)},
                    {"update", code(update)},
                    {"none", none}});
}

H5Id message_type() {
  using enum MessageKind;
  return enum_type({{"activation", code(activation)},
                    {"gradient", code(gradient)},
                    {"norm_partial", code(norm_partial)},
                    {"norm_total", code(norm_total)},
                    {"tied_gradient", code(tied_gradient)},
                    {"none", none}});
}

class SchemaBuilder {
 public:
  SchemaBuilder(std::string name, std::size_t row_size) {
    schema_.name = std::move(name);
    schema_.row = H5Id(H5Tcreate(H5T_COMPOUND, row_size), H5Tclose);
  }
  SchemaBuilder& column(const char* name, std::size_t offset, hid_t type, const char* unit = "") {
    H5Tinsert(schema_.row.get(), name, offset, type);
    schema_.units.emplace_back(name, unit);
    return *this;
  }
  TableSchema take() { return std::move(schema_); }

 private:
  TableSchema schema_;
};

bool has_message(EventKind kind) {
  return kind == EventKind::wait || kind == EventKind::encode || kind == EventKind::decode ||
         kind == EventKind::transfer;
}

}  // namespace

EventRow to_row(const Event& event) {
  EventRow row;
  row.step = event.step;
  row.stage = event.stage;
  row.kind = code(event.kind);
  const bool is_op = event.kind == EventKind::op;
  row.op = is_op ? code(event.op.kind) : none;
  row.message = has_message(event.kind) ? code(event.message) : none;
  row.peer = event.peer;
  row.micro_batch = is_op ? event.op.micro_batch : event.micro_batch;
  row.chunk = is_op ? event.op.chunk : 0;
  row.start_s = event.start_s;
  row.end_s = event.end_s;
  row.bytes = event.bytes;
  return row;
}

Event from_row(const EventRow& row) {
  Event event;
  event.step = row.step;
  event.stage = row.stage;
  event.kind = static_cast<EventKind>(row.kind);
  if (row.op != none) event.op = {static_cast<OpKind>(row.op), row.micro_batch, row.chunk};
  if (row.message != none) event.message = static_cast<MessageKind>(row.message);
  event.peer = row.peer;
  event.micro_batch = row.micro_batch;
  event.start_s = row.start_s;
  event.end_s = row.end_s;
  event.bytes = row.bytes;
  return event;
}

MetricsRow to_row(const StepMetrics& m) {
  return {m.step, m.loss, m.grad_norm, m.learning_rate, m.tokens, m.step_s, m.peak_bytes};
}

StepMetrics from_row(const MetricsRow& row) {
  return {row.step,   row.loss,   row.grad_norm, row.learning_rate,
          row.tokens, row.step_s, row.peak_bytes};
}

ClockRow to_row(const ClockOffset& o) {
  return {o.peer, o.offset_s, o.error_s};
}

ClockOffset from_row(const ClockRow& row) {
  return {row.peer, row.offset_s, row.error_s};
}

TableSchema event_schema() {
  return SchemaBuilder("events", sizeof(EventRow))
      .column("step", offsetof(EventRow, step), H5T_NATIVE_INT32)
      .column("stage", offsetof(EventRow, stage), H5T_NATIVE_INT32)
      .column("kind", offsetof(EventRow, kind), kind_type().get())
      .column("op", offsetof(EventRow, op), op_type().get())
      .column("message", offsetof(EventRow, message), message_type().get())
      .column("peer", offsetof(EventRow, peer), H5T_NATIVE_INT32)
      .column("micro_batch", offsetof(EventRow, micro_batch), H5T_NATIVE_INT32)
      .column("chunk", offsetof(EventRow, chunk), H5T_NATIVE_INT32)
      .column("start_s", offsetof(EventRow, start_s), H5T_NATIVE_DOUBLE, "s")
      .column("end_s", offsetof(EventRow, end_s), H5T_NATIVE_DOUBLE, "s")
      .column("bytes", offsetof(EventRow, bytes), H5T_NATIVE_DOUBLE, "B")
      .take();
}

TableSchema metrics_schema() {
  return SchemaBuilder("metrics", sizeof(MetricsRow))
      .column("step", offsetof(MetricsRow, step), H5T_NATIVE_INT32)
      .column("loss", offsetof(MetricsRow, loss), H5T_NATIVE_DOUBLE, "nat/token")
      .column("grad_norm", offsetof(MetricsRow, grad_norm), H5T_NATIVE_DOUBLE, "1")
      .column("learning_rate", offsetof(MetricsRow, learning_rate), H5T_NATIVE_DOUBLE, "1")
      .column("tokens", offsetof(MetricsRow, tokens), H5T_NATIVE_DOUBLE, "token")
      .column("step_s", offsetof(MetricsRow, step_s), H5T_NATIVE_DOUBLE, "s")
      .column("peak_bytes", offsetof(MetricsRow, peak_bytes), H5T_NATIVE_DOUBLE, "B")
      .take();
}

TableSchema clock_schema() {
  return SchemaBuilder("clocks", sizeof(ClockRow))
      .column("peer", offsetof(ClockRow, peer), H5T_NATIVE_INT32)
      .column("offset_s", offsetof(ClockRow, offset_s), H5T_NATIVE_DOUBLE, "s")
      .column("error_s", offsetof(ClockRow, error_s), H5T_NATIVE_DOUBLE, "s")
      .take();
}

void write_info(const H5File& file, const TraceInfo& info) {
  const hid_t root = file.id();
  file.write_text(root, "format", trace_format);
  file.write_integer(root, "version", trace_version);
  file.write_text(root, "program", info.program);
  file.write_text(root, "run", info.run);
  file.write_text(root, "plan", info.plan);
  file.write_unsigned(root, "plan_hash", info.plan_hash);
  file.write_integer(root, "stage", info.stage);
  file.write_integer(root, "stages", info.stages);
  file.write_text(root, "cloud", info.cloud);
  file.write_text(root, "host", info.host);
  file.write_integer(root, "threads", info.threads);
  file.write_flag(root, "emulated", info.emulated);
  file.write_integer(root, "origin_unix_ns", info.origin_unix_ns);
}

TraceInfo read_info(const H5File& file, const std::string& path) {
  const hid_t root = file.id();
  if (!file.has(root, "format") || !file.has(root, "version"))
    throw InputError(path, "is HDF5 but no trace: it lacks the attributes format and version");
  const std::string format = file.read_text(root, "format");
  if (format != trace_format)
    throw InputError(path, "has format \"" + format + "\", expected \"" + trace_format + "\"");
  const std::int64_t version = file.read_integer(root, "version");
  if (version < 1 || version > trace_version)
    throw InputError(path, "has version " + std::to_string(version) +
                               ", this program reads versions 1 to " +
                               std::to_string(trace_version));
  TraceInfo info;
  info.program = file.read_text(root, "program");
  info.run = file.read_text(root, "run");
  info.plan = file.read_text(root, "plan");
  info.plan_hash = file.read_unsigned(root, "plan_hash");
  info.stage = int(file.read_integer(root, "stage"));
  info.stages = int(file.read_integer(root, "stages"));
  info.cloud = file.read_text(root, "cloud");
  info.host = file.read_text(root, "host");
  info.threads = int(file.read_integer(root, "threads"));
  info.emulated = file.read_flag(root, "emulated");
  info.origin_unix_ns = file.read_integer(root, "origin_unix_ns");
  if (info.stages < 1 || info.stage < 0 || info.stage >= info.stages)
    throw InputError(
        path, "says stage " + std::to_string(info.stage) + " of " + std::to_string(info.stages));
  return info;
}

}  // namespace nebula
