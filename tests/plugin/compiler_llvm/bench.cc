// compiler_llvm_bench: times compiled regions, and what compiling them costs. Not a test: its numbers depend on the
// machine.
//   compiler_llvm_bench                  the table
//   compiler_llvm_bench ISA NAME         the assembly of one case: compiler_llvm_bench x86-64-v4 "chain of 8"
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>

#include "plugins/compiler_llvm/backend/backend.h"
#include "plugins/compiler_llvm/plan.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

/// Processor time of this thread in ns, which other processes disturb less than the time of day.
double Now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}
double Since(double begin) { return Now() - begin; }

struct Case {
  const char* name;
  RegionSpec region;
  double bytes;
};

/// The chain of the peers' row B15b.
RegionSpec Chain(int64_t n) {
  RegionSpec r;
  const Dims dims = {n};
  const uint32_t x = r.Input(WEIR_FLOAT32, dims), c = r.Input(WEIR_FLOAT32, dims);
  const auto step = [&](uint32_t v, uint32_t plus, uint32_t minus) {
    v = r.Node("AddV2", {r.Node("Mul", {v, c}, WEIR_FLOAT32, dims), plus}, WEIR_FLOAT32, dims);
    return r.Node("Sub", {r.Node("Relu", {v}, WEIR_FLOAT32, dims), minus}, WEIR_FLOAT32, dims);
  };
  r.Output(step(step(x, c, x), x, c));
  return r;
}

RegionSpec Unary(const char* op, int64_t n) {
  RegionSpec r;
  const uint32_t x = r.Input(WEIR_FLOAT32, {n});
  r.Output(r.Node(op, {x}, WEIR_FLOAT32, {n}));
  return r;
}

RegionSpec BiasRelu(int64_t rows, int64_t columns) {
  RegionSpec r;
  const Dims whole = {rows, columns};
  const uint32_t x = r.Input(WEIR_FLOAT32, whole), bias = r.Input(WEIR_FLOAT32, {columns});
  r.Output(r.Node("Relu", {r.Node("BiasAdd", {x, bias}, WEIR_FLOAT32, whole)}, WEIR_FLOAT32, whole));
  return r;
}

RegionSpec Softmax(int64_t rows, int64_t columns) {
  RegionSpec r;
  const Dims whole = {rows, columns}, kept = {rows, 1};
  const uint32_t x = r.Input(WEIR_FLOAT32, whole);
  const uint32_t most = r.Node("Max", {x}, WEIR_FLOAT32, kept, {1});
  const uint32_t e = r.Node("Exp", {r.Node("Sub", {x, most}, WEIR_FLOAT32, whole)}, WEIR_FLOAT32, whole);
  const uint32_t sum = r.Node("Sum", {e}, WEIR_FLOAT32, kept, {1});
  r.Output(r.Node("RealDiv", {e, sum}, WEIR_FLOAT32, whole));
  return r;
}

RegionSpec LayerNorm(int64_t rows, int64_t columns) {
  RegionSpec r;
  const Dims whole = {rows, columns}, kept = {rows, 1}, row = {columns};
  const uint32_t x = r.Input(WEIR_FLOAT32, whole), gamma = r.Input(WEIR_FLOAT32, row),
                 beta = r.Input(WEIR_FLOAT32, row), epsilon = r.Constant(WEIR_FLOAT32, 1e-5);
  const uint32_t mean = r.Node("Mean", {x}, WEIR_FLOAT32, kept, {1});
  const uint32_t squares = r.Node("SquaredDifference", {x, mean}, WEIR_FLOAT32, whole);
  const uint32_t variance = r.Node("Mean", {squares}, WEIR_FLOAT32, kept, {1});
  const uint32_t scale =
      r.Node("Rsqrt", {r.Node("AddV2", {variance, epsilon}, WEIR_FLOAT32, kept)}, WEIR_FLOAT32, kept);
  const uint32_t centred = r.Node("Sub", {x, mean}, WEIR_FLOAT32, whole);
  const uint32_t scaled = r.Node("Mul", {centred, scale}, WEIR_FLOAT32, whole);
  const uint32_t weighted = r.Node("Mul", {scaled, gamma}, WEIR_FLOAT32, whole);
  r.Output(r.Node("AddV2", {weighted, beta}, WEIR_FLOAT32, whole));
  return r;
}

