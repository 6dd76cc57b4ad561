#include "core/kernel/resource.h"

namespace weir::kernel {

Result<std::shared_ptr<Variable>> ResourceScope::GetOrCreate(const ResourceKey& key, DType dtype) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Variable>& variable = variables_[key];
  if (!variable) {
    variable = std::make_shared<Variable>();
    variable->dtype = dtype;
  }
  if (variable->dtype != dtype) {
    return InvalidArgument("variable '{}/{}' on {} holds {}, wanted {}", key.container, key.name, key.device,
                           Name(variable->dtype), Name(dtype));
  }
  return variable;
}

std::shared_ptr<Variable> ResourceScope::Find(const ResourceKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = variables_.find(key);
  return it == variables_.end() ? nullptr : it->second;
}

void ResourceScope::Clear(const std::string& container) {
  // Variables die outside the lock: their buffers may go back to a device.
  std::map<ResourceKey, std::shared_ptr<Variable>> gone;
  const std::lock_guard lock(mutex_);
  if (container.empty()) {
    gone.swap(variables_);
    return;
  }
  for (auto it = variables_.begin(); it != variables_.end();) {
    if (it->first.container == container) {
      gone.insert(variables_.extract(it++));
    } else {
      ++it;
    }
  }
}

std::map<ResourceKey, std::shared_ptr<Variable>> ResourceScope::All() const {
  const std::lock_guard lock(mutex_);
  return variables_;
}

size_t ResourceScope::size() const {
  const std::lock_guard lock(mutex_);
  return variables_.size();
}

}  // namespace weir::kernel
