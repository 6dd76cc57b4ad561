#include "core/cluster/nodelist.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "core/base/errors.h"

namespace weir::cluster {
namespace {

constexpr size_t kMostDigits = 9;

Status TooMany(std::string_view text) {
  return ResourceExhausted("the list '{}' has more than {} entries", text.substr(0, 200), kMostNodes);
}

/// Reads one list from left to right.
class NodeListReader {
 public:
  explicit NodeListReader(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> Run() {
    std::vector<std::string> all;
    while (at_ < text_.size()) {
      WEIR_ASSIGN(const std::vector<std::string> names, Name());
      if (all.size() + names.size() > kMostNodes) return TooMany(text_);
      all.insert(all.end(), names.begin(), names.end());
      if (at_ == text_.size()) break;
      ++at_;  // a comma
      if (at_ == text_.size()) return Fault("a name");
    }
    return all;
  }

 private:
  Status Fault(std::string_view wanted) const {
    return InvalidArgument("the list of nodes '{}' is malformed at column {}: wanted {}", text_.substr(0, 200), at_ + 1,
                           wanted);
  }

  Result<std::vector<std::string>> Name() {
    std::vector<std::string> names = {""};
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      const char c = text_[at_];
      if (c == '[') {
        WEIR_ASSIGN(const std::vector<std::string> choices, Brackets());
        if (names.size() * choices.size() > kMostNodes) return TooMany(text_);
        std::vector<std::string> longer;
        for (const std::string& name : names) {
          for (const std::string& choice : choices) longer.push_back(name + choice);
        }
        names = std::move(longer);
        continue;
      }
      if (c <= ' ' || c == ']' || c == 127) return Fault("a letter, a digit or '['");
      for (std::string& name : names) name += c;
      ++at_;
    }
    if (at_ == begin) return Fault("a name");
    return names;
  }

  Result<std::string_view> Number() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == begin || at_ - begin > kMostDigits) return Fault("a number of at most 9 digits");
    return text_.substr(begin, at_ - begin);
  }

  static int64_t ValueOf(std::string_view digits) {
    int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  /// From '[' to behind ']'.
  Result<std::vector<std::string>> Brackets() {
    std::vector<std::string> all;
    do {
      ++at_;  // '[' or ','
      WEIR_ASSIGN(const std::string_view first, Number());
      std::string_view last = first;
      if (at_ < text_.size() && text_[at_] == '-') {
        ++at_;
        WEIR_ASSIGN(last, Number());
      }
      const int64_t low = ValueOf(first), high = ValueOf(last);
      if (high < low) return Fault("a range that does not fall");
      if (static_cast<uint64_t>(high - low) >= kMostNodes - all.size()) return TooMany(text_);
      for (int64_t n = low; n <= high; ++n) all.push_back(fmt::format("{:0{}}", n, first.size()));
    } while (at_ < text_.size() && text_[at_] == ',');
    if (at_ == text_.size() || text_[at_] != ']') return Fault("',' or ']'");
    ++at_;
    return all;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::vector<std::string>> ExpandNodeList(std::string_view text) {
  if (text.empty()) return InvalidArgument("the list of nodes is empty");
  return NodeListReader(text).Run();
}

Result<std::vector<int>> ExpandCounts(std::string_view text) {
  std::vector<int> all;
  std::string_view rest = text;
  do {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest = entry.size() == rest.size() ? std::string_view() : rest.substr(entry.size() + 1);
    const char* const end = entry.data() + entry.size();
    int count = 0, times = 1;
    const auto first = std::from_chars(entry.data(), end, count);
    bool good = first.ec == std::errc() && count > 0;
    if (good && first.ptr != end) {
      const std::string_view repeat(first.ptr, static_cast<size_t>(end - first.ptr));
      good = repeat.starts_with("(x") && repeat.ends_with(')');
      if (good) {
        const auto second = std::from_chars(first.ptr + 2, end - 1, times);
        good = second.ec == std::errc() && second.ptr == end - 1 && times > 0;
      }
    }
    if (!good) return InvalidArgument("'{}' in '{}' is no count: wanted 2 or 2(x3)", entry, text.substr(0, 200));
    if (static_cast<size_t>(times) > kMostNodes - all.size()) return TooMany(text);
    all.insert(all.end(), static_cast<size_t>(times), count);
  } while (!rest.empty());
  return all;
}

}  // namespace weir::cluster
