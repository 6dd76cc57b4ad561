// Status and Result: the return types of fallible functions.
#ifndef WEIR_CORE_BASE_STATUS_H_
#define WEIR_CORE_BASE_STATUS_H_

#include <concepts>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir {

/// TensorFlow's error codes; the numbers are part of its wire format.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "INVALID_ARGUMENT" and so on; "CODE_99" for a number outside the set.
std::string CodeName(Code code);

/// Ok, or an error code with a text: what was wanted, what came, and where. Cheap to move and to test; copies share the
/// text.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  bool ok() const { return state_ == nullptr; }
  Code code() const { return state_ ? state_->code : Code::kOk; }
  const std::string& message() const;
  /// Name of the graph node that the error concerns, or empty.
  const std::string& node() const;
  /// File and line of the model code that created the node, or empty.
  const std::string& where() const;

  /// Returns this error with the node and its origin added unless it already has them. An ok status stays ok.
  Status WithNode(std::string node, std::string where = {}) const;
  /// Returns this error with `text` before its message.
  Status Prepend(std::string_view text) const;
  /// Returns this error with `text` after its message.
  Status Append(std::string_view text) const;

  /// "OK" or "INVALID_ARGUMENT: text".
  std::string ToString() const;

 private:
  struct State {
    Code code;
    std::string message;
    std::string node;
    std::string where;
  };
  explicit Status(State state) : state_(std::make_shared<const State>(std::move(state))) {}
  std::shared_ptr<const State> state_;
};
/// As ToString.
std::ostream& operator<<(std::ostream& out, const Status& status);

/// The value of `*result` if `result` is an error: T(). Specialised for a T whose default constructor has side effects.
template <class T>
struct NoValue {
  static T Make() requires std::default_initializable<T> { return T(); }
};

/// A value, or the error that prevented it. Reading the value of an error is a bug of the caller and gives NoValue<T>;
/// it is undefined behaviour only if T has no NoValue.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(Status status) : status_(std::move(status)), held_(Nothing()) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) status_ = Status(Code::kInternal, "a Result was made from an ok Status without a value");
  }
  Result(T value) : held_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  template <class U>
  requires(!std::same_as<T, U> && std::convertible_to<U, T>) Result(Result<U> other)  // NOLINT
      : Result(other.ok() ? Result(T(*std::move(other))) : Result(other.status())) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// As std::expected: true if the result holds a value equal to `want`.
  friend bool operator==(const Result& result, const T& want) { return result.ok() && result.value() == want; }

 private:
  static constexpr bool kHasNoValue = requires { NoValue<T>::Make(); };
  using Held = std::conditional_t<kHasNoValue, T, std::optional<T>>;

  static Held Nothing() {
    if constexpr (kHasNoValue) {
      return NoValue<T>::Make();
    } else {
      return std::nullopt;
    }
  }
  template <class Self>
  static auto& ValueOf(Self& self) {
    if constexpr (kHasNoValue) {
      return self.held_;
    } else {
      return *self.held_;
    }
  }
  T& value() { return ValueOf(*this); }
  const T& value() const { return ValueOf(*this); }

  Status status_;
  Held held_;
};

}  // namespace weir

#define WEIR_CONCAT_INNER(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_INNER(a, b)

/// Returns the error from the enclosing function if `expr` fails.
#define WEIR_TRY(expr)                                                                          \
  do {                                                                                          \
    if (::weir::Status weir_try_status = (expr); !weir_try_status.ok()) return weir_try_status; \
  } while (false)

/// Declares `decl` with the value of `expr`, or returns its error. Must stand on a line of its own.
#define WEIR_ASSIGN(decl, expr) WEIR_ASSIGN_INNER(WEIR_CONCAT(weir_result_, __LINE__), decl, expr)
#define WEIR_ASSIGN_INNER(result, decl, expr) \
  auto result = (expr);                       \
  if (!result.ok()) return result.status();   \
  decl = std::move(*result)

#endif  // WEIR_CORE_BASE_STATUS_H_
