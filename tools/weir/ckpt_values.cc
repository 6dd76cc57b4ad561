// `weir ckpt show`, `stats` and `diff`: values of checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/errors.h"
#include "core/io/array_text.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/files.h"
#include "core/tensor/number.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

Result<io::BundleReader> OpenNewest(std::string path) {
  constexpr std::string_view kSuffix = ".index";
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::string latest = io::LatestCheckpoint(path);
    if (latest.empty()) return NotFound("no checkpoint in '{}' according to its state file", path);
    path = latest;
  } else if (path.ends_with(kSuffix) && io::FileExists(path) && !io::FileExists(io::IndexPath(path))) {
    path.resize(path.size() - kSuffix.size());
  }
  return io::BundleReader::Open(path);
}

Json DimsOf(const io::BundleEntry& entry) {
  const auto dims = entry.shape.dims();
  return std::vector<int64_t>(dims.begin(), dims.end());
}

/// A number for JSON, which has no infinities and NaN.
Json FiniteOrText(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

/// Of the elements of one tensor. Range, mean and deviation are those of the finite ones.
struct Stats {
  int64_t elements = 0, nans = 0, infinities = 0, zeros = 0;
  double least = std::numeric_limits<double>::quiet_NaN(), most = least, mean = least, deviation = least;
};

bool HasNumbers(DType dtype) { return HasFixedSize(dtype) && !IsComplex(dtype); }

Stats StatsOf(const Tensor& tensor) {
  Stats stats;
  stats.elements = tensor.elements();
  if (!HasNumbers(tensor.dtype())) return stats;
  int64_t finite = 0;
  double mean = 0, squares = 0;  // running, as of the elements so far
  for (int64_t i = 0; i < stats.elements; ++i) {
    const double value = ElementAsDouble(tensor, i);
    stats.nans += std::isnan(value) ? 1 : 0;
    stats.infinities += std::isinf(value) ? 1 : 0;
    stats.zeros += value == 0 ? 1 : 0;
    if (!std::isfinite(value)) continue;
    stats.least = finite == 0 ? value : std::min(stats.least, value);
    stats.most = finite == 0 ? value : std::max(stats.most, value);
    const double before = value - mean;
    mean += before / static_cast<double>(++finite);
    squares += before * (value - mean);
  }
  if (finite == 0) return stats;
  stats.mean = mean;
  stats.deviation = std::sqrt(squares / static_cast<double>(finite));
  return stats;
}

/// The first element with other values, and the largest difference of numbers; -1 where all are equal. NaN equals NaN.
struct Difference {
  int64_t first = -1, count = 0;
  double largest = 0;
};

Difference Compare(const Tensor& a, const Tensor& b) {
  Difference difference;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    bool equal;
    double by = 0;
    if (!HasFixedSize(a.dtype())) {
      equal = a.as<std::string>()[at] == b.as<std::string>()[at];
    } else if (IsFloating(a.dtype()) || IsComplex(a.dtype())) {
      const std::complex<double> x = ElementAsComplex(a, i), y = ElementAsComplex(b, i);
      const bool both_nan = std::isnan(std::abs(x)) && std::isnan(std::abs(y));
      equal = x == y || both_nan;
      by = std::abs(x - y);
    } else {
      equal = ElementAsInt(a, i) == ElementAsInt(b, i);
      by = std::abs(ElementAsDouble(a, i) - ElementAsDouble(b, i));
    }
    if (equal) continue;
    if (difference.count++ == 0) difference.first = i;
    difference.largest = std::isnan(by) ? by : std::max(difference.largest, by);
  }
  return difference;
}

/// One row of `diff`: state is only-first, only-second, differs or equal.
struct TensorDiff {
  std::string name, state, why;
  std::optional<Difference> values;
};

Result<TensorDiff> DiffOf(const std::string& name, const io::BundleReader& a, const io::BundleReader& b) {
  const io::BundleEntry *first = a.Find(name), *second = b.Find(name);
  if (second == nullptr) return TensorDiff{name, "only-first", "", {}};
  if (first == nullptr) return TensorDiff{name, "only-second", "", {}};
  if (first->dtype != second->dtype || !(first->shape == second->shape)) {
    return TensorDiff{name,
                      "differs",
                      fmt::format("{} {} and {} {}", Name(first->dtype), first->shape.ToString(), Name(second->dtype),
                                  second->shape.ToString()),
                      {}};
  }
  WEIR_ASSIGN(const Tensor x, a.Read(name));
  WEIR_ASSIGN(const Tensor y, b.Read(name));
  const Difference difference = Compare(x, y);
  if (difference.count == 0) return TensorDiff{name, "equal", "", difference};
  return TensorDiff{name, "differs",
                    fmt::format("{} of {} elements, from element {} on, by up to {:.9g}", difference.count,
                                x.elements(), difference.first, difference.largest),
                    difference};
}

}  // namespace

Result<NameFilter> NameFilter::Make(const std::vector<std::string>& exclude) {
  NameFilter filter;
  for (const std::string& text : exclude) {
    try {
      filter.exclude_.emplace_back(text);
    } catch (const std::regex_error& error) {
      return InvalidArgument("--exclude wants a regular expression, got '{}': {}", text, error.what());
    }
  }
  return filter;
}

