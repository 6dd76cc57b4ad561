// Complex numbers: parts, lengths and angles, and the gradients through them, as TensorFlow 2.17 computes them.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Grads = std::vector<Gradient>;

#if defined(WEIR_KERNEL_DTYPES_SHORT)
constexpr bool kHasComplex = false;
#else
constexpr bool kHasComplex = true;
#endif

const op::AttrList kParts = {{"Tout", DType::kDouble}};
const op::AttrList kWhole = {{"Tout", DType::kComplex128}};

/// Constants of numbers are float by themselves.
Output Double(const Output& x) { return Cast(x, DType::kDouble); }
Output ComplexOf(const Output& re, const Output& im) { return BuildOp("Complex", {re, im}, kWhole).output(0); }
Output Part(const std::string& op, const Output& z) { return BuildOp(op, {z}, kParts).output(0); }

TEST(Complex, GradientsOfPartsLengthsAndAngles) {
  if (!kHasComplex) GTEST_SKIP() << "the kernels of this build take no complex numbers";
  struct Row {
    const char* op;
    std::vector<double> re, im;  // of the gradient
  };
  const Row rows[] = {
      {"Real", {1, -2, 0.5}, {0, 0, 0}},
      {"Imag", {0, 0, 0}, {1, -2, 0.5}},
      {"ComplexAbs", {0.31622776601683794, 1.9845557534273355, -0.3}, {0.9486832980505138, -0.24806946917841693, -0.4}},
      {"Angle", {-0.6, 0.12307692307692308, 0.08}, {0.2, 0.9846153846153847, -0.06}},
  };
  for (const Row& row : rows) {
    Fresh f;
    const Output re = Double(Constant({0.5, -2.0, -3.0})), im = Double(Constant({1.5, 0.25, -4.0}));
    const Output z = ComplexOf(re, im);
    const Output loss = ReduceSum(Part(row.op, z) * Double(Constant({1.0, -2.0, 0.5})));
    const Result<Grads> grads = Gradients({loss}, {z});
    ASSERT_TRUE(Succeeds(grads)) << row.op;
    Session session(f.graph);
    const std::vector<double> got_re = Values(session, Part("Real", (*grads)[0].values)),
                              got_im = Values(session, Part("Imag", (*grads)[0].values));
    ASSERT_EQ(got_re.size(), 3u) << row.op;
    ASSERT_EQ(got_im.size(), 3u) << row.op;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(got_re[i], row.re[i], 1e-14) << row.op << " " << i;
      EXPECT_NEAR(got_im[i], row.im[i], 1e-14) << row.op << " " << i;
    }
  }
}

TEST(Complex, GradientsReachBothPartsOfABroadcastNumber) {
  if (!kHasComplex) GTEST_SKIP() << "the kernels of this build take no complex numbers";
  Fresh f;
  const Output a = Double(Constant({{1.0}, {2.0}})), b = Double(Constant({3.0, -4.0, 0.5}));
  const Output z = ComplexOf(a, b);
  const Output weights = Double(Constant({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}));
  const Output loss = ReduceSum(Part("ComplexAbs", z * z) * weights);
  const Result<Grads> grads = Gradients({loss}, {a, b});
  ASSERT_TRUE(Succeeds(grads));
  Session session(f.graph);
  const std::vector<double> total = Values(session, loss), by_a = Values(session, (*grads)[0].values),
                            by_b = Values(session, (*grads)[1].values);
  ASSERT_EQ(total.size() + by_a.size() + by_b.size(), 6u);
  EXPECT_NEAR(total[0], 225.25, 1e-12);
  const double wanted_a[] = {12, 60}, wanted_b[] = {30, -56, 9};
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(by_a[i], wanted_a[i], 1e-12) << i;
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(by_b[i], wanted_b[i], 1e-12) << i;
}

TEST(Complex, TypesThatDoNotBelongTogetherAreRefused) {
  Fresh f;
  const Output re = Double(Constant({0.5, -2.0}));
  const Output z = BuildOp("Complex", {re, re}, {{"Tout", DType::kComplex64}}).output(0);
  Session session(f.graph);
  const Status mixed = session.Run(z).status();
  EXPECT_FALSE(mixed.ok());
  EXPECT_NE(mixed.code(), Code::kInternal) << mixed.ToString();
  EXPECT_TRUE(Fails(session.Run(BuildOp("Real", {re}, kParts).output(0)), Code::kInvalidArgument,
                    "DataType float64 not in list of allowed values: complex64, complex128"));
}

}  // namespace
}  // namespace weir::test
