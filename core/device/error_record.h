// The error record that crosses the plugin boundary, on the core's side.
#ifndef WEIR_CORE_DEVICE_ERROR_RECORD_H_
#define WEIR_CORE_DEVICE_ERROR_RECORD_H_

#include <exception>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "sdk/abi/status.h"

namespace weir::device {

/// An error record with room for a message, and the Status that it turns into. For one call; not copied.
class ErrorRecord {
 public:
  ErrorRecord();
  ErrorRecord(const ErrorRecord&) = delete;
  ErrorRecord& operator=(const ErrorRecord&) = delete;

  weir_error* get() { return &error_; }
  /// Ok for code 0, Unknown for a code outside the set. `what` names the call for an error without text.
  Status ToStatus(int32_t code, std::string_view what) const;

 private:
  char text_[1024];
  weir_error error_;
};

/// Fills a record for the other side; `error` may be null, and the text is cut to its capacity. Returns `code`.
int32_t Report(weir_error* error, int32_t code, std::string_view text) noexcept;
/// The same from a Status.
int32_t Report(weir_error* error, const Status& status) noexcept;

/// Calls `call(weir_error*)`, which calls into a plugin and returns its code. An exception that the plugin lets escape
/// becomes Internal.
template <class Call>
Status CallPlugin(std::string_view what, Call&& call) {
  ErrorRecord record;
  try {
    return record.ToStatus(std::forward<Call>(call)(record.get()), what);
  } catch (const std::exception& e) {
    return Internal("{} let an exception escape: {}", what, e.what());
  } catch (...) {
    return Internal("{} let an exception escape", what);
  }
}

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_ERROR_RECORD_H_
