// The flat, immutable program of one step: instructions over registers, with every buffer that has a known size laid
// out in one arena per memory space.
#ifndef WEIR_CORE_PLAN_PLAN_H_
#define WEIR_CORE_PLAN_PLAN_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/graph/subgraph.h"
#include "core/kernel/builtin.h"
#include "core/kernel/calibration.h"
#include "core/kernel/node_resources.h"
#include "core/kernel/prepared.h"
#include "core/kernel/registry.h"
#include "core/kernel/resource.h"

namespace weir::plan {

/// Index of CPU-reachable memory among the spaces of a plan; other spaces are positions in the device set.
inline constexpr int kHostSpace = -1;

/// Memory behind one or more values.
struct Storage {
  enum class Home : uint8_t {
    kArena,     // at `offset` of the space's arena
    kConstant,  // `constant`
    kFeed,      // the caller's tensor number `feed`
    kFresh,     // the caller keeps it: made anew for a run unless the caller has let go of the last one; size known
    kMade,      // memory number `made`, which is there from kMake on and goes with the variable that takes it over
    kOwned,     // a tensor that an instruction makes while running
    kVariable,  // the current value of variable number `variable`
    kBound,     // one of `sources`, whichever a Merge chose last
  };
  Home home = Home::kArena;
  int space = kHostSpace;
  uint64_t bytes = 0;      // kArena, kMade, kFresh
  uint64_t offset = 0;     // kArena
  uint64_t alignment = 1;  // kArena, beyond the arena's: `bytes` have room to begin later
  Tensor constant;
  int made = -1;  // kMade
  int feed = -1;
  int variable = -1;              // kVariable; kOwned: the variable that it is a snapshot of
  DType dtype = DType::kInvalid;  // kFresh
  Shape shape;                    // kFresh
  std::vector<int> sources;       // kBound: storages
};

/// A typed, shaped view of a storage. Every kArena, kMade and kFresh value has a known shape.
struct Value {
  int storage = -1;
  DType dtype = DType::kInvalid;
  bool shape_known = false;
  bool scratch = false;  // a kernel's memory while it runs: an output of the instruction, none of the node
  Shape shape;
};

/// Memory outside of the arenas, for values that lie one in the place of the other until a kAssign gives the last of
/// them, and the memory with it, to its variable. Only kernels, copies, assignments and fetches touch it.
struct MadeMemory {
  int space = kHostSpace;
  uint64_t bytes = 0;
  std::vector<int> storages;
};

/// A variable that the plan touches, or a place for a reference to one of several that are chosen from while running.
struct VariableUse {
  std::shared_ptr<kernel::Variable> variable;  // null where it is a place
  std::vector<int> choices;                    // of a place: positions of variables that are none
  kernel::ResourceKey key;
  const graph::Node* node = nullptr;  // the op that names it
  bool is_resource = false;
  PartialShape declared;
};

/// A lock that an instruction takes; an instruction's locks are sorted by address, so that two never deadlock.
struct Lock {
  int variable = -1;
  bool exclusive = false;
};

/// Puts locks into the order in which they are taken, each variable once. Those of places come first: what they refer
/// to has to be put in their stead before the locks are taken.
void SortLocks(const std::vector<VariableUse>& variables, std::vector<Lock>& locks);

/// What runs a node when it cannot be bound ahead of time: unknown shapes, data-dependent outputs, builtin kernels.
struct CallSpec {
  const graph::Graph* graph = nullptr;
  const graph::Node* node = nullptr;
  const kernel::BuiltinFn* builtin = nullptr;
  std::vector<const kernel::KernelEntry*> kernels;  // best first; empty for builtin, universal and string nodes
  const kernel::KernelRegistry* registry = nullptr;
  device::Device* device = nullptr;
  kernel::NodeResources* resources = nullptr;
  bool deterministic = false;  // PlanOptions::deterministic
};

/// Guards are bytes of a run, 1 when the nodes under them run; guard 0 is always 1.
struct GuardStep {
  enum class Kind : uint8_t {
    kPredicate,  // to = a and operand 0; otherwise = a and not operand 0
    kAnd,        // to = a and b
    kOr,         // to = a or b
    kCopy,       // to = a
    kClear,      // to = 0
  };
  Kind kind = Kind::kClear;
  int to = 0;
  int otherwise = 0;
  int a = 0;
  int b = 0;
};

struct Jump {
  int guard = 0;
  uint32_t target = 0;  // index of an instruction, or the end of the tape
};

/// A stretch of the tape that runs in one piece on one thread: an instruction, what stands under one guard, or a whole
/// loop; or a loop whose body is tasks again. Edges lead between tasks of one body only.
struct Task {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first_successor = 0;  // into ExecutionPlan::successors
  uint32_t successor_count = 0;
  int predecessors = 0;
  bool blocking = false;  // may wait for something other than the CPU: runs on no thread of the compute pool
  int loop = -1;          // the task whose body this one belongs to; -1 = the step
  /// A loop that is cut: [begin, body) leads into it, the `inner` tasks of [body, repeat) are an iteration, and the
  /// kRepeat at `repeat` decides on the next one. They follow this task, with those of loops inside.
  uint32_t inner = 0;
  uint32_t body = 0;
  uint32_t repeat = 0;
};

/// How a plan runs. T0: the caller's thread goes through the tape. T2: tasks run as soon as what they need is there, on
/// the caller's thread and the compute pool.
enum class Tier : uint8_t { kT0, kT2 };

enum class Opcode : uint8_t {
  kKernel,         // fn over slots; the fast path
  kStreamKernel,   // the same, on a stream of the device whose memory is `space`
  kTiledKernel,    // the same in tiles, on several threads
  kLockedKernel,   // the same, tiles or not, under variable locks, or serialized by the kernel's own mutex
  kCall,           // CallSpec number `detail` on tensors
  kReadVariable,   // variable -> owned storage
  kAssign,         // value -> variable
  kMake,           // memory number `detail` is made
  kIsInitialized,  // variable -> bool
  kVariableShape,  // variable -> its shape
  kCopy,           // value -> value in another space
  kFetch,          // value -> fetch number `detail`
  kRelease,        // drops the tensor of an owned storage
  kMove,           // value -> value of the same shape in the same space; reference -> place
  kMoveBytes,      // the same where it is a copy of `detail` bytes between host memory that registers point to
  kSwap,           // its two outputs change places in memory, and values with them
  kMerge,          // inputs -> the one whose guard (list `detail`) is set, and its position
  kSelect,         // index and references -> the one that the index says
  kGuard,          // guard step `detail`
  kSkip,           // jump `detail` when its guard is 0
  kRepeat,         // jump `detail`, backwards, when its guard is 1
};

/// One step of the tape. Operands are slots [first_slot, first_slot + inputs + outputs (+ 1 scratch)).
struct Instruction {
  weir_kernel_fn fn = nullptr;
  void* state = nullptr;
  uint32_t first_slot = 0;
  uint32_t detail = 0;  // meaning by opcode: see there
  graph::NodeId node = -1;
  uint32_t inputs = 0;
  uint16_t outputs = 0;
  Opcode opcode = Opcode::kKernel;
  bool takes = false;          // kAssign: nobody needs the value later, whose home is kMade: its memory may be kept
  int16_t space = kHostSpace;  // kStreamKernel, kLockedKernel: where the kernel runs
  bool validate_shape = true;  // kAssign
  bool serialized = false;     // kLockedKernel: the kernel changes its state
  uint32_t locks_begin = 0;    // into ExecutionPlan::locks
  uint32_t locks_end = 0;
};

/// The kernel's scratch memory is one more.
inline constexpr size_t kMostOutputs = std::numeric_limits<decltype(Instruction::outputs)>::max() - 1;

/// One operand position of an instruction.
struct Slot {
  int value = -1;
};

/// Where a node of the step went. The names are those of the graph and of the plan's placement.
struct PlacedNode {
  std::string_view name;
  std::string_view op;
  std::string_view device;  // full name
};

/// Immutable after Build but for the states inside STATEFUL kernels; shared by concurrent runs.
struct ExecutionPlan {
  std::vector<Instruction> instructions;
  std::vector<Slot> slots;
  std::vector<weir_shape> slot_shapes;  // by slot; rank WEIR_UNKNOWN_RANK where it is not known
  std::vector<Value> values;
  std::vector<Storage> storages;
  std::vector<std::vector<uint32_t>> storage_slots;  // slots to point at a storage once its address is known
  std::vector<uint64_t> arena_bytes;                 // by space + 1
  std::vector<MadeMemory> made;
  std::vector<uint64_t> live_bytes;  // of them in use at once, at most, along the tape: no arena for it is smaller
  std::vector<VariableUse> variables;
  std::vector<Lock> locks;
  std::vector<CallSpec> calls;
  std::vector<GuardStep> guard_steps;
  std::vector<Jump> jumps;
  std::vector<std::vector<int>> merges;  // by kMerge: the guard of each input
  std::vector<int> fetch_guards;         // by fetch
  size_t guard_count = 1;
  bool has_loops = false;  // something on the tape runs more than once
  Tier tier = Tier::kT0;
  std::vector<Task> tasks;  // T2 only, in tape order
  std::vector<uint32_t> successors;
  double serial_ns = 0;    // declared time of all kernels but those on streams
  double critical_ns = 0;  // of the longest chain of tasks, when it was asked for
  std::vector<std::unique_ptr<kernel::PreparedKernel>> kernels;
  std::vector<device::Device*> kernel_devices;  // by kernel
  std::vector<int> fresh_storages;
  std::vector<int> feed_storages;  // by feed
  size_t fetch_count = 0;
  std::vector<device::Device*> devices;                        // by space
  device::Device* host_device = nullptr;                       // whose arena serves the host space
  std::vector<const graph::Node*> nodes;                       // by Instruction::node
  std::vector<std::shared_ptr<const graph::Node>> made_nodes;  // those of them that no graph owns
  graph::Placement placement;
  std::vector<PlacedNode> placed_nodes;  // every op node in tape order, aliases and what was fused included
};

struct PlanOptions {
  const device::DeviceSet* devices = nullptr;
  const kernel::KernelRegistry* kernels = nullptr;
  const kernel::BuiltinRegistry* builtins = nullptr;
  kernel::ResourceScope* resources = nullptr;
  kernel::NodeResources* node_resources = nullptr;
  /// Ops that may run at once; 1 = one after the other, but for those that block.
  int parallelism = 1;
  /// Tiles that an op of at least half a millisecond may be cut into; 1 = none.
  uint64_t max_tiles = 1;
  /// Measured times by which kernels are ranked where it has them; null = declared costs only.
  const kernel::Calibration* calibration = nullptr;
  /// Only kernels that promise the same bits for the same inputs run; others decline.
  bool deterministic = false;
};

/// Orders the nodes (writers of variables as late as edges allow, so that updates happen in place), chooses and
/// prepares a kernel for each, turns aliases into views, conds into guards and loops into jumps, lays out memory.
/// `feeds` is how many the step has. The tier is T2 when a kernel blocks or completes later, or when the declared time
/// is at least 200 us and the longest chain of ops takes less than 4/5 of it, where ops on streams take no time. Loops
/// of such a plan whose iterations need little of each other are unrolled, up to their parallel_iterations. Errors name
/// the node: no kernel, a kernel that refuses, loops that cannot be told apart.
Result<std::unique_ptr<ExecutionPlan>> Build(const PlanOptions& options, const graph::StepGraph& step,
                                             const graph::Placement& placement,
                                             const std::vector<graph::Subgraph>& subgraphs, size_t feeds);

/// The plan as text: one line per instruction with operands, shapes and addresses.
std::string ToString(const ExecutionPlan& plan);

/// Declared time of a kernel for these operands; 1 ms when it declares nothing, which is long enough to be worth a
/// thread.
double DeclaredNanoseconds(const kernel::KernelEntry& entry, const weir_node& node,
                           std::span<const kernel::OperandSpec> inputs, std::span<const kernel::OperandSpec> outputs,
                           bool shapes_known, device::Device& device);

/// Kernels of a node on a device, best first: by calibrated times where `calibration` (which may be null) has one for
/// each of them, else by declared cost for these operands; then priority, then plugin name. With unknown shapes the
/// order is by priority and name. Those whose `supports` says no are left out.
std::vector<const kernel::KernelEntry*> RankKernels(const kernel::KernelRegistry& kernels, const weir_node& node,
                                                    std::span<const kernel::OperandSpec> inputs,
                                                    std::span<const kernel::OperandSpec> outputs, bool shapes_known,
                                                    device::Device& device,
                                                    const kernel::Calibration* calibration = nullptr);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_PLAN_H_
