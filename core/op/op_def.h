// What an op is: one record with signature, attributes, documentation, shape function and gradient.
#ifndef WEIR_CORE_OP_OP_DEF_H_
#define WEIR_CORE_OP_OP_DEF_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr_value.h"

namespace weir::op {

class ShapeContext;
class GradContext;
struct Grad;

/// One input or output argument. Its type is `dtype`, or the attribute `type_attr`, or the list attribute
/// `type_list_attr`; it is repeated `number_attr` times when that is set.
struct ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;
  std::string type_attr;
  std::string number_attr;
  std::string type_list_attr;
  bool is_ref = false;
};

/// One attribute. `type` is "int", "list(type)" …
struct AttrDef {
  std::string name;
  std::string type;
  AttrValue default_value;                   // not set: the node must carry it
  DTypeSet allowed_types = kAnyType;         // of "type" and "list(type)"
  std::vector<std::string> allowed_strings;  // of "string" and "list(string)"; empty allows all
  std::optional<int64_t> minimum;            // of an int's value or a list's length
};

/// Who runs nodes of the op (architecture, section 4).
enum class RunBy { kPlugin, kExecutor, kUniversal, kBuiltin };

/// What kind of work the op is, for people and for cost classes.
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
/// One gradient per data input of the node, in flattened order; an empty Grad where none flows.
using GradFn = std::function<Result<std::vector<Grad>>(GradContext&)>;

/// An op of the catalogue. Immutable once its registry is frozen.
struct OpDef {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  std::string doc;
  Category category = Category::kMath;
  RunBy run_by = RunBy::kPlugin;
  bool stateful = false;
  bool commutative = false;
  bool aggregate = false;
  bool allows_uninitialized_input = false;
  ShapeFn shape;
  GradFn gradient;               // empty when there is none
  std::string no_gradient;       // the reason, when `gradient` is empty
  int32_t deprecated_since = 0;  // GraphDef version from which the op is gone; 0 = never

  const AttrDef* FindAttr(std::string_view attr) const;
};

std::string_view Name(Category category);
std::string_view Name(RunBy run_by);

/// As TensorFlow's messages name an op: "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_HALF, DT_FLOAT]>".
std::string Summarize(const OpDef& op);

/// InvalidArgument unless `value` has the attribute's type, is among the allowed values and not below the minimum.
/// Placeholders of function bodies pass. TensorFlow's texts.
Status CheckAllowed(const AttrDef& attr, const AttrValue& value);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_OP_DEF_H_
