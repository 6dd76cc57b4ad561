#include "tests/unit/sdk/plugin_harness.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdlib>
#include <set>

/// The node behind the harness's host table.
struct weir_node {
  std::string op;
  const weir::sdk::test::Attributes* attributes;
};

struct weir_ctx {
  std::vector<weir::sdk::test::Value>* inputs;
  std::vector<weir::sdk::test::Value>* outputs;
};

namespace weir::sdk::test {
namespace {

weir_str ViewOf(const std::string& text) { return {text.data(), text.size()}; }

weir_tensor TensorOf(Value& value) {
  weir_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = value.dtype;
  tensor.rank = static_cast<uint32_t>(value.dims.size());
  tensor.dims = value.dims.data();
  tensor.buf.handle = reinterpret_cast<uint64_t>(&value);
  tensor.buf.host = value.dtype == WEIR_STRING ? nullptr : value.storage.data();
  return tensor;
}
Value& ValueOf(const weir_tensor* tensor) { return *reinterpret_cast<Value*>(tensor->buf.handle); }

int32_t Attr(const weir_node* node, weir_str name, weir_attr* value) {
  const auto found = node->attributes->find(std::string(name.data, name.size));
  if (found == node->attributes->end()) return WEIR_NOT_FOUND;
  value->type = found->second.type;
  value->i = found->second.i;
  value->f = found->second.f;
  value->s = ViewOf(found->second.s);
  return WEIR_OK;
}

const weir_host& Host() {
  static const weir_host host = [] {
    weir_host h{};
    h.struct_size = sizeof h;
    h.node_name = [](const weir_node* node) { return ViewOf(node->op); };
    h.node_op = [](const weir_node* node) { return ViewOf(node->op); };
    h.attr = &Attr;
    h.node_resource = [](const weir_node* node, weir_str key, void* (*make)(void*), void (*)(void*),
                         void* arg) -> void* {
      const auto named = node->attributes->find("node");
      if (named == node->attributes->end()) return nullptr;
      static auto& objects = *new std::map<std::string, void*>;  // never destroyed
      void*& object = objects[named->second.s + "/" + std::string(key.data, key.size)];
      if (object == nullptr) object = make(arg);
      return object;
    };
    h.cancelled = [](weir_ctx*) -> int32_t { return 0; };
    h.input = [](weir_ctx* ctx, uint32_t i, weir_tensor* tensor) -> int32_t {
      if (i >= ctx->inputs->size()) return WEIR_INVALID_ARGUMENT;
      *tensor = TensorOf((*ctx->inputs)[i]);
      return WEIR_OK;
    };
    h.output = [](weir_ctx* ctx, uint32_t i, const weir_shape* shape, weir_tensor* tensor, weir_error*) -> int32_t {
      if (i >= ctx->outputs->size()) return WEIR_INVALID_ARGUMENT;
      Value& output = (*ctx->outputs)[i];
      const std::vector<int64_t> dims(shape->dims, shape->dims + shape->rank);
      output = output.dtype == WEIR_STRING ? Strings(dims, {}) : Blank(output.dtype, dims);
      output.texts.resize(output.dtype == WEIR_STRING ? static_cast<size_t>(output.size()) : 0);
      *tensor = TensorOf(output);
      return WEIR_OK;
    };
    h.string_visit = [](const weir_tensor* tensor, int32_t (*fn)(void*, uint64_t, weir_str), void* arg) -> int32_t {
      uint64_t i = 0;
      for (const std::string& text : ValueOf(tensor).texts) {
        if (fn(arg, i++, ViewOf(text)) != 0) break;
      }
      return WEIR_OK;
    };
    h.string_set = [](const weir_tensor* tensor, uint64_t i, weir_str text) -> int32_t {
      std::vector<std::string>& texts = ValueOf(tensor).texts;
      if (i >= texts.size()) return WEIR_OUT_OF_RANGE;
      texts[i].assign(text.data, text.size);
      return WEIR_OK;
    };
    return h;
  }();
  return host;
}

/// Runs the prepared function on `regs`, one call per tile.
int32_t RunTiles(const weir_prepared& prepared, const std::vector<weir_reg>& regs, weir_error* error) {
  const uint64_t tiles = std::max<uint64_t>(1, prepared.tiles);
  for (uint64_t tile = 0; tile < tiles; ++tile) {
    weir_env env{};
    env.struct_size = sizeof env;
    env.tile_begin = tile;
    env.tile_end = tile + 1;
    env.error = error;
    if (const int32_t code = prepared.fn(prepared.state, regs.data(), &env); code != WEIR_OK) return code;
  }
  return WEIR_OK;
}

/// Operands of one node, in the form of the ABI.
struct Operands {
  std::vector<weir_operand> operands;
  std::vector<const weir_operand*> pointers;
  std::vector<weir_tensor> constants;

