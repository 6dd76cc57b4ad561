// Regions for tests of a compiler, the table of compiler_llvm, and values of regions computed node by node.
#ifndef WEIR_TESTS_PLUGIN_COMPILER_LLVM_REGIONS_H_
#define WEIR_TESTS_PLUGIN_COMPILER_LLVM_REGIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sdk/abi/compiler.h"

namespace weir::test {

using Dims = std::vector<int64_t>;

int64_t ElementsOf(const Dims& dims);

/// An array in memory, aligned to 64 bytes, with guarded memory behind it.
struct Array {
  struct alignas(64) Block {
    uint8_t bytes[64];
  };
  uint32_t dtype = 0;
  Dims dims;
  std::vector<Block> blocks;
  uint8_t* data() const { return const_cast<uint8_t*>(blocks.data()->bytes); }
  int64_t size() const { return ElementsOf(dims); }

  static Array Of(uint32_t dtype, Dims dims);
  /// An element as a number. Elements of 64-bit integers beyond 2^53 lose bits in `real`.
  struct Number {
    double real = 0;
    int64_t integer = 0;
  };
  Number At(int64_t i) const;
  /// Converts to the element type, exactly if it can hold the number.
  void Set(int64_t i, Number number);
};

/// A region under construction. Values are numbers: inputs first, then nodes.
class RegionSpec {
 public:
  uint32_t Input(uint32_t dtype, Dims dims);
  /// A constant of one element, also known to the compiler.
  uint32_t Constant(uint32_t dtype, double value);
  struct Attr {
    std::string key;
    double real = 0;
  };
  uint32_t Node(std::string op, std::vector<uint32_t> operands, uint32_t dtype, Dims dims,
                std::vector<int64_t> axes = {}, std::vector<Attr> attrs = {}, std::string data_format = "");
  void Output(uint32_t value) { outputs_.push_back(value); }
  /// Makes it a loop over its first inputs.
  void Loop(std::vector<uint32_t> next, uint32_t condition, uint64_t most_iterations) {
    next_ = std::move(next);
    loop_ = {sizeof loop_, static_cast<uint32_t>(next_.size()), next_.data(), condition, 0, most_iterations};
    is_loop_ = true;
    outputs_.clear();
    for (uint32_t i = 0; i < next_.size(); ++i) outputs_.push_back(i);
  }
  weir_region_loop& loop() { return loop_; }
  void SwapOutputs() { std::swap(outputs_.front(), outputs_.back()); }

  struct Value {
    uint32_t dtype;
    Dims dims;
    Array constant;  // empty: none
  };
  struct NodeSpec {
    std::string op;
    std::vector<uint32_t> operands;
    Value result;
    std::vector<int64_t> axes;
    std::vector<Attr> attrs;
    std::string data_format;
  };
  const Value& value(uint32_t v) const { return v < inputs_.size() ? inputs_[v] : nodes_[v - inputs_.size()].result; }
  size_t inputs() const { return inputs_.size(); }
  const Value& input(size_t i) const { return inputs_[i]; }
  const std::vector<NodeSpec>& nodes() const { return nodes_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }
  /// No inputs may be added after the first node.
  const weir_region* Get();

 private:
  std::vector<Value> inputs_;
  std::vector<NodeSpec> nodes_;
  std::vector<uint32_t> outputs_, next_;
  weir_region_loop loop_{};
  bool is_loop_ = false;
  std::vector<weir_region_value> input_records_;
  std::vector<weir_region_node> node_records_;
  std::vector<std::vector<weir_opt>> attr_records_;
  std::vector<const weir_region_value*> input_pointers_;
  std::vector<const weir_region_node*> node_pointers_;
  weir_region region_{};
};

/// The table of the plugin, loaded once.
const weir_compiler_api& Api();
/// "x86-64-v3" or "x86-64-v4".
weir_compile_target TargetOf(const char* isa);
/// The levels that this machine has, of those two.
std::vector<const char*> Levels();

struct Executable {
  weir_executable* handle = nullptr;
  int32_t code = WEIR_OK;
  std::string error;
  Executable() = default;
  Executable(Executable&& other) noexcept;
  ~Executable();
  explicit operator bool() const { return handle != nullptr; }
};
Executable CompileRegion(RegionSpec& region, const char* isa, uint64_t max_tiles = 1);
std::vector<uint8_t> SerializeOf(const Executable& executable);
Executable DeserializeOf(const std::vector<uint8_t>& bytes, const char* isa);

/// Runs all tiles, one call each if `by_tile`. Outputs are made by it, with guarded memory behind them; `in_place`
/// lets an output share the first input that the executable allows, whose array it overwrites.
std::vector<Array> RunExecutable(const Executable& executable, const RegionSpec& region, std::vector<Array>& inputs,
                                 bool by_tile = false, bool in_place = false);

/// The outputs computed node by node as kernels_eigen does. Functions like Exp are those of the C library, rounded.
std::vector<Array> Reference(const RegionSpec& region, const std::vector<Array>& inputs);

/// Ops whose results may differ from the reference in the last places.
bool IsInexact(const std::string& op);

/// Distance in units in the last place of the type; 0 for equal numbers and two NaN. A huge number if only one is NaN.
double UlpsBetween(uint32_t dtype, double a, double b);

}  // namespace weir::test

#endif  // WEIR_TESTS_PLUGIN_COMPILER_LLVM_REGIONS_H_
