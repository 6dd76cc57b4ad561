// The scheduling problem of placement: tasks, devices, memory spaces and links; independent of graphs and plugins.
#ifndef WEIR_CORE_PLACE_PROBLEM_H_
#define WEIR_CORE_PLACE_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/base/indexed.h"

namespace weir::place {

using TaskId = int;    // of a Problem, in topological order; -1 = none, as for the others
using GroupId = int;   // of tasks that share a device
using ValueId = int;   // of a Problem
using DeviceId = int;  // in the order of the device set
using SpaceId = int;   // of a memory

/// Time of a task on a device that cannot run it.
inline constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// The host's memory space.
inline constexpr SpaceId kHostSpace = 0;

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
  SpaceId space = kHostSpace;
  int device_class = 0;  // devices of one class have equal task times
  int priority = 0;      // TensorFlow's priority of device types; higher is preferred
  int streams = 1;
  int64_t capacity_bytes = kUnlimited;
};

/// A value that a task produces and others consume. A control edge is a value of 0 bytes.
struct Value {
  TaskId task = -1;          // -1: in the host's space from the start
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
  ValueId value = -1;
  bool host = false;
};

/// Task numbers are a topological order. Filled by AddX, then sealed and read-only.
class Problem {
 public:
  /// `links` has spaces * spaces entries, [from * spaces + to]; the diagonal is ignored.
  Problem(std::vector<DeviceCost> devices, int spaces, std::vector<LinkCost> links);

  /// `time_ns`: one per device. Tasks with equal `group` (>= 0) share a device. A deferrable task uses only values of
  /// deferrable tasks, or none; it is placed with its first consumer.
  TaskId AddTask(std::span<const int64_t> time_ns, GroupId group, int64_t resident_bytes = 0, bool deferrable = false);
  /// Adds a value of an existing task, or of no task.
  ValueId AddValue(const Value& value);
  /// Adds a use to the last task.
  void AddUse(const Use& use);
  /// The step ends after the value has arrived in the host's space.
  void Fetch(ValueId value) { values_[value].fetched = true; }
  /// Call after the last AddX: computes the allowed devices of groups and the consumers of values.
  void Seal();
  /// After Seal: forbids all devices but those in `kept`, except to groups that none of these can run.
  void KeepDevices(const std::vector<DeviceId>& kept);

  int tasks() const { return group_.end_index(); }
  int groups() const { return group_bytes_.end_index(); }
  int device_count() const { return devices_.end_index(); }
  int spaces() const { return spaces_; }
  const DeviceCost& device(DeviceId d) const { return devices_[d]; }
  const LinkCost& link(SpaceId from, SpaceId to) const { return links_(from, to); }
  /// True if a and b are interchangeable: same task times, memory and link costs for every group allowed on both.
  bool Alike(DeviceId a, DeviceId b) const;

  int64_t TimeNs(TaskId task, DeviceId d) const { return time_ns_(task, d); }
  GroupId group(TaskId task) const { return group_[task]; }
  int64_t resident_bytes(TaskId task) const { return resident_[task]; }
  bool deferrable(TaskId task) const { return deferrable_[task] != 0; }
  /// True if all members of the group can run on the device.
  bool Allowed(GroupId group, DeviceId d) const { return allowed_(group, d) != 0; }
  /// Resident bytes of all members.
  int64_t group_bytes(GroupId group) const { return group_bytes_[group]; }
  /// The allowed device of highest priority, the first one on ties; 0 if there is none.
  DeviceId Fallback(GroupId group) const;

  std::span<const Use> uses(TaskId task) const { return Slice(uses_, use_begin_, task); }
  const Value& value(ValueId v) const { return values_[v]; }
  int values() const { return values_.end_index(); }
  std::span<const ValueId> values_of(TaskId task) const { return Slice(made_, made_begin_, task); }
  /// A task that uses the value, with its kind of use.
  struct Consumer {
    TaskId task = -1;
    bool host = false;
  };
  std::span<const Consumer> consumers(ValueId v) const { return Slice(consumers_, consumer_begin_, v); }

  /// The space of a value produced on `d` (ignored without a task), and the space that a use on `d` needs.
  SpaceId SourceSpace(const Value& value, DeviceId d) const {
    return value.host || value.task < 0 ? kHostSpace : device(d).space;
  }
  SpaceId TargetSpace(bool host, DeviceId d) const { return host ? kHostSpace : device(d).space; }
  /// True if a use on `d` of a value produced on `from` needs a copy in the memory of `d`. Devices that share a space
  /// other than the host's hold separate copies.
  bool Copies(const Value& value, DeviceId from, bool host, DeviceId d) const {
    const SpaceId source = SourceSpace(value, from);
    const SpaceId target = TargetSpace(host, d);
    return !host && (source != target || (target != kHostSpace && from != d));
  }
  /// Bytes that a value occupies in the memory of its producer's device `d`.
  int64_t HeldBytes(const Value& value, DeviceId d) const {
    return value.host && device(d).space != kHostSpace ? 0 : value.held_bytes;
  }
  /// Transfer time of a value over idle links.
  int64_t WayNs(SpaceId from, SpaceId to, int64_t bytes, int64_t times = 1) const;
  int64_t WayNs(SpaceId from, SpaceId to, const Value& value) const {
    return WayNs(from, to, value.bytes, value.times);
  }
  /// The longest transfer to the host of a fetched value of a task on `d`.
  int64_t FetchNs(TaskId task, DeviceId d) const;

 private:
  /// What belongs to `i`, where `begin` has for each index where its part of `all` begins, and the end of all.
  template <class T>
  static std::span<const T> Slice(const IndexedVector<int, T>& all, const IndexedVector<int, int>& begin, int i) {
    return std::span(all.elements()).subspan(PositionOf(begin[i]), PositionOf(begin[i + 1] - begin[i]));
  }

  IndexedVector<DeviceId, DeviceCost> devices_;
  int spaces_ = 1;
  IndexedTable<SpaceId, SpaceId, LinkCost> links_;
  IndexedTable<TaskId, DeviceId, int64_t> time_ns_;
  IndexedVector<TaskId, GroupId> group_;
  IndexedVector<TaskId, int64_t> resident_;
  IndexedVector<TaskId, uint8_t> deferrable_;
  IndexedVector<int, Use> uses_;  // of the first task, then of the next one
  IndexedVector<TaskId, int> use_begin_{0};
  IndexedVector<ValueId, Value> values_;
  IndexedVector<int, ValueId> made_;  // by the first task, then by the next one
  IndexedVector<TaskId, int> made_begin_;
  IndexedVector<int, Consumer> consumers_;  // of the first value, then of the next one
  IndexedVector<ValueId, int> consumer_begin_;
  IndexedTable<GroupId, DeviceId, uint8_t> allowed_;
  IndexedVector<GroupId, int64_t> group_bytes_;
};

/// Mean time of a task over its allowed devices.
int64_t MeanTimeNs(const Problem& problem, TaskId task);
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
