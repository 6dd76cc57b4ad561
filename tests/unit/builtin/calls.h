// Calls of builtin kernels, with the resources of a session and a step.
#ifndef WEIR_TESTS_UNIT_BUILTIN_CALLS_H_
#define WEIR_TESTS_UNIT_BUILTIN_CALLS_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/builtin/register.h"
#include "core/ops/declare_all.h"
#include "core/runtime/cancellation.h"

namespace weir::builtin {

class Calls : public ::testing::Test {
 protected:
  void SetUp() override {
    AddAll(kernels_);
    const Result<const op::OpRegistry*> ops = ops::Catalogue();
    ASSERT_TRUE(ops.ok()) << ops.status().ToString();
    ops_ = *ops;
  }

  /// The result of an asynchronous op; empty until it completes.
  using Answer = std::optional<Result<std::vector<Tensor>>>;

  /// Starts a call, which sets `answer` when it completes; `answer` outlives the call.
  void Start(const std::string& op, std::vector<Tensor> inputs, op::AttrList attrs, Answer* answer) {
    const op::OpDef* def = ops_->Find(op);
    const kernel::KernelEntry* entry = kernels_.FindHost(op);
    const kernel::BuiltinKernel* kernel = entry == nullptr ? nullptr : entry->host.get();
    if (def == nullptr || kernel == nullptr) {
      *answer = Result<std::vector<Tensor>>(NotFound("no op or kernel {}", op));
      return;
    }
    attrs_.push_back(std::make_unique<op::AttrList>(std::move(attrs)));  // calls may outlive this one
    const op::AttrView view(*def, *attrs_.back());
    const Result<op::Signature> signature = op::Expand(view);
    if (!signature.ok()) {
      *answer = Result<std::vector<Tensor>>(signature.status());
      return;
    }
    kernel::BuiltinCall call{"node", view, std::move(inputs), std::vector<Tensor>(signature->outputs.size())};
    call.scope = &scope_;
    call.step_scope = &step_;
    call.cancellation = &cancellation_;
    if (kernel->async) {
      kernel->async(std::move(call),
                    runtime::Completion([answer](Result<std::vector<Tensor>> made) { *answer = std::move(made); }));
      return;
    }
    const Status status = kernel->fn(call);
    *answer = status.ok() ? Result<std::vector<Tensor>>(std::move(call.outputs)) : Result<std::vector<Tensor>>(status);
  }

  Result<std::vector<Tensor>> Call(const std::string& op, std::vector<Tensor> inputs, op::AttrList attrs = {}) {
    Answer answer;
    Start(op, std::move(inputs), std::move(attrs), &answer);
    return answer ? *answer : Result<std::vector<Tensor>>(Internal("{} waits", op));
  }
  /// Output 0, or an invalid tensor after a failed expectation.
  Tensor One(const std::string& op, std::vector<Tensor> inputs, op::AttrList attrs = {}) {
    Result<std::vector<Tensor>> outputs = Call(op, std::move(inputs), std::move(attrs));
    EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status().ToString();
    return outputs.ok() && !outputs->empty() ? (*outputs)[0] : Tensor();
  }
  void Refused(const Result<std::vector<Tensor>>& got, Code code, const std::string& text) {
    EXPECT_EQ(got.status().code(), code) << got.status().ToString();
    EXPECT_NE(got.status().message().find(text), std::string::npos) << got.status().ToString();
  }

  static Tensor Int(int32_t value) { return Tensor::Scalar(value); }
  static Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }
  static std::vector<float> Values(const Tensor& tensor) {
    const auto values = tensor.as<float>();
    return {values.begin(), values.end()};
  }

  std::vector<std::unique_ptr<op::AttrList>> attrs_;
  kernel::KernelRegistry kernels_;
  const op::OpRegistry* ops_ = nullptr;
  runtime::Cancellation cancellation_;
  runtime::ResourceScope scope_, step_;
};

}  // namespace weir::builtin

#endif  // WEIR_TESTS_UNIT_BUILTIN_CALLS_H_
