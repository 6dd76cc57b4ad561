// A node's attributes combined with its op definition: explicit values first, then the op's defaults.
#ifndef WEIR_CORE_OP_ATTRS_H_
#define WEIR_CORE_OP_ATTRS_H_

#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/op_def.h"

namespace weir::op {

/// Borrows both arguments, which must outlive the view.
class AttrView {
 public:
  AttrView(const OpDef& def, const AttrList& values) : def_(&def), values_(&values) {}

  const OpDef& def() const { return *def_; }
  const AttrList& explicit_values() const { return *values_; }

  /// The explicit value, else the default, else null.
  const AttrValue* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }

  /// Typed reads. InvalidArgument if the attribute is missing ("NodeDef missing attr 'T' from Op<…>") or has another
  /// type.
  Result<int64_t> Int(std::string_view name) const;
  Result<float> Float(std::string_view name) const;
  Result<bool> Bool(std::string_view name) const;
  Result<std::string> String(std::string_view name) const;
  Result<DType> Type(std::string_view name) const;
  Result<PartialShape> ShapeAttr(std::string_view name) const;
  Result<Tensor> TensorAttr(std::string_view name) const;
  Result<std::vector<int64_t>> Ints(std::string_view name) const;
  Result<std::vector<float>> Floats(std::string_view name) const;
  Result<std::vector<bool>> Bools(std::string_view name) const;
  Result<std::vector<std::string>> Strings(std::string_view name) const;
  Result<std::vector<DType>> Types(std::string_view name) const;
  Result<std::vector<PartialShape>> Shapes(std::string_view name) const;

 private:
  const OpDef* def_;
  const AttrList* values_;
};

/// Flattened operands of a node: the types of all inputs and outputs (references as reference types), and the number of
/// operands of each argument in the definition.
struct Signature {
  std::vector<DType> inputs;
  std::vector<DType> outputs;
  std::vector<int> input_counts;   // by input argument
  std::vector<int> output_counts;  // by output argument
};

/// Expands the definition using the node's attributes. InvalidArgument if a required attribute is missing or out of
/// range.
Result<Signature> Expand(const AttrView& attrs);

/// Checks explicit and required attributes against the definition: each must be present or have a default, and have the
/// declared type, an allowed value, and no less than its minimum. Ignores attributes that the definition does not
/// declare. Uses TensorFlow's texts.
Status Validate(const AttrView& attrs);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_ATTRS_H_
