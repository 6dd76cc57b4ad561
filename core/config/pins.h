// Patterns over node names that pin nodes to devices.
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

/// The compiled `placement.pin`. Thread-safe after the last Add. Compilation is expensive: share instances.
class Pins {
 public:
  using List = std::vector<std::pair<std::string, std::string>>;

  Pins();
  /// Adds all of `pins`; status() is the first error of Add.
  explicit Pins(const List& pins);
  ~Pins();

  /// Adds a pattern (RE2) with its device. InvalidArgument for an invalid regular expression; ResourceExhausted if it,
  /// or all patterns together, compile to too many instructions.
  Status Add(const std::string& pattern, const std::string& device);
  const Status& status() const { return status_; }

  /// The pattern with the longest match in a name, the earlier one if equal, and its device.
  struct Pin {
    const std::string* pattern = nullptr;  // null if none matches
    const std::string* device = nullptr;
    const std::string* rival = nullptr;  // another pattern with a match of that length and another device
  };
  Pin Find(std::string_view name) const;
  /// The device of Find.
  const std::string* For(std::string_view name) const { return Find(name).device; }

 private:
  std::vector<std::pair<std::unique_ptr<re2::RE2>, std::string>> pins_;
  int size_ = 0;  // of all programs, in RE2 instructions
  Status status_;
};

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_PINS_H_
