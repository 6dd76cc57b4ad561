// How a gradient function sees the node it differentiates and builds the nodes of the answer.
#ifndef WEIR_CORE_OP_GRAD_CONTEXT_H_
#define WEIR_CORE_OP_GRAD_CONTEXT_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::op {

/// A symbolic value of the graph under construction: output `index` of the node with id `node`; node < 0 is none.
struct Value {
  int32_t node = -1;
  int32_t index = 0;
  bool exists() const { return node >= 0; }
};

/// What flows back into one input: nothing, a tensor, or IndexedSlices (rows `indices` of a tensor of shape
/// `dense_shape` get `values`; rows may repeat and add up).
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

/// Implemented by the client. All calls add to one graph, inside a name scope of the differentiated node. Errors of
/// Apply and friends are kept: they return an empty Value, which every call accepts and passes on, and status() is
/// reported by the caller of the gradient function; so a gradient reads as a formula. Single-threaded.
class GradContext {
 public:
  virtual ~GradContext() = default;

  /// Attributes, inputs and outputs of the forward node. Dy(i) is the summed, densified gradient of output i; where
  /// none flowed it is zeros of the output's shape.
  virtual const AttrView& attrs() const = 0;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;
  virtual Value X(int i) = 0;
  virtual Value Y(int i) = 0;
  virtual Value Dy(int i) = 0;
  /// The same as it came, IndexedSlices where all that flowed in were such: for gradients that hand it through
  /// unchanged, so that rows gathered from a variable's Identity reach the variable as rows.
  virtual Grad DyAsIs(int i) { return Grad(Dy(i)); }
  /// True when a gradient flowed into output i.
  virtual bool HasDy(int i) const = 0;
  virtual DType TypeOf(Value v) const = 0;
  virtual PartialShape ShapeOf(Value v) const = 0;
  /// The value when v is a constant known while building, else null; borrowed until the next call.
  virtual const Tensor* ConstantOf(Value v) = 0;

  /// Adds a node and returns output 0 (or all of them). Type attributes that follow from the inputs need not be given.
  /// Argument lists ("N*T", "list(type)") are given flat; their counts come from the definition and the attribute N.
  virtual Value Apply(std::string_view op, std::initializer_list<Value> inputs, AttrList attrs = {}) = 0;
  virtual Value ApplyList(std::string_view op, const std::vector<Value>& inputs, AttrList attrs = {}) = 0;
  virtual std::vector<Value> ApplyAll(std::string_view op, const std::vector<Value>& inputs, AttrList attrs = {}) = 0;
  /// A Const node.
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
  /// conj(a) for complex types, else a.
  Value Conj(Value a);
  /// The gradients of a broadcasting binary op: sums `da` and `db`, both of the output's shape, back to the shapes of
  /// inputs 0 and 1.
  std::vector<Grad> Unbroadcast(Value da, Value db);
};

/// One-line gradients of one-input ops: the formula's value as the only gradient.
std::vector<Grad> One(Value v);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_GRAD_CONTEXT_H_
