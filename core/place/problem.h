// The scheduling problem behind placement: tasks, devices, memory spaces and links, without graphs or plugins.
#ifndef WEIR_CORE_PLACE_PROBLEM_H_
#define WEIR_CORE_PLACE_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace weir::place {

/// The time of a task on a device that cannot run it.
inline constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// The memory space that the host reads and writes.
inline constexpr int kHostSpace = 0;

/// One direction between two memory spaces.
struct LinkCost {
  int64_t latency_ns = 0;
  double ns_per_byte = 0;
  bool direct = true;  // false: through the host's space, over two links
  bool queues = true;  // one transfer at a time

  int64_t TransferNs(int64_t bytes) const;
  bool operator==(const LinkCost&) const = default;
};

/// A device runs `streams` tasks at a time.
struct DeviceCost {
  int space = kHostSpace;
  int device_class = 0;  // equal numbers take equal times
  int priority = 0;      // TensorFlow's order of device types; higher comes first
  int streams = 1;
  int64_t capacity_bytes = kUnlimited;
};

/// Something that a task makes and others wait for. A control edge is a value of no bytes.
struct Value {
  int task = -1;             // -1: in the host's space from the beginning
  int64_t bytes = 0;         // that travel
  int64_t held_bytes = 0;    // of memory where it is made, until the last use there and the last arrival elsewhere
  int64_t copied_bytes = 0;  // of memory on every other device that uses it, until the last use there
  bool host = false;         // in the host's space wherever the task runs
  bool constant = false;     // already on every device that uses it, for good
  bool fetched = false;      // Problem::Fetch
};

/// A task waits for a value, in its device's space or in the host's.
struct Use {
  int value = -1;
  bool host = false;
};

/// Tasks are numbered in an order that respects all edges. Filled by AddX, then sealed, then read only.
class Problem {
 public:
  /// `links`: spaces * spaces, [from * spaces + to]; the diagonal is ignored.
  Problem(std::vector<DeviceCost> devices, int spaces, std::vector<LinkCost> links);

  /// `time_ns`: one per device. Tasks with the same `group` (any number >= 0) share a device. A deferrable task
  /// uses nothing, or values of deferrable tasks only; it is placed with its first consumer.
  int AddTask(std::span<const int64_t> time_ns, int group, int64_t resident_bytes = 0, bool deferrable = false);
  /// A value of a task that exists, or of no task.
  int AddValue(const Value& value);
  /// A use of the task added last.
  void AddUse(const Use& use);
  /// The step ends when the value is in the host's space.
  void Fetch(int value) { values_[static_cast<size_t>(value)].fetched = true; }
  /// After the last AddX: works out which devices a group may use, and who consumes what.
  void Seal();

  int tasks() const { return static_cast<int>(group_.size()); }
  int groups() const { return static_cast<int>(group_bytes_.size()); }
  int device_count() const { return static_cast<int>(devices_.size()); }
  int spaces() const { return spaces_; }
  const DeviceCost& device(int d) const { return devices_[static_cast<size_t>(d)]; }
  const LinkCost& link(int from, int to) const { return links_[static_cast<size_t>(from * spaces_ + to)]; }
  /// Groups that may be on both find the same there: times, memory, and ways to the host and all other devices.
  bool Alike(int a, int b) const;

  int64_t TimeNs(int task, int d) const {
    return time_ns_[static_cast<size_t>(task) * devices_.size() + static_cast<size_t>(d)];
  }
  int group(int task) const { return group_[static_cast<size_t>(task)]; }
  int64_t resident_bytes(int task) const { return resident_[static_cast<size_t>(task)]; }
  bool deferrable(int task) const { return deferrable_[static_cast<size_t>(task)] != 0; }
  /// All members of the group can run on the device.
  bool Allowed(int group, int d) const {
    return allowed_[static_cast<size_t>(group) * devices_.size() + static_cast<size_t>(d)] != 0;
  }
  /// Resident bytes of all members.
  int64_t group_bytes(int group) const { return group_bytes_[static_cast<size_t>(group)]; }
  /// The allowed device of highest priority, the first among equals; 0 when none is.
  int Fallback(int group) const;

  std::span<const Use> uses(int task) const { return Slice(uses_, use_begin_, task); }
  const Value& value(int v) const { return values_[static_cast<size_t>(v)]; }
  int values() const { return static_cast<int>(values_.size()); }
  std::span<const int> values_of(int task) const { return Slice(made_, made_begin_, task); }
  /// Tasks that use the value, each with its use.
  struct Consumer {
    int task = -1;
    bool host = false;
  };
  std::span<const Consumer> consumers(int v) const { return Slice(consumers_, consumer_begin_, v); }

  /// Where a value lies when its task ran on `d` (ignored without a task), and where a use on `d` wants it.
  int SourceSpace(const Value& value, int d) const {
    return value.host || value.task < 0 ? kHostSpace : device(d).space;
  }
  int TargetSpace(bool host, int d) const { return host ? kHostSpace : device(d).space; }
  /// Whether a use on `d` of a value whose task ran on `from` takes memory of `d`. Devices that share a space hold what
  /// they receive from each other twice, those of the host's space do not.
  bool Copies(const Value& value, int from, bool host, int d) const {
    const int source = SourceSpace(value, from);
    const int target = TargetSpace(host, d);
    return !host && (source != target || (target != kHostSpace && from != d));
  }
  /// What a value takes of the memory of the device `d` that makes it.
  int64_t HeldBytes(const Value& value, int d) const {
    return value.host && device(d).space != kHostSpace ? 0 : value.held_bytes;
  }
  /// How long a value travels when no link is busy.
  int64_t WayNs(int from, int to, int64_t bytes) const;
  /// The longest way to the host of what is fetched of a task on `d`.
  int64_t FetchNs(int task, int d) const;

 private:
  template <class T>
  static std::span<const T> Slice(const std::vector<T>& all, const std::vector<int>& begin, int i) {
    const auto from = static_cast<size_t>(begin[static_cast<size_t>(i)]);
    return {all.data() + from, static_cast<size_t>(begin[static_cast<size_t>(i) + 1]) - from};
  }

  std::vector<DeviceCost> devices_;
  int spaces_ = 1;
  std::vector<LinkCost> links_;
  std::vector<int64_t> time_ns_;
  std::vector<int> group_;
  std::vector<int64_t> resident_;
  std::vector<uint8_t> deferrable_;
  std::vector<Use> uses_;
  std::vector<int> use_begin_{0};
  std::vector<Value> values_;
  std::vector<int> made_, made_begin_;
  std::vector<Consumer> consumers_;
  std::vector<int> consumer_begin_;
  std::vector<uint8_t> allowed_;
  std::vector<int64_t> group_bytes_;
};

/// Of a task, over the devices allowed.
int64_t MeanTimeNs(const Problem& problem, int task);
/// Upward rank of every task: its mean time, and what `more_ns` adds to it, plus the longest mean way to the end.
std::vector<int64_t> UpwardRanks(const Problem& problem, std::vector<int64_t> more_ns = {});
/// No plan is faster: the longest path at each task's best time, with transfers free.
int64_t PathBoundNs(const Problem& problem);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PROBLEM_H_
