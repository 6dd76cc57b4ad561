// The flat, immutable program of one step: instructions over registers, with every buffer that has a known size laid
// out in one arena per memory space.
#ifndef WEIR_CORE_PLAN_PLAN_H_
#define WEIR_CORE_PLAN_PLAN_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/indexed.h"
#include "core/base/passes.h"
#include "core/base/status.h"
#include "core/compile/compilers.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/builtin.h"
#include "core/kernel/calibration.h"
#include "core/kernel/prepared.h"
#include "core/kernel/registry.h"
#include "core/runtime/node_resources.h"
#include "core/runtime/resource.h"

namespace weir::plan {

using ValueId = Id<struct ValueTag>;             // into ExecutionPlan::values
using StorageId = Id<struct StorageTag>;         // into ExecutionPlan::storages
using VariableId = Id<struct VariableTag>;       // into ExecutionPlan::variables
using TaskId = Id<struct TaskTag>;               // into ExecutionPlan::tasks
using MadeId = Id<struct MadeTag>;               // into ExecutionPlan::made
using GuardId = Id<struct GuardTag>;             // of the guard bytes of a run
using LockListId = Id<struct LockListTag>;       // into ExecutionPlan::lock_lists
using DeviceId = Id<struct DeviceTag, int16_t>;  // into ExecutionPlan::devices
using SpaceId = Id<struct SpaceTag, int16_t>;    // a memory: the host's, or the own one of a device
using StreamId = Id<struct StreamTag, int16_t>;  // into ExecutionPlan::streams
using EventId = Id<struct EventTag>;             // of the events of a run
using graph::FrameId;                            // into the step's frames

/// The guard that is always set.
inline constexpr GuardId kAlways{0};

/// Memory that the CPU reaches.
inline constexpr SpaceId kHostSpace{0};
/// The memory that only `device` reaches, and the reverse: none for the host's.
constexpr SpaceId OwnSpace(DeviceId device) { return SpaceId(device.number() + 1); }
constexpr DeviceId OwnerOf(SpaceId space) { return DeviceId(space.number() - 1); }

/// Memory behind one or more values.
struct Storage {
  enum class Home : uint8_t {
    kArena,     // at `offset` of the space's arena
    kConstant,  // `constant`
    kFeed,      // the caller's tensor number `feed`
    kFresh,     // a fetched output: the caller owns it after the run; reused if the caller dropped the last one
    kMade,      // donated memory number `made`: kMake allocates it, a kAssign gives it to its variable
    kOwned,     // a tensor that an instruction allocates during the run
    kVariable,  // the current value of variable number `variable`
    kBound,     // the one of `sources` that a kMerge chose last
  };
  Home home = Home::kArena;
  SpaceId space = kHostSpace;
  uint64_t bytes = 0;      // kArena, kMade, kFresh
  uint64_t offset = 0;     // kArena
  uint64_t alignment = 1;  // kArena, above the arena's own: `bytes` include the padding
  Tensor constant;
  MadeId made;                     // kMade
  int feed = -1;                   // kFeed
  VariableId variable;             // kVariable; kOwned: the variable that it is a snapshot of
  DType dtype = DType::kInvalid;   // kFresh
  Shape shape;                     // kFresh
  std::vector<StorageId> sources;  // kBound
  bool apart = false;              // users on several streams: it shares memory with no other value
  bool handed_over = false;        // `apart`, and all users but the first, which writes it, are on one stream
  bool only_assigned = false;      // kOwned: made by a host's kernel, and only variables in host memory get it
};

/// A typed, shaped view of a storage. Every kArena, kMade and kFresh value has a known shape.
struct Value {
  StorageId storage;
  DType dtype = DType::kInvalid;
  bool shape_known = false;
  bool scratch = false;  // a kernel's scratch memory: an output of the instruction, but not of the node
  Shape shape;
};

/// A buffer outside the arenas that a chain of values shares. The final kAssign donates it to its variable instead of
/// copying. Only kernels, copies, assignments and fetches use it.
struct MadeMemory {
  SpaceId space = kHostSpace;
  uint64_t bytes = 0;
  std::vector<StorageId> storages;
};

/// A variable that the plan uses, or a reference cell: its target is chosen during the run, among `choices` or by a
/// handle.
struct VariableUse {
  std::shared_ptr<runtime::Variable> variable;  // null for a reference cell
  std::vector<VariableId> choices;              // of a cell; empty: any, by a handle
  runtime::ResourceKey key;
  const graph::Node* node = nullptr;  // the op that names the variable
  bool is_resource = false;
  PartialShape declared;
};

/// A lock that an instruction takes. Locks of an instruction are sorted by address, so instructions cannot deadlock.
struct Lock {
  VariableId variable;
  bool exclusive = false;
};

/// Sorts locks into the order in which they are taken, each variable once. Locks of reference cells come first: a run
/// replaces each by the lock of its current target before it takes any.
void SortLocks(const IndexedVector<VariableId, VariableUse>& variables, std::vector<Lock>& locks);

/// A node that cannot be bound ahead of time: unknown shapes, data-dependent outputs, kernels of the host.
struct CallSpec {
  const graph::Definition* graph = nullptr;
  const graph::Node* node = nullptr;
  const kernel::BuiltinKernel* builtin = nullptr;   // of platform `host`; null if `kernels` run the node
  std::vector<const kernel::KernelEntry*> kernels;  // ranked when called; empty for universal and string nodes
  const kernel::KernelRegistry* registry = nullptr;
  device::Device* device = nullptr;
  runtime::NodeResources* resources = nullptr;
  runtime::ResourceScope* scope = nullptr;
  const kernel::Calibration* calibration = nullptr;  // PlanOptions::calibration
  bool deterministic = false;                        // PlanOptions::deterministic
  bool suspends = false;                             // it may complete later; then it writes no variable
};

/// Sets guards: bytes of a run that are 1 when the nodes under them run.
struct GuardStep {
  enum class Kind : uint8_t {
    kPredicate,  // to = a and operand 0; otherwise = a and not operand 0
    kAnd,        // to = a and b
    kOr,         // to = a or b
    kCopy,       // to = a
    kClear,      // to = 0
  };
  Kind kind = Kind::kClear;
  GuardId to;
  GuardId otherwise = kAlways;  // kPredicate; kAlways for the others, whose operands these are as far as they have them
  GuardId a = kAlways;
  GuardId b = kAlways;
};

struct Jump {
  GuardId guard = kAlways;
  uint32_t target = 0;  // index of an instruction, or the end of the tape
};

/// What a kSend or kRecv hands to the step's rendezvous or takes from there. Behind the value, a kSend takes the
/// numbers of the iterations in which it runs, outermost loop first; a kRecv takes those alone.
struct Transfer {
  std::string key;                  // its front: "send_device;incarnation;recv_device;tensor_name;"
  std::vector<std::string> frames;  // the loops around it, outermost first
  GuardId guard = kAlways;          // kSend: the value is live; kRecv sets it
};

/// A stream of a device that has some: a queue whose work runs in order, beside other streams and the host.
struct PlannedStream {
  /// Copies have streams of their own if the device has copy engines and there is work to run beside them.
  enum class Use : uint8_t { kCompute, kUpload, kDownload };
  DeviceId device;
  Use use = Use::kCompute;
};

/// A stack whose elements the run keeps one behind the other.
struct PlannedStack {
  uint64_t bytes = 0;  // of an element
  int64_t most = -1;   // elements; negative: unlimited
};

/// A range of the tape that one thread runs without interruption: instructions under one guard, or a whole loop; or a
/// loop whose body is scheduled as tasks. Edges connect tasks of one body only.
struct Task {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first_successor = 0;  // into ExecutionPlan::successors
  uint32_t successor_count = 0;
  int predecessors = 0;
  bool blocking = false;  // may wait for a device or a file: runs on the blocking pool
  bool suspends = false;  // has a call that may complete later: it holds no thread until then
  TaskId loop;            // the task whose body this one belongs to; none: the step
  /// A loop scheduled as tasks: [begin, body) enters it, the `inner` tasks of [body, repeat) are an iteration, and the
  /// kRepeat at `repeat` starts the next one. These tasks, and those of nested loops, follow this one.
  uint32_t inner = 0;
  uint32_t body = 0;
  uint32_t repeat = 0;
};

/// How a plan runs. T0: the caller's thread executes the tape in order. T2: each task runs when its predecessors have
/// ended, on the caller's thread or the compute pool.
enum class Tier : uint8_t { kT0, kT2 };

enum class Opcode : uint8_t {
  kKernel,         // fn over slots; the fast path
  kStreamKernel,   // the same, on `stream`
  kTiledKernel,    // the same in tiles, on several threads
  kLockedKernel,   // the same, tiles or not, under variable locks, or serialized by the kernel's own mutex
  kCall,           // CallSpec number `detail` on tensors
  kReadVariable,   // variable -> owned storage
  kAssign,         // value -> variable
  kMake,           // allocates donated memory number `detail`
  kIsInitialized,  // variable -> bool
  kVariableShape,  // variable -> its shape
  kCopy,           // value -> value in another space
  kFetch,          // value -> fetch number `detail`
  kRelease,        // drops the tensor of an owned storage
  kMove,           // value -> value of the same shape in the same space; reference -> cell
  kMoveBytes,      // the same, as a copy of `detail` bytes of host memory at known addresses
  kSwap,           // exchanges the buffers of its two outputs
  kMerge,          // inputs -> the live one (guards: list `detail`), and its position
  kSelect,         // index and references -> a cell that refers to the indexed one
  kHandle,         // variable -> a handle to it
  kResolve,        // handle -> a cell that refers to its variable; `detail` 1: creates a missing variable
  kTemporary,      // makes the variable of the step that a cell refers to
  kGuard,          // guard step `detail`
  kSkip,           // jump `detail` when its guard is 0
  kRepeat,         // jump `detail`, backwards, when its guard is 1
  kSend,           // transfer number `detail`
  kRecv,           // the same; the output is the received value, if it is live
  kStack,          // empties stack number `detail`
  kPush,           // value -> stack number `detail`
  kPop,            // stack number `detail` -> value
  kCount,          // adds one to the number of a loop's iteration, which is input and output
  kRecord,         // records event `detail` on `stream`; the output, if any, is the value that it tells the host of
  kWait,           // `stream` waits for event `detail`; without a stream the host does, for its output
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
  bool takes = false;           // kAssign: the last use of a kMade value: the variable keeps the memory
  bool validate_shape = true;   // kAssign
  bool serialized = false;      // kLockedKernel: the kernel changes its state
  DeviceId device;              // that runs the kernel or call; none: the host's own
  SpaceId memory = kHostSpace;  // of what it makes; kFetch: of what it reads
  StreamId stream;              // on which the work is enqueued; none: the calling thread does it
  LockListId locks;             // of variables; none: it takes no lock
};

/// The kernel's scratch memory is one more.
inline constexpr size_t kMostOutputs = std::numeric_limits<decltype(Instruction::outputs)>::max() - 1;

/// One operand position of an instruction.
struct Slot {
  ValueId value;
};

/// By storage: the slots that get its address.
struct StorageSlots {
  std::span<const uint32_t> Of(StorageId storage) const {
    const uint32_t begin = begins[storage], end = begins[StorageId(storage.number() + 1)];
    return {slots.data() + begin, end - begin};
  }
  IndexedVector<StorageId, uint32_t> begins;  // in `slots`, and their end behind the last one
  std::vector<uint32_t> slots;                // ascending for each storage
};

/// The device of a node. The names are borrowed from the graph and from the plan's placement.
struct PlacedNode {
  std::string_view name;
  std::string_view op;
  std::string_view device;  // full name
};

/// Immutable after Build, except for the state of STATEFUL kernels. Concurrent runs share it.
struct ExecutionPlan {
  std::vector<Instruction> instructions;
  std::vector<Slot> slots;
  std::vector<weir_shape> slot_shapes;  // by slot; WEIR_UNKNOWN_RANK if the plan does not know the shape
  IndexedVector<ValueId, Value> values;
  IndexedVector<StorageId, Storage> storages;
  StorageSlots storage_slots;
  IndexedVector<SpaceId, uint64_t> arena_bytes;
  IndexedVector<MadeId, MadeMemory> made;
  IndexedVector<SpaceId, uint64_t> live_bytes;  // peak of the bytes live along the tape: a lower bound for arena_bytes
  IndexedVector<VariableId, VariableUse> variables;
  runtime::ResourceScope* resources = nullptr;  // where handles are looked up
  IndexedVector<LockListId, std::vector<Lock>> lock_lists;
  std::vector<CallSpec> calls;
  std::vector<GuardStep> guard_steps;
  std::vector<Jump> jumps;
  std::vector<Transfer> transfers;
  std::vector<PlannedStack> stacks;
  std::vector<std::vector<GuardId>> merges;  // by kMerge: the guard of each input
  std::vector<GuardId> fetch_guards;         // by fetch
  size_t guard_count = 1;
  bool has_loops = false;  // the tape has a kRepeat
  Tier tier = Tier::kT0;
  IndexedVector<TaskId, Task> tasks;  // T2 only, in tape order
  std::vector<TaskId> successors;
  double serial_ns = 0;    // declared time of all kernels except those on streams
  double critical_ns = 0;  // declared time of the critical path; 0 if the plan was never cut into tasks
  /// The plan of the other tier, with its own memory layout, if declared times do not determine the faster tier: runs
  /// measure both (execute/tier_chooser.h). Shares the kernels; calls have the same numbers. Null: settled.
  std::shared_ptr<const ExecutionPlan> other;
  std::vector<std::shared_ptr<kernel::PreparedKernel>> kernels;
  std::vector<StorageId> fresh_storages;
  IndexedVector<int, StorageId> feed_storages;  // by feed; none if the step does not use it
  size_t fetch_count = 0;
  IndexedVector<DeviceId, device::Device*> devices;  // all of the process
  IndexedVector<StreamId, PlannedStream> streams;    // those that the plan uses
  size_t event_count = 0;
  device::Device* host_device = nullptr;                       // owner of the host space's arena
  IndexedVector<graph::NodeId, const graph::Node*> nodes;      // by Instruction::node
  std::vector<std::shared_ptr<const graph::Node>> made_nodes;  // keeps nodes outside the graph alive
  graph::Placement placement;
  std::vector<PlacedNode> placed_nodes;  // every op node in tape order, including aliases and fused nodes
  std::map<const graph::Node*, std::vector<const graph::Node*>> stands_for;  // by fused node: those of the graph
  std::vector<std::string> notes;  // nodes that run elsewhere than placed, and why

