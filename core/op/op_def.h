// The record of an op: signature, attributes, documentation, shape function, gradient and traits.
#ifndef WEIR_CORE_OP_OP_DEF_H_
#define WEIR_CORE_OP_OP_DEF_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr_value.h"

namespace weir::op {

class ShapeContext;
class GradContext;
class KnownIntsContext;
struct Grad;
struct Ints;

/// An input or output argument. Its type is `dtype`, the attribute `type_attr`, or the list attribute `type_list_attr`.
/// If `number_attr` is set, the argument is repeated that many times.
struct ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;
  std::string type_attr;
  std::string number_attr;
  std::string type_list_attr;
  bool is_ref = false;
};

/// An attribute. `type` is "int", "list(type)" …
struct AttrDef {
  std::string name;
  std::string type;
  AttrValue default_value;                   // not set: required on the node
  DTypeSet allowed_types = kAnyType;         // for "type" and "list(type)"
  std::vector<std::string> allowed_strings;  // for "string" and "list(string)"; empty allows all
  std::optional<int64_t> minimum;            // for an int's value or a list's length
};

/// The component that runs nodes of the op.
/// kKernel: a plugin's kernel on the device, else the core's kernel for platform `host`.
enum class RunBy { kKernel, kExecutor, kUniversal };

/// The core's implementation of a universal op, used on every device.
enum class Universal : uint8_t {
  kNone,  // the op is not universal
  kConstant,
  kPlaceholder,
  kForward,     // output i is input i
  kReshape,     // output 0 is input 0 with another shape
  kShapeQuery,  // output i follows from the shape of input i
  kVariable,    // names a variable
  kReadVariable,
  kAssignVariable,
  kIsInitialized,
  kVariableShape
};

/// Role of an executor op in control flow. The reference forms (RefSwitch, …) have the role of the plain ones.
enum class Flow : uint8_t {
  kPlain,  // no role
  kSwitch,
  kMerge,
  kSelect,
  kEnter,
  kExit,
  kNextIteration,
  kLoopCond,
  kTrigger,
  kSend,      // to another part of the step; runs even if its input is dead
  kRecv,      // from another part; liveness of its output is known only at run time
  kArgument,  // a feed of the step
  kResult,    // a fetch of the step
};

/// What an op does with a stack. A stack whose handle only such ops use needs no resource: a plan keeps its elements.
enum class StackRole : uint8_t { kNone, kMake, kPush, kPop };

/// Kind of work, for documentation and cost classes.
enum class Category {
  kMath,
  kArray,
  kState,
  kNeural,
  kRandom,
  kControlFlow,
  kFiles,
  kSummary,
  kTraining,
  kCheck,
  kNetwork
};

using ShapeFn = std::function<Status(ShapeContext&)>;
/// Computes the statically known integers of a node's output (known_ints.h).
using KnownIntsFn = std::function<std::optional<Ints>(KnownIntsContext&)>;
/// Value of output `index` of a shape query whose input `index` has `shape`; an invalid tensor if `shape` does not
/// determine it. InvalidArgument if `type` cannot represent the value.
using ShapeQueryFn = Result<Tensor> (*)(const PartialShape& shape, int index, DType type);
/// The op's run-time error, with TensorFlow's text, for operands that its shape function rejects with `inferred`.
/// Inputs may be in device memory.
using RefusalFn = Status (*)(const Status& inferred, std::span<const Tensor> inputs);
/// Returns one gradient per data input of the node, in flattened order; an empty Grad means none.
using GradFn = std::function<Result<std::vector<Grad>>(GradContext&)>;

