#include "plugins/kernels_onednn/primitive.h"

#include <utility>

#include "plugins/kernels_onednn/library.h"

namespace weir::kernels_onednn {
namespace {

int32_t Refuse(const sdk::Error& error, const char* what, dnnl_status_t status) {
  return error.Unimplemented("oneDNN: ", what, " gave status ", static_cast<int>(status));
}

}  // namespace

OneThread::OneThread() : before_(OneDnn().omp_get_max_threads()) {
  if (before_ != 1) OneDnn().omp_set_num_threads(1);
}
OneThread::~OneThread() {
  if (before_ != 1) OneDnn().omp_set_num_threads(before_);
}

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    return OneDnn().dnnl_engine_create(&made, dnnl_cpu, 0) == dnnl_success ? made : nullptr;
  }();
  return engine;
}

/// The objects of one call; a set serves one call at a time.
struct Primitive::Call {
  dnnl_stream_t stream = nullptr;
  std::array<dnnl_exec_arg_t, kMaxOperands> operands{};
  int count = 0;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    for (int i = 0; i < count; ++i) OneDnn().dnnl_memory_destroy(operands[static_cast<size_t>(i)].memory);
    if (stream != nullptr) OneDnn().dnnl_stream_destroy(stream);
  }

  dnnl_status_t Make(const std::vector<OperandDesc>& descs) {
    if (const auto status = OneDnn().dnnl_stream_create(&stream, Engine(), dnnl_stream_default_flags);
        status != dnnl_success) {
      return status;
    }
    for (const OperandDesc& desc : descs) {
      dnnl_exec_arg_t& operand = operands[static_cast<size_t>(count)];
      operand.arg = desc.argument;
      const auto status = OneDnn().dnnl_memory_create(&operand.memory, &desc.memory, Engine(), DNNL_MEMORY_NONE);
      if (status != dnnl_success) return status;
      ++count;
    }
    return dnnl_success;
  }

  dnnl_status_t Run(dnnl_primitive_t primitive, const std::array<const void*, kMaxOperands>& addresses) {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto status = OneDnn().dnnl_memory_set_data_handle(operands[at].memory, const_cast<void*>(addresses[at]));
      if (status != dnnl_success) return status;
    }
    return OneDnn().dnnl_primitive_execute(primitive, stream, count, operands.data());
  }
};

struct Primitive::Shared {
  dnnl_primitive_t primitive = nullptr;
  std::array<Call, kCalls> calls;
  ~Shared() {
    if (primitive != nullptr) OneDnn().dnnl_primitive_destroy(primitive);
  }
};

int32_t Primitive::Make(const_dnnl_op_desc_t op, std::vector<int> arguments, const sdk::Error& error) {
  if (Engine() == nullptr) return error.Unimplemented("oneDNN has no engine for this processor");
  dnnl_primitive_attr_t attr = nullptr;
  if (const auto status = OneDnn().dnnl_primitive_attr_create(&attr); status != dnnl_success) {
    return Refuse(error, "attributes", status);
  }
  OneDnn().dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = OneDnn().dnnl_primitive_desc_create(&made, op, attr, Engine(), nullptr);
  OneDnn().dnnl_primitive_attr_destroy(attr);
  if (status != dnnl_success) return Refuse(error, "the primitive's description", status);
  operands_.clear();
  for (const int argument : arguments) {
    operands_.push_back({argument, *OneDnn().dnnl_primitive_desc_query_md(made, dnnl_query_exec_arg_md, argument)});
  }
  const dnnl_memory_desc_t* scratch = OneDnn().dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  scratch_bytes_ = scratch != nullptr ? OneDnn().dnnl_memory_desc_get_size(scratch) : 0;
  if (scratch_bytes_ != 0) operands_.push_back({DNNL_ARG_SCRATCHPAD, *scratch});
  return Finish(made, error);
}

int32_t Primitive::MakeReorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, const sdk::Error& error) {
  if (Engine() == nullptr) return error.Unimplemented("oneDNN has no engine for this processor");
  dnnl_primitive_desc_t made = nullptr;
  const dnnl_status_t status =
      OneDnn().dnnl_reorder_primitive_desc_create(&made, &from, Engine(), &to, Engine(), nullptr);
  if (status != dnnl_success) return Refuse(error, "a change of layout", status);
  operands_ = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  return Finish(made, error);
}

int32_t Primitive::Finish(dnnl_primitive_desc_t made, const sdk::Error& error) {
  shared_ = std::make_shared<Shared>();
  dnnl_status_t status = operands_.size() > kMaxOperands ? dnnl_invalid_arguments
                                                         : OneDnn().dnnl_primitive_create(&shared_->primitive, made);
  OneDnn().dnnl_primitive_desc_destroy(made);
  for (Call& call : shared_->calls) {
    if (status == dnnl_success) status = call.Make(operands_);
  }
  return status == dnnl_success ? int32_t{WEIR_OK} : Refuse(error, "the primitive", status);
}

int32_t Primitive::Run(std::array<const void*, kMaxOperands> addresses, const sdk::Error& error) const {
  dnnl_status_t status = dnnl_success;
  bool done = false;
  for (Call& call : shared_->calls) {
    if (call.busy.test_and_set(std::memory_order_acquire)) continue;
    status = call.Run(shared_->primitive, addresses);
    call.busy.clear(std::memory_order_release);
    done = true;
    break;
  }
  if (!done) {
    Call call;
    status = call.Make(operands_);
    if (status == dnnl_success) status = call.Run(shared_->primitive, addresses);
  }
  if (status == dnnl_success) return WEIR_OK;
  return error.Fail(WEIR_INTERNAL, "oneDNN: execution gave status ", static_cast<int>(status));
}

int32_t Reorder(const dnnl_memory_desc_t& from_desc, const void* from, const dnnl_memory_desc_t& to_desc, void* to,
                const sdk::Error& error) {
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t source = nullptr, target = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_status_t status =
      OneDnn().dnnl_reorder_primitive_desc_create(&desc, &from_desc, Engine(), &to_desc, Engine(), nullptr);
  if (status == dnnl_success) status = OneDnn().dnnl_primitive_create(&primitive, desc);
  if (status == dnnl_success)
    status = OneDnn().dnnl_memory_create(&source, &from_desc, Engine(), const_cast<void*>(from));
  if (status == dnnl_success) status = OneDnn().dnnl_memory_create(&target, &to_desc, Engine(), to);
  if (status == dnnl_success) status = OneDnn().dnnl_stream_create(&stream, Engine(), dnnl_stream_default_flags);
  if (status == dnnl_success) {
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    status = OneDnn().dnnl_primitive_execute(primitive, stream, 2, arguments);
  }
  OneDnn().dnnl_stream_destroy(stream);
  OneDnn().dnnl_memory_destroy(source);
  OneDnn().dnnl_memory_destroy(target);
  OneDnn().dnnl_primitive_destroy(primitive);
  OneDnn().dnnl_primitive_desc_destroy(desc);
  return status == dnnl_success ? int32_t{WEIR_OK} : Refuse(error, "a change of layout", status);
}

}  // namespace weir::kernels_onednn
