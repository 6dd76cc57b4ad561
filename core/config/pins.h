// Patterns over node names that say where nodes run.
#ifndef WEIR_CORE_CONFIG_PINS_H_
#define WEIR_CORE_CONFIG_PINS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace re2 {
class RE2;
}

namespace weir::config {

/// `placement.pin`, compiled. Immutable but for Add, so thread-safe once filled; share it rather than make it again.
class Pins {
 public:
  using List = std::vector<std::pair<std::string, std::string>>;

  Pins();
  /// All of `pins`; the first that Add refuses is the status.
  explicit Pins(const List& pins);
  ~Pins();

  /// The next pattern (RE2) with its device. InvalidArgument for what is no regular expression; ResourceExhausted for
  /// one that is too large compiled, and once all together are.
  Status Add(const std::string& pattern, const std::string& device);
  const Status& status() const { return status_; }

  /// The device of the pattern whose match in `name` is longest, the earlier of equals; null = none matches.
  const std::string* For(std::string_view name) const;

 private:
  std::vector<std::pair<std::unique_ptr<re2::RE2>, std::string>> pins_;
  int size_ = 0;  // of all programs, in instructions of RE2
  Status status_;
};

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_PINS_H_
