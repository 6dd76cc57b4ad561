// The interface through which a gradient function reads the forward node and adds gradient nodes.
#ifndef WEIR_CORE_OP_GRAD_CONTEXT_H_
#define WEIR_CORE_OP_GRAD_CONTEXT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::op {

/// A symbolic value of the graph under construction: output `index` of node `node`; node < 0 means none.
struct Value {
  int32_t node = -1;
  int32_t index = 0;
  bool exists() const { return node >= 0; }
};

/// The gradient of one input: none, a tensor, or IndexedSlices (the rows `indices` of a tensor of shape `dense_shape`
/// get `values`; repeated rows are summed).
struct Grad {
  Grad() = default;
  Grad(Value v) : values(v) {}  // NOLINT(google-explicit-constructor)
  static Grad None() { return Grad(); }
  static Grad Slices(Value values, Value indices, Value dense_shape) {
    Grad g(values);
    g.indices = indices;
    g.dense_shape = dense_shape;
    return g;
  }
  bool exists() const { return values.exists(); }
  bool sparse() const { return indices.exists(); }

  Value values;
  Value indices;
  Value dense_shape;
};

struct FunctionSpec;

/// The reason of ops for which TensorFlow has no gradient either. Their outputs vary with their inputs, so a gradient
/// through them is an error instead of none.
inline constexpr std::string_view kUndefinedGradient = "TensorFlow has none";

/// Implemented by the client, and by core/lower for function bodies. All calls add to one graph, in a name scope of the
/// differentiated node. A failed Apply returns an empty Value, which every call accepts and passes on, so a gradient
/// reads as a formula. The caller of the gradient function reports status(). Single-threaded.
class GradContext {
 public:
  virtual ~GradContext() = default;

  /// Attributes, inputs and outputs of the forward node. Dy(i) is the summed, densified gradient of output i; zeros of
  /// the output's shape if there is none.
  virtual const AttrView& attrs() const = 0;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;
  virtual Value X(int i) = 0;
  virtual Value Y(int i) = 0;
  virtual Value Dy(int i) = 0;
  /// The gradient of output i without densification: IndexedSlices if all contributions are. For gradients that pass it
  /// on unchanged, so that rows gathered from a variable's Identity reach the variable as rows.
  virtual Grad DyAsIs(int i) { return Grad(Dy(i)); }
  /// True if output i has a gradient.
  virtual bool HasDy(int i) const = 0;
  virtual DType TypeOf(Value v) const = 0;
  virtual PartialShape ShapeOf(Value v) const = 0;
  /// The value if v is a constant known at build time, else null. Borrowed until the next call.
  virtual const Tensor* ConstantOf(Value v) = 0;

  /// Adds a node and returns output 0 (or all outputs). Type attributes implied by the inputs may be omitted. Argument
  /// lists ("N*T", "list(type)") are passed flat; their lengths follow from the definition and attribute N.
  virtual Value Apply(std::string_view op, std::initializer_list<Value> inputs, AttrList attrs = {}) = 0;
  virtual Value ApplyList(std::string_view op, const std::vector<Value>& inputs, AttrList attrs = {}) = 0;
  virtual std::vector<Value> ApplyAll(std::string_view op, const std::vector<Value>& inputs, AttrList attrs = {}) = 0;
  /// Distinguishes the gradients of several client calls in one graph: "gradients_1".
  virtual std::string source() const { return "gradients"; }
  /// The type of gradients of `v`: its own type; for a resource handle the type of the variable behind it, kInvalid if
  /// unknown.
  virtual DType GradTypeOf(Value v) const { return TypeOf(v); }
  /// Adds a function to the graph's library and returns its name there (function_gradient.h).
  virtual Result<std::string> Define(const FunctionSpec& function);
  /// Adds a Const node.
  virtual Value Const(const Tensor& value) = 0;
  /// The first error so far.
  virtual Status status() const = 0;

  // Shorthands on top of Apply.

  /// Scalar constant of the same type as `like`, converted from double.
  Value ConstLike(Value like, double value);
  Value ConstInt(int32_t value) { return Const(Tensor::Scalar<int32_t>(value)); }
  Value ConstInts(const std::vector<int32_t>& values) { return Const(Tensor::Vector<int32_t>(values)); }
  Value Add(Value a, Value b) { return Apply("AddV2", {a, b}); }
  Value Sub(Value a, Value b) { return Apply("Sub", {a, b}); }
  Value Mul(Value a, Value b) { return Apply("Mul", {a, b}); }
  Value Div(Value a, Value b) { return Apply("RealDiv", {a, b}); }
  Value Neg(Value a) { return Apply("Neg", {a}); }
  Value Reshape(Value a, Value shape) { return Apply("Reshape", {a, shape}); }
  Value ShapeOp(Value a) { return Apply("Shape", {a}); }
  /// conj(a) for complex types, otherwise a.
  Value Conj(Value a);
  /// The gradients of a broadcasting binary op: reduces `da` and `db`, both of the output's shape, by summation to the
  /// shapes of inputs 0 and 1.
  std::vector<Grad> Unbroadcast(Value da, Value db);
};

/// The gradient list of a one-input op.
std::vector<Grad> One(Value v);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_GRAD_CONTEXT_H_
