// Names similar to a misspelt one, for error messages.
#ifndef WEIR_CORE_BASE_NEAREST_H_
#define WEIR_CORE_BASE_NEAREST_H_

#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// Up to `limit` of `known` within a small edit distance of `name`, nearest first, ties by name. O(n * length^2).
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string_view>& known,
                                      size_t limit = 3);

/// " (nearest: 'a', 'b')", or empty if no name is near.
std::string NearestHint(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace weir

#endif  // WEIR_CORE_BASE_NEAREST_H_
