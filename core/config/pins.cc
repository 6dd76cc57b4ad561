#include "core/config/pins.h"

#include <re2/re2.h>

#include "core/base/errors.h"

namespace weir::config {
namespace {

/// Memory limit of one pattern including matching: about 2,700 instructions; a letter takes one.
constexpr int64_t kPatternBytes = 128 << 10;
/// Limit on all programs together: compiling them takes half a second.
constexpr int kMostInstructions = 1'000'000;

}  // namespace

Pins::Pins() = default;
Pins::~Pins() = default;

Pins::Pins(const List& pins) {
  for (const auto& [pattern, device] : pins) {
    if (status_.ok()) status_ = Add(pattern, device);
  }
}

Status Pins::Add(const std::string& pattern, const std::string& device) {
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kPatternBytes);
  auto regex = std::make_unique<RE2>(pattern, options);
  if (regex->error_code() == RE2::ErrorPatternTooLarge) {
    return ResourceExhausted("the pattern '{}' takes more than {} KiB compiled: use fewer repetitions", pattern,
                             kPatternBytes >> 10);
  }
  if (!regex->ok()) return InvalidArgument("'{}' is no regular expression: {}", pattern, regex->error());
  if (regex->ProgramSize() > kMostInstructions - size_) {
    return ResourceExhausted("the {} patterns up to '{}' are too large together: use fewer or shorter ones",
                             pins_.size() + 1, pattern);
  }
  size_ += regex->ProgramSize();
  pins_.emplace_back(std::move(regex), device);
  return Status();
}

Pins::Pin Pins::Find(std::string_view name) const {
  Pin best;
  size_t longest = 0;
  const re2::StringPiece text(name.data(), name.size());
  for (const auto& [regex, device] : pins_) {
    re2::StringPiece match;
    if (!regex->Match(text, 0, text.size(), RE2::UNANCHORED, &match, 1)) continue;
    if (best.device != nullptr && match.size() == longest && device != *best.device) best.rival = &regex->pattern();
    if (best.device != nullptr && match.size() <= longest) continue;
    longest = match.size();
    best = {&regex->pattern(), &device, nullptr};
  }
  return best;
}

}  // namespace weir::config
