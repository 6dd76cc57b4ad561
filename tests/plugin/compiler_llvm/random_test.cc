// Random regions against the reference: the same bits, tiles and places of outputs whatever the loop is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "sdk/cpp/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

constexpr uint32_t kReals[] = {WEIR_FLOAT32, WEIR_FLOAT32, WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16};
constexpr uint32_t kBool = WEIR_BOOL;
constexpr uint32_t kInts[] = {WEIR_INT8,  WEIR_INT16,  WEIR_INT32,  WEIR_INT64,
                              WEIR_UINT8, WEIR_UINT16, WEIR_UINT32, WEIR_UINT64};
const std::vector<std::string> kRealUnary = {"Neg",   "Abs",  "Sign",  "Square", "Sqrt",  "Rsqrt",    "Reciprocal",
                                             "Floor", "Ceil", "Round", "Relu",   "Relu6", "Softsign", "LeakyRelu"};
const std::vector<std::string> kInexact = {"Exp", "Log", "Tanh", "Sigmoid", "Expm1", "Log1p", "Elu", "Softplus"};
const std::vector<std::string> kRealBinary = {
    "AddV2",    "Sub",      "Mul",      "RealDiv", "Maximum",     "Minimum",  "SquaredDifference", "DivNoNan",
    "FloorDiv", "ReluGrad", "TanhGrad", "Xdivy",   "SigmoidGrad", "SqrtGrad", "RsqrtGrad",         "EluGrad"};
const std::vector<std::string> kIntBinary = {"AddV2",      "Sub",       "Mul",        "Maximum",   "Minimum",
                                             "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"};
const std::vector<std::string> kTests = {"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"};
const std::vector<std::string> kReductions = {"Sum", "Mean", "Max", "Min", "Prod"};

/// Of a quarter: 25, or what the environment asks for.
int WantedRegions() {
  const char* const asked = std::getenv("WEIR_TEST_REGIONS");
  return asked == nullptr ? 25 : std::atoi(asked) / 4;
}

