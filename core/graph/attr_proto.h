// Conversion of attribute values to and from TensorFlow's messages.
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

/// Reads one value. InvalidArgument for a value without a kind, a list of several kinds, or an invalid shape or tensor.
/// Memory that tensors need beyond their messages is deducted from `budget`.
Result<op::AttrValue> AttrFromProto(const tf::AttrValue& proto, ExpansionBudget& budget);

/// Reads serialized AttrValues; common kinds need no message object. `owner`, if any, keeps the bytes alive, and large
/// tensors that lie aligned in them borrow them. Single-threaded.
class AttrReader {
 public:
  explicit AttrReader(uint64_t expansion_bytes, std::shared_ptr<const void> owner = nullptr);
  ~AttrReader();

  /// As AttrFromProto on the message in `bytes`.
  Status Read(std::string_view bytes, op::AttrValue& value);

  /// The remaining budget for memory beyond the message bytes; shared with other readers.
  ExpansionBudget& budget() { return budget_; }

 private:
  ExpansionBudget budget_;
  const std::shared_ptr<const void> owner_;
  std::unique_ptr<tf::AttrValue> scratch_;
};

/// Overwrites `proto`. Errors as in TensorToProto; InvalidArgument for a value that is not set.
Status AttrToProto(const op::AttrValue& value, tf::AttrValue& proto);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_ATTR_PROTO_H_
