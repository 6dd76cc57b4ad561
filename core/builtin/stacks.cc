// Stacks: loops push values for their gradients to pop.
#include <mutex>
#include <vector>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/references.h"

namespace weir::builtin {
namespace {

class Stack final : public Resource {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::Stack";

  Stack(std::string name, DType type, int max_size) : name_(std::move(name)), type_(type), max_size_(max_size) {}

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override { return fmt::format("Stack[{}] of {}", StackName(), Name(type_)); }
  uint64_t MemoryBytes() const override {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const Tensor& element : elements_) bytes += element.bytes();
    return bytes;
  }

  DType type() const { return type_; }

  Status Push(Tensor element) {
    const std::lock_guard lock(mutex_);
    if (closed_) return Closed();
    if (max_size_ >= 0 && elements_.size() >= static_cast<size_t>(max_size_)) {
      return InvalidArgument("Stack[{}] overflowed its max_size ({})", StackName(), max_size_);
    }
    elements_.push_back(std::move(element));
    return Status();
  }
  Result<Tensor> Pop() {
    const std::lock_guard lock(mutex_);
    if (closed_) return Closed();
    if (elements_.empty()) return InvalidArgument("Stack[{}] is empty when calling Pop().", StackName());
    Tensor last = std::move(elements_.back());
    elements_.pop_back();
    return last;
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    elements_.clear();
    closed_ = true;
  }

 protected:
  void Clear() override { Close(); }

 private:
  std::string StackName() const { return fmt::format("{}_{}", name_, id()); }
  Status Closed() const { return InvalidArgument("Stack[{}] has already been closed.", StackName()); }

  const std::string name_;
  const DType type_;
  const int max_size_;        // negative: unlimited
  mutable std::mutex mutex_;  // protects all below
  std::vector<Tensor> elements_;
  bool closed_ = false;
};

Status MakeStackOfAtMost(kernel::BuiltinCall& call, int32_t max_size) {
  WEIR_ASSIGN(const DType type, call.attrs.Type("elem_type"));
  WEIR_ASSIGN(std::string name, call.attrs.String("stack_name"));
  if (name.empty()) name = call.node_name;
  return OutputOfStep(call, 0, std::make_shared<Stack>(std::move(name), type, max_size));
}

Status MakeStack(kernel::BuiltinCall& call) {
  if (call.inputs[0].shape().rank() != 0) {
    return InvalidArgument("Stack size must be a scalar, but had shape: {}", call.inputs[0].shape().ToString());
  }
  WEIR_ASSIGN(const int32_t max_size, Scalar<int32_t>(call, 0, "max_size"));
  return MakeStackOfAtMost(call, max_size);
}

Status MakeReferredStack(kernel::BuiltinCall& call) {
  WEIR_TRY(MakeStackOfAtMost(call, -1));
  ReferToHandle(call, 0);
  return Status();
}

Status PushOnStack(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Stack> stack, ResourceBehind<Stack>(call, 0));
  const Tensor& element = call.inputs[1];
  if (element.dtype() != stack->type()) {
    return InvalidArgument("Must have type {} but got {}", Name(stack->type()), Name(element.dtype()));
  }
  WEIR_TRY(stack->Push(element));
  call.outputs[0] = element;
  return Status();
}

Status PopFromStack(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Stack> stack, ResourceBehind<Stack>(call, 0));
  WEIR_ASSIGN(const DType type, call.attrs.Type("elem_type"));
  if (type != stack->type()) {
    return InvalidArgument("Must have type {} but got {}", Name(stack->type()), Name(type));
  }
  WEIR_ASSIGN(call.outputs[0], stack->Pop());
  return Status();
}

Status CloseStack(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::shared_ptr<Stack> stack, ResourceBehind<Stack>(call, 0));
  stack->Close();
  return Status();
}

}  // namespace

void AddStacks(kernel::KernelRegistry& kernels) {
  kernels.AddHost("StackV2", MakeStack);
  kernels.AddHost("Stack", MakeReferredStack);
  for (const std::string version : {"", "V2"}) {
    kernels.AddHost("StackPush" + version, PushOnStack, kernel::InputUse::kKept);
    kernels.AddHost("StackPop" + version, PopFromStack);
    kernels.AddHost("StackClose" + version, CloseStack);
  }
}

}  // namespace weir::builtin
