// Initial values of variables: functions that make them, under TensorFlow's names.
#ifndef WEIR_CORE_CLIENT_INITIALIZERS_H_
#define WEIR_CORE_CLIENT_INITIALIZERS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/client/operand.h"

namespace weir {

/// The whole that a part of a partitioned variable belongs to.
struct PartitionInfo {
  Shape full_shape = {};
  std::vector<int64_t> offset = {};  // of the part's first element
};

/// What a variable begins with: a function that makes a value of the type and shape asked for inside the current name
/// scope (`v/Initializer`), or a value that says type and shape itself. Empty = the default of the scope and type.
class Initializer {
  /// A function that is none, as std::function and pointers can be.
  template <class F>
  static bool IsNull(const F& f) {
    if constexpr (requires { f == nullptr; }) {
      return f == nullptr;
    } else {
      return false;
    }
  }

 public:
  using Function = std::function<Output(Graph&, DType, const Shape&, const PartitionInfo*)>;

  Initializer() = default;
  Initializer(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <class F>
  requires std::is_invocable_r_v<Output, F&, Graph&, DType, const Shape&> Initializer(F f) {  // NOLINT
    if (IsNull(f)) return;
    function_ = [f = std::move(f)](Graph& graph, DType dtype, const Shape& shape, const PartitionInfo*) {
      return f(graph, dtype, shape);
    };
  }
  /// One that wants to know the whole when it makes a part; null when it makes the whole.
  template <class F>
  requires std::is_invocable_r_v<Output, F&, Graph&, DType, const Shape&, const PartitionInfo*> Initializer(F f)
      : function_(std::move(f)) {}  // NOLINT(google-explicit-constructor)
  /// One that knows type and shape by itself.
  template <class F>
  requires std::is_invocable_r_v<Output, F&> Initializer(F f)  // NOLINT(google-explicit-constructor)
      : self_contained_(std::move(f)) {}
  /// ZerosInitializer for ZerosInitializer().
  Initializer(Initializer (*factory)())
      : Initializer(factory == nullptr ? Initializer() : factory()) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::constructible_from<Operand, T> &&
      (!std::same_as<std::decay_t<T>, Initializer>)Initializer(T&& value)  // NOLINT(google-explicit-constructor)
      : value_(Operand(std::forward<T>(value))) {}

  explicit operator bool() const { return function_ || self_contained_ || value_; }
  /// The value, when it is one.
  const std::optional<Operand>& value() const { return value_; }
  /// True when it asks for a shape.
  bool wants_shape() const { return static_cast<bool>(function_); }
  /// An Output that does not exist when it is empty or a value.
  Output operator()(Graph& graph, DType dtype, const Shape& shape, const PartitionInfo* part = nullptr) const;

 private:
  Function function_;
  std::function<Output()> self_contained_;
  std::optional<Operand> value_;
};

/// Constants of up to 1000 elements, else a Fill.
Initializer ZerosInitializer();
Initializer OnesInitializer();
/// The elements of `value` in order, then its last one. InvalidArgument "Too many elements provided. …" for more than
/// the variable has.
Initializer ConstantInitializer(Literal value, std::source_location where = std::source_location::current());
Initializer RandomUniformInitializer(double minval = -0.05, double maxval = 0.05, int64_t seed = -1);
Initializer RandomNormalInitializer(double mean = 0, double stddev = 0.05, int64_t seed = -1);
Initializer TruncatedNormalInitializer(double mean = 0, double stddev = 0.05, int64_t seed = -1);

enum class Fan { kIn, kOut, kAverage };
enum class Spread { kUniform, kNormal, kTruncatedNormal };
struct VarianceScalingOptions {
  double scale = 1;
  Fan mode = Fan::kIn;
  Spread distribution = Spread::kTruncatedNormal;
  int64_t seed = -1;
};
/// Variance scale / n, where n is the number of inputs of a unit, of outputs, or their mean. The last two extents of a
/// shape are inputs and outputs, times the product of those before them; of a part, the whole's count.
Initializer VarianceScalingInitializer(const VarianceScalingOptions& options = {});
/// Uniform in ±sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio 2010.
Initializer GlorotUniformInitializer(int64_t seed = -1);
/// The same variance, normal and cut off at two standard deviations.
Initializer GlorotNormalInitializer(int64_t seed = -1);
/// Variance 2 / fan_in. Source: He, Zhang, Ren and Sun 2015.
Initializer HeNormalInitializer(int64_t seed = -1);
Initializer HeUniformInitializer(int64_t seed = -1);

/// What TensorFlow takes when nothing is said: glorot uniform for floating types, zeros (false, "") for integers, bool
/// and string; empty for the rest.
Initializer DefaultInitializer(DType dtype);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_INITIALIZERS_H_
