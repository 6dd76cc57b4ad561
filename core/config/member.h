// A member of the configuration that knows whether somebody set it.
#ifndef WEIR_CORE_CONFIG_MEMBER_H_
#define WEIR_CORE_CONFIG_MEMBER_H_

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::config {

/// Marks the value of a member as its default, which nobody said.
struct Unset {};
inline constexpr Unset kUnset;

/// Reads as a T and takes one. What a program initializes or assigns counts as said, be it the default.
template <class T>
class Member {
 public:
  Member() = default;
  Member(Unset, T value) : value_(std::move(value)) {}
  template <std::convertible_to<T> U>
  requires(!std::same_as<std::remove_cvref_t<U>, Member>) Member(U&& value)
      : value_(static_cast<T>(std::forward<U>(value))), is_set_(true) {}  // NOLINT

  const T& value() const { return value_; }
  operator const T&() const { return value_; }  // NOLINT(google-explicit-constructor)
  bool is_set() const { return is_set_; }

  // Numbers compare by themselves; the standard's comparison of texts is a template, which looks for no conversion.
  friend bool operator==(const Member& member, std::string_view text) requires std::same_as<T, std::string> {
    return member.value_ == text;
  }

 private:
  T value_ = {};
  bool is_set_ = false;
};

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_MEMBER_H_
