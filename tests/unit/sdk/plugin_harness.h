// Calls the kernels and devices of built plugin files through their tables, with a host table for tests.
#ifndef WEIR_TESTS_UNIT_SDK_PLUGIN_HARNESS_H_
#define WEIR_TESTS_UNIT_SDK_PLUGIN_HARNESS_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sdk/abi/kernel.h"
#include "sdk/abi/plugin.h"
#include "sdk/cpp/types.h"

namespace weir::sdk::test {

/// A tensor by value. String tensors keep their elements in `texts`.
struct Value {
  uint32_t dtype = WEIR_INVALID;
  std::vector<int64_t> dims;
  std::vector<uint64_t> storage;  // 8-byte aligned bytes
  std::vector<std::string> texts;

  int64_t size() const {
    int64_t n = 1;
    for (const int64_t dim : dims) n *= dim;
    return n;
  }
  weir_shape shape() const { return {static_cast<uint32_t>(dims.size()), 0, dims.data()}; }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(storage.data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(storage.data());
  }
};

/// An uninitialised tensor, filled with 0xa5.
Value Blank(uint32_t dtype, std::vector<int64_t> dims);

template <class T>
Value Of(std::vector<int64_t> dims, const std::vector<T>& elements) {
  Value value = Blank(kDType<T>, std::move(dims));
  for (size_t i = 0; i < elements.size(); ++i) value.data<T>()[i] = elements[i];
  return value;
}
template <class T>
Value Scalar(T x) {
  return Of<T>({}, {x});
}
template <class T>
std::vector<T> Elements(const Value& value) {
  return std::vector<T>(value.data<T>(), value.data<T>() + value.size());
}
Value Strings(std::vector<int64_t> dims, std::vector<std::string> elements);
/// The same numbers in another floating point type, and any floating point tensor as doubles.
Value AsType(const std::vector<double>& numbers, std::vector<int64_t> dims, uint32_t dtype);
std::vector<double> Numbers(const Value& value);

/// An attribute: a number, a flag, a text or an element type.
struct Attribute {
  uint32_t type;
  int64_t i = 0;
  double f = 0;
  std::string s = {};
};
inline Attribute Flag(bool value) { return {WEIR_VALUE_BOOL, value}; }
inline Attribute Number(int64_t value) { return {WEIR_VALUE_INT, value}; }
inline Attribute Text(std::string value) { return {WEIR_VALUE_STRING, 0, 0, std::move(value)}; }
inline Attribute Type(uint32_t dtype) { return {WEIR_VALUE_DTYPE, dtype}; }

/// "node" names the node whose resources persist between calls; without it there are none.
using Attributes = std::map<std::string, Attribute>;

/// The result of a call: a code with its text, or the outputs. `inputs` has variables after their update.
struct Outcome {
  int32_t code = WEIR_OK;
  std::string message;
  std::vector<Value> outputs;
  std::vector<Value> inputs;
};

/// Options of a call: constant inputs are known to prepare; a shared buffer is used if an alias MAY be used.
struct CallOptions {
  bool constants = true;
  bool in_place = false;
  uint64_t tiles = 1;  // number of calls, one per tile, if the kernel allows it
};

/// One loaded plugin file. A failure to load fails the current test.
class Plugin {
 public:
  /// `file`: base name in the build's plugin folder. Stays loaded.
  explicit Plugin(const std::string& file);

  const weir_plugin* table() const { return plugin_; }
  template <class Api>
  const Api* Interface(const char* id) const {
    return plugin_ == nullptr ? nullptr : static_cast<const Api*>(plugin_->get_interface({id, std::strlen(id)}));
  }
  /// The record for an op with these types, or null.
  const weir_kernel* Find(const std::string& op, const Attributes& attributes) const;

  /// Prepares and calls the kernel of `op` once. `outputs`: types and shapes computed by the core's shape function.
  Outcome Call(const std::string& op, Attributes attributes, std::vector<Value> inputs, std::vector<Value> outputs,
               const CallOptions& options = {}) const;
  /// The estimate of the kernel of `op` for these operands, without a profile; `whole_ns` is -1 if there is no
  /// estimate.
  weir_cost Estimate(const std::string& op, const Attributes& attributes, std::vector<Value> inputs,
                     std::vector<Value> outputs) const;

 private:
  const weir_plugin* plugin_ = nullptr;
};

/// The plugin tested by most of these tests.
const Plugin& Kernels();

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace weir::sdk::test

#endif  // WEIR_TESTS_UNIT_SDK_PLUGIN_HARNESS_H_
