// An op as the generated builders need it: arguments, attributes and their texts in C++.
#ifndef WEIR_TOOLS_OPGEN_RAW_OP_H_
#define WEIR_TOOLS_OPGEN_RAW_OP_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/op/op_def.h"

namespace weir::opgen {

/// An input or output of the op.
struct RawArg {
  const op::ArgDef* def = nullptr;
  std::string name;  // of the parameter or member
  bool is_list = false;
  std::string count;  // C++ expression for the number of values of a list; empty for a single value
};

/// An attribute that does not follow from the inputs.
struct RawAttr {
  const op::AttrDef* def = nullptr;
  std::string name;           // of the parameter or member
  std::string type;           // C++ type
  std::string default_value;  // C++ expression; of an optional attribute
};

/// What a builder is generated from.
struct RawOp {
  const op::OpDef* def = nullptr;
  std::vector<RawArg> inputs;
  std::vector<RawAttr> required;     // attributes without a default
  std::vector<RawAttr> optional;     // members of the options
  std::vector<std::string> lengths;  // C++ pairs {"N", length} of the lengths of input lists
  std::vector<RawArg> outputs;
};

/// Whether the op gets a builder: ops with a leading "_" are made by the runtime only.
bool HasBuilder(const op::OpDef& op);

RawOp MakeRawOp(const op::OpDef& op);

/// `"text"` as a C++ literal.
std::string Quoted(std::string_view text);

}  // namespace weir::opgen

#endif  // WEIR_TOOLS_OPGEN_RAW_OP_H_
