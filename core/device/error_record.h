// The core's side of the error record that crosses the plugin boundary.
#ifndef WEIR_CORE_DEVICE_ERROR_RECORD_H_
#define WEIR_CORE_DEVICE_ERROR_RECORD_H_

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/errors.h"
#include "sdk/abi/status.h"

namespace weir::device {

/// An error record with a message buffer, convertible to a Status. For one failure; not copyable.
class ErrorRecord {
 public:
  ErrorRecord() { Clear(); }
  ErrorRecord(const ErrorRecord&) = delete;
  ErrorRecord& operator=(const ErrorRecord&) = delete;

  weir_error* get() { return &error_; }
  /// Resets the record.
  void Clear();
  /// WEIR_ERROR_* of the failure.
  uint32_t flags() const { return error_.flags; }
  /// Ok for code 0, Unknown for a code outside the set. `what` names the call for errors without text and for faults of
  /// the plugin.
  Status ToStatus(int32_t code, std::string_view what) const;

 private:
  char text_[1024];
  weir_error error_;
};

/// Fills a record for the plugin and returns `code`. `error` may be null; the text is truncated to its capacity.
int32_t Report(weir_error* error, int32_t code, std::string_view text) noexcept;
/// As above, from a Status.
int32_t Report(weir_error* error, const Status& status) noexcept;

/// Calls `call(weir_error*)`, which calls a plugin function and returns its code. An exception from the plugin becomes
/// Internal. `what` names the call in errors: a text, or a function that returns it.
template <class What, class Call>
Status CallPlugin(const What& what, Call&& call) {
  const auto name = [&what] {
    if constexpr (std::is_invocable_v<What>) {
      return what();
    } else {
      return std::string_view(what);
    }
  };
  ErrorRecord record;
  try {
    const int32_t code = std::forward<Call>(call)(record.get());
    return code == WEIR_OK ? Status() : record.ToStatus(code, name());
  } catch (const std::exception& e) {
    return Internal("{} let an exception escape: {}", name(), e.what());
  } catch (...) {
    return Internal("{} let an exception escape", name());
  }
}

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_ERROR_RECORD_H_
