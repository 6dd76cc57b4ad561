// Products of floats over panels: the right matrix lies in the order in which the innermost loop reads it.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PANELS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PANELS_H_

#include <cstdint>

namespace weir::kernels_eigen {

/// A matrix whose element (i, j) is at elements[i * row_step + j * column_step]. One of the steps is 1.
struct StepMatrix {
  const float* elements;
  int64_t row_step, column_step;

  const float* At(int64_t i, int64_t j) const { return elements + i * row_step + j * column_step; }
};

/// A matrix whose rows consist of `runs` dense parts: element (i, q * length + p) is at
/// elements[i * row_step + q * run_step + p], or with `offsets` at elements[offsets[i] + q * run_step + p].
struct RunMatrix {
  const float* elements;
  const int64_t* offsets;  // null: rows have equal distances
  int64_t row_step, runs, run_step, length;
};

/// Rows of a right matrix that are multiplied at once. The order of the sums is: the products of rows [0, kPanelDepth)
/// one after the other, then the sum of the next rows is added to it, and so on.
constexpr int64_t kPanelDepth = 512;

/// Elements of a packed [k, n] matrix: for each kPanelDepth rows, panels of as many columns as the innermost loop makes
/// at once, the last one filled up with zeros.
int64_t PackedElements(int64_t k, int64_t n);
/// The distance of a row of a panel from the one before.
int64_t PanelStep();
/// Rows [first, first + depth) of the panels at `to` of `rows` rows that are multiplied at once. `to` is 64-byte
/// aligned.
void PackRows(const StepMatrix& b, int64_t depth, int64_t n, float* to, int64_t first, int64_t rows);
/// The panels of all rows. `to` is 64-byte aligned.
void PackPanels(const StepMatrix& b, int64_t k, int64_t n, float* to);

/// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns.
void TransposeFloats(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step);

/// Elements of scratch memory for a left matrix [m, k].
int64_t LeftScratch(int64_t m, int64_t k);
/// c [m, n] = a packed, plus `addend` [m, n] if that is not null, which may be c. `c_step` and `addend_step` are the
/// distances of rows; 0 adds one row to all. k > 0; `scratch` is 64-byte aligned. The bits of a row of c do not depend
/// on m.
void MultiplyPanels(const StepMatrix& a, const float* packed, int64_t m, int64_t k, int64_t n, float* c, int64_t c_step,
                    const float* addend, int64_t addend_step, float* scratch);

/// c [m, n] = a packed, plus c if `adds`, where c is dense and `packed` has the panels of as many rows as a has
/// columns.
void MultiplyRuns(const RunMatrix& a, const float* packed, int64_t m, int64_t n, float* c, bool adds);

/// Parts of a matrix [runs * length, n], which threads make apart: each has some rows of a run and the columns of a
/// panel. They are numbered panel by panel.
int64_t TurnedParts(int64_t runs, int64_t length, int64_t n);
/// A range of such parts.
struct PartRange {
  int64_t begin, end;
};
/// A range of columns.
struct ColumnRange {
  int64_t first, count;
};
/// The columns of the panels in which these parts lie.
ColumnRange ColumnsOf(const PartRange& parts, int64_t runs, int64_t length, int64_t n);
/// The parts of c [runs * length, n] = the transpose of a [m, runs * length] times b [m, n], plus c if `adds`, where c
/// is dense and `packed` has the panels of the columns of b that the parts lie in. Products are added in the order of
/// rows, so the bits of c do not depend on the parts that a call makes.
void MultiplyTurnedRuns(const RunMatrix& a, const float* packed, int64_t m, int64_t n, const PartRange& parts, float* c,
                        bool adds);

/// Elements of scratch memory for MultiplyMatrices.
int64_t ProductScratch(int64_t m, int64_t k, int64_t n);
/// The same for dense c and addend and a right matrix that is not packed: it is, part by part.
void MultiplyMatrices(const StepMatrix& a, const StepMatrix& b, int64_t m, int64_t k, int64_t n, float* c,
                      const float* addend, float* scratch);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PANELS_H_
