// `weir profile calibrate`: times the kernels of this machine's CPU.
#include "tools/weir/calibrate.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/errors.h"
#include "core/device/device.h"
#include "core/io/files.h"
#include "core/kernel/launch.h"
#include "core/kernel/prepared.h"
#include "core/plugin/compatible.h"
#include "core/session/profiles.h"
#include "core/session/runtime.h"
#include "core/tensor/tensor.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleNs = 0.25e6;
constexpr int kSamples = 3;
constexpr int kMostCalls = 1000;

double Since(Clock::time_point begin) { return std::chrono::duration<double, std::nano>(Clock::now() - begin).count(); }

/// The least time of a call, in ns, of samples of a quarter of a millisecond each.
Result<double> TimeOf(kernel::Launch& launch) {
  const auto run = [&](int calls) -> Result<double> {
    const double begin = ThreadNs();
    for (int i = 0; i < calls; ++i) WEIR_TRY(launch.Run());
    return (ThreadNs() - begin) / calls;
  };
  WEIR_TRY(run(1).status());  // touches all memory
  WEIR_ASSIGN(double least, run(1));
  const int calls = static_cast<int>(std::min<double>(kMostCalls, std::max(1.0, kSampleNs / least)));
  for (int i = 0; i < kSamples; ++i) {
    WEIR_ASSIGN(const double ns, run(calls));
    least = std::min(least, ns);
  }
  return least;
}

/// Numbers between -1 and 1; the same for each shape.
Result<Tensor> Filled(DType dtype, const Shape& shape) {
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, shape));
  uint32_t state = 12345;
  for (float& value : tensor.mutable_as<float>()) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(state)) / 2147483648.0f;
  }
  return tensor;
}

class Calibrator {
 public:
  Calibrator(const session::Runtime& runtime, device::Device& device) : runtime_(runtime), device_(device) {}

  /// Times by plugin. Kernels that decline the case are left out.
  Result<std::map<std::string, double>> Measure(const CalibrationCase& asked) {
    const op::OpDef* def = runtime_.ops->Find(asked.op);
    if (def == nullptr) return Internal("no op {}", asked.op);
    op::AttrList attrs = {{"T", asked.dtype}};
    for (const std::string& flag : asked.flags) attrs.emplace_back(flag, true);
    attrs.insert(attrs.end(), asked.settings.begin(), asked.settings.end());
    std::vector<Tensor> inputs;
    for (const Shape& shape : asked.inputs) {
      WEIR_ASSIGN(Tensor input, Filled(asked.dtype, shape));
      inputs.push_back(std::move(input));
    }
    std::vector<kernel::OperandSpec> in, out = {{asked.dtype, asked.output, nullptr, false, true}};
    for (const Tensor& input : inputs) in.push_back({asked.dtype, input.shape(), nullptr, false, true});
    for (const size_t i : asked.constants) in[i].value = &inputs[i];
    const weir_node node{
        asked.op, op::AttrView(*def, attrs), [&](int i) { return in[static_cast<size_t>(i)].value; }, nullptr, {}};
    WEIR_ASSIGN(weir_device* const open, device_.Open());
    std::map<std::string, double> times;
    for (const kernel::KernelEntry* entry : runtime_.plugins->kernels().Find(node.attrs, device_.info().platform)) {
      if (!kernel::Supports(*entry, node, in, out, open).ok()) continue;
      Result<std::unique_ptr<kernel::PreparedKernel>> made = kernel::PreparedKernel::Make(*entry, node, in, out, open);
      if (!made.ok()) continue;
      kernel::Launch launch(std::shared_ptr<const kernel::PreparedKernel>(std::move(*made)), {.device = &device_});
      WEIR_TRY(launch.Bind(inputs, out));
      WEIR_ASSIGN(times[entry->plugin], TimeOf(launch));
    }
    return times;
  }

 private:
  const session::Runtime& runtime_;
  device::Device& device_;
};

Json JsonOf(const CalibrationCase& measured, const std::map<std::string, double>& times) {
  Json inputs = Json::array(), ns = Json::object();
  for (const Shape& shape : measured.inputs) {
    inputs.push_back(std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
  }
  for (const auto& [plugin, time] : times) ns[plugin] = time;
  Json settings = Json::object();
  for (const auto& [name, value] : measured.settings) {
    if (const auto* const numbers = value.get<std::vector<int64_t>>()) settings[name] = *numbers;
    if (const auto* const text = value.get<std::string>()) settings[name] = *text;
  }
  Json point = {{"op", measured.op},           {"dtype", Name(measured.dtype)},  {"flags", measured.flags},
                {"inputs", std::move(inputs)}, {"constant", measured.constants}, {"ns", std::move(ns)}};
  if (!settings.empty()) point["settings"] = std::move(settings);
  return point;
}

device::Device* CpuOf(const session::Runtime& runtime) {
  for (const auto& device : runtime.plugins->devices().all()) {
    if (device->info().kind == "CPU" && device->host_memory()) return device.get();
  }
  return nullptr;
}

/// The level of x86-64 that plugins.isa allows.
int LevelOf(const session::Runtime& runtime) {
  return plugin::IsaLevel(plugin::HostTraits::Current(runtime.config.plugins.isa.value()).isa);
}

}  // namespace

Status CalibrateProfile(const ProfileOptions& options, const Console& console, Json& report) {
  const auto begin = Clock::now();
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  device::Device* const cpu = CpuOf(*runtime);
  if (cpu == nullptr) return FailedPrecondition("no plugin brought a CPU; see `weir plugins --why`");
  const std::string& description = cpu->info().display_name;
  const std::string path = !options.out.empty() ? options.out : session::ProfilePath(description, io::CacheUse::kWrite);
  if (path.empty()) return FailedPrecondition("there is no cache folder of this user; name a file with --out");
  const CoreRates rates = MeasureRates(LevelOf(*runtime));
  Json json = {{"weir_calibration", 1},
               {"machine", description},
               {"device", description},
               {"plugins", session::KernelSets(*runtime->plugins)},
               {"rates",
                {{"float32", rates.flops_per_ns},
                 {"float64", rates.flops_per_ns / 2},
                 {"memory", rates.memory_bytes_per_ns},
                 {"cache", rates.cache_bytes_per_ns}}},
               {"points", Json::array()}};
  Calibrator calibrator(*runtime, *cpu);
  size_t skipped = 0;
  for (const CalibrationCase& asked : CalibrationCases()) {
    if (Since(begin) > options.seconds * 1e9) {
      ++skipped;
      continue;
    }
    WEIR_ASSIGN(const auto times, calibrator.Measure(asked));
    if (times.size() > 1) json["points"].push_back(JsonOf(asked, times));
  }
  WEIR_TRY(io::WriteFileAtomically(path, json.dump() + "\n"));
  report["file"] = path;
  report["device"] = description;
  report["rates"] = json["rates"];
  report["points"] = json["points"].size();
  report["skipped"] = skipped;
  report["seconds"] = Since(begin) / 1e9;
  console.Print(fmt::format("{}: {:.0f} GFLOP/s, memory {:.1f} GB/s, second cache {:.0f} GB/s", description,
                            rates.flops_per_ns, rates.memory_bytes_per_ns, rates.cache_bytes_per_ns));
  console.Print(fmt::format("wrote {} points to {} in {:.1f} s{}", json["points"].size(), path, Since(begin) / 1e9,
                            skipped > 0 ? fmt::format("; the time was up before {} others", skipped) : ""));
  return Status();
}

}  // namespace weir::cli
