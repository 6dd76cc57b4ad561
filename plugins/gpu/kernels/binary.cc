// Elementwise functions of two operands, comparisons and logic. All broadcast, except the gradients.
#include "plugins/functors/binary.h"

#include "plugins/functors/activations.h"
#include "plugins/functors/approximate_equal_plan.h"
#include "plugins/functors/comparison.h"
#include "plugins/functors/special.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {
namespace {

/// With incompatible_shape_error false, operands that do not broadcast are unequal as a whole: the result is one
/// scalar.
template <class F, unsigned kKinds>
struct Equality : Binary<F, kKinds> {
  bool whole = false;

  int32_t Prepare(sdk::Prep& prep) {
    whole = prep.output(0).shape.rank == 0 && !prep.node().Bool("incompatible_shape_error", true) &&
            (prep.size(0) != 1 || prep.size(1) != 1);
    return whole ? WEIR_OK : Binary<F, kKinds>::Prepare(prep);
  }
  int32_t Run(sdk::Env& env, sdk::AnyInput x, sdk::AnyInput y, sdk::AnyOutput z) const {
    if (whole) return Fill(env, z.data(), F::kOfDifferentShapes ? 1 : 0, 1);
    return Binary<F, kKinds>::Run(env, x, y, z);
  }
};

template <class T>
struct ApproximateEqualWork {
  Ptr<const T> x, y;
  Ptr<char> z;
  T most;
  WEIR_GPU_FN void operator()(int64_t i) const { Boolean().Store(z.get(), i, std::fabs(x[i] - y[i]) <= most); }
};
struct ApproximateEqual : functors::ApproximateEqualPlan {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> x, sdk::View<const T> y, sdk::AnyOutput z) const {
    return Launch(env, z.size(), ApproximateEqualWork<T>{x.data(), y.data(), To(z), static_cast<T>(tolerance)});
  }
};

constexpr unsigned kPairNumbers = kFloats | kIntegers | kComplexes, kPairReals = kFloats | kIntegers,
                   kOrderedReals = kFloats | kIntegers | kUnsigned64, kPairArithmetic = kFloats | kComplexes;

void AddArithmetic(sdk::KernelTable& k) {
  namespace f = functors;
  for (const char* op : {"Add", "AddV2"}) AddBinary<f::Add, kPairNumbers>(k, op, kNumberBits);
  AddBinary<f::Sub, kPairNumbers>(k, "Sub", kNumberBits);
  AddBinary<f::Mul, kPairNumbers>(k, "Mul", kNumberBits);
  AddBinary<f::Div, kOrderedReals | kComplexes>(k, "Div", kNumberBits, 4);
  AddBinary<f::Div, kPairArithmetic>(k, "RealDiv", kNumberBits, 4);
  AddBinary<f::DivNoNan, kPairArithmetic>(k, "DivNoNan", kNumberBits, 4);
  AddBinary<f::FloorDiv, kOrderedReals>(k, "FloorDiv", kRealBits, 4);
  AddBinary<f::FloorMod, kOrderedReals>(k, "FloorMod", kRealBits, 10);
  AddBinary<f::TruncateDiv, kOrderedReals>(k, "TruncateDiv", kRealBits, 4);
  for (const char* op : {"TruncateMod", "Mod"}) {
    AddBinary<f::TruncateMod, kPairReals>(k, op, kFloatingBits | kIndexBits, 10);
  }
  AddBinary<f::Atan2, kFloats>(k, "Atan2", kFloatingBits, 25);
  AddBinary<f::NextAfter, kFloats | kWide>(k, "NextAfter", kFloatBits, 4);
  AddBinary<f::SquaredDifference, kPairReals>(k, "SquaredDifference", kFloatingBits | kIndexBits, 2);
  AddBinary<f::Pow, kPairReals>(k, "Pow", kFloatingBits | kSignedBits, 50);
  AddBinary<f::Maximum, kOrderedReals>(k, "Maximum", kRealBits);
  AddBinary<f::Minimum, kOrderedReals>(k, "Minimum", kRealBits);
  AddBinary<f::MulNoNan, kFloats>(k, "MulNoNan", kFloatingBits, 2);
  AddBinary<f::Xlogy, kFloats>(k, "Xlogy", kFloatingBits, 15);
  AddBinary<f::Xlog1py, kFloats>(k, "Xlog1py", kFloatingBits, 25);
  AddBinary<f::Xdivy, kPairArithmetic>(k, "Xdivy", kNumberBits, 4);
}

void AddComparisons(sdk::KernelTable& k) {
  namespace f = functors;
  constexpr unsigned kComparable = kPairNumbers | kBools;
  const auto add = [](sdk::Kernel& kernel) {
    kernel.Restrict("T", kNumberBits | kBoolBits).Class(WEIR_CLASS_ELEMENTWISE);
  };
  add(k.Add<Equality<f::Equal, kComparable>>("Equal"));
  add(k.Add<Equality<f::NotEqual, kComparable>>("NotEqual"));
  k.Add<ApproximateEqual>("ApproximateEqual", sdk::Types<float, double>()).Class(WEIR_CLASS_ELEMENTWISE);
  AddBinary<f::Less, kOrderedReals>(k, "Less", kRealBits);
  AddBinary<f::LessEqual, kOrderedReals>(k, "LessEqual", kRealBits);
  AddBinary<f::Greater, kOrderedReals>(k, "Greater", kRealBits);
  AddBinary<f::GreaterEqual, kOrderedReals>(k, "GreaterEqual", kRealBits);
  k.Add<Binary<f::LogicalAnd, kBools>>("LogicalAnd").Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Binary<f::LogicalOr, kBools>>("LogicalOr").Class(WEIR_CLASS_ELEMENTWISE);
}

void AddGradients(sdk::KernelTable& k) {
  namespace f = functors;
  AddPairwise<f::TanhGrad, kPairArithmetic>(k, "TanhGrad", kNumberBits, 3);
  AddPairwise<f::SigmoidGrad, kPairArithmetic>(k, "SigmoidGrad", kNumberBits, 3);
  for (const char* op : {"ReciprocalGrad", "InvGrad"}) {
    AddPairwise<f::ReciprocalGrad, kPairArithmetic>(k, op, kNumberBits, 3);
  }
  AddPairwise<f::SqrtGrad, kPairArithmetic>(k, "SqrtGrad", kNumberBits, 3);
  AddPairwise<f::RsqrtGrad, kPairArithmetic>(k, "RsqrtGrad", kNumberBits, 4);
  AddPairwise<f::ReluGrad, kPairReals>(k, "ReluGrad", kRealBits);
  AddPairwise<f::Relu6Grad, kPairReals>(k, "Relu6Grad", kRealBits);
  AddPairwise<f::EluGrad, kFloats>(k, "EluGrad", kFloatingBits, 2);
  AddPairwise<f::SeluGrad, kFloats>(k, "SeluGrad", kFloatingBits, 2);
  AddPairwise<f::SoftplusGrad, kFloats>(k, "SoftplusGrad", kFloatingBits, 15);
  AddPairwise<f::SoftsignGrad, kFloats>(k, "SoftsignGrad", kFloatingBits, 5);
}

}  // namespace

void AddBinaryFunctions(sdk::KernelTable& k) {
  AddArithmetic(k);
  AddComparisons(k);
  AddGradients(k);
}

}  // namespace weir::gpu
