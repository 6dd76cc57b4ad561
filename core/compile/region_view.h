// A region in the form in which it crosses the plugin boundary.
#ifndef WEIR_CORE_COMPILE_REGION_VIEW_H_
#define WEIR_CORE_COMPILE_REGION_VIEW_H_

#include <vector>

#include "core/compile/region.h"
#include "sdk/abi/compiler.h"

namespace weir::compile {

/// Borrows the region.
class RegionView {
 public:
  explicit RegionView(const Region& region);
  RegionView(const RegionView&) = delete;
  RegionView& operator=(const RegionView&) = delete;

  const weir_region* get() const { return &region_; }

 private:
  void AddNode(const RegionOp& node, weir_region_node& record);

  std::vector<weir_region_value> inputs_;
  std::vector<const weir_region_value*> input_pointers_;
  std::vector<weir_region_node> nodes_;
  std::vector<const weir_region_node*> node_pointers_;
  std::vector<std::vector<weir_opt>> attrs_;  // by node
  weir_region_loop loop_{};
  weir_region region_{};
};

}  // namespace weir::compile

#endif  // WEIR_CORE_COMPILE_REGION_VIEW_H_
