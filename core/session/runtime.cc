#include "core/session/runtime.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/legible.h"
#include "core/builtin/register.h"
#include "core/config/document.h"
#include "core/ops/declare_all.h"
#include "core/session/options.h"

namespace weir::session {
namespace {

// The runtimes of the process, by what of the configuration decides on plugins and devices.
class Runtimes {
 public:
  static Runtimes& Get() {
    static Runtimes runtimes;
    return runtimes;
  }

  Status SetSources(const config::Sources& sources) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (loaded_) return FailedPrecondition("the configuration was read already, for an earlier session");
    sources_ = sources;
    return Status();
  }

  Result<std::shared_ptr<Runtime>> For(const config::Config& config) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!loaded_) {
      WEIR_ASSIGN(loaded_, config::Load(sources_ ? *sources_ : config::Sources::OfProcess()));
      for (const std::string& note : loaded_->notes) WarnOnStderr("weir: note: " + note + "\n");
    }
    WEIR_ASSIGN(config::Config whole, config::Overlay(config, loaded_->settings));
    const std::string key = KeyOf(whole);
    const auto known = runtimes_.find(key);
    std::shared_ptr<Runtime> base = known == runtimes_.end() ? nullptr : known->second;
    if (!base) {
      WEIR_ASSIGN(base, Runtime::Load(LoadOptionsFrom(whole)));
      runtimes_.emplace(key, base);
    }
    if (Text(base->config) == Text(whole)) return base;
    // The same plugins and devices under other options of sessions.
    auto other = std::make_shared<Runtime>();
    other->ops = base->ops;
    other->plugins = base->plugins;
    other->builtins = base->builtins;
    other->config = std::move(whole);
    return other;
  }

 private:
  // What holds, of the tables that `wanted` accepts.
  template <class Wanted>
  static std::string Text(const config::Config& config, Wanted wanted) {
    std::string text;
    for (const config::Shown& shown : config::List(config, config::Show::kAll)) {
      if (!wanted(std::string_view(shown.key).substr(0, shown.key.find('.')))) continue;
      text += shown.key + "=" + config::ToToml(shown.value) + "\n";
    }
    return text;
  }
  static std::string Text(const config::Config& config) {
    return Text(config, [](std::string_view) { return true; });
  }
  static std::string KeyOf(const config::Config& config) {
    return Text(config, [](std::string_view table) {
      return table == "device_count" || table == "gpu_options" || table == "device" || table == "plugins" ||
             table == "plugin";
    });
  }

  std::mutex mutex_;  // protects everything below, serializes loading
  std::optional<config::Sources> sources_;
  std::optional<config::Loaded> loaded_;
  std::map<std::string, std::shared_ptr<Runtime>> runtimes_;
};

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::Load(const plugin::LoadOptions& options) {
  auto runtime = std::make_shared<Runtime>();
  WEIR_ASSIGN(runtime->ops, ops::Catalogue());
  runtime->plugins = plugin::Catalogue::Load(*runtime->ops, options);
  for (const Status& fault : runtime->plugins->config_faults()) return fault;
  runtime->config = options.config;
  builtin::AddAll(runtime->builtins);
  return runtime;
}

Result<std::shared_ptr<Runtime>> Runtime::For(const config::Config& config) { return Runtimes::Get().For(config); }

Result<std::shared_ptr<Runtime>> Runtime::Default() { return For({}); }

Status Runtime::SetSources(const config::Sources& sources) { return Runtimes::Get().SetSources(sources); }

}  // namespace weir::session
