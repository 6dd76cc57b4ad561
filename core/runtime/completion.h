// Completion of asynchronous operations.
#ifndef WEIR_CORE_RUNTIME_COMPLETION_H_
#define WEIR_CORE_RUNTIME_COMPLETION_H_

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/tensor.h"

namespace weir::runtime {

/// A function to be called exactly once, with a value or an error, on any thread. The call empties it. If it is dropped
/// uncalled, it is called with Internal, so that no operation waits forever. It does not re-enter the caller; call it
/// without holding locks nevertheless. Move-only.
template <class Value>
class OneShot {
 public:
  OneShot() = default;
  template <class F>
  requires std::invocable<F&, Result<Value>>
  explicit OneShot(F fn) : call_(std::make_unique<Holder<F>>(std::move(fn))) {}
  OneShot(OneShot&&) noexcept = default;
  OneShot& operator=(OneShot&& other) noexcept {
    Drop();
    call_ = std::move(other.call_);
    return *this;
  }
  ~OneShot() { Drop(); }

  /// True if it has not been called yet.
  explicit operator bool() const { return call_ != nullptr; }
  /// No effect if empty.
  void operator()(Result<Value> result) {
    if (const std::unique_ptr<Call> call = std::move(call_)) call->Run(std::move(result));
  }

 private:
  struct Call {
    virtual ~Call() = default;
    virtual void Run(Result<Value> result) = 0;
  };
  template <class F>
  struct Holder final : Call {
    explicit Holder(F function) : fn(std::move(function)) {}
    void Run(Result<Value> result) override { fn(std::move(result)); }
    F fn;
  };
  void Drop() {
    if (call_ != nullptr) (*this)(Internal("an operation was dropped before it completed"));
  }

  std::unique_ptr<Call> call_;
};

/// The completion of an op, with its outputs.
using Completion = OneShot<std::vector<Tensor>>;

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_COMPLETION_H_
