#include "tests/plugin/compiler_llvm/regions.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "sdk/abi/plugin.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/status.h"
#include "sdk/cpp/types.h"

namespace weir::test {
namespace {

constexpr size_t kGuard = 64;  // bytes behind an output that no one may write

template <class T>
T Load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
void StoreAs(uint8_t* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

}  // namespace

int64_t ElementsOf(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t extent : dims) n *= extent;
  return n;
}

Array Array::Of(uint32_t dtype, Dims dims) {
  Array array{dtype, std::move(dims), {}};
  array.blocks.resize((static_cast<size_t>(array.size()) * sdk::SizeOf(dtype) + kGuard + 63) / 64);
  return array;
}

Array::Number Array::At(int64_t i) const {
  const uint8_t* p = data() + i * sdk::SizeOf(dtype);
  const auto integer = [](auto n) { return Number{static_cast<double>(n), static_cast<int64_t>(n)}; };
  switch (dtype) {
    case WEIR_FLOAT32:
      return {static_cast<double>(Load<float>(p)), 0};
    case WEIR_FLOAT64:
      return {Load<double>(p), 0};
    case WEIR_FLOAT16:
      return {static_cast<double>(static_cast<float>(Load<sdk::half>(p))), 0};
    case WEIR_BFLOAT16:
      return {static_cast<double>(static_cast<float>(Load<sdk::bfloat16>(p))), 0};
    case WEIR_INT8:
      return integer(Load<int8_t>(p));
    case WEIR_INT16:
      return integer(Load<int16_t>(p));
    case WEIR_INT32:
      return integer(Load<int32_t>(p));
    case WEIR_INT64:
      return integer(Load<int64_t>(p));
    case WEIR_UINT8:
      return integer(Load<uint8_t>(p));
    case WEIR_UINT16:
      return integer(Load<uint16_t>(p));
    case WEIR_UINT32:
      return integer(Load<uint32_t>(p));
    case WEIR_UINT64:
      return integer(Load<uint64_t>(p));
    default:
      return integer(*p != 0 ? 1 : 0);
  }
}

void Array::Set(int64_t i, Number number) {
  uint8_t* p = data() + i * sdk::SizeOf(dtype);
  switch (dtype) {
    case WEIR_FLOAT32:
      return StoreAs(p, static_cast<float>(number.real));
    case WEIR_FLOAT64:
      return StoreAs(p, number.real);
    case WEIR_FLOAT16:
      return StoreAs(p, sdk::half(static_cast<float>(number.real)));
    case WEIR_BFLOAT16:
      return StoreAs(p, sdk::bfloat16(static_cast<float>(number.real)));
    default:
      std::memcpy(p, &number.integer, sdk::SizeOf(dtype));
  }
}

uint32_t RegionSpec::Input(uint32_t dtype, Dims dims) {
  inputs_.push_back({dtype, std::move(dims), {}});
  return static_cast<uint32_t>(inputs_.size() - 1);
}

uint32_t RegionSpec::Constant(uint32_t dtype, double value) {
  const uint32_t number = Input(dtype, {});
  inputs_[number].constant = Array::Of(dtype, {});
  inputs_[number].constant.Set(0, {value, static_cast<int64_t>(value)});
  return number;
}

uint32_t RegionSpec::Node(std::string op, std::vector<uint32_t> operands, uint32_t dtype, Dims dims,
                          std::vector<int64_t> axes, std::vector<Attr> attrs, std::string data_format) {
  nodes_.push_back({std::move(op),
                    std::move(operands),
                    {dtype, std::move(dims), {}},
                    std::move(axes),
                    std::move(attrs),
                    std::move(data_format)});
  return static_cast<uint32_t>(inputs_.size() + nodes_.size() - 1);
}

const weir_region* RegionSpec::Get() {
  const auto record = [](const Value& value) {
    weir_region_value r{};
    r.struct_size = sizeof r;
    r.dtype = value.dtype;
    r.shape = {static_cast<uint32_t>(value.dims.size()), 0, value.dims.data()};
    r.constant = value.constant.blocks.empty() ? nullptr : value.constant.data();
    return r;
  };
  input_records_.clear();
  node_records_.clear();
  attr_records_.assign(nodes_.size(), {});
  for (const Value& input : inputs_) input_records_.push_back(record(input));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeSpec& node = nodes_[i];
    for (const Attr& attr : node.attrs) {
      weir_opt opt{};
      opt.key = sdk::Str(attr.key);
      opt.type = WEIR_VALUE_FLOAT;
      opt.value.f = attr.real;
      attr_records_[i].push_back(opt);
    }
    if (!node.data_format.empty()) {
      weir_opt opt{};
      opt.key = sdk::Str("data_format");
      opt.type = WEIR_VALUE_STRING;
      opt.value.s = sdk::Str(node.data_format);
      attr_records_[i].push_back(opt);
    }
    weir_region_node r{};
    r.struct_size = sizeof r;
    r.operand_count = static_cast<uint32_t>(node.operands.size());
    r.op = sdk::Str(node.op);
    r.operands = node.operands.data();
    r.attrs = attr_records_[i].data();
    r.attr_count = attr_records_[i].size();
    r.axes = node.axes.empty() ? nullptr : node.axes.data();
    r.axis_count = node.axes.size();
    r.result = record(node.result);
    r.kernel_ns = std::numeric_limits<double>::quiet_NaN();
    node_records_.push_back(r);
  }
  input_pointers_.clear();
  node_pointers_.clear();
  for (const weir_region_value& r : input_records_) input_pointers_.push_back(&r);
  for (const weir_region_node& r : node_records_) node_pointers_.push_back(&r);
  region_.struct_size = sizeof region_;
  region_.flags = WEIR_REGION_DETERMINISTIC;
  region_.input_count = static_cast<uint32_t>(inputs_.size());
  region_.node_count = static_cast<uint32_t>(nodes_.size());
  region_.output_count = static_cast<uint32_t>(outputs_.size());
  region_.inputs = input_pointers_.data();
  region_.nodes = node_pointers_.data();
  region_.outputs = outputs_.data();
  loop_.next = is_loop_ && loop_.next != nullptr ? next_.data() : nullptr;
  region_.loop = is_loop_ ? &loop_ : nullptr;
  return &region_;
}

