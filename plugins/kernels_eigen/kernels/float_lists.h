// Lists of numbers among the attributes of a node.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FLOAT_LISTS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FLOAT_LISTS_H_

#include <span>
#include <string_view>

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

/// A list of numbers among the attributes; empty if there is none. Lives as long as the node.
inline std::span<const double> FloatsOf(const sdk::Node& node, std::string_view name) {
  weir_attr value{};
  value.struct_size = sizeof value;
  const bool found = sdk::HostTable()->attr(node.get(), sdk::Str(name), &value) == WEIR_OK &&
                     value.type == (WEIR_VALUE_FLOAT | WEIR_VALUE_LIST);
  return found ? std::span<const double>(value.floats, value.count) : std::span<const double>();
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FLOAT_LISTS_H_
