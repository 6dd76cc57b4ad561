// Operands of recurrent blocks: their extents and their checks, and scratch memory in parts.
#ifndef WEIR_PLUGINS_FUNCTORS_LSTM_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_LSTM_PLAN_H_

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Checks with TensorFlow's texts; the first failure is kept.
class OperandCheck {
 public:
  explicit OperandCheck(const sdk::Prep& prep) : prep_(prep) {}
  int32_t code() const { return code_; }
  bool ok() const { return code_ == WEIR_OK; }

  void Rank(uint32_t i, std::string_view name, uint32_t rank) {
    const weir_shape& shape = prep_.shape(i);
    if (!ok() || shape.rank == rank) return;
    code_ = prep_.error().InvalidArgument(name, " must be ", rank, "D, got shape ", shape);
  }
  /// "cs_prev.dims(0) != batch_size: 3 vs. 2"; `what` is the part before the colon.
  void Extent(uint32_t i, uint32_t axis, std::string_view what, int64_t wanted) {
    if (!ok() || prep_.shape(i).dims[axis] == wanted) return;
    code_ = prep_.error().InvalidArgument(what, ": ", prep_.shape(i).dims[axis], " vs. ", wanted);
  }
  void Same(uint32_t i, std::string_view name, std::initializer_list<int64_t> dims) {
    const weir_shape wanted{static_cast<uint32_t>(dims.size()), 0, dims.begin()};
    if (!ok() || sdk::SameShape(prep_.shape(i), wanted)) return;
    code_ = prep_.error().InvalidArgument(name, " must have shape ", wanted, ", got ", prep_.shape(i));
  }
  void Output(uint32_t i, std::initializer_list<int64_t> dims) {
    if (ok()) code_ = ExpectOutput(prep_, i, std::vector<int64_t>(dims));
  }

 private:
  const sdk::Prep& prep_;
  int32_t code_ = WEIR_OK;
};

/// Parts of one block of scratch memory, each at a multiple of 64 bytes.
class FloatParts {
 public:
  /// Place of a part of n floats.
  int64_t Take(int64_t n) {
    const int64_t at = size_;
    size_ += (n + 15) / 16 * 16;
    return at;
  }
  /// The same of m * n floats; none if either is 0.
  int64_t Take(int64_t m, int64_t n) { return Take(m == 0 || n == 0 ? 0 : m * n); }
  uint64_t bytes() const { return static_cast<uint64_t>(size_) * sizeof(float); }

 private:
  int64_t size_ = 0;
};

/// Extents and attributes of an LSTM. Operands from `x` on lie in TensorFlow's order: x, cs_prev, h_prev, w, wci, wcf,
/// wco, b.
struct LstmPlan {
  int64_t time = 1, batch = 0, inputs = 0, cells = 0;
  bool peephole = false;
  // Columns of the gates in w and b, in units of `cells`: i, ci, f, o or i, f, ci, o.
  int64_t column_ci = 1, column_f = 2;

  int64_t gates() const { return 4 * cells; }
  int64_t state() const { return batch * cells; }  // elements of cs and h in one step

