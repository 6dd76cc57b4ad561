// Stage abi: versions, tables and error records.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "core/plugin/module.h"
#include "core/plugin/note.h"
#include "sdk/abi/compiler.h"
#include "sdk/abi/frontdoor.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using kernel::Text;
using kernel::ViewOf;

constexpr std::string_view kNobody = "a-device-that-nobody-has";

Status CheckQuery(const Subject& subject) {
  for (const uint32_t major : {0u, WEIR_ABI_MAJOR + 1u, ~0u}) {
    if (subject.query()(major, 0) != nullptr)
      return InvalidArgument("it accepts ABI major {}, for which it was not built", major);
  }
  if (subject.query()(WEIR_ABI_MAJOR, WEIR_ABI_MINOR) != &subject.table())
    return InvalidArgument("two queries return different tables");
  return {};
}

Status CheckTable(const Subject& subject, const plugin::PluginNote& note) {
  const weir_plugin* table = &subject.table();
  if (!WEIR_HAS(table, init)) return InvalidArgument("the table ({} bytes) lacks init", table->struct_size);
  if (!WEIR_HAS(table, shutdown)) return InvalidArgument("the table has no shutdown");
  if (Text(table->name) != note.name)
    return InvalidArgument("the note says '{}', the table '{}'", note.name, Text(table->name));
  if (Text(table->version) != note.version) {
    return InvalidArgument("the note says version '{}', the table '{}'", note.version, Text(table->version));
  }
  if (table->built_minor != note.built_minor) {
    return InvalidArgument("the note says built with minor {}, the table {}", note.built_minor, table->built_minor);
  }
  if (table->option_count != 0 && table->options == nullptr)
    return InvalidArgument("option_count is not 0, but options is null");
  return {};
}

Status CheckInterfaces(const Subject& subject, const plugin::PluginNote& note) {
  const auto get = [&](std::string_view id) { return subject.Interface<void>(id); };
  if ((note.kinds & WEIR_KIND_DEVICE) != 0 && get(WEIR_DEVICE_INTERFACE) == nullptr) {
    return InvalidArgument("the note lists devices, but there is no {}", WEIR_DEVICE_INTERFACE);
  }
  if ((note.kinds & WEIR_KIND_KERNELS) != 0 && get(WEIR_KERNELS_INTERFACE) == nullptr) {
    return InvalidArgument("the note lists kernels, but there is no {}", WEIR_KERNELS_INTERFACE);
  }
  if ((note.kinds & WEIR_KIND_COMPILER) != 0 && get(WEIR_COMPILER_INTERFACE) == nullptr) {
    return InvalidArgument("the note lists a compiler, but there is no {}", WEIR_COMPILER_INTERFACE);
  }
  if ((note.kinds & WEIR_KIND_FRONT_DOOR) != 0 && get(WEIR_FRONT_DOOR_INTERFACE) == nullptr) {
    return InvalidArgument("the note lists a front door, but there is no {}", WEIR_FRONT_DOOR_INTERFACE);
  }
  for (const std::string_view id :
       {std::string_view("no-such-thing/1"), std::string_view("device/99"), std::string_view()}) {
    if (get(id) != nullptr) return InvalidArgument("get_interface('{}') returns a table", id);
  }
  for (const std::string_view id :
       {WEIR_DEVICE_INTERFACE, WEIR_KERNELS_INTERFACE, WEIR_COST_INTERFACE, WEIR_COMPILER_INTERFACE,
        WEIR_FRONT_DOOR_INTERFACE}) {
    if (get(id) != get(id)) return InvalidArgument("two calls of get_interface('{}') differ", id);
  }
  return {};
}

Status CheckFunctions(const Subject& subject) {
  if (const weir_device_api* api = subject.devices(); api != nullptr) {
    const bool complete = WEIR_HAS(api, enumerate) && WEIR_HAS(api, open) && WEIR_HAS(api, close) &&
                          WEIR_HAS(api, alloc) && WEIR_HAS(api, free) && WEIR_HAS(api, copy);
    if (!complete) return InvalidArgument("device/1 lacks one of enumerate, open, close, alloc, free, copy");
  }
  if (const weir_kernels_api* api = subject.kernels(); api != nullptr) {
    if (api->struct_size < sizeof(weir_kernels_api)) return InvalidArgument("kernels/1 is {} bytes", api->struct_size);
    if (api->kernel_count != 0 && api->kernels == nullptr)
      return InvalidArgument("kernel_count is not 0, but kernels is null");
  }
  return {};
}

