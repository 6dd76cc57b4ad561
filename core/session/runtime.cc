#include "core/session/runtime.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/builtin/register.h"
#include "core/config/document.h"
#include "core/config/value.h"
#include "core/op/vendor_ops.h"
#include "core/ops/declare_all.h"
#include "core/plugin/compatible.h"
#include "core/session/options.h"
#include "core/session/profiles.h"

namespace weir::session {
namespace {

// The runtimes of the process, keyed by the settings for plugins and devices.
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
    WEIR_ASSIGN(const config::Config whole, config::Overlay(config, loaded_->settings));
    // As Own, for the devices that both share.
    std::erase_if(attached_, [](const auto& each) {
      const std::shared_ptr<Runtime>& made = each.second.made;
      return NeedsReset(*made) && made.use_count() == 1 && made->plugins.use_count() == 1;
    });
    WEIR_ASSIGN(std::shared_ptr<Runtime> own, Own(whole));
    if (!attach_ || (whole.cluster.remote_devices.empty() && whole.cluster.required_devices.empty())) return own;
    return Attached(std::move(own));
  }

  void SetAttacher(RemoteAttacher attach) {
    const std::lock_guard<std::mutex> lock(mutex_);
    attach_ = std::move(attach);
  }

 private:
  Result<std::shared_ptr<Runtime>> Own(const config::Config& whole) {
    const std::string key = KeyOf(whole);
    std::shared_ptr<Runtime>& base = runtimes_[key];
    // Without another user, a runtime whose device needs a reset is dropped, which closes its devices.
    if (base && NeedsReset(*base) && base.use_count() == 1 && base->plugins.use_count() == 1) base = nullptr;
    if (!base) {
      WEIR_ASSIGN(base, Runtime::Load(LoadOptionsFrom(whole)));
      const std::string note = UseProfile(whole, *base);
      if (!note.empty() && told_.insert(note).second) WarnOnStderr("weir: note: " + note + "\n");
      return base;  // loaded with this configuration
    }
    if (Text(base->config) == Text(whole)) return base;
    // Equal plugins and devices with different session options.
    auto other = std::make_shared<Runtime>();
    other->ops = base->ops;
    other->plugins = base->plugins;
    other->calibration = base->calibration;
    other->compilers = base->compilers;
    other->measured = base->measured;
    other->config = whole;
    return other;
  }

  /// With the remote devices of the configuration.
  Result<std::shared_ptr<Runtime>> Attached(std::shared_ptr<Runtime> own) {
    const std::string key = KeyOf(own->config) + Text(own->config, [](std::string_view key) {
                              return key.starts_with("cluster.");
                            });
    const auto before = attached_.find(key);
    std::shared_ptr<Runtime> known = before == attached_.end() ? nullptr : before->second.made;
    if (known && (before->second.from.lock() != own->plugins || !known->remote->UpToDate())) known = nullptr;
    if (!known) {
      attached_.erase(key);
      WEIR_ASSIGN(known, attach_(own));
      // Connections end while what they use still lives: exit handlers run in reverse order.
      static const struct Ending {
        ~Ending() { Get().Detach(); }
      } ending;
      attached_.emplace(key, Attachment{own->plugins, known});
      for (const RemoteServer& server : known->remote->servers()) {
        const std::string& why = server.status.message();
        if (server.status.ok() || !told_.insert(server.address + why).second) continue;
        WarnOnStderr("weir: note: the remote devices of " + server.address + " are missing: " + why + "\n");
      }
    }
    auto other = std::make_shared<Runtime>(*own);
    other->plugins = known->plugins;
    other->remote = known->remote;
    return other;
  }

  void Detach() {
    std::map<std::string, Attachment> gone;
    const std::lock_guard<std::mutex> lock(mutex_);
    gone.swap(attached_);
  }

  static bool NeedsReset(const Runtime& runtime) {
    return std::ranges::any_of(runtime.plugins->devices().all(),
                               [](const std::shared_ptr<device::Device>& device) { return device->reset_needed(); });
  }

  // The settings with keys accepted by `wanted`, as text.
  template <class Wanted>
  static std::string Text(const config::Config& config, Wanted wanted) {
    std::string text;
    for (const config::Shown& shown : config::List(config, config::Show::kAll)) {
      if (!wanted(std::string_view(shown.key))) continue;
      text += shown.key + "=" + config::ToToml(shown.value) + "\n";
    }
    return text;
  }
  static std::string Text(const config::Config& config) {
    return Text(config, [](std::string_view) { return true; });
  }
  static std::string KeyOf(const config::Config& config) {
    const std::string profile = (config.deterministic ? "deterministic " : "") + config.placement.profile.value();
    return profile + Text(config, [](std::string_view key) {
             if (key == "plugins.compile_regions" || key == "plugins.keep_regions") return false;  // of sessions
             const std::string_view table = key.substr(0, key.find('.'));
             return table == "device_count" || table == "gpu_options" || table == "device" || table == "plugins" ||
                    table == "plugin";
           });
  }

  std::mutex mutex_;  // protects everything below, serializes loading
  std::optional<config::Sources> sources_;
  std::optional<config::Loaded> loaded_;
  std::map<std::string, std::shared_ptr<Runtime>> runtimes_;
  struct Attachment {
    std::weak_ptr<const plugin::Catalogue> from;
    std::shared_ptr<Runtime> made;
  };
  std::map<std::string, Attachment> attached_;  // with remote devices
  RemoteAttacher attach_;
  std::set<std::string> told_;  // notes
};

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::Load(const plugin::LoadOptions& options) {
  auto runtime = std::make_shared<Runtime>();
  WEIR_ASSIGN(runtime->ops, ops::Catalogue());
  plugin::LoadOptions with_host = options;
  builtin::AddAll(with_host.kernels);
  with_host.check_kernels_on_use = true;
  runtime->plugins = plugin::Catalogue::Load(*runtime->ops, with_host);
  for (const Status& fault : runtime->plugins->config_faults()) return fault;
  runtime->config = options.config;
  if (!runtime->plugins->compilers().empty()) {
    runtime->compilers = std::make_shared<compile::Compilers>(runtime->plugins->compilers(),
                                                              plugin::IsaText(options.config.plugins.isa.value()));
  }
  return runtime;
}

Result<std::shared_ptr<Runtime>> Runtime::For(const config::Config& config) { return Runtimes::Get().For(config); }

Result<std::shared_ptr<Runtime>> Runtime::Default() { return For({}); }

void Runtime::LoadOpsOnDemand() {
  op::SetVendorOpLoader([] { (void)Default(); });  // its error is that of the session, which loads the plugins too
}

void Runtime::SetRemoteAttacher(RemoteAttacher attach) { Runtimes::Get().SetAttacher(std::move(attach)); }

Status Runtime::SetSources(const config::Sources& sources) { return Runtimes::Get().SetSources(sources); }

}  // namespace weir::session
