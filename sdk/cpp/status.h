// Errors of a plugin: codes with a text in the caller's record, and a guard that stops exceptions.
#ifndef WEIR_SDK_CPP_STATUS_H_
#define WEIR_SDK_CPP_STATUS_H_

#include <charconv>
#include <concepts>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

namespace weir::sdk {

inline std::string_view ToView(weir_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }
constexpr weir_str Str(std::string_view s) { return {s.data(), s.size()}; }

/// The caller's error record. Fail returns the code, as in `return error.InvalidArgument(…)`. Parts are texts,
/// integers, floating-point numbers and shapes; the message is their concatenation. Never allocates.
class Error {
 public:
  explicit Error(weir_error* record) : record_(record) {}

  template <class... Parts>
  [[nodiscard, gnu::cold, gnu::noinline]] int32_t Fail(int32_t code, const Parts&... parts) const noexcept {
    if (record_ == nullptr) return code;
    record_->code = code;
    record_->length = 0;
    (Append(parts), ...);
    return code;
  }
  template <class... Parts>
  [[nodiscard]] int32_t InvalidArgument(const Parts&... parts) const noexcept {
    return Fail(WEIR_INVALID_ARGUMENT, parts...);
  }
  template <class... Parts>
  [[nodiscard]] int32_t Unimplemented(const Parts&... parts) const noexcept {
    return Fail(WEIR_UNIMPLEMENTED, parts...);
  }
  template <class... Parts>
  [[nodiscard]] int32_t ResourceExhausted(const Parts&... parts) const noexcept {
    return Fail(WEIR_RESOURCE_EXHAUSTED, parts...);
  }

  weir_error* record() const { return record_; }

 private:
  void Append(std::string_view text) const noexcept {
    if (record_->message == nullptr || record_->length >= record_->capacity) return;
    const uint64_t n = std::min<uint64_t>(text.size(), record_->capacity - record_->length);
    std::memcpy(record_->message + record_->length, text.data(), n);
    record_->length += n;
  }
  void Append(const char* text) const noexcept { Append(std::string_view(text)); }
  void Append(weir_str text) const noexcept { Append(ToView(text)); }
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void Append(Number value) const noexcept {
    char digits[40];
    Append(std::string_view(digits, std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
  }
  void Append(const weir_shape& shape) const noexcept {
    if (shape.rank == WEIR_UNKNOWN_RANK) return Append("<unknown>");
    Append("[");
    for (uint32_t i = 0; i < shape.rank; ++i) {
      if (i) Append(",");
      Append(shape.dims[i]);
    }
    Append("]");
  }

  weir_error* record_;
};

/// Calls `body`, which returns a code, and turns exceptions into codes.
template <class Body>
int32_t Guard(weir_error* record, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error(record).ResourceExhausted("out of host memory");
  } catch (const std::exception& e) {
    return Error(record).Fail(WEIR_INTERNAL, e.what());
  } catch (...) {
    return Error(record).Fail(WEIR_INTERNAL, "unknown exception");
  }
}

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_STATUS_H_
