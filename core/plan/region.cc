#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/compile/executable.h"
#include "core/kernel/roofline.h"
#include "core/plan/region_internal.h"

namespace weir::plan {
namespace {

using kernel::OperandSpec;

constexpr int64_t kTileBytes = 24 << 10;  // of all values of a tile that are in use at once: the first cache has 32 KiB
constexpr int64_t kLeastTile = 512, kMostTile = 4096;  // elements
constexpr double kThreadNanoseconds = 250e3;           // work that is worth a thread
constexpr size_t kMostOperands = 8;                    // of one op

/// Where an op finds an operand, or leaves its result.
struct RegionPlace {
  enum class Kind : uint8_t { kInput, kScalar, kBuffer, kOutput };
  Kind kind = Kind::kBuffer;
  uint32_t number = 0;  // of the region's input, or of the buffer
};

/// One op, prepared for a whole tile [0] and for the last one [1].
struct RegionStage {
  const kernel::PreparedKernel* kernels[2] = {nullptr, nullptr};
  std::vector<RegionPlace> operands;
  RegionPlace result;
};

struct RegionState {
  std::vector<std::unique_ptr<kernel::PreparedKernel>> owned;
  std::vector<RegionStage> stages;
  std::vector<weir_alias> aliases;
  uint32_t inputs = 0;
  uint32_t dtype = 0;
  uint64_t element_bytes = 0;
  int64_t elements = 0, tile = 0;
  uint64_t tiles = 1;  // of the threads; not those below
  uint64_t buffer_bytes = 0;
  uint64_t kernel_scratch = 0;  // where the kernels' own scratch memory begins
  int64_t tile_shape[2] = {0, 0};
  weir_shape shapes[2] = {};
  weir_shape scalar = {};

  int64_t Count() const { return (elements + tile - 1) / tile; }

  int32_t Run(const weir_reg* regs, const weir_env* env) const {
    const int64_t count = Count();
    const auto at = [&](uint64_t part) { return static_cast<int64_t>(static_cast<__int128>(count) * part / tiles); };
    const int64_t begin = tiles > 1 ? at(env->tile_begin) : 0, end = tiles > 1 ? at(env->tile_end) : count;
    weir_env inner = *env;
    inner.tile_begin = 0;
    inner.tile_end = 1;
    for (int64_t i = begin; i < end; ++i) {
      const bool last = elements - i * tile < tile;
      for (const RegionStage& stage : stages) {
        const int32_t code = RunStage(stage, regs, i, last ? 1 : 0, inner);
        if (code != WEIR_OK) return code;
      }
    }
    return WEIR_OK;
  }

 private:
  int32_t RunStage(const RegionStage& stage, const weir_reg* regs, int64_t at, int form, const weir_env& env) const {
    weir_reg own[kMostOperands + 2];
    size_t n = 0;
    for (const RegionPlace& operand : stage.operands) own[n++] = Register(operand, regs, at, form);
    own[n++] = Register(stage.result, regs, at, form);
    const kernel::PreparedKernel& called = *stage.kernels[form];
    if (called.scratch_bytes() > 0) {
      own[n] = regs[inputs + 1];
      own[n].data += kernel_scratch;
    }
    return called.fn()(called.state(), own, &env);
  }

