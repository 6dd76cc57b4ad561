#include "core/device/device_name.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "core/base/errors.h"

namespace weir::device {
namespace {

constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A letter, then letters, digits and underscores.
bool IsIdentifier(std::string_view text) {
  if (text.empty() || !IsLetter(text[0])) return false;
  for (const char c : text) {
    if (!IsLetter(c) && !IsDigit(c) && c != '_') return false;
  }
  return true;
}

// Upper-case form of cpu and gpu; other types are unchanged.
std::string CanonicalType(std::string_view type) {
  if (type == "cpu") return "CPU";
  if (type == "gpu") return "GPU";
  return std::string(type);
}

// True for types that need no "device:" prefix: cpu, gpu, and names in capitals.
bool IsBareType(std::string_view text) {
  if (text == "cpu" || text == "gpu") return true;
  if (!IsIdentifier(text)) return false;
  for (const char c : text) {
    if (IsLetter(c) && !IsUpper(c)) return false;
  }
  return true;
}

// Parses one device name from left to right. Errors contain the text and a column counted from 1.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<DeviceName> Parse() {
    if (text_.empty() || text_ == "/") return name_;
    size_t begin = text_[0] == '/' ? 1 : 0;
    while (true) {
      const size_t slash = text_.find('/', begin);
      const size_t end = slash == std::string_view::npos ? text_.size() : slash;
      WEIR_TRY(Part(begin, text_.substr(begin, end - begin)));
      if (slash == std::string_view::npos) return name_;
      begin = slash + 1;
    }
  }

 private:
  Status Fault(size_t at, std::string_view wanted) const {
    return InvalidArgument("Malformed device specification '{}' (column {}: wanted {})", text_, at + 1, wanted);
  }

  Status Part(size_t at, std::string_view part) {
    const size_t colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    const bool has_value = colon != std::string_view::npos;
    const std::string_view value = has_value ? part.substr(colon + 1) : std::string_view();
    const size_t value_at = at + key.size() + 1;
    if (key == "job") {
      if (value == "*") return {};
      if (name_.job) return Fault(at, "/job only once");
      if (!IsIdentifier(value)) return Fault(value_at, "a job name: a letter, then letters, digits or '_'");
      name_.job = std::string(value);
      return {};
    }
    if (key == "replica") return Number(at, value_at, value, "/replica only once", name_.replica);
    if (key == "task") return Number(at, value_at, value, "/task only once", name_.task);
    if (key == "device") {
      if (!has_value) return Fault(value_at, "':' and a device type");
      return TypeAndId(value_at, value);
    }
    if (IsBareType(key)) return TypeAndId(at, part);
    if (key.empty()) return Fault(at, "job, replica, task, device or a device type");
    return InvalidArgument("Unknown attribute: '{}' in '{}' (column {})", key, text_, at + 1);
  }

  Status Number(size_t at, size_t value_at, std::string_view value, std::string_view once, std::optional<int>& number) {
    if (value == "*") return {};
    if (number) return Fault(at, once);
    int parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (value.empty() || !IsDigit(value[0]) || error != std::errc() || end != value.data() + value.size()) {
      return Fault(value_at, "a number from 0 to 2147483647, or '*'");
    }
    number = parsed;
    return {};
  }

  // "TYPE", "TYPE:N", "TYPE:*", "*".
  Status TypeAndId(size_t at, std::string_view text) {
    const size_t colon = text.find(':');
    const std::string_view type = text.substr(0, colon);
    if (has_device_) return InvalidArgument("Cannot specify multiple device types: {}", text_);
    has_device_ = true;
    if (type != "*") {
      if (!IsIdentifier(type)) return Fault(at, "a device type: a letter, then letters, digits or '_'");
      name_.type = CanonicalType(type);
    }
    if (colon == std::string_view::npos) return {};
    return Number(at, at + colon + 1, text.substr(colon + 1), "the device id only once", name_.id);
  }

  std::string_view text_;
  DeviceName name_;
  bool has_device_ = false;
};

// Copies a part that only `from` specifies; false if both specify different values.
template <class T>
bool MergePart(std::optional<T>& into, const std::optional<T>& from) {
  if (!from) return true;
  if (!into) into = from;
  return *into == *from;
}

Status Incompatible(std::string_view parts, const DeviceName& a, const DeviceName& b) {
  return InvalidArgument("Cannot merge devices with incompatible {}: '{}' and '{}'", parts, a.ToString(), b.ToString());
}

}  // namespace

std::string DeviceName::ToString() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += fmt::format("/replica:{}", *replica);
  if (task) text += fmt::format("/task:{}", *task);
  if (type || id) {
    text += "/device:" + type.value_or("*");
    text += id ? fmt::format(":{}", *id) : ":*";
  }
  return text;
}

Result<DeviceName> ParseDeviceName(std::string_view text) { return Parser(text).Parse(); }

bool Matches(const DeviceName& spec, const DeviceName& name) {
  return (!spec.job || spec.job == name.job) && (!spec.replica || spec.replica == name.replica) &&
         (!spec.task || spec.task == name.task) && (!spec.type || spec.type == name.type) &&
         (!spec.id || spec.id == name.id);
}

Result<DeviceName> MergeNames(const DeviceName& a, const DeviceName& b, bool soft) {
  DeviceName merged = a;
  if (!MergePart(merged.job, b.job)) return Incompatible("jobs", a, b);
  if (!MergePart(merged.replica, b.replica)) return Incompatible("replicas", a, b);
  if (!MergePart(merged.task, b.task)) return Incompatible("tasks", a, b);
  if (!MergePart(merged.type, b.type)) {
    if (!soft) return Incompatible("types", a, b);
    merged.type.reset();
    merged.id.reset();
    return merged;
  }
  if (!MergePart(merged.id, b.id)) {
    if (!soft) return Incompatible("ids", a, b);
    merged.id.reset();
  }
  return merged;
}

}  // namespace weir::device
