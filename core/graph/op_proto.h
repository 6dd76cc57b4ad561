// Op definitions as TensorFlow's messages.
#ifndef WEIR_CORE_GRAPH_OP_PROTO_H_
#define WEIR_CORE_GRAPH_OP_PROTO_H_

#include "core/base/status.h"
#include "core/op/op_def.h"

namespace weir::tf {
class OpDef;
}

namespace weir::graph {

/// Fills an empty message: signature, attributes with defaults, allowed values and minima; no documentation.
Status OpDefToProto(const op::OpDef& op, tf::OpDef& def);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_OP_PROTO_H_
