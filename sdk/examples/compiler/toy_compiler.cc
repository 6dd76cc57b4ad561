// The table of compiler/1 over programs of instructions.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program.h"
#include "sdk/abi/compiler.h"
#include "sdk/cpp/plugin.h"
#include "sdk/cpp/status.h"

namespace {

using toy::Code;
using toy::Instruction;
using toy::Program;
using weir::sdk::Error;
using weir::sdk::Guard;
using weir::sdk::Str;
using weir::sdk::ToView;

constexpr std::string_view kVersion = "1.0.0";

std::vector<int64_t> DimsOf(const weir_region_value& value) {
  return {value.shape.dims, value.shape.dims + value.shape.rank};
}

bool HasOneElement(const weir_region_value& value) {
  return std::all_of(value.shape.dims, value.shape.dims + value.shape.rank, [](int64_t dim) { return dim == 1; });
}

const weir_region_value& ValueOf(const weir_region& region, uint32_t number) {
  return number < region.input_count ? *region.inputs[number] : region.nodes[number - region.input_count]->result;
}

/// The op is known, and all values are floats of `dims`, or inputs of one element.
bool CanCompile(const weir_region& region, const weir_region_node& node, const std::vector<int64_t>& dims) {
  const std::optional<Code> code = toy::CodeOf(ToView(node.op));
  const bool fits = code && static_cast<int>(node.operand_count) == toy::OperandsOf(*code) && node.axis_count == 0 &&
                    node.result.dtype == WEIR_FLOAT32 && DimsOf(node.result) == dims;
  return fits && std::all_of(node.operands, node.operands + node.operand_count, [&](uint32_t operand) {
           const weir_region_value& value = ValueOf(region, operand);
           const bool scalar = operand < region.input_count && HasOneElement(value);
           return value.dtype == WEIR_FLOAT32 && (scalar || DimsOf(value) == dims);
         });
}

int32_t Claim(const weir_compile_target*, const weir_region* region, void (*emit)(void*, const weir_claim*), void* ctx,
              weir_error* error) {
  return Guard(error, [&] {
    const uint32_t count = region->node_count;
    const std::vector<int64_t> dims = DimsOf(region->nodes[count - 1]->result);
    // From the last node on: a node is left out with all that one of its readers needs.
    std::vector<bool> wanted(count, true);
    std::vector<uint32_t> nodes;
    double ns_per_element = 0;
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    for (uint32_t i = count; i-- > 0;) {
      const weir_region_node& node = *region->nodes[i];
      if (wanted[i] && CanCompile(*region, node, dims)) {
        nodes.push_back(i);
        ns_per_element += toy::NanosecondsOf(*toy::CodeOf(ToView(node.op)));
        continue;
      }
      for (uint32_t j = 0; j < node.operand_count; ++j) {
        if (node.operands[j] >= region->input_count) wanted[node.operands[j] - region->input_count] = false;
      }
    }
    if (nodes.size() < 2) return static_cast<int32_t>(WEIR_OK);
    std::reverse(nodes.begin(), nodes.end());
    weir_claim claim{};
    claim.struct_size = sizeof claim;
    claim.node_count = static_cast<uint32_t>(nodes.size());
    claim.nodes = nodes.data();
    claim.predicted_ns = 100 + ns_per_element * static_cast<double>(elements);
    claim.compile_ns = 50e3;
    claim.scratch_bytes = (nodes.size() + 2) * Program::kBlock * sizeof(float);
    claim.reason = Str(nodes.size() < count ? "the rest has ops, types or shapes that it does not know" : "");
    emit(ctx, &claim);
    return static_cast<int32_t>(WEIR_OK);
  });
}

/// What the core holds: the program, and its description.
class ToyExecutable {
 public:
  explicit ToyExecutable(Program program) : program_(std::move(program)) {
    const bool one_output = program_.outputs.size() == 1;
    for (size_t i = 0; i < program_.input_dims.size(); ++i) {
      inputs_.push_back(Describe(program_.input_dims[i]));
      // The last instruction reads an element before it writes it.
      if (one_output && !program_.IsScalar(i)) aliases_.push_back({static_cast<uint32_t>(i), 0, WEIR_ALIAS_MAY, 0});
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) outputs_.push_back(Describe(program_.dims));
    for (const weir_region_value& input : inputs_) input_list_.push_back(&input);
    for (const weir_region_value& output : outputs_) output_list_.push_back(&output);
  }
  ToyExecutable(const ToyExecutable&) = delete;
  ToyExecutable& operator=(const ToyExecutable&) = delete;

  const Program& program() const { return program_; }