const weir_compiler_api& Api() {
  static const weir_compiler_api* const api = []() -> const weir_compiler_api* {
    void* const library = dlopen(WEIR_COMPILER_LLVM, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
    const auto query = reinterpret_cast<weir_plugin_query_fn>(dlsym(library, WEIR_PLUGIN_QUERY_SYMBOL));
    const weir_plugin* plugin = query(WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
    return static_cast<const weir_compiler_api*>(plugin->get_interface(sdk::Str(WEIR_COMPILER_INTERFACE)));
  }();
  return *api;
}

weir_compile_target TargetOf(const char* isa) {
  weir_compile_target target{};
  target.struct_size = sizeof target;
  target.platform = sdk::Str("cpu");
  target.isa = sdk::Str(isa);
  target.cpu = sdk::Str("test");
  return target;
}

std::vector<const char*> Levels() {
  const sdk::Isa isa = sdk::ThisCpu().isa;
  if (isa == sdk::Isa::kV4) return {"x86-64-v3", "x86-64-v4"};
  if (isa == sdk::Isa::kV3) return {"x86-64-v3"};
  return {};
}

Executable::Executable(Executable&& other) noexcept
    : handle(std::exchange(other.handle, nullptr)), code(other.code), error(std::move(other.error)) {}
Executable::~Executable() {
  if (handle != nullptr) Api().destroy(handle);
}

namespace {

template <class Call>
Executable Make(const Call& call) {
  Executable made;
  char text[512];
  weir_error error{};
  error.struct_size = sizeof error;
  error.message = text;
  error.capacity = sizeof text;
  made.code = call(&made.handle, &error);
  if (made.code != WEIR_OK) made.handle = nullptr;
  made.error.assign(text, error.length);
  return made;
}

int32_t Append(void* ctx, const void* data, uint64_t bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  auto& all = *static_cast<std::vector<uint8_t>*>(ctx);
  all.insert(all.end(), p, p + bytes);
  return WEIR_OK;
}

}  // namespace

Executable CompileRegion(RegionSpec& region, const char* isa, uint64_t max_tiles) {
  const weir_compile_target target = TargetOf(isa);
  const weir_compile_options options{sizeof options, 0, max_tiles};
  return Make([&](weir_executable** handle, weir_error* error) {
    return Api().compile(&target, region.Get(), &options, nullptr, handle, error);
  });
}

std::vector<uint8_t> SerializeOf(const Executable& executable) {
  std::vector<uint8_t> bytes;
  EXPECT_EQ(Api().serialize(executable.handle, &Append, &bytes, nullptr), WEIR_OK);
  return bytes;
}

Executable DeserializeOf(const std::vector<uint8_t>& bytes, const char* isa) {
  const weir_compile_target target = TargetOf(isa);
  return Make([&](weir_executable** handle, weir_error* error) {
    return Api().deserialize(&target, bytes.data(), bytes.size(), handle, error);
  });
}

std::vector<Array> RunExecutable(const Executable& executable, const RegionSpec& region, std::vector<Array>& inputs,
                                 bool by_tile, bool in_place) {
  weir_executable_spec spec{};
  spec.struct_size = sizeof spec;
  EXPECT_EQ(Api().io_spec(executable.handle, &spec, nullptr), WEIR_OK);
  EXPECT_EQ(spec.input_count, inputs.size());
  EXPECT_EQ(spec.output_count, region.outputs().size());
  std::vector<Array> outputs;
  for (const uint32_t output : region.outputs()) {
    outputs.push_back(Array::Of(region.value(output).dtype, region.value(output).dims));
    std::memset(outputs.back().data(), 0xa5, outputs.back().blocks.size() * 64);
  }
  std::vector<weir_reg> regs;
  for (const auto* list : {&inputs, &outputs}) {
    for (const Array& array : *list) {
      weir_reg reg{};
      reg.data = reinterpret_cast<uint64_t>(array.data());
      regs.push_back(reg);
    }
  }
  std::vector<uint32_t> shared(outputs.size(), ~uint32_t{0});
  for (uint32_t i = 0; in_place && i < spec.alias_count; ++i) {
    const weir_alias& alias = spec.aliases[i];
    bool free = shared[alias.output] == ~uint32_t{0};
    for (const uint32_t other : shared) free = free && other != alias.input;
    if (!free) continue;
    shared[alias.output] = alias.input;
    regs[inputs.size() + alias.output].data = regs[alias.input].data;
  }
  std::vector<uint8_t> scratch(spec.scratch_bytes + 64);
  weir_reg reg{};
  reg.data = (reinterpret_cast<uint64_t>(scratch.data()) + 63) / 64 * 64;
  if (spec.scratch_bytes > 0) regs.push_back(reg);
  weir_env env{};
  env.struct_size = sizeof env;
  const uint64_t tiles = std::max<uint64_t>(1, spec.tiles);
  for (uint64_t tile = by_tile ? tiles : 1; tile-- > 0;) {
    env.tile_begin = by_tile ? tile : 0;
    env.tile_end = by_tile ? tile + 1 : tiles;
    EXPECT_EQ(Api().execute(executable.handle, regs.data(), &env), WEIR_OK);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Array& output = outputs[i];
    const size_t bytes = static_cast<size_t>(output.size()) * sdk::SizeOf(output.dtype);
    for (size_t k = 0; k < kGuard; ++k) EXPECT_EQ(output.data()[bytes + k], 0xa5) << "written behind output " << i;
    if (shared[i] != ~uint32_t{0}) std::memcpy(output.data(), inputs[shared[i]].data(), bytes);
  }
  return outputs;
}

double UlpsBetween(uint32_t dtype, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1e30;
  if (a == b) return 0;
  if (std::isinf(a) || std::isinf(b)) return 1e30;
  const int bits = dtype == WEIR_FLOAT64 ? 53 : dtype == WEIR_FLOAT32 ? 24 : dtype == WEIR_FLOAT16 ? 11 : 8;
  const int least = dtype == WEIR_FLOAT64 ? -1022 : dtype == WEIR_FLOAT16 ? -14 : -126;
  const int exponent = std::max(least, std::ilogb(std::max(std::fabs(a), std::fabs(b))));
  return std::fabs(a - b) / std::ldexp(1.0, exponent - bits + 1);
}

}  // namespace weir::test