bool NameFilter::Keeps(const std::string& name) const {
  return std::ranges::none_of(exclude_, [&](const std::regex& regex) { return std::regex_search(name, regex); });
}

Status ShowCheckpoint(const CkptOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const NameFilter filter, NameFilter::Make(options.exclude));
  WEIR_ASSIGN(const io::BundleReader reader, OpenNewest(options.paths.front()));
  std::vector<std::string> names = options.tensors;
  for (const io::BundleEntry& entry : reader.entries()) {
    if (options.tensors.empty()) names.push_back(entry.name);
  }
  report["prefix"] = reader.prefix();
  report["tensors"] = Json::array();
  for (const std::string& name : names) {
    if (!filter.Keeps(name)) continue;
    WEIR_ASSIGN(const io::BundleEntry* const entry, reader.Get(name));
    WEIR_ASSIGN(const Tensor tensor, reader.Read(name));
    const std::string text = io::ArrayText(tensor);
    report["tensors"].push_back(
        {{"name", name}, {"dtype", Name(entry->dtype)}, {"shape", DimsOf(*entry)}, {"value", text}});
    console.Print(fmt::format("{} ({}) {}\n{}", name, Name(entry->dtype), entry->shape.ToString(), text));
  }
  return Status();
}

Status CheckpointStats(const CkptOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const NameFilter filter, NameFilter::Make(options.exclude));
  WEIR_ASSIGN(const io::BundleReader reader, OpenNewest(options.paths.front()));
  Table table({"tensor", "dtype", "shape", "elements", "min", "max", "mean", "deviation", "NaN", "infinite", "zero"});
  int64_t elements = 0, tensors = 0;
  uint64_t bytes = 0;
  report["prefix"] = reader.prefix();
  report["tensors"] = Json::array();
  for (const io::BundleEntry& entry : reader.entries()) {
    if (!filter.Keeps(entry.name)) continue;
    WEIR_ASSIGN(const Tensor tensor, reader.Read(entry.name));
    const Stats stats = StatsOf(tensor);
    ++tensors;
    elements += stats.elements;
    bytes += tensor.bytes();
    const bool numbers = HasNumbers(entry.dtype);
    Json row = {{"name", entry.name}, {"dtype", Name(entry.dtype)}, {"shape", DimsOf(entry)}};
    row["elements"] = stats.elements;
    std::vector<Cell> cells = {entry.name, Name(entry.dtype), entry.shape.ToString(), std::to_string(stats.elements)};
    const std::pair<const char*, double> measures[] = {
        {"min", stats.least}, {"max", stats.most}, {"mean", stats.mean}, {"deviation", stats.deviation}};
    for (const auto& [key, value] : measures) {
      row[key] = std::isnan(value) ? Json(nullptr) : FiniteOrText(value);
      cells.emplace_back(std::isnan(value) ? "" : fmt::format("{:.6g}", value));
    }
    const std::pair<const char*, int64_t> counts[] = {
        {"nan", stats.nans}, {"infinite", stats.infinities}, {"zero", stats.zeros}};
    for (const auto& [key, count] : counts) {
      row[key] = numbers ? Json(count) : Json(nullptr);
      cells.emplace_back(numbers ? std::to_string(count) : "");
    }
    report["tensors"].push_back(std::move(row));
    table.Add(std::move(cells));
  }
  report["elements"] = elements;
  report["bytes"] = bytes;
  console.Print(table);
  console.Print(fmt::format("{} elements in {} tensor{}, {}", elements, tensors, tensors == 1 ? "" : "s",
                            BytesText(static_cast<double>(bytes))));
  return Status();
}

Status DiffCheckpoints(const CkptOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const NameFilter filter, NameFilter::Make(options.exclude));
  WEIR_ASSIGN(const io::BundleReader a, OpenNewest(options.paths.at(0)));
  WEIR_ASSIGN(const io::BundleReader b, OpenNewest(options.paths.at(1)));
  std::set<std::string> names;
  for (const io::BundleReader* reader : {&a, &b}) {
    for (const io::BundleEntry& entry : reader->entries()) {
      if (filter.Keeps(entry.name)) names.insert(entry.name);
    }
  }
  Table table({"tensor", "state", "why"});
  report["tensors"] = Json::array();
  size_t other = 0;
  for (const std::string& name : names) {
    WEIR_ASSIGN(const TensorDiff row, DiffOf(name, a, b));
    Json json = {{"name", name}, {"state", row.state}, {"reason", row.why}};
    if (row.values) {
      json["different_elements"] = row.values->count;
      json["largest_difference"] = FiniteOrText(row.values->largest);
    }
    report["tensors"].push_back(std::move(json));
    if (row.state == "equal") continue;
    ++other;
    table.Add({name, row.state, row.why});
  }
  report["equal"] = other == 0;
  if (other > 0) console.Print(table);
  console.Print(fmt::format("{} of {} tensors are equal", names.size() - other, names.size()));
  if (other == 0) return Status();
  return FailedPrecondition("{} of {} tensors of '{}' and '{}' differ", other, names.size(), a.prefix(), b.prefix());
}

}  // namespace weir::cli
