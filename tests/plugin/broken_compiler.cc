// A small compiler, broken in one way by the number at the end of its folder's name; 0 is healthy. It interprets floats
// of one shape, element by element.
#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sdk/abi/compiler.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

int Fault() {
  static const int fault = [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&Fault), &info) == 0) return 0;
    std::string folder = info.dli_fname;
    folder.resize(folder.rfind('/'));
    return std::atoi(folder.c_str() + folder.rfind('_') + 1);
  }();
  return fault;
}

constexpr std::string_view kOps[] = {"AddV2", "Tanh", "Sub", "Mul", "Neg", "Maximum", "Square", "Relu"};

float Apply(int64_t op, float x, float y) {
  switch (op) {
    case 0:
      return x + y;
    case 1:
      return std::tanh(x);
    case 2:
      return Fault() == 3 ? x + y : x - y;
    case 3:
      return x * y;
    case 4:
      return -x;
    case 5:
      return x > y ? x : y;
    case 6:
      return x * x;
    default:
      return x > 0 ? x : 0;
  }
}

struct Node {
  int64_t op = 0, x = 0, y = 0;
};

struct Executable {
  std::vector<int64_t> dims, scalars, outputs;  // scalars: by input
  std::vector<Node> nodes;
  int64_t tiles = 1;
  bool restored = false;
  std::vector<int64_t> wrong = {1, 2, 3};
  std::vector<weir_region_value> values;
  std::vector<const weir_region_value*> pointers;

  std::vector<int64_t> Words() const {
    std::vector<int64_t> words = {static_cast<int64_t>(dims.size()), static_cast<int64_t>(scalars.size()),
                                  static_cast<int64_t>(outputs.size()), static_cast<int64_t>(nodes.size()), tiles};
    for (const auto* list : {&dims, &scalars, &outputs}) words.insert(words.end(), list->begin(), list->end());
    for (const Node& node : nodes) words.insert(words.end(), {node.op, node.x, node.y});
    uint64_t sum = 1;
    for (const int64_t word : words) sum = sum * 31 + static_cast<uint64_t>(word);
    words.push_back(static_cast<int64_t>(sum));
    return words;
  }
};

const Executable& Of(const void* executable) { return *static_cast<const Executable*>(executable); }

int32_t Claim(const weir_compile_target*, const weir_region* region, void (*emit)(void*, const weir_claim*), void* ctx,
              weir_error*) {
  std::vector<uint32_t> nodes;
  for (uint32_t i = 0; i < region->node_count; ++i) {
    if (Fault() != 1 || i != 1 || region->node_count < 3) nodes.push_back(i);
  }
  weir_claim claim{};
  claim.struct_size = sizeof claim;
  claim.node_count = static_cast<uint32_t>(nodes.size());
  claim.nodes = nodes.data();
  claim.predicted_ns = 100;
  claim.compile_ns = 100;
  emit(ctx, &claim);
  return WEIR_OK;
}

int32_t Compile(const weir_compile_target*, const weir_region* region, const weir_compile_options* options,
                const weir_cancel*, weir_executable** executable, weir_error* error) {
  auto made = std::make_unique<Executable>();
  const weir_shape& shape = region->nodes[0]->result.shape;
  made->dims.assign(shape.dims, shape.dims + shape.rank);
  for (uint32_t i = 0; i < region->input_count; ++i)
    made->scalars.push_back(region->inputs[i]->shape.rank == 0 ? 1 : 0);
  for (uint32_t i = 0; i < region->node_count; ++i) {
    const weir_region_node& node = *region->nodes[i];
    int64_t op = 0;
    while (op < 8 && kOps[op] != ToView(node.op)) ++op;
    if (op == 8 && Fault() != 7 && (Fault() != 9 || region->loop == nullptr))
      return Error(error).Unimplemented("op ", node.op);
    made->nodes.push_back({op, node.operands[0], node.operands[node.operand_count - 1]});
  }
  made->outputs.assign(region->outputs, region->outputs + region->output_count);
  made->tiles = static_cast<int64_t>(options->max_tiles);
  *executable = reinterpret_cast<weir_executable*>(made.release());
  return WEIR_OK;
}

int32_t IoSpec(const weir_executable* executable, weir_executable_spec* spec, weir_error*) {
  auto& made = const_cast<Executable&>(Of(executable));
  made.values.clear();
  made.pointers.clear();
  const auto add = [&](const std::vector<int64_t>& dims) {
    made.values.push_back(
        {sizeof(weir_region_value), WEIR_FLOAT32, {static_cast<uint32_t>(dims.size()), 0, dims.data()}, nullptr});
  };
  static const std::vector<int64_t> kScalar;
  for (const int64_t scalar : made.scalars) add(scalar != 0 ? kScalar : made.dims);
  for (size_t i = 0; i < made.outputs.size(); ++i) add(Fault() == 2 ? made.wrong : made.dims);
  for (const weir_region_value& value : made.values) made.pointers.push_back(&value);
  spec->input_count = static_cast<uint32_t>(made.scalars.size());
  spec->output_count = static_cast<uint32_t>(made.outputs.size());
  spec->inputs = made.pointers.data();
  spec->outputs = made.pointers.data() + made.scalars.size();
  spec->tiles = static_cast<uint64_t>(made.tiles);
  return WEIR_OK;
}

