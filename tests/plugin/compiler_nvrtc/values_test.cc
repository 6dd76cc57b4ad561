// Every op in every type: NVRTC compiles its source to PTX where it is installed, and the host's compiler compiles the
// same source, whose numbers are compared with those of the kernels.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "plugins/compiler_nvrtc/libraries.h"
#include "plugins/compiler_nvrtc/prelude.h"
#include "plugins/compiler_nvrtc/source.h"
#include "plugins/functors/region_ops.h"
#include "sdk/abi/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::compiler_nvrtc {
namespace {

using functors::Form;
using functors::OpRule;
using test::Array;
using test::RegionSpec;

constexpr uint32_t kTypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_INT8,
                               WEIR_INT16,   WEIR_INT32,   WEIR_INT64,   WEIR_UINT8,    WEIR_UINT16,
                               WEIR_UINT32,  WEIR_UINT64,  WEIR_BOOL};

/// What a host has in place of a device; `Call` passes the pointers of an array.
constexpr const char* kHostPrelude = R"(#include <bit>
#include <cmath>
#include <utility>
#include "sdk/cpp/types.h"
using namespace std;
#define WEIR_FN inline
#define __global__
#define __launch_bounds__(n)
WEIR_FN float HalfIn(unsigned short x) { weir::sdk::half y; y.bits = x; return y; }
WEIR_FN unsigned short HalfOut(float x) { return weir::sdk::half(x).bits; }
WEIR_FN float Real32(unsigned int bits) { return bit_cast<float>(bits); }
WEIR_FN double Real64(unsigned long long bits) { return bit_cast<double>(bits); }
WEIR_FN unsigned int Bits32(float x) { return bit_cast<unsigned int>(x); }
struct Extent { unsigned int x; };
static const Extent gridDim{1}, blockDim{1}, blockIdx{0}, threadIdx{0};
template <class... A, size_t... i>
void CallWith(void (*f)(A...), void** p, index_sequence<i...>) { f(static_cast<A>(p[i])...); }
template <class... A>
void Call(void (*f)(A...), void** p) { CallWith(f, p, index_sequence_for<A...>()); }
)";

bool Takes(const OpRule& rule, uint32_t dtype) {
  if (rule.form == Form::kReduce || rule.form == Form::kBias) return false;
  const bool divides = rule.form == Form::kDivide || rule.op == functors::Op::kFloorMod;
  if (divides && functors::IsInteger(dtype)) return false;
  return (rule.dtypes & WEIR_DTYPE_BIT(dtype)) != 0;
}

/// The ops that take operands of this type, as nodes of one region with a result each.
RegionSpec AllOpsOf(uint32_t dtype) {
  RegionSpec region;
  const test::Dims dims = {7, 13};
  const uint32_t x = region.Input(dtype, dims), y = region.Input(dtype, {13}), z = region.Input(dtype, {7, 1});
  const uint32_t which = region.Input(WEIR_BOOL, dims);
  for (const OpRule& rule : functors::region_internal::kRules) {
    const std::string op(rule.name);
    if (!Takes(rule, dtype)) continue;
    if (rule.form == Form::kCast) {
      for (const uint32_t to : kTypes) region.Output(region.Node(op, {x}, to, dims));
      continue;
    }
    // Names of one meaning that the reference does not repeat.
    const std::string_view same[] = {"AccumulateNV2", "Add", "Div", "Inv", "InvGrad", "Snapshot", "StopGradient"};
    if (std::find(std::begin(same), std::end(same), rule.name) != std::end(same)) continue;
    std::vector<uint32_t> operands = {x, y, z};
    if (rule.form == Form::kSelect) operands = {which, x, y};
    if (rule.operands != 0) operands.resize(rule.operands);
    uint32_t result = dtype;
    if (rule.form == Form::kTest) result = WEIR_BOOL;
    if (rule.form == Form::kCount) result = WEIR_UINT8;
    region.Output(region.Node(op, operands, result, dims));
  }
  return region;
}

Array NumbersOf(uint32_t dtype, const test::Dims& dims, uint64_t seed) {
  Array array = Array::Of(dtype, dims);
  std::mt19937_64 random(seed);
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, std::nan(""), 1, -1, 300, 1e6, 3e9, -3e9, 1e19};
  for (int64_t i = 0; i < array.size(); ++i) {
    const auto integer = static_cast<int64_t>(random());
    double real = static_cast<double>(integer % 4000) / 400;
    if (i % 5 == 0) real = special[static_cast<size_t>(i / 5) % std::size(special)];
    array.Set(i, {real, dtype == WEIR_BOOL ? integer & 1 : integer});
  }
  return array;
}

