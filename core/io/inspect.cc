#include "core/io/inspect.h"

#include <fmt/format.h>

#include <set>

#include "core/base/nearest.h"
#include "core/io/array_text.h"

namespace weir::io {

Result<std::string> InspectCheckpoint(const std::string& prefix, const InspectOptions& options) {
  WEIR_ASSIGN(const BundleReader reader, BundleReader::Open(prefix));
  std::string out;
  const auto print = [&](const std::string& name, bool with_value) -> Status {
    out += fmt::format("tensor_name:  {}\n", name);
    if (!with_value) return Status();
    WEIR_ASSIGN(const Tensor tensor, reader.Read(name));
    out += ArrayText(tensor) + "\n";
    return Status();
  };
  if (options.all_tensors || options.all_tensor_names) {
    for (const BundleEntry& entry : reader.entries()) WEIR_TRY(print(entry.name, options.all_tensors));
  } else if (!options.tensor_name.empty()) {
    WEIR_TRY(print(options.tensor_name, true));
  } else {
    for (const BundleEntry& entry : reader.entries()) {
      out += fmt::format("{} ({}) {}\n", entry.name, EnumName(entry.dtype), entry.shape.ToString());
    }
  }
  return out;
}

RestoreReport CompareCheckpoint(const BundleReader& checkpoint, const std::vector<WantedTensor>& wanted) {
  RestoreReport report;
  std::vector<std::string_view> names;
  for (const BundleEntry& entry : checkpoint.entries()) names.push_back(entry.name);
  std::set<std::string_view> used;
  for (const WantedTensor& want : wanted) {
    used.insert(want.name);
    const BundleEntry* entry = checkpoint.Find(want.name);
    if (entry == nullptr) {
      report.missing.push_back(want.name);
    } else if (entry->dtype != BaseType(want.dtype) || !want.shape.CompatibleWith(entry->shape)) {
      report.mismatched.push_back(
          {want.name, fmt::format("checkpoint has {} {}, wanted {} {}", Name(entry->dtype), entry->shape.ToString(),
                                  Name(BaseType(want.dtype)), want.shape.ToString())});
    } else {
      report.matched.push_back(want.name);
    }
  }
  for (const std::string_view name : names) {
    if (used.count(name) == 0) report.extra.emplace_back(name);
  }
  return report;
}

std::string RestoreReport::ToString() const {
  std::string text = fmt::format("restored {}, missing {}, extra {}, mismatched {}\n", matched.size(), missing.size(),
                                 extra.size(), mismatched.size());
  const std::vector<std::string_view> candidates(extra.begin(), extra.end());
  for (const std::string& name : missing) {
    text += fmt::format("  missing: {}{}\n", name, NearestHint(name, candidates));
  }
  for (const std::string& name : extra) text += fmt::format("  extra: {}\n", name);
  for (const Mismatch& each : mismatched) text += fmt::format("  mismatched: {}: {}\n", each.name, each.text);
  return text;
}

}  // namespace weir::io
