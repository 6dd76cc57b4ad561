// Builders as objects: ops that differ only in their name.
#ifndef WEIR_CORE_CLIENT_UNARY_OP_H_
#define WEIR_CORE_CLIENT_UNARY_OP_H_

#include <source_location>
#include <string_view>

#include "core/client/operand.h"

namespace weir {

/// Place in the model's source, for errors.
using Where = std::source_location;

/// An op of one input and no attributes to choose; `node` names its nodes where TensorFlow does not use the op's name.
struct UnaryOp {
  const char* op;
  const char* node = op;

  Output operator()(const Operand& x, std::string_view name = {}, Where where = Where::current()) const {
    return BuildOp(op, {x}, {}, name.empty() ? node : name, where).output(0);
  }
};

/// An op of two inputs, of which a literal takes the other's type. Shapes broadcast as in NumPy.
struct BinaryOp {
  const char* op;
  const char* node = op;

  Output operator()(const Operand& x, const Operand& y, std::string_view name = {},
                    Where where = Where::current()) const {
    return BuildOp(op, {x, y}, {}, name.empty() ? node : name, where).output(0);
  }
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_UNARY_OP_H_
