// A compiler in the test's own process, which does what a test tells it: well, or badly.
#ifndef WEIR_TESTS_UNIT_COMPILE_TEST_COMPILER_H_
#define WEIR_TESTS_UNIT_COMPILE_TEST_COMPILER_H_

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/device/error_record.h"
#include "core/kernel/compiler_entry.h"

namespace weir::compile::testing {

enum class Fault {
  kNone,
  kClaimsNothing,
  kClaimFails,
  kClaimThrows,
  kClaimHangs,
  kClaimsBeyond,
  kClaimsTwice,
  kClaimsNoNodes,
  kClaimsNoTime,
  kNotConvex,
  kCompileFails,
  kDeclines,
  kCompileThrows,
  kCompileHangs,
  kNoExecutable,
  kWrongShape,
  kWrongType,
  kWrongCount,
  kWrongAlias,
  kTooManyTiles,
  kTooMuchScratch,
  kSpecFails,
  kExecuteFails,
  kExecuteThrows,
};

/// The fault that the test compiler shows, and counts of its calls. There is one for all tests of the process.
struct Script {
  std::atomic<Fault> fault{Fault::kNone};  // an abandoned call may read it late
  std::atomic<int32_t> compat{WEIR_COMPAT_SAME};
  std::string key = "test 1";
  std::atomic<int> compiled{0}, deserialized{0}, alive{0}, in_call{0};
  std::atomic<bool> cancelled_seen{false};
};
inline Script& Told() {
  static Script script;
  return script;
}

struct TestNode {
  uint32_t op = 0;  // the first letter
  uint32_t operands[2] = {0, 0};
};

/// Floats of one shape through Neg, Square and AddV2, element by element.
struct TestExecutable {
  std::vector<std::vector<int64_t>> inputs;
  std::vector<int64_t> dims;
  std::vector<TestNode> nodes;
  std::vector<uint32_t> outputs;
  std::vector<weir_region_value> values;
  std::vector<const weir_region_value*> pointers;
  weir_alias alias{};
  TestExecutable() { ++Told().alive; }
  ~TestExecutable() { --Told().alive; }
};

inline int32_t TestClaim(const weir_compile_target*, const weir_region* region, void (*emit)(void*, const weir_claim*),
                         void* ctx, weir_error* error) {
  const Fault fault = Told().fault;
  if (fault == Fault::kClaimFails) return device::Report(error, WEIR_INTERNAL, "claim is broken");
  if (fault == Fault::kClaimThrows) throw std::runtime_error("from claim");
  if (fault == Fault::kClaimHangs) std::this_thread::sleep_for(std::chrono::milliseconds(600));
  if (fault == Fault::kClaimsNothing) return WEIR_OK;
  std::vector<uint32_t> nodes;
  for (uint32_t i = 0; i < region->node_count; ++i) nodes.push_back(i);
  if (fault == Fault::kClaimsBeyond) nodes.push_back(region->node_count);
  if (fault == Fault::kClaimsTwice) nodes.push_back(nodes.back());
  if (fault == Fault::kClaimsNoNodes) nodes.clear();
  if (fault == Fault::kNotConvex) nodes.erase(nodes.begin() + 1);
  weir_claim claim{};
  claim.struct_size = sizeof claim;
  claim.nodes = nodes.data();
  claim.node_count = static_cast<uint32_t>(nodes.size());
  claim.predicted_ns = fault == Fault::kClaimsNoTime ? -1 : 10;
  claim.compile_ns = 1000;
  const std::string reason = "as told";
  claim.reason = {reason.data(), reason.size()};
  emit(ctx, &claim);
  return WEIR_OK;
}

inline std::unique_ptr<TestExecutable> MakeExecutable(const weir_region* region) {
  auto made = std::make_unique<TestExecutable>();
  const auto dims_of = [](const weir_region_value& value) {
    return std::vector<int64_t>(value.shape.dims, value.shape.dims + value.shape.rank);
  };
  for (uint32_t i = 0; i < region->input_count; ++i) made->inputs.push_back(dims_of(*region->inputs[i]));
  for (uint32_t i = 0; i < region->node_count; ++i) {
    const weir_region_node& node = *region->nodes[i];
    made->nodes.push_back(
        {static_cast<uint32_t>(node.op.data[0]), {node.operands[0], node.operands[node.operand_count - 1]}});
  }
  made->dims = dims_of(region->nodes[0]->result);
  made->outputs.assign(region->outputs, region->outputs + region->output_count);
  return made;
}

inline int32_t TestCompile(const weir_compile_target*, const weir_region* region, const weir_compile_options*,
                           const weir_cancel* cancel, weir_executable** executable, weir_error* error) {
  ++Told().compiled;
  const Fault fault = Told().fault;
  if (fault == Fault::kCompileFails) return device::Report(error, WEIR_INTERNAL, "no code today");
  if (fault == Fault::kDeclines) return device::Report(error, WEIR_UNIMPLEMENTED, "not this one");
  if (fault == Fault::kCompileThrows) throw std::runtime_error("from compile");
  if (fault == Fault::kNoExecutable) return WEIR_OK;
  if (fault == Fault::kCompileHangs) {
    ++Told().in_call;
    while (cancel->cancelled(cancel) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Told().cancelled_seen = true;
    --Told().in_call;
    return device::Report(error, WEIR_CANCELLED, "asked to");
  }
  for (uint32_t i = 0; i < region->node_count; ++i) {
    const std::string op(region->nodes[i]->op.data, region->nodes[i]->op.size);
    if (op != "Neg" && op != "Square" && op != "AddV2") return device::Report(error, WEIR_UNIMPLEMENTED, op);
  }
  *executable = reinterpret_cast<weir_executable*>(MakeExecutable(region).release());
  return WEIR_OK;
}

inline int32_t TestSpec(const weir_executable* executable, weir_executable_spec* spec, weir_error* error) {
  auto* const made = const_cast<TestExecutable*>(reinterpret_cast<const TestExecutable*>(executable));
  const Fault fault = Told().fault;
  if (fault == Fault::kSpecFails) return device::Report(error, WEIR_INTERNAL, "no spec today");
  static const std::vector<int64_t> kOther = {3};
  made->values.clear();
  made->pointers.clear();
  for (const std::vector<int64_t>& dims : made->inputs) {
    made->values.push_back(
        {sizeof(weir_region_value), WEIR_FLOAT32, {static_cast<uint32_t>(dims.size()), 0, dims.data()}, nullptr});
  }
  for (size_t i = 0; i < made->outputs.size(); ++i) {
    const std::vector<int64_t>& dims = fault == Fault::kWrongShape ? kOther : made->dims;
    made->values.push_back({sizeof(weir_region_value),
                            fault == Fault::kWrongType ? uint32_t{WEIR_FLOAT64} : uint32_t{WEIR_FLOAT32},
                            {static_cast<uint32_t>(dims.size()), 0, dims.data()},
                            nullptr});
  }
  for (const weir_region_value& value : made->values) made->pointers.push_back(&value);
  spec->input_count = static_cast<uint32_t>(made->inputs.size());
  spec->output_count = static_cast<uint32_t>(made->outputs.size()) - (fault == Fault::kWrongCount ? 1 : 0);
  spec->inputs = made->pointers.data();
  spec->outputs = made->pointers.data() + made->inputs.size();
  if (fault == Fault::kWrongAlias) {
    made->alias = {9, 0, WEIR_ALIAS_MAY, 0};
    spec->aliases = &made->alias;
    spec->alias_count = 1;
  }
  spec->scratch_bytes = fault == Fault::kTooMuchScratch ? uint64_t{1} << 62 : 0;
  spec->tiles = fault == Fault::kTooManyTiles ? 1000 : 1;
  return WEIR_OK;
}

inline int32_t TestExecute(void* executable, const weir_reg* regs, const weir_env*) {
  const auto& made = *static_cast<const TestExecutable*>(executable);
  if (Told().fault == Fault::kExecuteFails) return WEIR_ABORTED;
  if (Told().fault == Fault::kExecuteThrows) throw std::runtime_error("from execute");
  int64_t count = 1;
  for (const int64_t dim : made.dims) count *= dim;
  const size_t inputs = made.inputs.size();
  std::vector<float> values(inputs + made.nodes.size());
  for (int64_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < inputs; ++j) values[j] = reinterpret_cast<const float*>(regs[j].data)[i];
    for (size_t j = 0; j < made.nodes.size(); ++j) {
      const auto& [op, operands] = made.nodes[j];
      const float x = values[operands[0]], y = values[operands[1]];
      values[inputs + j] = op == 'N' ? -x : op == 'S' ? x * x : x + y;
    }
    for (size_t j = 0; j < made.outputs.size(); ++j) {
      reinterpret_cast<float*>(regs[inputs + j].data)[i] = values[made.outputs[j]];
    }
  }
  return WEIR_OK;
}

inline void TestDestroy(weir_executable* executable) { delete reinterpret_cast<TestExecutable*>(executable); }

template <class T>
void PutList(std::string& bytes, const std::vector<T>& list) {
  const uint64_t size = list.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(reinterpret_cast<const char*>(list.data()), size * sizeof(T));
}
template <class T>
std::vector<T> GetList(const char*& at) {
  uint64_t size = 0;
  std::memcpy(&size, at, sizeof size);
  std::vector<T> list(size);
  std::memcpy(list.data(), at + sizeof size, size * sizeof(T));
  at += sizeof size + size * sizeof(T);
  return list;
}

inline int32_t TestSerialize(const weir_executable* executable, int32_t (*sink)(void*, const void*, uint64_t),
                             void* ctx, weir_error*) {
  const auto& made = *reinterpret_cast<const TestExecutable*>(executable);
  std::string bytes;
  PutList(bytes, std::vector<uint64_t>{made.inputs.size()});
  for (const auto& input : made.inputs) PutList(bytes, input);
  PutList(bytes, made.dims);
  PutList(bytes, made.nodes);
  PutList(bytes, made.outputs);
  const int32_t code = sink(ctx, bytes.data(), bytes.size() / 2);
  return code != WEIR_OK ? code : sink(ctx, bytes.data() + bytes.size() / 2, bytes.size() - bytes.size() / 2);
}

inline int32_t TestDeserialize(const weir_compile_target*, const void* data, uint64_t, weir_executable** executable,
                               weir_error*) {
  ++Told().deserialized;
  auto made = std::make_unique<TestExecutable>();
  const char* at = static_cast<const char*>(data);
  made->inputs.resize(GetList<uint64_t>(at)[0]);
  for (auto& input : made->inputs) input = GetList<int64_t>(at);
  made->dims = GetList<int64_t>(at);
  made->nodes = GetList<TestNode>(at);
  made->outputs = GetList<uint32_t>(at);
  *executable = reinterpret_cast<weir_executable*>(made.release());
  return WEIR_OK;
}

inline int32_t TestCompat(const weir_compile_target*, const void*, uint64_t) { return Told().compat; }
inline void TestKey(const weir_compile_target*, void (*emit)(void*, weir_str), void* ctx) {
  emit(ctx, {Told().key.data(), Told().key.size()});
}

/// The compiler; `keeps`: its executables can be serialized.
inline kernel::CompilerEntry TestCompiler(bool keeps = true) {
  static const weir_compiler_api full = {
      sizeof(weir_compiler_api), 0,          TestClaim, TestCompile, TestSpec, TestExecute, TestDestroy, TestSerialize,
      TestDeserialize,           TestCompat, TestKey};
  static const weir_compiler_api plain = [] {
    weir_compiler_api api = full;
    api.struct_size = offsetof(weir_compiler_api, serialize);
    return api;
  }();
  return {keeps ? &full : &plain, "test", "1.0", nullptr};
}

}  // namespace weir::compile::testing

#endif  // WEIR_TESTS_UNIT_COMPILE_TEST_COMPILER_H_
