// Attribute values to and from TensorFlow's messages.
#ifndef WEIR_CORE_GRAPH_ATTR_PROTO_H_
#define WEIR_CORE_GRAPH_ATTR_PROTO_H_

#include <memory>
#include <string_view>

#include "core/base/status.h"
#include "core/op/attr_value.h"
#include "core/tensor/tensor_proto.h"

namespace weir::tf {
class AttrValue;
}

namespace weir::graph {

/// InvalidArgument for a value without a kind, a list of several kinds, or a shape or tensor that cannot be; memory
/// that tensors need beyond their messages comes out of `budget`.
Result<op::AttrValue> AttrFromProto(const tf::AttrValue& proto, ExpansionBudget& budget);

/// Reads serialized AttrValues, the common kinds without a message object. Single-threaded.
class AttrReader {
 public:
  explicit AttrReader(uint64_t expansion_bytes);
  ~AttrReader();

  /// AttrFromProto on the message that `bytes` hold.
  Status Read(std::string_view bytes, op::AttrValue& value);

  /// What is left of the bytes that reading may add to memory; others who do so draw on it too.
  ExpansionBudget& budget() { return budget_; }

 private:
  ExpansionBudget budget_;
  std::unique_ptr<tf::AttrValue> scratch_;
};

/// Replaces `proto`. Errors are those of TensorToProto; InvalidArgument for a value that is not set.
Status AttrToProto(const op::AttrValue& value, tf::AttrValue& proto);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_ATTR_PROTO_H_
