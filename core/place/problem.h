// The scheduling problem of placement: tasks, devices, memory spaces and links; independent of graphs and plugins.
#ifndef WEIR_CORE_PLACE_PROBLEM_H_
#define WEIR_CORE_PLACE_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace weir::place {

/// Time of a task on a device that cannot run it.
inline constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// The host's memory space.
inline constexpr int kHostSpace = 0;

/// The link from one memory space to another.
struct LinkCost {
  int64_t latency_ns = 0;
  double ns_per_byte = 0;
  bool direct = true;  // false: through the host's space, over two links
  bool queues = true;  // transfers are serialized

  /// The time of `times` transfers of that size.
  int64_t TransferNs(int64_t bytes, int64_t times = 1) const;
  bool operator==(const LinkCost&) const = default;
};

/// A device runs `streams` tasks concurrently.
struct DeviceCost {
  int space = kHostSpace;
  int device_class = 0;  // devices of one class have equal task times
  int priority = 0;      // TensorFlow's priority of device types; higher is preferred
  int streams = 1;
  int64_t capacity_bytes = kUnlimited;
};

/// A value that a task produces and others consume. A control edge is a value of 0 bytes.
struct Value {
  int task = -1;             // -1: in the host's space from the start
  int64_t bytes = 0;         // to transfer
  int64_t held_bytes = 0;    // memory at the producer until the last local use and the last arrival elsewhere
  int64_t copied_bytes = 0;  // memory on every other device that uses it, until the last use there
  bool host = false;         // in the host's space, regardless of the task's device
  bool constant = false;     // permanently present on every device that uses it
  bool fetched = false;      // Problem::Fetch
  int64_t times = 1;         // transfers in a step: more than one for a value of a loop's body
};

/// A task's use of a value, in its device's space or the host's.
struct Use {
  int value = -1;
  bool host = false;
};

/// Task numbers are a topological order. Filled by AddX, then sealed and read-only.
class Problem {
 public:
  /// `links` has spaces * spaces entries, [from * spaces + to]; the diagonal is ignored.
  Problem(std::vector<DeviceCost> devices, int spaces, std::vector<LinkCost> links);

  /// `time_ns`: one per device. Tasks with equal `group` (>= 0) share a device. A deferrable task uses only values of
  /// deferrable tasks, or none; it is placed with its first consumer.
  int AddTask(std::span<const int64_t> time_ns, int group, int64_t resident_bytes = 0, bool deferrable = false);
  /// Adds a value of an existing task, or of no task.
  int AddValue(const Value& value);
  /// Adds a use to the last task.
  void AddUse(const Use& use);
  /// The step ends after the value has arrived in the host's space.
  void Fetch(int value) { values_[static_cast<size_t>(value)].fetched = true; }
  /// Call after the last AddX: computes the allowed devices of groups and the consumers of values.
  void Seal();
  /// After Seal: forbids all devices but those in `kept`, except to groups that none of these can run.
  void KeepDevices(const std::vector<int>& kept);

  int tasks() const { return static_cast<int>(group_.size()); }
  int groups() const { return static_cast<int>(group_bytes_.size()); }
  int device_count() const { return static_cast<int>(devices_.size()); }
  int spaces() const { return spaces_; }
  const DeviceCost& device(int d) const { return devices_[static_cast<size_t>(d)]; }
  const LinkCost& link(int from, int to) const { return links_[static_cast<size_t>(from * spaces_ + to)]; }
  /// True if a and b are interchangeable: same task times, memory and link costs for every group allowed on both.
  bool Alike(int a, int b) const;

  int64_t TimeNs(int task, int d) const {
    return time_ns_[static_cast<size_t>(task) * devices_.size() + static_cast<size_t>(d)];
  }
  int group(int task) const { return group_[static_cast<size_t>(task)]; }
  int64_t resident_bytes(int task) const { return resident_[static_cast<size_t>(task)]; }
  bool deferrable(int task) const { return deferrable_[static_cast<size_t>(task)] != 0; }
  /// True if all members of the group can run on the device.
  bool Allowed(int group, int d) const {
    return allowed_[static_cast<size_t>(group) * devices_.size() + static_cast<size_t>(d)] != 0;
  }
  /// Resident bytes of all members.
  int64_t group_bytes(int group) const { return group_bytes_[static_cast<size_t>(group)]; }
  /// The allowed device of highest priority, the first one on ties; 0 if there is none.
  int Fallback(int group) const;

  std::span<const Use> uses(int task) const { return Slice(uses_, use_begin_, task); }
  const Value& value(int v) const { return values_[static_cast<size_t>(v)]; }
  int values() const { return static_cast<int>(values_.size()); }
  std::span<const int> values_of(int task) const { return Slice(made_, made_begin_, task); }
  /// A task that uses the value, with its kind of use.
  struct Consumer {
    int task = -1;
    bool host = false;
  };
  std::span<const Consumer> consumers(int v) const { return Slice(consumers_, consumer_begin_, v); }

  /// The space of a value produced on `d` (ignored without a task), and the space that a use on `d` needs.
  int SourceSpace(const Value& value, int d) const {
    return value.host || value.task < 0 ? kHostSpace : device(d).space;
  }
  int TargetSpace(bool host, int d) const { return host ? kHostSpace : device(d).space; }
  /// True if a use on `d` of a value produced on `from` needs a copy in the memory of `d`. Devices that share a space
  /// other than the host's hold separate copies.
  bool Copies(const Value& value, int from, bool host, int d) const {
    const int source = SourceSpace(value, from);
    const int target = TargetSpace(host, d);
    return !host && (source != target || (target != kHostSpace && from != d));
  }
  /// Bytes that a value occupies in the memory of its producer's device `d`.
  int64_t HeldBytes(const Value& value, int d) const {
    return value.host && device(d).space != kHostSpace ? 0 : value.held_bytes;
  }
  /// Transfer time of a value over idle links.
  int64_t WayNs(int from, int to, int64_t bytes, int64_t times = 1) const;
  int64_t WayNs(int from, int to, const Value& value) const { return WayNs(from, to, value.bytes, value.times); }
  /// The longest transfer to the host of a fetched value of a task on `d`.
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

/// Mean time of a task over its allowed devices.
int64_t MeanTimeNs(const Problem& problem, int task);
/// Upward rank of each task: its mean time plus `more_ns` plus the longest mean path to the end of the step.
std::vector<int64_t> UpwardRanks(const Problem& problem, std::vector<int64_t> more_ns = {});
/// Lower bound of all plans: the longest path with each task's best time and free transfers.
int64_t PathBoundNs(const Problem& problem);
/// Lower bound of all plans: the load of the busiest device if groups could be divided among devices without transfers,
/// within the devices' memory for state. Approaches the optimum of that linear program from below.
int64_t LoadBoundNs(const Problem& problem);
/// The larger of both.
int64_t LowerBoundNs(const Problem& problem);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PROBLEM_H_
