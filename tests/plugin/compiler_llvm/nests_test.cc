// Shapes of loops: broadcasts, reductions in several stages, tails, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sdk/cpp/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

constexpr uint32_t kF = WEIR_FLOAT32;

std::vector<Array> Filled(const RegionSpec& region) {
  std::vector<Array> inputs;
  uint32_t state = 1;
  for (size_t i = 0; i < region.inputs(); ++i) {
    Array array = Array::Of(region.input(i).dtype, region.input(i).dims);
    if (!region.input(i).constant.blocks.empty()) array = region.input(i).constant;
    for (int64_t k = 0; region.input(i).constant.blocks.empty() && k < array.size(); ++k) {
      state = state * 1664525 + 1013904223;
      const double x = static_cast<double>(state >> 8) / (1 << 22) - 2;
      array.Set(k, {x, static_cast<int64_t>(x * 8)});
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

/// The region gives what the reference gives, within `ulps` of the largest element, as a whole, by tiles, in place.
void ExpectRegion(RegionSpec& region, double ulps = 0) {
  for (const char* isa : Levels()) {
    const Executable executable = CompileRegion(region, isa, 8);
    ASSERT_TRUE(executable) << executable.error;
    std::vector<Array> inputs = Filled(region);
    const std::vector<Array> wanted = Reference(region, inputs);
    for (const bool by_tile : {false, true}) {
      std::vector<Array> own = inputs;
      const std::vector<Array> have = RunExecutable(executable, region, own, by_tile, by_tile);
      for (size_t o = 0; o < wanted.size(); ++o) {
        for (int64_t i = 0; i < wanted[o].size(); ++i) {
          const Array::Number a = wanted[o].At(i), b = have[o].At(i);
          ASSERT_TRUE(a.integer == b.integer && UlpsBetween(wanted[o].dtype, a.real, b.real) <= ulps)
              << isa << ", output " << o << ", element " << i << ": wanted " << a.real << ", got " << b.real;
        }
      }
    }
  }
}

TEST(CompilerLlvmNests, ChainsOfAllLengths) {
  for (const int64_t n : {1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 1000, 16384, 32785}) {
    SCOPED_TRACE(n);
    RegionSpec region;
    const Dims dims = {n};
    const uint32_t x = region.Input(kF, dims), y = region.Input(kF, dims), c = region.Constant(kF, 0.5);
    uint32_t v = region.Node("Mul", {x, y}, kF, dims);
    v = region.Node("AddV2", {v, c}, kF, dims);
    v = region.Node("Relu", {v}, kF, dims);
    region.Output(region.Node("Sub", {v, x}, kF, dims));
    ExpectRegion(region);
  }
}

TEST(CompilerLlvmNests, TypesOfEveryWidthInOneLoop) {
  for (const int64_t n : {1, 7, 63, 64, 65, 1000}) {
    SCOPED_TRACE(n);
    RegionSpec region;
    const Dims dims = {n};
    const uint32_t a = region.Input(WEIR_INT8, dims), b = region.Input(WEIR_FLOAT16, dims),
                   c = region.Input(WEIR_FLOAT64, dims), d = region.Input(WEIR_UINT16, dims);
    const uint32_t wide = region.Node("Cast", {b}, WEIR_FLOAT64, dims);
    const uint32_t sum = region.Node("AddV2", {wide, c}, WEIR_FLOAT64, dims);
    const uint32_t less = region.Node("Less", {sum, c}, WEIR_BOOL, dims);
    const uint32_t narrow = region.Node("Cast", {d}, WEIR_INT8, dims);
    region.Output(less);
    region.Output(region.Node("SelectV2", {less, a, narrow}, WEIR_INT8, dims));
    region.Output(region.Node("Square", {b}, WEIR_FLOAT16, dims));
    ExpectRegion(region);
  }
}

TEST(CompilerLlvmNests, BroadcastsOfEveryOperand) {
  const std::vector<std::pair<Dims, Dims>> pairs = {
      {{5, 7}, {7}},
      {{5, 7}, {5, 1}},
      {{5, 1}, {1, 7}},
      {{3, 1, 65}, {4, 1}},
      {{2, 3, 4}, {3, 1}},
      {{1, 65}, {33, 1}},
      {{2, 1, 3, 1, 5}, {4, 1, 2, 1}},
      {{2, 33000}, {33000}},
      {{5000, 3}, {3}},
      {{7}, {}},
  };
  for (const auto& [a, b] : pairs) {
    SCOPED_TRACE(testing::PrintToString(a) + testing::PrintToString(b));
    Dims both = a.size() >= b.size() ? a : b;
    const Dims& less = a.size() >= b.size() ? b : a;
    for (size_t p = 0; p < less.size(); ++p) {
      int64_t& extent = both[both.size() - 1 - p];
      extent = std::max(extent, less[less.size() - 1 - p]);
    }
    RegionSpec region;
    const uint32_t x = region.Input(kF, a), y = region.Input(kF, b);
    const uint32_t square = region.Node("Square", {y}, kF, b);
    region.Output(region.Node("Sub", {region.Node("Mul", {x, y}, kF, both), square}, kF, both));
    ExpectRegion(region);
  }
}

TEST(CompilerLlvmNests, BiasesOfBothLayouts) {
  for (const char* layout : {"NHWC", "NCHW"}) {
    RegionSpec region;
    const Dims dims = {2, 3, 4, 5};
    const uint32_t x = region.Input(kF, dims), bias = region.Input(kF, {layout[1] == 'C' ? 3 : 5});
    region.Output(region.Node("Relu", {region.Node("BiasAdd", {x, bias}, kF, dims, {}, {}, layout)}, kF, dims));
    ExpectRegion(region);
  }
}

TEST(CompilerLlvmNests, F021_softmax_and_layer_norm_are_one_nest) {
  for (const Dims& whole : std::vector<Dims>{{3, 1000}, {17, 7}, {2, 5, 64}, {31, 257}}) {
    SCOPED_TRACE(testing::PrintToString(whole));
    const auto axis = static_cast<int64_t>(whole.size() - 1);
    Dims kept = whole;
    kept.back() = 1;
    RegionSpec softmax;
    {
      const uint32_t x = softmax.Input(kF, whole);
      const uint32_t most = softmax.Node("Max", {x}, kF, kept, {axis});
      const uint32_t e = softmax.Node("Exp", {softmax.Node("Sub", {x, most}, kF, whole)}, kF, whole);
      const uint32_t sum = softmax.Node("Sum", {e}, kF, kept, {axis});
      softmax.Output(softmax.Node("RealDiv", {e, sum}, kF, whole));
    }
    ExpectRegion(softmax, 4);
    RegionSpec norm;
    const uint32_t x = norm.Input(kF, whole), gamma = norm.Input(kF, {whole.back()}), tiny = norm.Constant(kF, 1e-5);
    const uint32_t mean = norm.Node("Mean", {x}, kF, kept, {axis});
    const uint32_t squares = norm.Node("SquaredDifference", {x, mean}, kF, whole);
    const uint32_t variance = norm.Node("Mean", {squares}, kF, kept, {axis});
    const uint32_t scale = norm.Node("Rsqrt", {norm.Node("AddV2", {variance, tiny}, kF, kept)}, kF, kept);
    const uint32_t centred = norm.Node("Sub", {x, mean}, kF, whole);
    norm.Output(variance);
    norm.Output(norm.Node("Mul", {norm.Node("Mul", {centred, scale}, kF, whole), gamma}, kF, whole));
    ExpectRegion(norm);
  }
}

TEST(CompilerLlvmNests, ReductionsWithoutTheirAxes) {
  for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_INT32, WEIR_UINT8}) {
    for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
      SCOPED_TRACE(std::string(op) + std::to_string(dtype));
      RegionSpec region;
      const uint32_t x = region.Input(dtype, {6, 5, 103}), y = region.Input(dtype, {6});
      const uint32_t all = region.Node(op, {region.Node("Square", {x}, dtype, {6, 5, 103})}, dtype, {6}, {1, 2});
      region.Output(region.Node("AddV2", {all, y}, dtype, {6}));
      ExpectRegion(region);
    }
  }
}

