// What stands between the brackets of x[…]: positions and spans along axes, as in Python.
#ifndef WEIR_CORE_CLIENT_INDEX_H_
#define WEIR_CORE_CLIENT_INDEX_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <utility>
#include <variant>

#include "core/client/operand.h"

namespace weir {

/// Python's begin:end:stride: `Span{1, 3}`, `Span{.end = -1}`, `Span{}` for all; integers or integer scalars. Negative
/// positions count from the end.
struct Span {
  std::optional<Operand> begin = {};
  std::optional<Operand> end = {};
  std::optional<Operand> stride = {};
};

/// Python's `...`: as many whole axes as are left.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis;
/// tf.newaxis: an axis of extent 1.
struct NewAxis {};
inline constexpr NewAxis kNewAxis;

/// One index: a position, which takes its axis away, a span, kEllipsis or kNewAxis.
class Index {
 public:
  using Kind = std::variant<Operand, Span, Ellipsis, NewAxis>;

  template <std::integral T>
  requires(!std::same_as<T, bool>)
      Index(T position, std::source_location where = std::source_location::current())  // NOLINT
      : kind_(Operand(position, where)), where_(where) {}
  Index(Output position, std::source_location where = std::source_location::current())  // NOLINT
      : kind_(Operand(position, where)), where_(where) {}
  Index(Span span, std::source_location where = std::source_location::current())  // NOLINT
      : kind_(std::move(span)), where_(where) {}
  Index(Ellipsis all, std::source_location where = std::source_location::current())  // NOLINT
      : kind_(all), where_(where) {}
  Index(NewAxis axis, std::source_location where = std::source_location::current())  // NOLINT
      : kind_(axis), where_(where) {}

  const Kind& kind() const { return kind_; }
  const std::source_location& where() const { return where_; }

 private:
  Kind kind_;
  std::source_location where_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_INDEX_H_
