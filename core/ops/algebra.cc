#include "core/ops/algebra.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace weir::ops {
namespace {

struct Row {
  std::string_view op;
  Algebra algebra;
};

/// Sorted by op.
constexpr Row kRows[] = {
    {"Add", Algebra::kSum},
    {"AddV2", Algebra::kSum},
    {"BiasAdd", Algebra::kBiasSum},
    {"Cast", Algebra::kCast},
    {"Conj", Algebra::kInvolution},
    {"Conv2D", Algebra::kConvolution},
    {"Conv3D", Algebra::kConvolution},
    {"DepthwiseConv2dNative", Algebra::kDepthwise},
    {"Div", Algebra::kQuotient},
    {"FusedBatchNorm", Algebra::kBatchNorm},
    {"FusedBatchNormV2", Algebra::kBatchNorm},
    {"FusedBatchNormV3", Algebra::kBatchNorm},
    {"Invert", Algebra::kInvolution},
    {"LogicalNot", Algebra::kInvolution},
    {"Mul", Algebra::kProduct},
    {"Neg", Algebra::kInvolution},
    {"RealDiv", Algebra::kQuotient},
    {"Reshape", Algebra::kReshape},
    {"Sub", Algebra::kDifference},
    {"Transpose", Algebra::kTranspose},
};
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows),
                             [](const Row& a, const Row& b) { return a.op < b.op; }));

}  // namespace

Algebra AlgebraOf(const op::OpDef& op) {
  const auto* const row = std::ranges::lower_bound(kRows, std::string_view(op.name), {}, &Row::op);
  return row != std::end(kRows) && row->op == op.name ? row->algebra : Algebra::kNone;
}

}  // namespace weir::ops
