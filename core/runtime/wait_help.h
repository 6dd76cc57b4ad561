// Lets a thread that waits for a message receive messages meanwhile, so that no other thread has to be woken for it.
#ifndef WEIR_CORE_RUNTIME_WAIT_HELP_H_
#define WEIR_CORE_RUNTIME_WAIT_HELP_H_

#include <functional>

namespace weir::runtime {

/// A source of messages. Thread-safe.
class WaitHelp {
 public:
  virtual ~WaitHelp() = default;
  /// Receives here until `over()`, briefly: nothing wakes the thread when `over()` turns true elsewhere. What comes
  /// runs on this thread, so hold no locks. False at once if another thread receives; then, and if `over()` is false in
  /// the end, the caller waits by its own means. Empty: it waits for something else, and others shall receive.
  virtual bool Receive(const std::function<bool()>& over) const = 0;

  /// What helps this thread now; null: nothing.
  static const WaitHelp* Here();
};

/// Helps this thread until the end of the scope, unless something does already. `help` may be null.
class WaitHelpScope {
 public:
  explicit WaitHelpScope(const WaitHelp* help);
  ~WaitHelpScope();
  WaitHelpScope(const WaitHelpScope&) = delete;
  WaitHelpScope& operator=(const WaitHelpScope&) = delete;

 private:
  const WaitHelp* const before_;
};

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_WAIT_HELP_H_
