// Slurm's compressed lists.
#ifndef WEIR_CORE_CLUSTER_NODELIST_H_
#define WEIR_CORE_CLUSTER_NODELIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir::cluster {

/// The most names or counts that a list may give.
inline constexpr size_t kMostNodes = 65536;

/// "n[001-003,7],m2" gives n001, n002, n003, n7, m2; several brackets in a name give all combinations. InvalidArgument
/// with the position of a fault, ResourceExhausted beyond kMostNodes names.
Result<std::vector<std::string>> ExpandNodeList(std::string_view text);

/// "2(x3),1" gives 2, 2, 2, 1. Errors as above.
Result<std::vector<int>> ExpandCounts(std::string_view text);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_NODELIST_H_
