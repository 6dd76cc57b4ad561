// Resources: the objects that handles refer to.
#ifndef WEIR_CORE_TENSOR_RESOURCE_H_
#define WEIR_CORE_TENSOR_RESOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"

namespace weir {

class Resource;

/// Identity of a resource (variable, queue, table): the element of a resource tensor. A handle that was serialized, or
/// came from another process, has only the names.
struct ResourceHandle {
  std::string device;
  std::string container;
  std::string name;
  uint64_t hash_code = 0;  // the resource's id; 0 = look up by name
  std::string type_name;
  std::shared_ptr<Resource> resource;
};
template <>
struct DTypeOf<ResourceHandle> : DTypeConstant<DType::kResource> {};

/// A variable, queue, table, array or stack. Owned jointly by its scope and the handles to it; the scope decides when
/// it dies. Thread-safe.
class Resource {
 public:
  virtual ~Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  /// The C++ type name in TensorFlow's handles: "tensorflow::TensorArray".
  virtual std::string_view type_name() const = 0;
  /// A one-line description.
  virtual std::string DebugString() const = 0;
  /// Payload bytes currently held.
  virtual uint64_t MemoryBytes() const = 0;

  /// Unique within the process; never 0.
  uint64_t id() const { return id_; }
  /// Number of the owning scope; 0 before the resource enters a scope and after it leaves it.
  uint64_t scope() const { return scope_.load(std::memory_order_acquire); }
  void Enter(uint64_t scope) { scope_.store(scope, std::memory_order_release); }
  /// Called when the scope drops the resource: its handles become dead and its contents are freed.
  void Retire() {
    scope_.store(0, std::memory_order_release);
    Clear();
  }

 protected:
  Resource();
  /// Drops the contents. May run while another thread uses the resource.
  virtual void Clear() {}

 private:
  const uint64_t id_;
  std::atomic<uint64_t> scope_{0};
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_RESOURCE_H_
