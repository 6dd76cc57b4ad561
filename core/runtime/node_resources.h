// Kernel-owned objects that outlive one preparation, such as the counter of a seeded random op.
#ifndef WEIR_CORE_RUNTIME_NODE_RESOURCES_H_
#define WEIR_CORE_RUNTIME_NODE_RESOURCES_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weir::runtime {

/// Owned by a session; keyed by node name and a key chosen by the kernel. Thread-safe.
class NodeResources {
 public:
  /// The object with key (node, key), created by `make(arg)` on first use; null if `make` returns null. It is destroyed
  /// with the session, after all kernels that may hold it.
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

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_NODE_RESOURCES_H_
