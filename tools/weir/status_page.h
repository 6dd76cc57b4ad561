// A small HTTP server for pages about this process.
#ifndef WEIR_TOOLS_WEIR_STATUS_PAGE_H_
#define WEIR_TOOLS_WEIR_STATUS_PAGE_H_

#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace weir::cli {

struct Page {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET and HEAD requests until it is destroyed, on a thread of its own. A connection has five seconds for its
/// request, and one page.
class StatusPage {
 public:
  /// `page` makes the page of a path such as "/metrics". InvalidArgument for an address that is not on this machine;
  /// FailedPrecondition for one that is taken.
  static Result<std::unique_ptr<StatusPage>> Listen(const std::string& address,
                                                    std::function<Page(const std::string& path)> page);
  virtual ~StatusPage() = default;
  /// "127.0.0.1:8080", with the actual port.
  virtual std::string address() const = 0;
};

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_STATUS_PAGE_H_
