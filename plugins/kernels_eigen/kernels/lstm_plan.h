// Operands of the LSTM blocks: their extents, their checks, and the arithmetic of one step.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_LSTM_PLAN_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_LSTM_PLAN_H_

#include <algorithm>

#include "plugins/kernels_eigen/kernels/recurrent_plan.h"

namespace weir::kernels_eigen {

/// Extents and attributes. Operands from `x` on lie in TensorFlow's order: x, cs_prev, h_prev, w, wci, wcf, wco, b.
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
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_LSTM_PLAN_H_