int32_t Execute(void* executable, const weir_reg* regs, const weir_env* env) {
  const Executable& made = Of(executable);
  int64_t count = 1;
  for (const int64_t dim : made.dims) count *= dim;
  const size_t inputs = made.scalars.size();
  const int64_t begin = count * static_cast<int64_t>(env->tile_begin) / made.tiles;
  const int64_t end = count * static_cast<int64_t>(env->tile_end) / made.tiles;
  for (int64_t i = begin; i < end; ++i) {
    std::vector<float> values;
    for (size_t j = 0; j < inputs; ++j) {
      values.push_back(reinterpret_cast<const float*>(regs[j].data)[made.scalars[j] != 0 ? 0 : i]);
    }
    for (const Node& node : made.nodes) {
      values.push_back(Apply(node.op, values[static_cast<size_t>(node.x)], values[static_cast<size_t>(node.y)]));
    }
    for (size_t j = 0; j < made.outputs.size(); ++j) {
      float value = values[static_cast<size_t>(made.outputs[j])];
      if (Fault() == 4 && env->tile_begin > 0) value = std::nextafter(value, 100.0f);
      if (Fault() == 5 && made.restored) value = std::nextafter(value, 100.0f);
      reinterpret_cast<float*>(regs[inputs + j].data)[i] = value;
    }
  }
  return WEIR_OK;
}

void Destroy(weir_executable* executable) { delete reinterpret_cast<Executable*>(executable); }

int32_t Serialize(const weir_executable* executable, int32_t (*sink)(void*, const void*, uint64_t), void* ctx,
                  weir_error*) {
  const std::vector<int64_t> words = Of(executable).Words();
  return sink(ctx, words.data(), words.size() * sizeof(int64_t));
}

std::unique_ptr<Executable> FromWords(const void* data, uint64_t bytes) {
  std::vector<int64_t> words(bytes / sizeof(int64_t));
  if (bytes % sizeof(int64_t) != 0 || words.size() < 6) return nullptr;
  std::memcpy(words.data(), data, bytes);
  auto made = std::make_unique<Executable>();
  const auto at = words.begin();
  const auto room = static_cast<int64_t>(words.size());
  for (int i = 0; i < 4; ++i) {
    if (at[i] < 0 || at[i] > room) return nullptr;
  }
  if (6 + at[0] + at[1] + at[2] + 3 * at[3] != room) return nullptr;
  auto next = at + 5;
  const auto take = [&](std::vector<int64_t>& list, int64_t size) {
    list.assign(next, next + size);
    next += size;
  };
  take(made->dims, at[0]);
  take(made->scalars, at[1]);
  take(made->outputs, at[2]);
  for (int64_t i = 0; i < at[3]; ++i, next += 3) made->nodes.push_back({next[0], next[1], next[2]});
  made->tiles = at[4];
  made->restored = true;
  return made->Words() == words ? std::move(made) : nullptr;
}

int32_t Deserialize(const weir_compile_target*, const void* data, uint64_t bytes, weir_executable** executable,
                    weir_error* error) {
  std::unique_ptr<Executable> made = FromWords(data, bytes);
  if (made == nullptr && Fault() == 6) made = std::make_unique<Executable>();
  if (made == nullptr) return Error(error).Fail(WEIR_DATA_LOSS, "these bytes are no executable");
  *executable = reinterpret_cast<weir_executable*>(made.release());
  return WEIR_OK;
}

int32_t Compat(const weir_compile_target*, const void* data, uint64_t bytes) {
  return FromWords(data, bytes) != nullptr ? WEIR_COMPAT_SAME : WEIR_COMPAT_INCOMPATIBLE;
}

void Key(const weir_compile_target*, void (*emit)(void*, weir_str), void* ctx) { emit(ctx, Str("1")); }

struct BrokenCompiler {
  static constexpr uint32_t kKind = WEIR_KIND_COMPILER;
  static const void* Interface(std::string_view id, std::string_view) {
    static const weir_compiler_api api = {sizeof api,  0,
                                          Claim,       Compile,
                                          IoSpec,      Execute,
                                          Destroy,     Serialize,
                                          Deserialize, Fault() == 8 ? nullptr : Compat,
                                          Key,         Fault() == 9 ? Claim : nullptr};
    return id == WEIR_COMPILER_INTERFACE ? &api : nullptr;
  }
};

}  // namespace

WEIR_PLUGIN("broken", "1.0.0", "weir", "cpu", BrokenCompiler)