  /// Checks the eight operands from number `x` on; x has a time axis if `layer` is set.
  int32_t Plan(const sdk::Prep& prep, uint32_t x, bool layer) {
    OperandCheck check(prep);
    check.Rank(x, "x", layer ? 3 : 2);
    check.Rank(x + 1, "cs_prev", 2);
    check.Rank(x + 2, "h_prev", 2);
    check.Rank(x + 3, "w", 2);
    constexpr std::string_view kVectors[] = {"wci", "wcf", "wco", "b"};
    for (uint32_t i = 0; i < 4; ++i) check.Rank(x + 4 + i, kVectors[i], 1);
    if (!check.ok()) return check.code();
    const int64_t* dims = prep.shape(x).dims;
    if (layer) time = *dims++;
    batch = dims[0];
    inputs = dims[1];
    cells = prep.shape(x + 1).dims[1];
    if (std::max(cells, inputs) > INT64_MAX / 8) {
      return prep.error().InvalidArgument("input_size ", inputs, " and cell_size ", cells, " are too large");
    }
    peephole = prep.node().Bool("use_peephole");
    check.Extent(x + 1, 0, "cs_prev.dims(0) != batch_size", batch);
    check.Extent(x + 2, 0, "h_prev.dims(0) != batch_size", batch);
    check.Extent(x + 2, 1, "h_prev.dims(1) != cell_size", cells);
    check.Extent(x + 3, 0, "w.dim_size(0) != input_size + cell_size", inputs + cells);
    check.Extent(x + 3, 1, "w.dim_size(1) != cell_size * 4", gates());
    check.Extent(x + 4, 0, "wci.dim_size(0) != cell_size", cells);
    check.Extent(x + 5, 0, "wcf.dim_size(0) != cell_size", cells);
    check.Extent(x + 6, 0, "wco.dim_size(0) != cell_size", cells);
    check.Extent(x + 7, 0, "b.dim_size(0) != cell_size * 4", gates());
    return check.code();
  }
  /// The gates' order of BlockLSTMV2.
  void SwapGates() { std::swap(column_ci, column_f); }
  bool empty() const { return batch == 0 || cells == 0; }
  /// The values that the forward op gave, from operand `first` on, each of shape `dims`.
  static void CheckValues(OperandCheck& check, uint32_t first, bool layer, std::initializer_list<int64_t> dims) {
    constexpr std::string_view kNames[] = {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"};
    uint32_t at = first;
    for (uint32_t i = 0; i < 9; ++i) {
      if (i == 6 && !layer) continue;
      check.Same(at++, kNames[i], dims);
    }
  }
};

/// Extents of GRUBlockCell and of its gradient.
struct GruPlan {
  int64_t batch = 0, inputs = 0, cells = 0;

  int32_t Plan(const sdk::Prep& prep) {
    constexpr std::string_view kNames[] = {"x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"};
    for (uint32_t i = 0; i < 6; ++i) {
      const uint32_t rank = i < 4 ? 2 : 1;
      if (prep.shape(i).rank == rank) continue;
      return prep.error().InvalidArgument("Rank of ", kNames[i], " must be ", rank, ", got ", prep.shape(i).rank);
    }
    batch = prep.shape(0).dims[0];
    inputs = prep.shape(0).dims[1];
    cells = prep.shape(1).dims[1];
    if (std::max(cells, inputs) > INT64_MAX / 8) {
      return prep.error().InvalidArgument("input_size ", inputs, " and cell_size ", cells, " are too large");
    }
    OperandCheck check(prep);
    check.Extent(1, 0, "h_prev.dims(0) != batch_size", batch);
    check.Extent(2, 0, "w_ru.dim_size(0) != input_size + cell_size", inputs + cells);
    check.Extent(2, 1, "w_ru.dim_size(1) != cell_size * 2", 2 * cells);
    check.Extent(3, 0, "w_c.dim_size(0) != input_size + cell_size", inputs + cells);
    check.Extent(3, 1, "w_c.dim_size(1) != cell_size", cells);
    check.Extent(4, 0, "b_ru.dim_size(0) != cell_size * 2", 2 * cells);
    check.Extent(5, 0, "b_c.dim_size(0) != cell_size", cells);
    for (uint32_t i = 0; i < 4; ++i) check.Output(i, {batch, cells});
    return check.code();
  }
  int32_t PlanGradient(const sdk::Prep& prep) {
    OperandCheck check(prep);
    check.Rank(0, "x", 2);
    check.Rank(1, "h_prev", 2);
    if (!check.ok()) return check.code();
    batch = prep.shape(0).dims[0];
    inputs = prep.shape(0).dims[1];
    cells = prep.shape(1).dims[1];
    if (std::max(cells, inputs) > INT64_MAX / 8) {
      return prep.error().InvalidArgument("input_size ", inputs, " and cell_size ", cells, " are too large");
    }
    check.Same(1, "h_prev", {batch, cells});
    check.Same(2, "w_ru", {inputs + cells, 2 * cells});
    check.Same(3, "w_c", {inputs + cells, cells});
    check.Same(4, "b_ru", {2 * cells});
    check.Same(5, "b_c", {cells});
    constexpr std::string_view kNames[] = {"r", "u", "c", "d_h"};
    for (uint32_t i = 0; i < 4; ++i) check.Same(6 + i, kNames[i], {batch, cells});
    check.Output(0, {batch, inputs});
    check.Output(1, {batch, cells});
    check.Output(2, {batch, cells});
    check.Output(3, {batch, 2 * cells});
    return check.code();
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_LSTM_PLAN_H_
