#include "core/place/simulate.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace weir::place {
namespace {

/// A simulated event. Events at equal times are processed in the order of creation.
struct Event {
  int64_t time = 0;
  int64_t number = 0;
  int task = -1;   // the task that finishes, or
  int value = -1;  // the value that arrives
  int space = -1;
  int64_t link_wait = 0;
};

struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return std::tie(a.time, a.number) > std::tie(b.time, b.number);
  }
};

class Run {
 public:
  Run(const Problem& problem, const std::vector<int>& device_of, const std::vector<int64_t>& ranks, Course* course)
      : problem_(problem), device_of_(device_of), ranks_(ranks), course_(course) {
    const size_t tasks = PositionOf(problem.tasks()), devices = PositionOf(problem.device_count());
    const size_t values = PositionOf(problem.values()), spaces = PositionOf(problem.spaces());
    result_.start_ns.assign(tasks, 0);
    result_.finish_ns.assign(tasks, 0);
    result_.ready_ns.assign(tasks, 0);
    result_.link_wait_ns.assign(tasks, 0);
    result_.peak_bytes.assign(devices, 0);
    missing_.assign(tasks, 0);
    ready_.resize(devices);
    free_streams_.resize(devices);
    in_use_.assign(devices, 0);
    link_free_.assign(spaces, spaces, 0);
    reads_.assign(values, 0);
    copy_reads_.assign(values, devices, 0);
  }