  Operands(std::vector<Value>& values, bool constants_known) {
    operands.resize(values.size());
    constants.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      constants[i] = TensorOf(values[i]);
      operands[i] = {sizeof(weir_operand),
                     values[i].dtype,
                     WEIR_SPACE_HOST,
                     0,
                     values[i].shape(),
                     64,
                     constants_known ? &constants[i] : nullptr};
      pointers.push_back(&operands[i]);
    }
  }
};

}  // namespace

Value Blank(uint32_t dtype, std::vector<int64_t> dims) {
  Value value;
  value.dtype = dtype;
  value.dims = std::move(dims);
  value.storage.assign((static_cast<size_t>(value.size()) * SizeOf(dtype) + 7) / 8 + 8, 0xa5a5a5a5a5a5a5a5u);
  return value;
}

Value Strings(std::vector<int64_t> dims, std::vector<std::string> elements) {
  Value value;
  value.dtype = WEIR_STRING;
  value.dims = std::move(dims);
  value.texts = std::move(elements);
  return value;
}

Value AsType(const std::vector<double>& numbers, std::vector<int64_t> dims, uint32_t dtype) {
  Value value = Blank(dtype, std::move(dims));
  for (size_t i = 0; i < numbers.size(); ++i) {
    switch (dtype) {
      case WEIR_FLOAT32:
        value.data<float>()[i] = static_cast<float>(numbers[i]);
        break;
      case WEIR_FLOAT64:
        value.data<double>()[i] = numbers[i];
        break;
      case WEIR_FLOAT16:
        value.data<half>()[i] = half(static_cast<float>(numbers[i]));
        break;
      case WEIR_BFLOAT16:
        value.data<bfloat16>()[i] = bfloat16(static_cast<float>(numbers[i]));
        break;
      case WEIR_COMPLEX64:
        value.data<complex64>()[i] = static_cast<float>(numbers[i]);
        break;
      case WEIR_COMPLEX128:
        value.data<complex128>()[i] = numbers[i];
        break;
      case WEIR_INT8:
        value.data<int8_t>()[i] = static_cast<int8_t>(numbers[i]);
        break;
      case WEIR_INT16:
        value.data<int16_t>()[i] = static_cast<int16_t>(numbers[i]);
        break;
      case WEIR_INT32:
        value.data<int32_t>()[i] = static_cast<int32_t>(numbers[i]);
        break;
      case WEIR_INT64:
        value.data<int64_t>()[i] = static_cast<int64_t>(numbers[i]);
        break;
      case WEIR_UINT8:
        value.data<uint8_t>()[i] = static_cast<uint8_t>(numbers[i]);
        break;
      case WEIR_UINT16:
        value.data<uint16_t>()[i] = static_cast<uint16_t>(numbers[i]);
        break;
      case WEIR_UINT32:
        value.data<uint32_t>()[i] = static_cast<uint32_t>(numbers[i]);
        break;
      case WEIR_UINT64:
        value.data<uint64_t>()[i] = static_cast<uint64_t>(numbers[i]);
        break;
      case WEIR_BOOL:
        value.data<uint8_t>()[i] = numbers[i] != 0;
        break;
      default:
        ADD_FAILURE() << "no numbers of type " << dtype;
    }
  }
  return value;
}

