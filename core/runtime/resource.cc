#include "core/runtime/resource.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "core/base/errors.h"

namespace weir::runtime {
namespace {

std::atomic<uint64_t> scopes{0};

/// The compiler's mangled class name: "tensorflow::Var" becomes N10tensorflow3VarE.
std::string Mangled(std::string_view type_name) {
  std::string mangled = "N";
  while (!type_name.empty()) {
    const size_t end = type_name.find("::");
    const std::string_view part = type_name.substr(0, end);
    mangled += fmt::format("{}{}", part.size(), part);
    type_name = end == std::string_view::npos ? std::string_view() : type_name.substr(end + 2);
  }
  return mangled + "E";
}

}  // namespace

std::string Variable::DebugString() const {
  const std::shared_lock lock(mutex);
  return fmt::format("{} variable {}", Name(dtype), value.valid() ? value.shape().ToString() : "without value");
}

uint64_t Variable::MemoryBytes() const {
  const std::shared_lock lock(mutex);
  return value.bytes();
}

void Variable::Clear() {
  if (dtype != DType::kResource && dtype != DType::kVariant) return;
  Tensor dropped;  // destroyed after the lock is released
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (lock.owns_lock()) std::swap(dropped, value);
}

ResourceHandle HandleOf(const ResourceKey& key, std::shared_ptr<Resource> resource) {
  const uint64_t id = resource->id();
  std::string type(resource->type_name());
  return {key.device, key.container, key.name, id, std::move(type), std::move(resource)};
}

Status NoSuchResource(std::string_view container, std::string_view name, std::string_view type_name) {
  return NotFound("Resource {}/{}/{} does not exist.", container, name, Mangled(type_name));
}

Status WrongType(const ResourceHandle& handle, const Resource& resource, std::string_view wanted) {
  return InvalidArgument(
      "Trying to access a handle's resource using the wrong type. The handle points to a resource (name '{}') of type "
      "'{}' but you are trying to access the resource as type '{}'",
      handle.name, resource.type_name(), wanted);
}

ResourceScope::ResourceScope() : id_(scopes.fetch_add(1, std::memory_order_relaxed) + 1) {}
ResourceScope::~ResourceScope() { Clear(); }

void ResourceScope::Insert(const Entry& entry, const std::shared_ptr<Resource>& resource) {
  resource->Enter(id_);
  resources_[entry] = resource;
}

Result<std::shared_ptr<Variable>> ResourceScope::GetOrCreate(const ResourceKey& key, DType dtype) {
  const std::lock_guard lock(mutex_);
  const Entry entry{key, std::string(Variable::kTypeName)};
  if (const auto it = resources_.find(entry); it == resources_.end()) {
    auto made = std::make_shared<Variable>();
    made->dtype = dtype;
    Insert(entry, made);
  }
  auto variable = std::static_pointer_cast<Variable>(resources_[entry]);
  if (variable->dtype != dtype) {
    return InvalidArgument("variable '{}/{}' on {} holds {}, wanted {}", key.container, key.name, key.device,
                           Name(variable->dtype), Name(dtype));
  }
  return variable;
}

std::shared_ptr<Variable> ResourceScope::Find(const ResourceKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = resources_.find({key, std::string(Variable::kTypeName)});
  return it == resources_.end() ? nullptr : std::static_pointer_cast<Variable>(it->second);
}

std::map<ResourceKey, std::shared_ptr<Variable>> ResourceScope::Variables() const {
  const std::lock_guard lock(mutex_);
  std::map<ResourceKey, std::shared_ptr<Variable>> variables;
  for (const auto& [entry, resource] : resources_) {
    if (auto variable = std::dynamic_pointer_cast<Variable>(resource)) variables[entry.key] = std::move(variable);
  }
  return variables;
}

Result<ResourceHandle> ResourceScope::GetOrMake(const ResourceKey& key, Sharing sharing, std::string_view type_name,
                                                const Make& make) {
  const std::lock_guard lock(mutex_);
  const Entry asked{key, std::string(type_name)};
  const auto own = own_.find(asked);
  const Entry& at = sharing == Sharing::kOwn && own != own_.end() ? own->second : asked;
  if (const auto found = resources_.find(at);
      found != resources_.end() && (sharing == Sharing::kByName || own != own_.end())) {
    return HandleOf(at.key, found->second);
  }
  WEIR_ASSIGN(const std::shared_ptr<Resource> made, make());
  Entry entry = asked;
  if (sharing == Sharing::kOwn) {
    entry.key.name = fmt::format("_{}_{}", made->id(), key.name);
    own_[asked] = entry;
  }
  Insert(entry, made);
  return HandleOf(entry.key, made);
}

ResourceHandle ResourceScope::Add(ResourceKey key, std::shared_ptr<Resource> resource) {
  key.name = fmt::format("_{}_{}", resource->id(), key.name);
  const std::lock_guard lock(mutex_);
  Insert({key, std::string(resource->type_name())}, resource);
  return HandleOf(key, std::move(resource));
}

bool ResourceScope::Owns(const ResourceHandle& handle) const {
  if (handle.resource) return handle.resource->scope() == id_;
  const std::lock_guard lock(mutex_);
  return resources_.contains({{handle.device, handle.container, handle.name}, handle.type_name});
}

Result<std::shared_ptr<Resource>> ResourceScope::Find(const ResourceHandle& handle) const {
  const auto missing = [&] { return NoSuchResource(handle.container, handle.name, handle.type_name); };
  if (handle.resource) {
    if (handle.resource->scope() != id_) return missing();
    return handle.resource;
  }
  const std::lock_guard lock(mutex_);
  const auto it = resources_.find({{handle.device, handle.container, handle.name}, handle.type_name});
  const bool same = it != resources_.end() && (handle.hash_code == 0 || handle.hash_code == it->second->id());
  if (!same) return missing();
  return it->second;
}

Status ResourceScope::Destroy(const ResourceHandle& handle) {
  WEIR_ASSIGN(const std::shared_ptr<Resource> resource, Find(handle));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(resources_, [&](const auto& entry) { return entry.second == resource; });
  }
  resource->Retire();
  return Status();
}

void ResourceScope::Clear(const std::string& container) {
  // Resources are destroyed outside the lock, because their buffers may return to a device.
  Resources gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = resources_.begin(); it != resources_.end();) {
      if (container.empty() || it->first.key.container == container) {
        gone.insert(resources_.extract(it++));
      } else {
        ++it;
      }
    }
  }
  for (const auto& [entry, resource] : gone) resource->Retire();
}

size_t ResourceScope::size() const {
  const std::lock_guard lock(mutex_);
  return resources_.size();
}

}  // namespace weir::runtime