bool IsRealType(uint32_t dtype) {
  return dtype == WEIR_FLOAT32 || dtype == WEIR_FLOAT64 || dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  template <class List>
  auto Pick(const List& list) {
    return list[static_cast<size_t>(Below(static_cast<int64_t>(std::size(list))))];
  }

  RegionSpec Make() {
    const int64_t rank = Below(5);
    static constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 16, 31, 64, 65};
    for (int64_t i = 0; i < rank; ++i) dims_.push_back(Pick(kExtents));
    if (rank > 0 && Below(4) == 0) dims_.back() = Pick(std::vector<int64_t>{256, 300, 1000, 1023});
    while (ElementsOf(dims_) > 2000) *std::max_element(dims_.begin(), dims_.end()) = 2;
    const int64_t inputs = 1 + Below(4);
    for (int64_t i = 0; i < inputs; ++i) {
      const uint32_t dtype = Below(6) == 0 ? kBool : Below(3) == 0 ? Pick(kInts) : Pick(kReals);
      Add(region_.Input(dtype, i == 0 ? dims_ : Some(dims_)));
    }
    if (Below(2) == 0) Add(region_.Constant(Pick(kReals), static_cast<double>(Below(9)) / 4 - 1));
    if (Below(3) == 0) Add(region_.Constant(Pick(kInts), static_cast<double>(1 + Below(6))));
    const bool reduces = rank > 0 && Below(3) == 0;
    reduced_ = reduces ? 1 + Below(rank) : 0;
    const int64_t nodes = 1 + Below(8);
    for (int64_t i = 0; i < nodes; ++i) AddNode(reduces && Below(3) == 0);
    AddOutputs();
    return std::move(region_);
  }

  std::vector<Array> Inputs(const RegionSpec& region) {
    std::vector<Array> inputs;
    for (size_t i = 0; i < region.inputs(); ++i) {
      if (!region.input(i).constant.blocks.empty()) {
        inputs.push_back(region.input(i).constant);
        continue;
      }
      Array array = Array::Of(region.input(i).dtype, region.input(i).dims);
      for (int64_t k = 0; k < array.size(); ++k) array.Set(k, Element(array.dtype));
      inputs.push_back(std::move(array));
    }
    return inputs;
  }

 private:
  Array::Number Element(uint32_t dtype) {
    if (dtype == WEIR_BOOL) return {0, Below(2)};
    const int64_t kind = Below(40);
    if (IsRealType(dtype)) {
      if (kind == 0) return {std::nan(""), 0};
      if (kind == 1) return {INFINITY, 0};
      if (kind == 2) return {-0.0, 0};
      if (kind == 3) return {0.5 + static_cast<double>(Below(9)), 0};
      return {std::ldexp(static_cast<double>(Below(1 << 24) - (1 << 23)), static_cast<int>(-18 - Below(8))), 0};
    }
    if (kind < 20) return {0, Below(21) - 10};
    return {0, static_cast<int64_t>(random_())};
  }

  /// The dims with some extents 1, or without their first.
  Dims Some(const Dims& dims) {
    Dims some(dims.begin() + (dims.empty() ? 0 : Below(static_cast<int64_t>(dims.size()) + 1)), dims.end());
    for (int64_t& extent : some) {
      if (Below(4) == 0) extent = 1;
    }
    return some;
  }

  void Add(uint32_t value) { values_.push_back(value); }
  const RegionSpec::Value& At(uint32_t value) const { return region_.value(value); }
  bool IsEnd(uint32_t value) const { return std::find(ends_.begin(), ends_.end(), value) != ends_.end(); }

  /// A value of the type, or none. Results of inexact functions are not used again, since errors would grow.
  std::optional<uint32_t> Find(uint32_t dtype) {
    std::vector<uint32_t> found;
    for (const uint32_t value : values_) {
      if (At(value).dtype == dtype && !IsEnd(value)) found.push_back(value);
    }
    if (found.empty()) return std::nullopt;
    return Pick(found);
  }
  static Dims Joined(const std::vector<Dims>& all) {
    Dims joined;
    for (const Dims& dims : all) {
      if (dims.size() > joined.size()) joined.insert(joined.begin(), dims.size() - joined.size(), 1);
      for (size_t p = 0; p < dims.size(); ++p) {
        int64_t& extent = joined[joined.size() - 1 - p];
        extent = std::max(extent, dims[dims.size() - 1 - p]);
      }
    }
    return joined;
  }

  void AddNode(bool reduce) {
    uint32_t x = Pick(values_);
    for (int i = 0; i < 8 && IsEnd(x); ++i) x = Pick(values_);
    if (IsEnd(x)) return;
    const uint32_t dtype = At(x).dtype;
    const Dims dims = At(x).dims;
    if (reduce) return AddReduction(x, dtype, dims);
    const int64_t kind = Below(10);
    if (kind == 0) {
      const uint32_t to = Below(2) == 0 ? Pick(kReals) : Below(4) == 0 ? kBool : Pick(kInts);
      return Add(region_.Node("Cast", {x}, to, dims));
    }
    const uint32_t y = *Find(dtype);
    const Dims both = Joined({dims, At(y).dims});
    if (kind == 1) return Add(region_.Node(dtype == WEIR_BOOL ? "LogicalOr" : Pick(kTests), {x, y}, WEIR_BOOL, both));
    if (kind == 2) {
      const std::optional<uint32_t> condition = Find(WEIR_BOOL);
      if (!condition) return;
      return Add(region_.Node("SelectV2", {*condition, x, y}, dtype, Joined({both, At(*condition).dims})));
    }
    if (dtype == WEIR_BOOL) return Add(region_.Node("LogicalNot", {x}, WEIR_BOOL, dims));
    if (IsRealType(dtype)) {
      if (kind == 3) {
        const uint32_t end = region_.Node(Pick(kInexact), {x}, dtype, dims);
        ends_.push_back(end);
        return Add(end);
      }
      if (kind < 6) return Add(region_.Node(Pick(kRealUnary), {x}, dtype, dims));
      return Add(region_.Node(Pick(kRealBinary), {x, y}, dtype, both));
    }
    if (kind == 3) return Add(region_.Node("Square", {x}, dtype, dims));
    if (kind == 4) return Add(region_.Node("Invert", {x}, dtype, dims));
    Add(region_.Node(Pick(kIntBinary), {x, y}, dtype, both));
  }

  void AddReduction(uint32_t x, uint32_t dtype, Dims dims) {
    const auto rank = static_cast<int64_t>(dims.size());
    if (rank < reduced_) return;
    std::vector<int64_t> axes;
    for (int64_t axis = rank - reduced_; axis < rank; ++axis) {
      axes.push_back(axis);
      dims[static_cast<size_t>(axis)] = 1;
    }
    Add(region_.Node(dtype == WEIR_BOOL ? "Any" : Pick(kReductions), {x}, dtype, dims, axes));
  }

  /// Values that no node uses and that have the shape of the whole, or of what reductions leave of it.
  void AddOutputs() {
    std::vector<bool> used(values_.size(), false);
    for (const RegionSpec::NodeSpec& node : region_.nodes()) {
      for (const uint32_t operand : node.operands) used[operand] = true;
    }
    std::vector<Dims> all;
    for (const uint32_t value : values_) all.push_back(At(value).dims);
    const Dims whole = Joined(all);
    int64_t kept = 1;
    for (size_t i = 0; i + static_cast<size_t>(reduced_) < whole.size(); ++i) kept *= whole[i];
    for (uint32_t v = static_cast<uint32_t>(region_.inputs()); v < values_.size(); ++v) {
      if (used[v]) continue;
      const int64_t n = ElementsOf(At(v).dims);
      if (n == ElementsOf(whole) || (reduced_ > 0 && n == kept)) region_.Output(v);
    }
  }

  std::mt19937_64 random_;
  Dims dims_;
  int64_t reduced_ = 0;
  RegionSpec region_;
  std::vector<uint32_t> values_, ends_;
};