  weir_reg Register(const RegionPlace& place, const weir_reg* regs, int64_t at, int form) const {
    const uint64_t offset = static_cast<uint64_t>(at * tile) * element_bytes;
    weir_reg reg{};
    switch (place.kind) {
      case RegionPlace::Kind::kInput:
        reg = regs[place.number];
        reg.data += offset;
        break;
      case RegionPlace::Kind::kScalar:
        reg = regs[place.number];
        reg.shape = &scalar;
        return reg;
      case RegionPlace::Kind::kOutput:
        reg = regs[inputs];
        reg.data += offset;
        break;
      case RegionPlace::Kind::kBuffer:
        reg = regs[inputs + 1];
        reg.data += place.number * buffer_bytes;
        reg.dtype = dtype;
        break;
    }
    reg.shape = &shapes[form];
    return reg;
  }
};

int32_t RunRegion(void* state, const weir_reg* regs, const weir_env* env) {
  return static_cast<const RegionState*>(state)->Run(regs, env);
}

void DeleteRegion(weir_prepared* prepared) {
  delete static_cast<RegionState*>(prepared->state);
  prepared->state = nullptr;
}

const kernel::KernelEntry& RegionEntry() {
  static const weir_kernel record = [] {
    weir_kernel made{};
    made.struct_size = sizeof made;
    made.flags = WEIR_KERNEL_DETERMINISTIC;
    made.op = kernel::ViewOf(std::string_view("_Region"));
    made.cost_class = WEIR_CLASS_ELEMENTWISE;
    made.unprepare = DeleteRegion;
    return made;
  }();
  static const kernel::KernelEntry entry{.record = &record, .plugin = "core"};
  return entry;
}

class RegionBuilder {
 public:
  RegionBuilder(const PlanOptions& options, const RegionNode& node, device::Device& device)
      : options_(options), node_(node), device_(device), made_(std::make_unique<RegionState>()) {}

  Result<Region> Build() {
    WEIR_TRY(ReadProgram());
    FindLastUses();
    SetSizes();
    for (size_t op = 0; op < ops_.size(); ++op) WEIR_TRY(AddStage(op));
    return Finish();
  }

 private:
  size_t inputs() const { return node_.inputs.size(); }
  bool IsScalar(size_t input) const { return node_.inputs[input].shape != node_.output->shape; }

  Status ReadProgram() {
    WEIR_ASSIGN(ops_, node_.attrs.Strings("ops"));
    WEIR_ASSIGN(const std::vector<int64_t> flat, node_.attrs.Ints("operands"));
    for (size_t i = 0; i < inputs(); ++i) {
      if (IsScalar(i) && node_.inputs[i].shape.elements() != 1) {
        return Internal("region: input {} has the shape {}", i, node_.inputs[i].shape.ToString());
      }
    }
    size_t at = 0;
    for (const std::string& name : ops_) {
      const op::OpDef* const def = node_.ops->Find(name);
      if (def == nullptr || !def->traits.elementwise || def->attrs.size() != 1 || def->outputs.size() != 1) {
        return Internal("region: '{}' is no elementwise op", name);
      }
      defs_.push_back(def);
      std::vector<size_t>& operands = operands_.emplace_back();
      for (size_t i = 0; i < def->inputs.size(); ++i, ++at) {
        if (at >= flat.size() || flat[at] < 0 || flat[at] >= static_cast<int64_t>(inputs() + defs_.size()) - 1) {
          return Internal("region: an operand of '{}' is not there", name);
        }
        operands.push_back(static_cast<size_t>(flat[at]));
      }
      if (operands.size() > kMostOperands) return Internal("region: {} operands", operands.size());
    }
    return ops_.empty() || at != flat.size() ? Internal("region: {} ops, {} operands", ops_.size(), flat.size())
                                             : Status();
  }

  void FindLastUses() {
    last_use_.assign(ops_.size(), 0);
    for (size_t op = 0; op < ops_.size(); ++op) {
      for (const size_t operand : operands_[op]) {
        if (operand >= inputs()) last_use_[operand - inputs()] = op;
      }
    }
  }

  void SetSizes() {
    RegionState& state = *made_;
    state.inputs = static_cast<uint32_t>(inputs());
    state.dtype = static_cast<uint32_t>(node_.output->dtype);
    state.element_bytes = SizeOf(node_.output->dtype);
    state.elements = node_.output->shape.elements();
    // Whole values, one buffer for intermediate results (most regions need one or two) and the output.
    int64_t values = 2;
    for (size_t i = 0; i < inputs(); ++i) values += IsScalar(i) ? 0 : 1;
    const int64_t fits = kTileBytes / (values * static_cast<int64_t>(state.element_bytes)) / 64 * 64;
    state.tile = std::clamp(fits, kLeastTile, kMostTile);
    state.buffer_bytes = static_cast<uint64_t>(state.tile) * state.element_bytes;
    state.tile_shape[0] = std::min(state.tile, state.elements);
    state.tile_shape[1] = state.elements % state.tile;
    for (const int form : {0, 1}) state.shapes[form] = {1, 0, &state.tile_shape[form]};
  }

