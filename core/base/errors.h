// Makes errors from format strings: InvalidArgument("wanted {} inputs, got {}", 2, n).
#ifndef WEIR_CORE_BASE_ERRORS_H_
#define WEIR_CORE_BASE_ERRORS_H_

#include <fmt/core.h>

#include <utility>

#include "core/base/status.h"

namespace weir {

#define WEIR_DECLARE_ERROR(Name)                                                    \
  template <class... Args>                                                          \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {                 \
    return Status(Code::k##Name, fmt::format(format, std::forward<Args>(args)...)); \
  }
WEIR_DECLARE_ERROR(Cancelled)
WEIR_DECLARE_ERROR(Unknown)
WEIR_DECLARE_ERROR(InvalidArgument)
WEIR_DECLARE_ERROR(DeadlineExceeded)
WEIR_DECLARE_ERROR(NotFound)
WEIR_DECLARE_ERROR(AlreadyExists)
WEIR_DECLARE_ERROR(PermissionDenied)
WEIR_DECLARE_ERROR(ResourceExhausted)
WEIR_DECLARE_ERROR(FailedPrecondition)
WEIR_DECLARE_ERROR(Aborted)
WEIR_DECLARE_ERROR(OutOfRange)
WEIR_DECLARE_ERROR(Unimplemented)
WEIR_DECLARE_ERROR(Internal)
WEIR_DECLARE_ERROR(Unavailable)
WEIR_DECLARE_ERROR(DataLoss)
#undef WEIR_DECLARE_ERROR

}  // namespace weir

#endif  // WEIR_CORE_BASE_ERRORS_H_
