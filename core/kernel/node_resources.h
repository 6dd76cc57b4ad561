// Objects that kernels keep beyond one preparation, as the counter of a seeded random op.
#ifndef WEIR_CORE_KERNEL_NODE_RESOURCES_H_
#define WEIR_CORE_KERNEL_NODE_RESOURCES_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weir::kernel {

/// Owned by a session; keyed by node name and the kernel's own key. Thread-safe.
class NodeResources {
 public:
  /// The object under (node, key), made by `make(arg)` on first use; null when `make` gives none. It is destroyed with
  /// the session, after every kernel that may hold it.
  void* GetOrCreate(std::string_view node, std::string_view key, void* (*make)(void* arg),
                    void (*destroy)(void* object), void* arg) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& held = objects_[{std::string(node), std::string(key)}];
    if (!held)
      held = std::shared_ptr<void>(make(arg), [destroy](void* object) {
        if (object && destroy) destroy(object);
      });
    return held.get();
  }

 private:
  std::mutex mutex_;  // protects objects_
  std::map<std::pair<std::string, std::string>, std::shared_ptr<void>> objects_;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_NODE_RESOURCES_H_