  std::span<const Lock> LocksOf(const Instruction& instruction) const {
    return instruction.locks.valid() ? std::span<const Lock>(lock_lists[instruction.locks]) : std::span<const Lock>();
  }
  /// The device of an instruction with a kernel.
  device::Device& DeviceOf(const Instruction& instruction) const {
    return instruction.device.valid() ? *devices[instruction.device] : *host_device;
  }
};

struct PlanOptions {
  const device::DeviceSet* devices = nullptr;
  const kernel::KernelRegistry* kernels = nullptr;
  runtime::ResourceScope* resources = nullptr;
  runtime::NodeResources* node_resources = nullptr;
  /// Ops that may run concurrently; 1: one after the other, except for ops that block.
  int parallelism = 1;
  /// Largest number of tiles of an op of at least half a millisecond; 1: none.
  uint64_t max_tiles = 1;
  /// Measured times of kernels, which are preferred to declared costs; null: none.
  const kernel::Calibration* calibration = nullptr;
  /// Kernels that do not promise equal bits for equal inputs decline.
  bool deterministic = false;
  /// Code of compiled regions, by the attribute `executable`; may be null if the step has none.
  const compile::Executables* executables = nullptr;
  /// A node that requests a device may run on another one if its kernels decline it.
  bool allow_soft_placement = false;
  /// Nodes run as late as their users allow (graph::OrderOptions::late).
  bool late = false;
  PassOptions passes;
};

/// Orders the nodes (writers of variables as late as edges allow, so that updates happen in place), chooses and
/// prepares a kernel for each, turns aliases into views, conds into guards and loops into jumps, lays out memory. A
/// step with Send or Recv nodes is one part of several, and runs in the order of its graph (core/partition). `feeds` is
/// how many the step has. The tier is T2 when a kernel blocks or completes later, or when the declared time is at least
/// 200 us and the longest chain of ops takes less than 4/5 of it, where ops on streams take no time. Where nothing
/// blocks, the plan has one for the other tier as well, unless it takes less than 50 us, is made of tiny tasks or has
/// to be deterministic. Loops of a T2 plan whose iterations need little of each other are unrolled, up to their
/// parallel_iterations. Errors name the node: no kernel, a kernel that refuses, a reference that is not always one.
Result<std::unique_ptr<ExecutionPlan>> Build(const PlanOptions& options, const graph::StepGraph& step,
                                             const graph::Placement& placement, size_t feeds);

/// The plan as text: tier and arenas, memory spaces, streams, variables, notes, tasks with their edges, then one line
/// per instruction with operands, shapes, where they lie, streams, events, kernels and locks.
std::string ToString(const ExecutionPlan& plan);

/// Declared time of a kernel for these operands; 1 ms if it declares nothing, which makes it worth a thread.
double DeclaredNanoseconds(const kernel::KernelEntry& entry, const weir_node& node,
                           std::span<const kernel::OperandSpec> inputs, std::span<const kernel::OperandSpec> outputs,
                           bool shapes_known, device::Device& device);

/// Kernels of a device that compete for a node, best first: by calibrated times where `calibration` (which may be null)
/// has one for each of them, else by declared cost for these operands; equals stay in order. Those whose `supports`
/// says no are left out; `declined` (which may be null) gets why.
std::vector<const kernel::KernelEntry*> RankKernels(const std::vector<const kernel::KernelEntry*>& kernels,
                                                    const weir_node& node, std::span<const kernel::OperandSpec> inputs,
                                                    std::span<const kernel::OperandSpec> outputs,
                                                    device::Device& device,
                                                    const kernel::Calibration* calibration = nullptr,
                                                    std::string* declined = nullptr);
/// Adds "kernel OP of PLUGIN: REASON" to `declined`, which may be null.
void AddDeclined(const kernel::KernelEntry& entry, const Status& why, std::string* declined);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_PLAN_H_
