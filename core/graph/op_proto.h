// Conversion of op definitions to and from TensorFlow's messages.
#ifndef WEIR_CORE_GRAPH_OP_PROTO_H_
#define WEIR_CORE_GRAPH_OP_PROTO_H_

#include "core/base/status.h"
#include "core/op/op_def.h"

namespace weir::tf {
class OpDef;
}

namespace weir::graph {

/// Writes signature, attributes, defaults, allowed values and minima to an empty message; omits documentation.
Status OpDefToProto(const op::OpDef& op, tf::OpDef& def);

/// Reads the output of OpDefToProto into an empty record. Its shape function infers nothing, and it has no gradient.
/// InvalidArgument for an argument that has no name, no type, several types or an undeclared attribute, and for two
/// arguments or attributes with one name.
Status OpDefFromProto(const tf::OpDef& def, op::OpDef& op);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_OP_PROTO_H_