  /// Prepares a kernel of the op for tiles of one of the two lengths.
  Result<const kernel::PreparedKernel*> PrepareFor(size_t op, int form) {
    const DType dtype = node_.output->dtype;
    const op::AttrList attrs = {{"T", dtype}};
    const Shape tile = Shape::Of({made_->tile_shape[form]});
    std::vector<OperandSpec> in;
    const std::vector<OperandSpec> out = {{dtype, tile, nullptr, false, true}};
    for (const size_t operand : operands_[op]) {
      const bool scalar = operand < inputs() && IsScalar(operand);
      in.push_back({dtype, scalar ? Shape() : tile, nullptr, false, true});
    }
    const weir_node node{
        ops_[op], op::AttrView(*defs_[op], attrs), [](int) { return nullptr; }, options_.node_resources,
        {},       options_.deterministic};
    WEIR_ASSIGN(weir_device* const open, device_.Open());
    std::string declined;
    for (const kernel::KernelEntry* entry : RankKernels(options_.kernels->Find(node.attrs, device_.info().platform),
                                                        node, in, out, device_, options_.calibration, &declined)) {
      const weir_kernel& record = *entry->record;
      if (record.prepare == nullptr || record.host_inputs != 0 || (record.flags & WEIR_KERNEL_STATEFUL) != 0) continue;
      Result<std::unique_ptr<kernel::PreparedKernel>> prepared =
          kernel::PreparedKernel::Make(*entry, node, in, out, open);
      if (!prepared.ok()) return prepared.status();
      if (form == 0) ns_ += DeclaredNanoseconds(*entry, node, in, out, true, device_);
      scratch_ = std::max(scratch_, (*prepared)->reserved_scratch_bytes());
      made_->owned.push_back(std::move(*prepared));
      return made_->owned.back().get();
    }
    return Unimplemented("no kernel runs op {} of a region: {}", ops_[op], declined);
  }

  Status AddStage(size_t op) {
    RegionStage stage;
    WEIR_ASSIGN(stage.kernels[0], PrepareFor(op, 0));
    stage.kernels[1] = stage.kernels[0];
    if (made_->tile_shape[1] != 0) {
      WEIR_ASSIGN(stage.kernels[1], PrepareFor(op, 1));
    }
    if (stage.kernels[0]->fn() == nullptr || stage.kernels[1]->fn() == nullptr) {
      return Internal("region: '{}' makes a view", ops_[op]);
    }
    for (const size_t operand : operands_[op]) {
      if (operand < inputs()) {
        stage.operands.push_back({IsScalar(operand) ? RegionPlace::Kind::kScalar : RegionPlace::Kind::kInput,
                                  static_cast<uint32_t>(operand)});
      } else {
        stage.operands.push_back(result_of_[operand - inputs()]);
      }
    }
    stage.result = op + 1 == ops_.size() ? RegionPlace{RegionPlace::Kind::kOutput, 0} : ResultOf(op, stage);
    result_of_.push_back(stage.result);
    for (const size_t operand : operands_[op]) {
      if (operand < inputs() || last_use_[operand - inputs()] != op) continue;
      const RegionPlace& dead = result_of_[operand - inputs()];
      const bool reused = stage.result.kind == RegionPlace::Kind::kBuffer && stage.result.number == dead.number;
      if (!reused && std::ranges::find(free_, dead.number) == free_.end()) free_.push_back(dead.number);
    }
    made_->stages.push_back(std::move(stage));
    return Status();
  }

  /// True if both forms of the stage may write their result over the operand.
  static bool MayShare(const RegionStage& stage, size_t operand) {
    return std::ranges::all_of(stage.kernels, [&](const kernel::PreparedKernel* kernel) {
      return std::ranges::any_of(kernel->aliases(), [&](const weir_alias& alias) { return alias.input == operand; });
    });
  }