/// Compiles the text into a library and opens it; the folder is removed at the end.
class HostLibrary {
 public:
  explicit HostLibrary(const std::string& text) {
    char folder[] = "/tmp/weir_nvrtc_XXXXXX";
    if (mkdtemp(folder) == nullptr) return;
    folder_ = folder;
    const std::string source = folder_ + "/regions.cc", library = folder_ + "/regions.so";
    std::ofstream(source) << text;
    const char* const root = std::getenv("WEIR_SOURCE_DIR");
    const std::string command = "'" WEIR_TEST_COMPILER "' -std=c++20 -O0 -w -ffp-contract=off -shared -fPIC '-I" +
                                std::string(root != nullptr ? root : ".") + "' -o '" + library + "' '" + source + "'";
    if (std::system(command.c_str()) == 0) handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~HostLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  HostLibrary(const HostLibrary&) = delete;
  HostLibrary& operator=(const HostLibrary&) = delete;
  void (*Find(const std::string& name) const)(void**) {
    return handle_ == nullptr ? nullptr : reinterpret_cast<void (*)(void**)>(dlsym(handle_, name.c_str()));
  }

 private:
  std::string folder_;
  void* handle_ = nullptr;
};

std::string NameOf(uint32_t dtype) { return "ops_" + std::to_string(dtype); }

/// The kernels of all types, one behind the other.
std::string AllSources() {
  std::string text;
  for (const uint32_t dtype : kTypes) {
    RegionSpec region = AllOpsOf(dtype);
    std::string why;
    const std::optional<std::string> source = SourceOf(*region.Get(), NameOf(dtype), &why);
    EXPECT_TRUE(source) << "type " << dtype << ": " << why;
    if (source) text += *source;
  }
  return text;
}

TEST(NvrtcValues, NvrtcCompilesEveryOpInEveryType) {
  std::string ptx, why;
  if (!CompileToPtx("extern \"C\" __global__ void nothing() {}", &ptx, &why)) GTEST_SKIP() << why;
  ASSERT_TRUE(CompileToPtx(std::string(kDevicePrelude) + kPrelude + AllSources(), &ptx, &why)) << why;
  for (const uint32_t dtype : kTypes) {
    EXPECT_NE(ptx.find(".entry " + NameOf(dtype)), std::string::npos) << dtype;
  }
}

TEST(NvrtcValues, ProductsAndSumsAreNotFused) {
  RegionSpec region;
  const uint32_t x = region.Input(WEIR_FLOAT32, {8}), y = region.Input(WEIR_FLOAT32, {8});
  region.Output(region.Node("AddV2", {region.Node("Mul", {x, y}, WEIR_FLOAT32, {8}), y}, WEIR_FLOAT32, {8}));
  std::string ptx, why;
  const std::optional<std::string> source = SourceOf(*region.Get(), kEntry, &why);
  ASSERT_TRUE(source) << why;
  if (!CompileToPtx("extern \"C\" __global__ void nothing() {}", &ptx, &why)) GTEST_SKIP() << why;
  ASSERT_TRUE(CompileToPtx(std::string(kDevicePrelude) + kPrelude + *source, &ptx, &why)) << why;
  EXPECT_NE(ptx.find("mul"), ptx.npos);
  EXPECT_EQ(ptx.find("fma"), ptx.npos) << ptx;
}

TEST(NvrtcValues, TheSourceGivesTheNumbersOfTheKernels) {
  std::string text = kHostPrelude + std::string(kPrelude) + AllSources();
  for (const uint32_t dtype : kTypes) {
    text += "extern \"C\" void run_" + NameOf(dtype) + "(void** p) { Call(&" + NameOf(dtype) + ", p); }\n";
  }
  const HostLibrary library(text);
  for (const uint32_t dtype : kTypes) {
    SCOPED_TRACE("type " + std::to_string(dtype));
    auto* const run = library.Find("run_" + NameOf(dtype));
    ASSERT_NE(run, nullptr);
    RegionSpec region = AllOpsOf(dtype);
    std::vector<Array> inputs, outputs;
    std::vector<void*> pointers;
    for (size_t i = 0; i < region.inputs(); ++i) {
      inputs.push_back(NumbersOf(region.input(i).dtype, region.input(i).dims, 7 + i));
    }
    for (const uint32_t value : region.outputs()) {
      outputs.push_back(Array::Of(region.value(value).dtype, region.value(value).dims));
    }
    for (const Array& array : inputs) pointers.push_back(array.data());
    for (const Array& array : outputs) pointers.push_back(array.data());
    run(pointers.data());
    const std::vector<Array> wanted = test::Reference(region, inputs);
    ASSERT_EQ(wanted.size(), outputs.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      const RegionSpec::NodeSpec& node = region.nodes()[region.outputs()[k] - region.inputs()];
      const bool real = functors::IsFloating(node.result.dtype);
      const double most = test::IsInexact(node.op) ? 4 : 0;
      for (int64_t i = 0; i < outputs[k].size(); ++i) {
        const Array::Number want = wanted[k].At(i), have = outputs[k].At(i);
        const double apart = real ? test::UlpsBetween(node.result.dtype, want.real, have.real) : 0;
        ASSERT_LE(apart, most) << node.op << " [" << i << "]: wanted " << want.real << ", got " << have.real;
        ASSERT_TRUE(real || want.integer == have.integer)
            << node.op << " [" << i << "]: wanted " << want.integer << ", got " << have.integer;
      }
    }
  }
}

}  // namespace
}  // namespace weir::compiler_nvrtc
