// Variables and other resources, and the scopes that own them.
#ifndef WEIR_CORE_RUNTIME_RESOURCE_H_
#define WEIR_CORE_RUNTIME_RESOURCE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "core/base/status.h"
#include "core/device/stream.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace weir::runtime {

/// The container of resources whose node names none.
inline constexpr char kDefaultContainer[] = "localhost";
/// The container of resources that live for one step.
inline constexpr char kStepContainer[] = "__per_step";

/// Key of a resource within a scope.
struct ResourceKey {
  std::string device;     // full device name
  std::string container;  // kDefaultContainer unless the node names another
  std::string name;
  auto operator<=>(const ResourceKey&) const = default;
};

/// A tensor that outlives runs. `value` is invalid (dtype kInvalid) until initialised. Hold `mutex` shared to read
/// `value`, and exclusively to write it or its memory. A reader that keeps the tensor after unlocking holds a reference
/// to the buffer, so an in-place writer must first replace a shared buffer.
struct Variable final : Resource {
  static constexpr std::string_view kTypeName = "tensorflow::Var";

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;

  mutable std::shared_mutex mutex;
  Tensor value;
  DType dtype = DType::kInvalid;
  device::SharedMemoryUse use;  // pending stream accesses to `value`

 private:
  /// Drops a value of handles or variants, which may own the variable itself; others go with the variable, after the
  /// work that uses them. A value that is in use stays.
  void Clear() override;
};

/// A handle to a resource with this key.
ResourceHandle HandleOf(const ResourceKey& key, std::shared_ptr<Resource> resource);
/// NotFound with TensorFlow's text: "Resource localhost/v/N10tensorflow3VarE does not exist."
Status NoSuchResource(std::string_view container, std::string_view name, std::string_view type_name);

/// InvalidArgument with TensorFlow's text: a handle to `resource` is used as another type.
Status WrongType(const ResourceHandle& handle, const Resource& resource, std::string_view wanted);

/// The resources visible to a session (or to all sessions of a server), or those of one step. Resources of different
/// types may share a key. Thread-safe.
class ResourceScope {
 public:
  ResourceScope();
  /// Makes handles to its resources dead.
  ~ResourceScope();
  ResourceScope(const ResourceScope&) = delete;
  ResourceScope& operator=(const ResourceScope&) = delete;

  /// The variable with `key`, created on first use. InvalidArgument if it exists with another dtype.
  Result<std::shared_ptr<Variable>> GetOrCreate(const ResourceKey& key, DType dtype);
  /// The variable with `key`; null if there is none.
  std::shared_ptr<Variable> Find(const ResourceKey& key) const;
  std::map<ResourceKey, std::shared_ptr<Variable>> Variables() const;

  using Make = std::function<Result<std::shared_ptr<Resource>>()>;
  /// kByName: nodes that use the name share a resource. kOwn: the resource belongs to the node named in `key` and gets
  /// a unique name.
  enum class Sharing { kByName, kOwn };
  /// A handle to the resource of a type with `key`; creates it on first use and after its destruction.
  Result<ResourceHandle> GetOrMake(const ResourceKey& key, Sharing sharing, std::string_view type_name,
                                   const Make& make);
  /// Adds a resource with a unique name, "_<n>_<key.name>".
  ResourceHandle Add(ResourceKey key, std::shared_ptr<Resource> resource);

  /// True if the handle's resource lives in this scope.
  bool Owns(const ResourceHandle& handle) const;
  /// The resource of a handle. NotFound if it was destroyed or lives in another scope.
  Result<std::shared_ptr<Resource>> Find(const ResourceHandle& handle) const;
  /// Destroys the resource of a handle; errors as in Find. Plans keep their variables, which become uninitialised.
  Status Destroy(const ResourceHandle& handle);

  /// Drops all resources of a container, or of all containers if it is empty.
  void Clear(const std::string& container = {});
  size_t size() const;

 private:
  struct Entry {
    ResourceKey key;
    std::string type_name;
    auto operator<=>(const Entry&) const = default;
  };
  using Resources = std::map<Entry, std::shared_ptr<Resource>>;
  void Insert(const Entry& entry, const std::shared_ptr<Resource>& resource);

  const uint64_t id_;
  mutable std::mutex mutex_;  // protects all below
  Resources resources_;
  std::map<Entry, Entry> own_;  // resources of nodes (kOwn): the entry in resources_
};

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_RESOURCE_H_