TEST(CompilerLlvmNests, ScalarsHaveNoLoop) {
  RegionSpec region;
  const uint32_t i = region.Input(WEIR_INT32, {}), x = region.Input(kF, {}), one = region.Constant(WEIR_INT32, 1);
  const uint32_t next = region.Node("AddV2", {i, one}, WEIR_INT32, {});
  region.Output(next);
  region.Output(region.Node("Less", {next, i}, WEIR_BOOL, {}));
  region.Output(region.Node("Mul", {x, region.Node("Cast", {next}, kF, {})}, kF, {}));
  ExpectRegion(region);
}

TEST(CompilerLlvmNests, AnUpdateOfTwoVariablesIsDoneInPlace) {
  RegionSpec region;
  const Dims dims = {1003};
  const uint32_t variable = region.Input(kF, dims), momentum = region.Input(kF, dims),
                 gradient = region.Input(kF, dims), rate = region.Input(kF, {}), decay = region.Constant(kF, 0.9);
  const uint32_t moved = region.Node("AddV2", {region.Node("Mul", {momentum, decay}, kF, dims), gradient}, kF, dims);
  region.Output(moved);
  region.Output(region.Node("Sub", {variable, region.Node("Mul", {moved, rate}, kF, dims)}, kF, dims));
  ExpectRegion(region);
  weir_executable_spec spec{};
  spec.struct_size = sizeof spec;
  const Executable executable = CompileRegion(region, "x86-64-v3");
  ASSERT_EQ(Api().io_spec(executable.handle, &spec, nullptr), WEIR_OK);
  EXPECT_EQ(spec.alias_count, 6u) << "three inputs, each of two outputs";
}

