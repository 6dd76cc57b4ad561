// Accumulators of gradients. Waiting ops hold no thread.
#ifndef WEIR_CORE_BUILTIN_ACCUMULATOR_H_
#define WEIR_CORE_BUILTIN_ACCUMULATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/builtin/waiting_list.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// TensorFlow's conditional accumulator: adds gradients of several steps and gives their sum or mean once there are
/// enough of them. Texts of errors are TensorFlow's.
///
/// A gradient whose local step is behind the accumulator's step is dropped. Every take counts the step. A take without
/// enough gradients waits in the accumulator, first come, first served, and completes on the thread of the op that
/// brings the last one, or with the error of its cancelled step.
class Accumulator : public Resource, public std::enable_shared_from_this<Accumulator> {
 public:
  enum class Reduction : uint8_t { kMean, kSum };
  struct Options {
    DType dtype = DType::kFloat;  // half, float or double
    PartialShape shape = {};
    Reduction reduction = Reduction::kMean;
    bool operator==(const Options&) const = default;
  };
  /// `name`: of the node or the shared one.
  Accumulator(std::string name, Options options) : node_(std::move(name)), options_(std::move(options)) {}

  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;
  const Options& options() const { return options_; }
  std::string name() const;
  int32_t num_accumulated() const;

  /// Later takes count from `step`; smaller than the present one is allowed, with a line on stderr.
  void SetGlobalStep(int64_t step);
  /// Adds a gradient unless it is stale. `parts`: the tensors of a gradient.
  Status Apply(int64_t local_step, const std::vector<Tensor>& parts);
  /// `cancellation` may be null; otherwise it must outlive the completion.
  void Take(int32_t required, runtime::Cancellation* cancellation, runtime::Completion done);

 protected:
  void Clear() override;
  // These run under the lock. `count_` > 0 says that there is something to add to.
  virtual Status Check(const std::vector<Tensor>& parts) const = 0;
  virtual Status Add(const std::vector<Tensor>& parts) = 0;
  /// Moves the content out, reduced.
  virtual Result<std::vector<Tensor>> Reduced() = 0;
  virtual uint64_t Bytes() const = 0;
  virtual void Drop() = 0;
  int32_t count() const { return count_; }

 private:
  const std::string node_;
  const Options options_;
  WaitingList waiting_{WaitingList::Order::kFirst};  // its mutex protects all below and the content of subclasses
  int64_t step_ = 0;
  int32_t count_ = 0;
};

/// Of gradients with a value for each element.
class DenseAccumulator final : public Accumulator {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::ConditionalAccumulatorBase";
  using Accumulator::Accumulator;
  ~DenseAccumulator() override { Clear(); }
  std::string_view type_name() const override { return kTypeName; }

 protected:
  Status Check(const std::vector<Tensor>& parts) const override;
  Status Add(const std::vector<Tensor>& parts) override;
  Result<std::vector<Tensor>> Reduced() override;
  uint64_t Bytes() const override { return sum_.valid() ? sum_.bytes() : 0; }
  void Drop() override { sum_ = Tensor(); }

 private:
  Tensor sum_;
};

/// Of gradients with values for some rows: their tensors are indices (a vector), values (a row for each index) and, if
/// known, the shape of the whole. Rows are matched in the order of their indices. The mean of a row is that over the
/// gradients that have it.
class SparseAccumulator final : public Accumulator {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::SparseConditionalAccumulatorBase";
  using Accumulator::Accumulator;
  ~SparseAccumulator() override { Clear(); }
  std::string_view type_name() const override { return kTypeName; }

 protected:
  Status Check(const std::vector<Tensor>& parts) const override;
  Status Add(const std::vector<Tensor>& parts) override;
  /// Indices, values and shape.
  Result<std::vector<Tensor>> Reduced() override;
  uint64_t Bytes() const override { return values_.valid() ? values_.bytes() : 0; }
  void Drop() override;

 private:
  Status CheckOperands(const std::vector<Tensor>& parts) const;
  Status CheckWhole(const std::vector<Tensor>& parts) const;

  std::vector<int64_t> indices_;
  std::vector<int32_t> counts_;  // by row
  Tensor values_;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_ACCUMULATOR_H_