  void Fill(weir_executable_spec& spec) const {
    spec.input_count = static_cast<uint32_t>(inputs_.size());
    spec.output_count = static_cast<uint32_t>(outputs_.size());
    spec.alias_count = static_cast<uint32_t>(aliases_.size());
    spec.inputs = input_list_.data();
    spec.outputs = output_list_.data();
    spec.aliases = aliases_.data();
    spec.scratch_bytes = program_.ScratchBytes();
    spec.scratch_alignment = alignof(float);
    spec.tiles = program_.tiles;
  }

 private:
  static weir_region_value Describe(const std::vector<int64_t>& dims) {
    return {sizeof(weir_region_value), WEIR_FLOAT32, {static_cast<uint32_t>(dims.size()), 0, dims.data()}, nullptr};
  }

  const Program program_;
  std::vector<weir_region_value> inputs_, outputs_;
  std::vector<const weir_region_value*> input_list_, output_list_;
  std::vector<weir_alias> aliases_;
};

weir_executable* ToHandle(std::unique_ptr<ToyExecutable> made) {
  return reinterpret_cast<weir_executable*>(made.release());
}
const ToyExecutable& FromHandle(const void* executable) { return *static_cast<const ToyExecutable*>(executable); }

int32_t Compile(const weir_compile_target*, const weir_region* region, const weir_compile_options* options,
                const weir_cancel*, weir_executable** executable, weir_error* error) {
  return Guard(error, [&] {
    Program program;
    program.dims = DimsOf(region->nodes[region->node_count - 1]->result);
    for (uint32_t i = 0; i < region->input_count; ++i) program.input_dims.push_back(DimsOf(*region->inputs[i]));
    for (uint32_t i = 0; i < region->node_count; ++i) {
      const weir_region_node& node = *region->nodes[i];
      if (!CanCompile(*region, node, program.dims)) {
        return Error(error).Unimplemented("op ", node.op, " with these operands");
      }
      Instruction& instruction = program.instructions.emplace_back();
      instruction.code = *toy::CodeOf(ToView(node.op));
      instruction.operands[0] = node.operands[0];
      instruction.operands[1] = node.operands[node.operand_count - 1];
    }
    program.outputs.assign(region->outputs, region->outputs + region->output_count);
    program.tiles = std::clamp<uint64_t>(options->max_tiles, 1, static_cast<uint64_t>(program.Blocks()));
    *executable = ToHandle(std::make_unique<ToyExecutable>(std::move(program)));
    return static_cast<int32_t>(WEIR_OK);
  });
}

int32_t IoSpec(const weir_executable* executable, weir_executable_spec* spec, weir_error*) {
  FromHandle(executable).Fill(*spec);
  return WEIR_OK;
}

int32_t Execute(void* executable, const weir_reg* regs, const weir_env* env) {
  FromHandle(executable).program().Run(regs, env->tile_begin, env->tile_end);
  return WEIR_OK;
}

void Destroy(weir_executable* executable) { delete reinterpret_cast<ToyExecutable*>(executable); }

int32_t Serialize(const weir_executable* executable, int32_t (*sink)(void*, const void*, uint64_t), void* ctx,
                  weir_error* error) {
  return Guard(error, [&] {
    const std::string bytes = FromHandle(executable).program().ToBytes();
    return sink(ctx, bytes.data(), bytes.size());
  });
}

int32_t Deserialize(const weir_compile_target*, const void* data, uint64_t bytes, weir_executable** executable,
                    weir_error* error) {
  return Guard(error, [&] {
    std::optional<Program> program = Program::FromBytes({static_cast<const char*>(data), bytes});
    if (!program) return Error(error).Fail(WEIR_DATA_LOSS, "these bytes are no program");
    *executable = ToHandle(std::make_unique<ToyExecutable>(std::move(*program)));
    return static_cast<int32_t>(WEIR_OK);
  });
}

int32_t Compat(const weir_compile_target*, const void* data, uint64_t bytes) {
  int32_t compat = WEIR_COMPAT_INCOMPATIBLE;
  (void)Guard(nullptr, [&] {
    if (Program::FromBytes({static_cast<const char*>(data), bytes})) compat = WEIR_COMPAT_SAME;
    return static_cast<int32_t>(WEIR_OK);
  });
  return compat;
}

void Key(const weir_compile_target*, void (*emit)(void*, weir_str), void* ctx) { emit(ctx, Str(kVersion)); }

/// The part of the plugin.
struct ToyCompiler {
  static constexpr uint32_t kKind = WEIR_KIND_COMPILER;
  static const void* Interface(std::string_view id, std::string_view) {
    static const weir_compiler_api api = {sizeof api, 0,         Claim,       Compile, IoSpec, Execute,
                                          Destroy,    Serialize, Deserialize, Compat,  Key};
    return id == WEIR_COMPILER_INTERFACE ? &api : nullptr;
  }
};

}  // namespace

WEIR_PLUGIN("toy_compiler", "1.0.0", "weir", "cpu", ToyCompiler)