std::string Describe(const RegionSpec& region) {
  std::string text;
  const auto value = [&](uint32_t v) {
    text += " " + std::to_string(v) + ":t" + std::to_string(region.value(v).dtype) + "[";
    for (const int64_t extent : region.value(v).dims) text += std::to_string(extent) + ",";
    text += "]";
  };
  for (uint32_t i = 0; i < region.inputs(); ++i) value(i);
  for (size_t n = 0; n < region.nodes().size(); ++n) {
    text += "\n  " + region.nodes()[n].op;
    for (const uint32_t operand : region.nodes()[n].operands) text += " " + std::to_string(operand);
    text += " ->";
    value(static_cast<uint32_t>(region.inputs() + n));
  }
  return text;
}

void ExpectSame(const Array& want, const Array& have, double ulps) {
  for (int64_t i = 0; i < want.size(); ++i) {
    if (IsRealType(want.dtype)) {
      const double wanted = want.At(i).real, given = have.At(i).real;
      if (ulps > 0 && std::fabs(wanted) < 2e-38 && std::fabs(given) < 2e-38) continue;  // Sigmoid has no subnormal
      const double distance = UlpsBetween(want.dtype, wanted, given);
      ASSERT_LE(distance, ulps) << "element " << i << ": wanted " << want.At(i).real << ", got " << have.At(i).real;
    } else {
      ASSERT_EQ(want.At(i).integer, have.At(i).integer) << "element " << i;
    }
  }
}

double UlpsFor(const RegionSpec& region, uint32_t output) {
  return IsInexact(region.nodes()[output - region.inputs()].op) ? 4.5 : 0;
}

void CheckRegion(uint64_t seed, int* compiled) {
  Generator generator(seed);
  RegionSpec region = generator.Make();
  if (region.outputs().empty()) return;
  SCOPED_TRACE("seed " + std::to_string(seed) + Describe(region));
  const std::vector<const char*> levels = Levels();
  const Executable executable = CompileRegion(region, levels[seed % levels.size()], 1 + seed % 4);
  if (!executable) {
    ASSERT_EQ(executable.code, WEIR_UNIMPLEMENTED) << executable.error;
    ASSERT_FALSE(executable.error.empty());
    return;
  }
  ++*compiled;
  std::vector<Array> inputs = generator.Inputs(region);
  const std::vector<Array> wanted = Reference(region, inputs);
  const std::vector<Array> whole = RunExecutable(executable, region, inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    ExpectSame(wanted[i], whole[i], UlpsFor(region, region.outputs()[i]));
    if (testing::Test::HasFatalFailure()) return;
  }
  const std::vector<Array> in_place = RunExecutable(executable, region, inputs, true, true);
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE("in place, output " + std::to_string(i));
    ExpectSame(whole[i], in_place[i], 0);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// A quarter of the regions, so that several processors share them.
class CompilerLlvmRandom : public testing::TestWithParam<uint64_t> {};

TEST_P(CompilerLlvmRandom, F021_random_regions_have_the_numbers_of_their_ops) {
  if (Levels().empty()) GTEST_SKIP() << "the processor is below x86-64-v3";
  const int wanted = WantedRegions();
  int compiled = 0;
  const uint64_t first = GetParam() * 100000;
  for (uint64_t seed = first; seed < first + 2000 && compiled < wanted; ++seed) {
    CheckRegion(seed, &compiled);
    if (HasFatalFailure()) break;
  }
  EXPECT_EQ(compiled, wanted);
}
INSTANTIATE_TEST_SUITE_P(Quarters, CompilerLlvmRandom, testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace weir::test
