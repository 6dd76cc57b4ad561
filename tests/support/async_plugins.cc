#include "tests/support/async_plugins.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

weir_str View(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

AsyncPlugins& AsyncPlugins::Get() {
  static AsyncPlugins* const plugins = new AsyncPlugins;  // outlives what runs at exit
  return *plugins;
}

AsyncPlugins::AsyncPlugins() {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  std::string pattern = (fs::temp_directory_path() / "weir_async_XXXXXX").string();
  if (build == nullptr || mkdtemp(pattern.data()) == nullptr) return;
  chmod(pattern.c_str(), 0755);
  const std::string made = fs::canonical(pattern).string();
  for (const char* file :
       {"plugins/cpu.so", "plugins/kernels_eigen.so", "async/async_device.so", "async/kernels_async.so"}) {
    const fs::path from = fs::path(build) / "lib/weir" / file, to = fs::path(made) / from.filename();
    std::error_code error;
    if (!fs::copy_file(from, to, error)) return;
    chmod(to.c_str(), 0755);
  }
  folder_ = made;
  std::atexit([] { fs::remove_all(Get().folder_); });
}

const weir_plugin* AsyncPlugins::device_plugin() {
  if (plugin_ != nullptr) return plugin_;
  void* const library = dlopen((folder_ + "/async_device.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const query = library == nullptr ? nullptr : dlsym(library, WEIR_PLUGIN_QUERY_SYMBOL);
  if (query == nullptr) return nullptr;
  plugin_ = reinterpret_cast<weir_plugin_query_fn>(query)(WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
  return plugin_;
}

const weir_async_control* AsyncPlugins::control() {
  const std::string id = WEIR_ASYNC_CONTROL_INTERFACE;
  if (control_ == nullptr && device_plugin() != nullptr)
    control_ = static_cast<const weir_async_control*>(plugin_->get_interface(View(id)));
  return control_;
}

void AsyncPlugins::Configure(const std::string& uid, const std::vector<std::pair<std::string, int64_t>>& options) {
  std::vector<weir_opt> given;
  for (const auto& [key, value] : options) {
    weir_opt& option = given.emplace_back();
    option.key = View(key);
    option.type = key == "fail_alloc" ? WEIR_VALUE_BOOL : WEIR_VALUE_INT;
    option.value.i = value;
  }
  ASSERT_NE(control(), nullptr);
  control()->configure(View(uid), given.data(), given.size(), nullptr);
}

weir_async_counts AsyncPlugins::Counts() {
  weir_async_counts counts{};
  counts.struct_size = sizeof counts;
  if (control() != nullptr) control()->counts(&counts);
  return counts;
}

std::string AsyncPlugins::FirstFault() {
  std::string text(1024, '\0');
  if (control() == nullptr) return "the plugin has no control table";
  text.resize(std::min<uint64_t>(text.size(), control()->first_fault(text.data(), text.size())));
  return text;
}

void AsyncPlugins::Reset() {
  if (control() != nullptr) control()->reset();
}

void AsyncTest::SetUp() {
  ASSERT_NE(plugins_.folder(), "") << "the build lacks a plugin";
  plugins_.Configure(
      "",
      {{"latency_us", 0}, {"jitter_us", 0}, {"bytes_per_us", 0}, {"fail_alloc", 0}, {"lose_at", -1}, {"hang_at", -1}});
  plugins_.Reset();
}

void AsyncTest::TearDown() { EXPECT_EQ(plugins_.FirstFault(), ""); }

}  // namespace weir::testing