int32_t OpenNobody(const weir_device_api* api, weir_error* error) {
  weir_device* device = nullptr;
  return api->open(ViewOf(kNobody), nullptr, 0, &device, error);
}

Finding TryNullRecord(const Subject& subject) {
  const weir_device_api* api = subject.devices();
  if (!WEIR_HAS(api, open)) return Finding::Skip("it brings no device whose errors could be asked for");
  OpenNobody(api, nullptr);
  weir_error without_text{};
  without_text.struct_size = sizeof(without_text);
  OpenNobody(api, &without_text);
  return Status();
}

Finding TrySmallBuffer(const Subject& subject) {
  const weir_device_api* api = subject.devices();
  if (!WEIR_HAS(api, open)) return Finding::Skip("it brings no device whose errors could be asked for");
  for (const uint64_t capacity : {0u, 1u, 4u}) {
    char text[256];
    std::memset(text, 0x5a, sizeof(text));
    weir_error error{};
    error.struct_size = sizeof(error);
    error.message = text;
    error.capacity = capacity;
    OpenNobody(api, &error);
    const char* changed = std::find_if(text + capacity, text + sizeof(text), [](char c) { return c != 0x5a; });
    if (changed != text + sizeof(text))
      return Status(InvalidArgument("a buffer of {} bytes is overwritten at byte {}", capacity, changed - text));
    if (error.length > capacity)
      return Status(InvalidArgument("a length of {} for a buffer of {}", error.length, capacity));
  }
  return Status();
}

// The host table of a later minor version: longer, with functions unknown to this version.
struct LongerHost {
  weir_host host;
  void* later[16];
};

Status StartOnNewerHost(const Target& target) {
  static LongerHost longer;
  longer.host = WatchingHost();
  longer.host.struct_size = sizeof(longer);
  longer.host.abi_minor = WEIR_ABI_MINOR + 1;
  std::memset(longer.later, 0xee, sizeof(longer.later));
  WEIR_ASSIGN(const Subject subject, Subject::Load(target.path));
  const weir_plugin* table = subject.query()(WEIR_ABI_MAJOR, WEIR_ABI_MINOR + 1);
  if (table == nullptr) return InvalidArgument("it refuses ABI {}.{}", WEIR_ABI_MAJOR, WEIR_ABI_MINOR + 1);
  WEIR_ASSIGN(const auto resolved, plugin::PluginOptions::Resolve(*table, *target.config));
  const std::vector<weir_opt> options = resolved->View();
  return kernel::CallPlugin(
      "init", [&](weir_error* error) { return table->init(&longer.host, options.data(), options.size(), error); });
}

}  // namespace

std::vector<RuleResult> AbiStage(const Target& target) {
  std::vector<RuleResult> results = RunInChild("WEIR-ABI-01", target.time_limit_ms, [&](Recorder& recorder) {
    Result<Subject> subject = Unknown("not tried");
    if (!recorder.Try("WEIR-ABI-01",
                      [&] {
                        subject = Subject::Load(target.path);
                        return subject.ok() ? CheckQuery(*subject) : subject.status();
                      }) &&
        !subject.ok()) {
      return;
    }
    const Result<plugin::PluginNote> note = plugin::ReadNoteFile(target.path);
    recorder.Try("WEIR-ABI-02", [&] { return note.ok() ? CheckTable(*subject, *note) : note.status(); });
    if (note.ok()) recorder.Try("WEIR-ABI-03", [&] { return CheckInterfaces(*subject, *note); });
    recorder.Try("WEIR-ABI-04", [&] { return CheckFunctions(*subject); });
  });
  const auto started = [&](std::string_view rule, Finding (*body)(const Subject&)) {
    const std::vector<RuleResult> more = RunInChild(rule, target.time_limit_ms, [&](Recorder& recorder) {
      const Result<Subject> subject = Subject::Start(target);
      recorder.Try(rule, [&] { return subject.ok() ? body(*subject) : Finding::Skip("it does not start"); });
    });
    results.insert(results.end(), more.begin(), more.end());
  };
  started("WEIR-ABI-05", TryNullRecord);
  started("WEIR-ABI-06", TrySmallBuffer);
  const std::vector<RuleResult> newer = RunInChild("WEIR-ABI-07", target.time_limit_ms, [&](Recorder& recorder) {
    recorder.Try("WEIR-ABI-07", [&] { return StartOnNewerHost(target); });
  });
  results.insert(results.end(), newer.begin(), newer.end());
  return results;
}

}  // namespace weir::check