  Simulation Go() {
    Start();
    Dispatch(0);
    while (!events_.empty()) {
      const int64_t now = now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (event.task >= 0) {
          Finish(event.task, now);
        } else {
          Deliver(event.value, event.space, now, event.link_wait);
          ReadOriginal(event.value);
          result_.makespan_ns = std::max(result_.makespan_ns, now);
        }
      }
      Dispatch(now);
    }
    for (int d = 0; d < problem_.device_count(); ++d) {
      result_.fits = result_.fits && result_.peak_bytes[d] <= problem_.device(d).capacity_bytes;
    }
    return std::move(result_);
  }

 private:
  int DeviceOf(int task) const { return device_of_[task]; }

  void Start() {
    for (int d = 0; d < problem_.device_count(); ++d) {
      free_streams_[d] = problem_.device(d).streams;
    }
    for (int t = 0; t < problem_.tasks(); ++t) {
      missing_[t] = static_cast<int>(problem_.uses(t).size());
      if (missing_[t] == 0) MakeReady(t, 0);
      Hold(DeviceOf(t), problem_.resident_bytes(t));
    }
    for (int v = 0; v < problem_.values(); ++v) {
      if (problem_.value(v).task < 0) Send(v, 0);
    }
  }

  int MadeOn(const Value& value) const { return value.task < 0 ? 0 : DeviceOf(value.task); }

  /// Allocates copies of a new value. The original is read by `transfers` transfers and by consumers that share it.
  void HoldCopies(int v, int transfers) {
    const Value& value = problem_.value(v);
    int& reads = reads_[v];
    reads = transfers;
    for (const Problem::Consumer& consumer : problem_.consumers(v)) {
      const int d = DeviceOf(consumer.task);
      if (!problem_.Copies(value, MadeOn(value), consumer.host, d)) {
        ++reads;
      } else if (++copy_reads_(v, d) == 1) {
        Hold(d, value.copied_bytes);
      }
    }
    if (value.fetched && problem_.SourceSpace(value, MadeOn(value)) == kHostSpace) ++reads;  // until the step ends
    if (reads == 0) LetGo(v);
  }

  void LetGo(int v) {
    const Value& value = problem_.value(v);
    if (value.task >= 0) Hold(DeviceOf(value.task), -problem_.HeldBytes(value, DeviceOf(value.task)));
  }

  void ReadOriginal(int v) {
    if (--reads_[v] == 0) LetGo(v);
  }

  void Read(const Use& use, int d) {
    const Value& value = problem_.value(use.value);
    if (!problem_.Copies(value, MadeOn(value), use.host, d)) {
      ReadOriginal(use.value);
    } else if (--copy_reads_(use.value, d) == 0 && !value.constant) {
      Hold(d, -value.copied_bytes);
    }
  }

  void Hold(int d, int64_t bytes) {
    int64_t& in_use = in_use_[d];
    in_use += bytes;
    if (course_ != nullptr && bytes != 0) course_->memory.push_back({d, now_, in_use});
    result_.peak_bytes[d] = std::max(result_.peak_bytes[d], in_use);
  }

  void MakeReady(int task, int64_t now) {
    result_.ready_ns[task] = now;
    ready_[DeviceOf(task)].emplace(ranks_[task], -task);
  }

  void Dispatch(int64_t now) {
    for (int d = 0; d < problem_.device_count(); ++d) {
      auto& ready = ready_[d];
      int& streams = free_streams_[d];
      while (streams > 0 && !ready.empty()) {
        const int task = -ready.top().second;
        ready.pop();
        --streams;
        const int64_t time = problem_.TimeNs(task, d) == kImpossible ? 0 : problem_.TimeNs(task, d);
        result_.start_ns[task] = now;
        for (const int v : problem_.values_of(task)) Hold(d, problem_.HeldBytes(problem_.value(v), d));
        events_.push({now + time, number_++, task, -1, -1, 0});
      }
    }
  }

  void Finish(int task, int64_t now) {
    result_.finish_ns[task] = now;
    result_.makespan_ns = std::max(result_.makespan_ns, now);
    ++free_streams_[DeviceOf(task)];
    for (const int v : problem_.values_of(task)) Send(v, now);
    for (const Use& use : problem_.uses(task)) Read(use, DeviceOf(task));
  }

  /// Transfers a value to every other space that needs it, and delivers it in its own.
  void Send(int v, int64_t now) {
    const Value& value = problem_.value(v);
    const int source = problem_.SourceSpace(value, MadeOn(value));
    targets_.clear();
    if (value.fetched) targets_.push_back(kHostSpace);
    for (const Problem::Consumer& consumer : problem_.consumers(v)) {
      targets_.push_back(problem_.TargetSpace(consumer.host, DeviceOf(consumer.task)));
    }
    std::sort(targets_.begin(), targets_.end());
    targets_.erase(std::unique(targets_.begin(), targets_.end()), targets_.end());
    const std::vector<int> targets = targets_;
    const auto elsewhere = std::count_if(targets.begin(), targets.end(), [&](int target) { return target != source; });
    HoldCopies(v, static_cast<int>(elsewhere));
    for (const int target : targets) {
      if (target == source || value.constant) {
        Deliver(v, target, now, 0);
        continue;
      }
      result_.transfers += value.times;
      result_.transferred_bytes += value.bytes * value.times;
      const auto [arrives, waited] = Transfer(source, target, value, now);
      events_.push({arrives, number_++, -1, v, target, waited});
    }
  }

  /// Queues on the link, or on both links via the host; returns the arrival time and the waiting time.
  std::pair<int64_t, int64_t> Transfer(int source, int target, const Value& value, int64_t now) {
    if (!problem_.link(source, target).direct && source != kHostSpace && target != kHostSpace) {
      const auto [there, first] = Transfer(source, kHostSpace, value, now);
      const auto [arrives, second] = Transfer(kHostSpace, target, value, there);
      return {arrives, first + second};
    }
    const LinkCost& link = problem_.link(source, target);
    const int64_t time = link.TransferNs(value.bytes, value.times);
    if (!link.queues) {
      Note(value, source, target, now, time);
      return {now + time, 0};
    }
    int64_t& free = link_free_(source, target);
    const int64_t waited = std::max<int64_t>(free - now, 0);
    free = now + waited + time;
    Note(value, source, target, now + waited, time);
    return {free, waited};
  }

  void Note(const Value& value, int source, int target, int64_t start, int64_t time) {
    if (course_ == nullptr) return;
    const int number = static_cast<int>(&value - &problem_.value(0));
    course_->transfers.push_back({number, source, target, start, start + time});
  }

  void Deliver(int v, int space, int64_t now, int64_t link_wait) {
    for (const Problem::Consumer& consumer : problem_.consumers(v)) {
      if (problem_.TargetSpace(consumer.host, DeviceOf(consumer.task)) != space) continue;
      int64_t& wait = result_.link_wait_ns[consumer.task];
      wait = std::max(wait, link_wait);
      if (--missing_[consumer.task] == 0) MakeReady(consumer.task, now);
    }
  }

  const Problem& problem_;
  const std::vector<int>& device_of_;
  const std::vector<int64_t>& ranks_;
  Course* const course_;
  int64_t now_ = 0;
  Simulation result_;
  IndexedVector<TaskId, int> missing_;                                              // number of missing inputs
  IndexedVector<ValueId, int> reads_;                                               // remaining reads of the original
  IndexedTable<ValueId, DeviceId, int> copy_reads_;                                 // remaining reads of the copy
  IndexedVector<DeviceId, std::priority_queue<std::pair<int64_t, TaskId>>> ready_;  // (rank, -task)
  IndexedVector<DeviceId, int> free_streams_;
  IndexedVector<DeviceId, int64_t> in_use_;            // bytes
  IndexedTable<SpaceId, SpaceId, int64_t> link_free_;  // of the link from one to the other
  std::vector<int> targets_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  int64_t number_ = 0;
};

}  // namespace

Simulation Simulate(const Problem& problem, const std::vector<int>& device_of, const std::vector<int64_t>& ranks,
                    Course* course) {
  return Run(problem, device_of, ranks, course).Go();
}

}  // namespace weir::place
