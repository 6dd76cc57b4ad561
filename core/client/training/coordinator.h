// Threads of a training program that start, stop and fail together.
#ifndef WEIR_CORE_CLIENT_TRAINING_COORDINATOR_H_
#define WEIR_CORE_CLIENT_TRAINING_COORDINATOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir {

/// A named thread that runs a function once. If it still runs when the last handle goes, it runs on by itself: what
/// its function uses must live as long.
class CoordinatedThread {
 public:
  CoordinatedThread(std::string name, std::function<void()> body);
  ~CoordinatedThread();
  CoordinatedThread(const CoordinatedThread&) = delete;
  CoordinatedThread& operator=(const CoordinatedThread&) = delete;

  /// A second call has no effect.
  void Start();
  const std::string& name() const;
  /// Started and not at its end.
  bool alive() const;
  /// False if it still runs after so many seconds.
  bool Wait(double seconds) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};
using ThreadPtr = std::shared_ptr<CoordinatedThread>;

struct JoinOptions {
  std::vector<ThreadPtr> threads = {};  // beside the registered ones
  double stop_grace_period_secs = 120;  // for threads to end after a stop is requested
  bool ignore_live_threads = false;     // those that run on are no error
};

/// Stops a set of threads together: one asks for the stop, perhaps with an error, and the others see it. The first
/// error is the one that counts. Thread-safe; copies share all state, and threads may keep one.
class Coordinator {
 public:
  /// Errors with these codes stop without being errors.
  explicit Coordinator(std::vector<Code> clean_stop_codes = {Code::kOutOfRange});

  /// `why` is recorded if it is the first error, not clean, and no stop was requested before.
  void RequestStop(const Status& why = {}) const;
  bool ShouldStop() const;
  /// True once a stop is requested; false after so many seconds. Without a limit it waits as long as it takes.
  bool WaitForStop(std::optional<double> seconds = {}) const;
  /// For another round: forgets the stop, its error, and that threads were joined.
  void ClearStop() const;
  /// The error with which the stop was requested, if any.
  Status RequestedError() const;
  /// Runs a function; its error, also an exception, requests the stop with it and is returned.
  Status StopOnError(const std::function<Status()>& body) const;

  void RegisterThread(const ThreadPtr& thread) const;
  /// Waits for all threads to end, or for a stop and then for the grace period. Returns the error of the stop; else
  /// FailedPrecondition "Coordinator stopped with threads still running: slow".
  Status Join(const JoinOptions& options = {}) const;
  bool joined() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What a LooperThread does; an error of one requests the stop.
struct LooperBody {
  std::function<Status()> run = {};
  std::function<Status()> start = {};  // before the first run; may be empty
  std::function<Status()> stop = {};   // at the end; may be empty
};

/// A thread that runs a function every `interval_secs`, at once the first time, until its coordinator stops; without
/// pause if that is 0. Register it with the coordinator, as Loop does.
class LooperThread : public CoordinatedThread {
 public:
  LooperThread(const Coordinator& coordinator, double interval_secs, LooperBody body,
               const std::string& name = "LooperThread");
  /// Makes and starts one.
  static ThreadPtr Loop(const Coordinator& coordinator, double interval_secs, std::function<Status()> run);
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_COORDINATOR_H_
