// Signatures of nodes, shared by nodes with equal op and types.
#ifndef WEIR_CORE_GRAPH_SIGNATURE_TABLE_H_
#define WEIR_CORE_GRAPH_SIGNATURE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"

namespace weir::graph {

/// Owns the signatures at stable addresses. Thread-compatible.
class SignatureTable {
 public:
  /// The result of op::Expand; valid as long as the table.
  Result<const op::Signature*> Get(const op::AttrView& attrs);

 private:
  /// Values of the attributes that determine a signature.
  using Key = std::vector<int64_t>;
  struct OfOp {
    std::vector<std::string_view> attrs;  // named by arguments, without duplicates
    std::map<Key, std::unique_ptr<const op::Signature>> known;
  };

  OfOp& Of(const op::OpDef& op);

  std::unordered_map<const op::OpDef*, std::unique_ptr<OfOp>> ops_;
  Key key_;
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_SIGNATURE_TABLE_H_