std::vector<Array> InputsOf(const RegionSpec& region) {
  std::vector<Array> inputs;
  for (size_t i = 0; i < region.inputs(); ++i) {
    const RegionSpec::Value& value = region.input(i);
    Array array = value.constant.blocks.empty() ? Array::Of(value.dtype, value.dims) : value.constant;
    if (value.constant.blocks.empty()) {
      auto* x = reinterpret_cast<float*>(array.data());
      for (int64_t k = 0; k < array.size(); ++k) x[k] = static_cast<float>(k % 1000) * 0.002f + 0.01f;
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

/// Runs registers of one case, all tiles in one call.
struct Runner {
  Executable executable;
  std::vector<Array> arrays;
  std::vector<weir_reg> regs;
  std::vector<uint8_t> scratch;
  uint64_t tiles = 1;

  Runner(RegionSpec& region, const char* isa) : executable(CompileRegion(region, isa)), arrays(InputsOf(region)) {
    if (!executable) std::printf("%s\n", executable.error.c_str());
    for (const uint32_t o : region.outputs()) arrays.push_back(Array::Of(region.value(o).dtype, region.value(o).dims));
    weir_executable_spec spec{};
    spec.struct_size = sizeof spec;
    Api().io_spec(executable.handle, &spec, nullptr);
    scratch.resize(spec.scratch_bytes + 64);
    tiles = std::max<uint64_t>(1, spec.tiles);
    for (const Array& array : arrays) {
      regs.push_back({reinterpret_cast<uint64_t>(array.data()), 0, nullptr, array.dtype, 0});
      std::memset(array.data(), 1, array.blocks.size() * 64 * (&array == &arrays.back()));
    }
    regs.push_back({(reinterpret_cast<uint64_t>(scratch.data()) + 63) / 64 * 64, 0, nullptr, 0, 0});
  }
  void Run() {
    weir_env env{};
    env.struct_size = sizeof env;
    env.tile_end = tiles;
    Api().execute(executable.handle, regs.data(), &env);
  }
};

double TimeOf(Runner& runner) {
  int64_t repeats = 1;
  for (;;) {
    const double begin = Now();
    for (int64_t i = 0; i < repeats; ++i) runner.Run();
    const double ns = Since(begin);
    if (ns > 2e7) return ns / static_cast<double>(repeats);
    repeats *= 2;
  }
}

double Best(const std::function<double()>& time, int rounds) {
  double best = 1e300;
  for (int i = 0; i < rounds; ++i) best = std::min(best, time());
  return best;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const int64_t n : {1 << 16, 1 << 20, 1 << 24}) {
    cases.push_back({"chain of 8", Chain(n), 12.0 * static_cast<double>(n)});
  }
  for (const char* op : {"Exp", "Log", "Tanh", "Sigmoid", "Log1p", "Erf"}) {
    cases.push_back({op, Unary(op, 1 << 16), 8.0 * 65536});
  }
  for (const int64_t n : {1, 10, 100, 1000}) cases.push_back({"short chain", Chain(n), 12.0 * static_cast<double>(n)});
  cases.push_back({"bias 100000x3", BiasRelu(100000, 3), 8.0 * 300000});
  cases.push_back({"bias 10000x64", BiasRelu(10000, 64), 8.0 * 640000});
  cases.push_back({"softmax 128x1000", Softmax(128, 1000), 8.0 * 128000});
  cases.push_back({"softmax 32x50000", Softmax(32, 50000), 8.0 * 1600000});
  cases.push_back({"layer norm 128x1000", LayerNorm(128, 1000), 8.0 * 128000});
  cases.push_back({"layer norm 32x50000", LayerNorm(32, 50000), 8.0 * 1600000});
  return cases;
}

void PrintAssembly(const char* isa, const std::string& name) {
  for (Case& c : AllCases()) {
    if (c.name != name) continue;
    std::string text;
    const std::optional<compiler_llvm::Graph> graph = compiler_llvm::ReadRegion(*c.region.Get(), &text);
    const std::optional<compiler_llvm::Program> program =
        compiler_llvm::PlanNest(*graph, compiler_llvm::Outputs::kChecked, &text);
    void* const library = dlopen(WEIR_LLVM_BACKEND, RTLD_NOW | RTLD_LOCAL);
    const auto entry = reinterpret_cast<compiler_llvm::BackendFn>(dlsym(library, WEIR_LLVM_BACKEND_SYMBOL));
    const bool wide = std::strcmp(isa, "x86-64-v4") == 0;
    (void)entry()->assembly(*program, wide ? compiler_llvm::Level::kV4 : compiler_llvm::Level::kV3, &text);
    std::printf("%s\n", text.c_str());
    return;
  }
}

void RunAll() {
  std::vector<Case> cases = AllCases();
  for (const char* isa : Levels()) {
    for (Case& c : cases) {
      Runner runner(c.region, isa);
      const double ns = Best([&] { return TimeOf(runner); }, 5);
      const double compile = Best(
          [&] {
            const double begin = Now();
            const Executable made = CompileRegion(c.region, isa);
            return Since(begin);
          },
          7);
      const std::vector<uint8_t> bytes = SerializeOf(runner.executable);
      const double load = Best(
          [&] {
            const double begin = Now();
            const Executable made = DeserializeOf(bytes, isa);
            return Since(begin);
          },
          7);
      std::printf("%s  %-20s %10.3f us  %6.2f GB/s  compiled in %6.2f ms, kept %5zu bytes, loaded in %.3f ms\n", isa,
                  c.name, ns / 1e3, c.bytes / ns, compile / 1e6, bytes.size(), load / 1e6);
    }
  }
}

}  // namespace
}  // namespace weir::test

int main(int count, char** arguments) {
  if (count == 3) {
    weir::test::PrintAssembly(arguments[1], arguments[2]);
  } else {
    weir::test::RunAll();
  }
  return 0;
}