  /// The buffer of an operand that ends here, if the kernels may write over it; else a free one.
  RegionPlace ResultOf(size_t op, const RegionStage& stage) {
    for (size_t i = 0; i < stage.operands.size(); ++i) {
      const size_t operand = operands_[op][i];
      const bool ends = operand >= inputs() && last_use_[operand - inputs()] == op;
      const bool once = std::ranges::count(operands_[op], operand) == 1;
      if (ends && once && MayShare(stage, i)) return stage.operands[i];
    }
    if (!free_.empty()) {
      const uint32_t buffer = free_.back();
      free_.pop_back();
      return {RegionPlace::Kind::kBuffer, buffer};
    }
    return {RegionPlace::Kind::kBuffer, buffers_++};
  }

  Result<Region> Finish() {
    RegionState& state = *made_;
    const RegionStage& last = state.stages.back();
    for (uint32_t i = 0; i < inputs(); ++i) {
      if (IsScalar(i)) continue;
      // Earlier ops of a tile have ended when the last one writes it.
      bool may = true;
      for (size_t j = 0; j < last.operands.size(); ++j) {
        const bool is_it = last.operands[j].kind == RegionPlace::Kind::kInput && last.operands[j].number == i;
        may = may && (!is_it || MayShare(last, j));
      }
      if (may) state.aliases.push_back({i, 0, WEIR_ALIAS_MAY, 0});
    }
    state.kernel_scratch = (buffers_ * state.buffer_bytes + 63) / 64 * 64;
    Region region;
    region.ns = ns_ * static_cast<double>(state.elements) / static_cast<double>(state.tile_shape[0]);
    const auto threads = static_cast<uint64_t>(region.ns / kThreadNanoseconds);
    state.tiles = std::clamp<uint64_t>(threads, 1, std::max<uint64_t>(options_.max_tiles, 1));
    state.tiles = std::min(state.tiles, static_cast<uint64_t>(state.Count()));
    weir_prepared prepared{};
    prepared.struct_size = sizeof prepared;
    prepared.fn = RunRegion;
    prepared.scratch_bytes = std::max<uint64_t>(state.kernel_scratch + scratch_, 64);
    prepared.scratch_alignment = 64;
    prepared.aliases = state.aliases.data();
    prepared.alias_count = static_cast<uint32_t>(state.aliases.size());
    prepared.tiles = state.tiles;
    prepared.state = made_.release();
    region.kernel = kernel::PreparedKernel::Own(RegionEntry(), prepared);
    return region;
  }

  const PlanOptions& options_;
  const RegionNode& node_;
  device::Device& device_;
  std::unique_ptr<RegionState> made_;
  std::vector<std::string> ops_;
  std::vector<const op::OpDef*> defs_;
  std::vector<std::vector<size_t>> operands_;  // by op: inputs, then earlier ops
  std::vector<size_t> last_use_;               // by op
  std::vector<RegionPlace> result_of_;         // by op
  std::vector<uint32_t> free_;                 // buffers
  uint32_t buffers_ = 0;
  uint64_t scratch_ = 0;
  double ns_ = 0;  // of one tile
};

/// The time of one pass over the operands, which T2 plans and tiles go by.
Result<Region> CompiledRegion(const PlanOptions& options, const std::string& key, const RegionNode& node,
                              device::Device& device) {
  const auto found =
      options.executables == nullptr ? compile::Executables::const_iterator() : options.executables->find(key);
  if (options.executables == nullptr || found == options.executables->end()) {
    return Internal("region: there is no code for it");
  }
  Region region;
  region.kernel = compile::AsKernel(found->second);
  WEIR_ASSIGN(const std::vector<std::string> ops, node.attrs.Strings("ops"));
  weir_kernel record{};
  record.struct_size = sizeof record;
  record.cost_class = WEIR_CLASS_ELEMENTWISE;
  record.flops_per_element = static_cast<double>(ops.size());
  const weir_cost work = kernel::DeclaredWork(record, node.inputs, {node.output, 1});
  region.ns = kernel::RooflineNs(work, device.profile(), node.output->dtype);
  return region;
}

}  // namespace

Result<Region> MakeRegion(const PlanOptions& options, const RegionNode& node, device::Device& device) {
  WEIR_ASSIGN(const std::string key, node.attrs.String("executable"));
  if (!key.empty()) return CompiledRegion(options, key, node, device);
  return RegionBuilder(options, node, device).Build();
}

}  // namespace weir::plan
