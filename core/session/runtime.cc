#include "core/session/runtime.h"

#include <mutex>

#include "core/builtin/register.h"
#include "core/ops/declare_all.h"

namespace weir::session {

Result<std::shared_ptr<Runtime>> Runtime::Load(const plugin::LoadOptions& options) {
  auto runtime = std::make_shared<Runtime>();
  WEIR_ASSIGN(runtime->ops, ops::Catalogue());
  runtime->plugins = plugin::Catalogue::Load(*runtime->ops, options);
  builtin::AddAll(runtime->builtins);
  return runtime;
}

Result<std::shared_ptr<Runtime>> Runtime::Default() {
  static std::mutex mutex;  // protects shared
  static std::shared_ptr<Runtime> shared;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!shared) {
    WEIR_ASSIGN(shared, Load({}));
  }
  return shared;
}

}  // namespace weir::session