std::vector<double> Numbers(const Value& value) {
  std::vector<double> numbers(static_cast<size_t>(value.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    switch (value.dtype) {
      case WEIR_FLOAT32:
        numbers[i] = value.data<float>()[i];
        break;
      case WEIR_FLOAT64:
        numbers[i] = value.data<double>()[i];
        break;
      case WEIR_FLOAT16:
        numbers[i] = value.data<half>()[i];
        break;
      case WEIR_BFLOAT16:
        numbers[i] = value.data<bfloat16>()[i];
        break;
      case WEIR_COMPLEX64:
        numbers[i] = value.data<complex64>()[i].real();
        break;
      case WEIR_COMPLEX128:
        numbers[i] = value.data<complex128>()[i].real();
        break;
      case WEIR_INT8:
        numbers[i] = value.data<int8_t>()[i];
        break;
      case WEIR_INT16:
        numbers[i] = value.data<int16_t>()[i];
        break;
      case WEIR_INT32:
        numbers[i] = value.data<int32_t>()[i];
        break;
      case WEIR_INT64:
        numbers[i] = static_cast<double>(value.data<int64_t>()[i]);
        break;
      case WEIR_UINT8:
        numbers[i] = value.data<uint8_t>()[i];
        break;
      case WEIR_UINT16:
        numbers[i] = value.data<uint16_t>()[i];
        break;
      case WEIR_UINT32:
        numbers[i] = value.data<uint32_t>()[i];
        break;
      case WEIR_UINT64:
        numbers[i] = static_cast<double>(value.data<uint64_t>()[i]);
        break;
      case WEIR_BOOL:
        numbers[i] = value.data<uint8_t>()[i];
        break;
      default:
        ADD_FAILURE() << "no numbers of type " << value.dtype;
    }
  }
  return numbers;
}

Plugin::Plugin(const std::string& file) {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  const std::string path = std::string(build != nullptr ? build : ".") + "/lib/weir/plugins/" + file;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    ADD_FAILURE() << dlerror();
    return;
  }
  const auto query = reinterpret_cast<weir_plugin_query_fn>(dlsym(handle, WEIR_PLUGIN_QUERY_SYMBOL));
  if (query == nullptr) {
    ADD_FAILURE() << path << " lacks the entry";
    return;
  }
  plugin_ = query(WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
  static std::set<const weir_plugin*> started;  // a plugin starts once per process
  if (plugin_ != nullptr && !started.insert(plugin_).second) return;
  if (plugin_ == nullptr || plugin_->init(&Host(), nullptr, 0, nullptr) != WEIR_OK)
    ADD_FAILURE() << path << " does not start";
}

const weir_kernel* Plugin::Find(const std::string& op, const Attributes& attributes) const {
  const auto* api = Interface<weir_kernels_api>(WEIR_KERNELS_INTERFACE);
  for (uint64_t i = 0; api != nullptr && i < api->kernel_count; ++i) {
    const weir_kernel* kernel = api->kernels[i];
    if (std::string(kernel->op.data, kernel->op.size) != op) continue;
    bool fits = true;
    for (uint32_t t = 0; t < kernel->type_count; ++t) {
      const auto found = attributes.find(std::string(kernel->types[t].attr.data, kernel->types[t].attr.size));
      if (found != attributes.end()) fits = fits && (kernel->types[t].dtypes & WEIR_DTYPE_BIT(found->second.i)) != 0;
    }
    if (fits) return kernel;
  }
  return nullptr;
}

weir_cost Plugin::Estimate(const std::string& op, const Attributes& attributes, std::vector<Value> inputs,
                           std::vector<Value> outputs) const {
  weir_cost cost{};
  cost.struct_size = sizeof cost;
  cost.whole_ns = -1;
  const weir_kernel* kernel = Find(op, attributes);
  if (kernel == nullptr || kernel->estimate == nullptr) return cost;
  const weir_node node{op, &attributes};
  Operands in(inputs, true), out(outputs, false);
  weir_prep_args args{};
  args.struct_size = sizeof args;
  args.node = &node;
  args.input_count = static_cast<uint32_t>(inputs.size());
  args.output_count = static_cast<uint32_t>(outputs.size());
  args.inputs = in.pointers.data();
  args.outputs = out.pointers.data();
  if (kernel->estimate(&args, nullptr, &cost, nullptr) != WEIR_OK) cost.whole_ns = -1;
  return cost;
}

Outcome Plugin::Call(const std::string& op, Attributes attributes, std::vector<Value> inputs,
                     std::vector<Value> outputs, const CallOptions& options) const {
  Outcome outcome;
  if (!attributes.contains("T") && !inputs.empty()) attributes["T"] = Type(inputs[0].dtype);
  const weir_kernel* kernel = Find(op, attributes);
  if (kernel == nullptr || kernel->prepare == nullptr) {
    outcome.code = WEIR_NOT_FOUND;
    outcome.message = "no kernel";
    return outcome;
  }
  char text[512];
  weir_error error{};
  error.struct_size = sizeof error;
  error.message = text;
  error.capacity = sizeof text;
  const weir_node node{op, &attributes};
  Operands in(inputs, options.constants), out(outputs, false);
  weir_prep_args args{};
  args.struct_size = sizeof args;
  args.node = &node;
  args.input_count = static_cast<uint32_t>(inputs.size());
  args.output_count = static_cast<uint32_t>(outputs.size());
  args.inputs = in.pointers.data();
  args.outputs = out.pointers.data();
  args.max_tiles = options.tiles;
  weir_prepared prepared{};
  prepared.struct_size = sizeof prepared;
  outcome.code = kernel->prepare(kernel->user, &args, &prepared, &error);
  if (outcome.code == WEIR_OK) {
    std::vector<weir_reg> regs;
    std::vector<weir_shape> shapes;
    shapes.reserve(inputs.size() + outputs.size());
    for (std::vector<Value>* values : {&inputs, &outputs}) {
      for (Value& value : *values) {
        shapes.push_back(value.shape());
        regs.push_back({reinterpret_cast<uint64_t>(value.storage.data()), 0, &shapes.back(), value.dtype, 0});
      }
    }
    for (uint32_t i = 0; i < prepared.alias_count; ++i) {
      const weir_alias& alias = prepared.aliases[i];
      const bool taken = alias.kind == WEIR_ALIAS_MUST || options.in_place;
      const bool first = i == 0 || prepared.aliases[i - 1].output != alias.output;
      if (taken && first) regs[inputs.size() + alias.output].data = regs[alias.input].data;
    }
    void* scratch = nullptr;
    if (prepared.scratch_bytes > 0) {
      // Exactly the requested size, so that a sanitizer detects overruns.
      scratch = std::aligned_alloc(64, (prepared.scratch_bytes + 63) / 64 * 64);
      std::memset(scratch, 0x5a, prepared.scratch_bytes);
      regs.push_back({reinterpret_cast<uint64_t>(scratch), 0, nullptr, 0, 0});
    }
    outcome.code = RunTiles(prepared, regs, &error);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const uint64_t data = regs[inputs.size() + i].data;
      const size_t bytes = static_cast<size_t>(outputs[i].size()) * SizeOf(outputs[i].dtype);
      if (data != reinterpret_cast<uint64_t>(outputs[i].storage.data())) {
        std::memcpy(outputs[i].storage.data(), reinterpret_cast<const void*>(data), bytes);
      }
    }
    std::free(scratch);
    kernel->unprepare(&prepared);
  }
  if (outcome.code != WEIR_OK) outcome.message.assign(text, error.length);
  outcome.outputs = std::move(outputs);
  outcome.inputs = std::move(inputs);
  return outcome;
}

const Plugin& Kernels() {
  static const Plugin plugin("kernels_eigen.so");
  return plugin;
}

}  // namespace weir::sdk::test