/// Properties of an op that compilation stages use, beyond its signature. TraitsText prints them.
struct Traits {
  Universal universal = Universal::kNone;
  Flow flow = Flow::kPlain;
  /// Output i equals input i for all feeds.
  bool passes_value = false;
  /// Outputs are elements of inputs, zeros, or facts about equality of elements. A numeric kernel can therefore run
  /// strings replaced by numeric ids.
  bool moves_elements = false;
  /// The only side effect of the (stateful) op is its error.
  bool checks_only = false;
  /// References and handles may come from devices other than the node's.
  bool handles_from_anywhere = false;
  StackRole stack = StackRole::kNone;
  /// The only output equals input 0 if this input has no elements; -1: no such input.
  int same_if_empty = -1;
  ShapeQueryFn shape_query = nullptr;  // for kShapeQuery
  KnownIntsFn known_ints;              // empty: values are known only through passes_value
  RefusalFn refusal = nullptr;         // null: the shape function's text
  /// Each element of the output depends on the elements of the inputs at its position only, after broadcasting.
  bool elementwise = false;
  /// The node stands for several ops, which a compiled executable or the tile loops of a plan run: the attribute `ops`
  /// has their names, and `operands` the operands of each, one after the other: the number of an input of the node, or
  /// its number of inputs plus that of an earlier op. core/ops/fused.cc declares the outputs.
  bool region = false;
};

/// A fusion pattern: a node of op `consumer` whose input `input` is produced by op `producer` may be replaced, together
/// with the producer, by one node of the op that carries this record. The fused node has the inputs and attributes of
/// both; the producer's inputs replace its output.
struct Fusion {
  std::string consumer;  // empty: the op is not a fusion
  int input = 0;
  std::string producer;
};

/// An expression of several ops that a node of the op computes at once: "Relu(BiasAdd(MatMul(a, b), bias))". Names of
/// the op's inputs are its operands, and names of its attributes stand for constants: the values of scalars of float
/// and double. Another name, `d=Sub(x, m)`, stands for one value wherever it is used. "last" and "first" are constants
/// with the number of that dimension. `BiasAdd[data_format=NHWC](x, bias)` matches nodes with that attribute. An
/// expression "… with p=_Op(x, w)" has a part that is computed ahead of a loop (core/fuse/lift_internal.h). Operands of
/// commutative ops match in both orders, at each place where the order is not the same. The op's other attributes come
/// from the replaced nodes.
struct FusedExpression {
  std::string text;
  AttrList attrs;  // of the fused node: attributes with values of their own
};

/// The op whose measured times serve for nodes that were not measured themselves: that of their first `inputs` inputs.
struct MeasuredAs {
  std::string op;  // empty: none
  int inputs = 0;
};

/// A declared op. Immutable once its registry is frozen.
struct OpDef {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  std::string doc;
  Category category = Category::kMath;
  RunBy run_by = RunBy::kKernel;
  bool stateful = false;
  bool commutative = false;
  bool aggregate = false;
  bool allows_uninitialized_input = false;
  Traits traits;
  Fusion fusion;
  std::vector<FusedExpression> computes;
  MeasuredAs measured_as;
  ShapeFn shape;
  GradFn gradient;               // empty if there is none
  std::string no_gradient;       // the reason if `gradient` is empty
  int32_t deprecated_since = 0;  // GraphDef version that removed the op; 0 = never

  const AttrDef* FindAttr(std::string_view attr) const;
  /// True if the op creates state: it has no inputs and one output, a reference or a handle.
  bool MakesState() const;
  /// True if equal calls may have different results or effects. Otherwise equal calls may be merged.
  bool MayDiffer() const { return stateful && !traits.checks_only; }
};

std::string_view Name(Category category);
std::string_view Name(RunBy run_by);
std::string_view Name(Universal universal);
std::string_view Name(Flow flow);
std::string_view Name(StackRole role);

/// The runner of the op and its traits in a fixed order: "universal forward, passes value".
std::string TraitsText(const OpDef& op);

/// The op in the form of TensorFlow's messages: "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_HALF,
/// DT_FLOAT]>".
std::string Summarize(const OpDef& op);

/// InvalidArgument unless `value` has the attribute's type and an allowed value not below the minimum. Accepts
/// placeholders of function bodies. Uses TensorFlow's texts.
Status CheckAllowed(const AttrDef& attr, const AttrValue& value);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_OP_DEF_H_
