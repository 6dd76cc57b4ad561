// Variables and the scope in which they live.
#ifndef WEIR_CORE_KERNEL_RESOURCE_H_
#define WEIR_CORE_KERNEL_RESOURCE_H_

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "core/base/status.h"
#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace weir::kernel {

/// Where resources are whose node names no container.
inline constexpr char kDefaultContainer[] = "localhost";

/// Key of a resource inside a scope.
struct ResourceKey {
  std::string device;     // full device name
  std::string container;  // kDefaultContainer unless the node names another
  std::string name;
  auto operator<=>(const ResourceKey&) const = default;
};

/// A tensor that outlives runs. `value` is invalid (dtype kInvalid) until initialised. Whoever reads `value` holds
/// `mutex` shared, whoever writes it or its memory holds it exclusively. A reader that keeps the tensor past the lock
/// takes a reference to the buffer; a writer in place therefore first replaces a buffer that others hold.
struct Variable {
  std::shared_mutex mutex;
  Tensor value;
  DType dtype = DType::kInvalid;
  device::SharedMemoryUse use;  // what streams still do with `value`
};

/// The resources that a session (or a server's sessions together) can see. Thread-safe.
class ResourceScope {
 public:
  /// The variable under `key`, made on first use. InvalidArgument when it exists with another type.
  Result<std::shared_ptr<Variable>> GetOrCreate(const ResourceKey& key, DType dtype);
  /// Null when there is none.
  std::shared_ptr<Variable> Find(const ResourceKey& key) const;
  /// Forgets all resources of a container; all containers when empty.
  void Clear(const std::string& container = {});
  size_t size() const;
  std::map<ResourceKey, std::shared_ptr<Variable>> All() const;

 private:
  mutable std::mutex mutex_;  // protects variables_
  std::map<ResourceKey, std::shared_ptr<Variable>> variables_;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_RESOURCE_H_