struct Refused {
  const char* name;
  std::function<void(RegionSpec&)> make;
  const char* why;
};

TEST(CompilerLlvmNests, RefusesWhatItHasNoCodeFor) {
  const Refused cases[] = {
      {"op", [](RegionSpec& r) { r.Output(r.Node("Lgamma", {r.Input(kF, {4})}, kF, {4})); }, "no code for op 'Lgamma'"},
      {"type", [](RegionSpec& r) { r.Output(r.Node("Neg", {r.Input(WEIR_COMPLEX64, {4})}, WEIR_COMPLEX64, {4})); },
       "input 0: no code for its type or shape"},
      {"type of the op",
       [](RegionSpec& r) { r.Output(r.Node("Erf", {r.Input(WEIR_FLOAT64, {4})}, WEIR_FLOAT64, {4})); },
       "Erf: no code for the element type"},
      {"empty", [](RegionSpec& r) { r.Output(r.Node("Neg", {r.Input(kF, {0})}, kF, {0})); },
       "input 0: no code for its type or shape"},
      {"huge",
       [](RegionSpec& r) {
         r.Output(r.Node("Neg", {r.Input(kF, {1 << 30, 1 << 30})}, kF, {1 << 30, 1 << 30}));
       },
       "input 0: no code for its type or shape"},
      {"product of huge",
       [](RegionSpec& r) {
         const uint32_t x = r.Input(kF, {1 << 21, 1}), y = r.Input(kF, {1, 1 << 21});
         r.Output(r.Node("Mul", {x, y}, kF, {1 << 21, 1 << 21}));
       },
       "Mul: no code for its type or shape"},
      {"operands",
       [](RegionSpec& r) {
         const uint32_t x = r.Input(kF, {4}), y = r.Input(kF, {5});
         r.Output(r.Node("AddV2", {x, y}, kF, {5}));
       },
       "AddV2: operands that do not broadcast"},
      {"result", [](RegionSpec& r) { r.Output(r.Node("Neg", {r.Input(kF, {4})}, kF, {5})); },
       "Neg: a result of another shape"},
      {"result type", [](RegionSpec& r) { r.Output(r.Node("Neg", {r.Input(kF, {4})}, WEIR_FLOAT64, {4})); },
       "Neg: a result of the wrong type"},
      {"count", [](RegionSpec& r) { r.Output(r.Node("AddV2", {r.Input(kF, {4})}, kF, {4})); },
       "AddV2: wrong number of operands"},
      {"divisor",
       [](RegionSpec& r) {
         const uint32_t x = r.Input(WEIR_INT32, {4}), y = r.Input(WEIR_INT32, {4});
         r.Output(r.Node("FloorDiv", {x, y}, WEIR_INT32, {4}));
       },
       "FloorDiv: the integer divisor is not a known scalar other than 0"},
      {"zero",
       [](RegionSpec& r) {
         const uint32_t x = r.Input(WEIR_INT32, {4}), y = r.Constant(WEIR_INT32, 0);
         r.Output(r.Node("FloorDiv", {x, y}, WEIR_INT32, {4}));
       },
       "FloorDiv: the integer divisor is not a known scalar other than 0"},
      {"axes",
       [](RegionSpec& r) {
         r.Output(r.Node("Sum", {r.Input(kF, {4, 5})}, kF, {5}, {0}));
       },
       "Sum: axes that are not the last ones"},
      {"small output",
       [](RegionSpec& r) {
         const uint32_t x = r.Input(kF, {4, 5}), y = r.Input(kF, {5});
         const uint32_t n = r.Node("Neg", {y}, kF, {5});
         r.Output(n);
         r.Output(r.Node("AddV2", {x, n}, kF, {4, 5}));
       },
       "an output that is smaller than the nest"},
      {"two shapes",
       [](RegionSpec& r) {
         const uint32_t x = r.Input(kF, {4}), y = r.Input(kF, {5});
         r.Output(r.Node("Neg", {x}, kF, {4}));
         r.Output(r.Node("Neg", {y}, kF, {5}));
       },
       "values of different shapes"},
  };
  for (const Refused& refused : cases) {
    SCOPED_TRACE(refused.name);
    RegionSpec region;
    refused.make(region);
    const Executable executable = CompileRegion(region, "x86-64-v3");
    EXPECT_EQ(executable.code, WEIR_UNIMPLEMENTED);
    EXPECT_EQ(executable.error, refused.why);
  }
  RegionSpec fine;
  fine.Output(fine.Node("Neg", {fine.Input(kF, {4})}, kF, {4}));
  EXPECT_EQ(CompileRegion(fine, "x86-64-v2").error, "no code below x86-64-v3");
}

}  // namespace
}  // namespace weir::test
