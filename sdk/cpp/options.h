// Access to a plugin's options.
#ifndef WEIR_SDK_CPP_OPTIONS_H_
#define WEIR_SDK_CPP_OPTIONS_H_

#include <span>
#include <string_view>

#include "sdk/abi/plugin.h"
#include "sdk/cpp/status.h"

namespace weir::sdk {

/// Resolved options of a call; the core has checked them against the plugin's specs.
class Options {
 public:
  Options(const weir_opt* options, uint64_t count) : options_(options, options ? count : 0) {}
  int64_t Int(std::string_view key, int64_t otherwise) const {
    const weir_opt* option = Find(key, WEIR_VALUE_INT);
    return option ? option->value.i : otherwise;
  }
  bool Bool(std::string_view key, bool otherwise) const {
    const weir_opt* option = Find(key, WEIR_VALUE_BOOL);
    return option ? option->value.i != 0 : otherwise;
  }
  double Float(std::string_view key, double otherwise) const {
    const weir_opt* option = Find(key, WEIR_VALUE_FLOAT);
    return option ? option->value.f : otherwise;
  }
  /// Borrowed for the call.
  std::string_view String(std::string_view key, std::string_view otherwise) const {
    const weir_opt* option = Find(key, WEIR_VALUE_STRING);
    return option ? ToView(option->value.s) : otherwise;
  }

 private:
  const weir_opt* Find(std::string_view key, uint32_t type) const {
    for (const weir_opt& option : options_) {
      if (option.type == type && ToView(option.key) == key) return &option;
    }
    return nullptr;
  }
  std::span<const weir_opt> options_;
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_OPTIONS_H_
