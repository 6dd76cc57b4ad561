#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/errors.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/files.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

// A checkpoint of the report: the contents of its index, or the error of reading it.
struct Seen {
  std::string prefix;
  std::optional<int64_t> step;
  bool newest = false;  // according to the state file
  bool kept = false;
  std::optional<io::BundleReader> reader;
  std::vector<io::BundleEntry> entries;  // that are not excluded
  std::vector<Status> tensors;           // of each of these, after verification
  Status status;                         // the first error
};

// The requested checkpoints: one prefix, or all in a folder.
struct Asked {
  bool is_folder = false;
  std::vector<Seen> checkpoints;
  std::string state_file;
  Status state;
  std::vector<std::string> temporary_files;
};

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

Seen Open(std::string prefix, std::optional<int64_t> step, const NameFilter& filter) {
  Seen seen;
  seen.prefix = std::move(prefix);
  seen.step = step;
  Result<io::BundleReader> reader = io::BundleReader::Open(seen.prefix);
  seen.status = reader.status();
  if (!reader.ok()) return seen;
  seen.reader = std::move(*reader);
  std::ranges::copy_if(seen.reader->entries(), std::back_inserter(seen.entries),
                       [&](const io::BundleEntry& entry) { return filter.Keeps(entry.name); });
  return seen;
}

Result<Asked> FindIn(const std::string& dir, const NameFilter& filter) {
  Asked asked;
  asked.is_folder = true;
  WEIR_ASSIGN(const std::vector<io::FoundCheckpoint> found, io::FindCheckpoints(dir));
  WEIR_ASSIGN(const std::vector<std::string> names, io::ListDirectory(dir));
  for (const std::string& name : names) {
    if (name.find(".tempstate") != std::string::npos) asked.temporary_files.push_back(io::JoinPath(dir, name));
  }
  if (found.empty()) return NotFound("no checkpoint in '{}': no file there ends with .index", dir);
  asked.state_file = io::JoinPath(dir, io::kCheckpointStateFile);
  const Result<io::CheckpointState> state = io::ReadCheckpointState(dir);
  asked.state = state.status();
  std::set<std::filesystem::path> kept;
  const auto normal = [](const std::string& path) { return std::filesystem::path(path).lexically_normal(); };
  if (state.ok()) {
    for (const std::string& path : state->all_model_checkpoint_paths) kept.insert(normal(path));
  }
  for (const io::FoundCheckpoint& each : found) {
    Seen seen = Open(each.prefix, each.step, filter);
    seen.newest = state.ok() && normal(state->model_checkpoint_path) == normal(each.prefix);
    seen.kept = seen.newest || kept.contains(normal(each.prefix));
    asked.checkpoints.push_back(std::move(seen));
  }
  return asked;
}

Result<Asked> Find(const CkptOptions& options) {
  const std::string& path = options.paths.front();
  WEIR_ASSIGN(const NameFilter filter, NameFilter::Make(options.exclude));
  constexpr std::string_view kSuffix = ".index";
  if (IsFolder(path) && !io::FileExists(io::IndexPath(path))) return FindIn(path, filter);
  Asked asked;
  const bool is_index = path.ends_with(kSuffix) && io::FileExists(path) && !io::FileExists(io::IndexPath(path));
  asked.checkpoints.push_back(Open(is_index ? path.substr(0, path.size() - kSuffix.size()) : path, {}, filter));
  return asked;
}

uint64_t BytesOf(const io::BundleReader& reader, const io::BundleEntry& entry) {
  uint64_t bytes = 0;
  for (const io::BundleEntry& part : reader.StoredParts(entry)) bytes += part.size;
  return bytes;
}

uint64_t BytesOf(const Seen& seen) {
  uint64_t bytes = 0;
  for (const io::BundleEntry& entry : seen.entries) bytes += BytesOf(*seen.reader, entry);
  return bytes;
}

Json JsonOf(const Seen& seen, const io::BundleEntry& entry) {
  Json parts = Json::array();
  for (const io::BundleEntry& part : seen.reader->StoredParts(entry)) {
    parts.push_back({{"slice", part.slices.empty() ? Json(nullptr) : Json(io::ToString(part.slices.front()))},
                     {"shard", part.shard},
                     {"offset", part.offset},
                     {"bytes", part.size}});
  }
  const auto dims = entry.shape.dims();
  return {{"name", entry.name},
          {"dtype", Name(entry.dtype)},
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
          {"bytes", BytesOf(*seen.reader, entry)},
          {"parts", parts}};
}

// Reports faults in the slices of a partitioned tensor.
void AddCuts(const io::BundleEntry& entry, Json& json) {
  constexpr size_t kMaxGaps = 16;
  std::vector<io::TensorSlice> slices;
  for (const io::TensorSlice& slice : entry.slices) {
    Result<io::TensorSlice> resolved = io::Resolve(slice, entry.shape);
    if (resolved.ok()) slices.push_back(std::move(*resolved));
  }
  json["overlaps"] = Json::array();
  json["gaps"] = Json::array();
  if (slices.empty()) return;
  if (const auto pair = io::FindOverlap(slices); pair.ok() && *pair) {
    json["overlaps"].push_back({io::ToString(slices[(*pair)->first]), io::ToString(slices[(*pair)->second])});
  }
  for (const io::TensorSlice& gap : io::FindGaps(slices, entry.shape, kMaxGaps)) {
    json["gaps"].push_back(io::ToString(gap));
  }
}

void AddVerdict(const Status& status, Json& json) {
  json["verdict"] = status.ok() ? "ok" : "damaged";
  json["code"] = status.ok() ? Json(nullptr) : Json(CodeName(status.code()));
  json["reason"] = status.message();
}

Json JsonOf(const Asked& asked, bool verified) {
  Json list = Json::array();
  for (const Seen& seen : asked.checkpoints) {
    Json json = {
        {"prefix", seen.prefix}, {"step", seen.step ? Json(*seen.step) : Json(nullptr)},      {"newest", seen.newest},
        {"kept", seen.kept},     {"data_files", seen.reader ? seen.reader->num_shards() : 0}, {"bytes", BytesOf(seen)}};
    if (verified || !seen.status.ok()) AddVerdict(seen.status, json);
    json["tensors"] = Json::array();
    for (size_t i = 0; i < seen.entries.size(); ++i) {
      Json tensor = JsonOf(seen, seen.entries[i]);
      if (verified) AddVerdict(seen.tensors[i], tensor);
      if (verified) AddCuts(seen.entries[i], tensor);
      json["tensors"].push_back(std::move(tensor));
    }
    list.push_back(std::move(json));
  }
  return list;
}

Cell VerdictCell(const Status& status) { return status.ok() ? Cell("ok", Paint::kGood) : Cell("damaged", Paint::kBad); }

void PrintTensors(const Seen& seen, bool verified, const Console& console) {
  if (!seen.reader) return;
  std::vector<Cell> headings = {"tensor", "dtype", "shape", "size", "data file", "offset", "slice"};
  if (verified) headings.insert(headings.end(), {"verdict", "why"});
  Table table(std::move(headings));
  for (size_t i = 0; i < seen.entries.size(); ++i) {
    const io::BundleEntry& entry = seen.entries[i];
    bool first = true;
    for (const io::BundleEntry& part : seen.reader->StoredParts(entry)) {
      std::vector<Cell> row = {first ? entry.name : "",
                               first ? Name(entry.dtype) : "",
                               first ? entry.shape.ToString() : "",
                               BytesText(static_cast<double>(part.size)),
                               std::to_string(part.shard),
                               std::to_string(part.offset),
                               part.slices.empty() ? "" : io::ToString(part.slices.front())};
      if (verified && first) {
        row.push_back(VerdictCell(seen.tensors[i]));
        row.emplace_back(OnOneLine(seen.tensors[i].message()));
      }
      table.Add(std::move(row));
      first = false;
    }
  }
  console.Print(table);
  const size_t tensors = seen.entries.size();
  const int files = seen.reader->num_shards();
  console.Print(fmt::format("{} tensor{}, {} in {} data file{}", tensors, tensors == 1 ? "" : "s",
                            BytesText(static_cast<double>(BytesOf(seen))), files, files == 1 ? "" : "s"));
}

void PrintFolder(const Asked& asked, bool verified, const Console& console) {
  Table table({"checkpoint", "tensors", "size", "state", verified ? "verdict" : "", "why"});
  for (const Seen& seen : asked.checkpoints) {
    const bool known = verified || !seen.status.ok();
    table.Add({seen.prefix, seen.reader ? std::to_string(seen.entries.size()) : "",
               seen.reader ? BytesText(static_cast<double>(BytesOf(seen))) : "",
               seen.newest ? "newest" : (seen.kept ? "kept" : ""), known ? VerdictCell(seen.status) : Cell(""),
               OnOneLine(seen.status.message())});
  }
  console.Print(table);
  if (!asked.state.ok()) console.Print(fmt::format("no state file: {}", asked.state.message()));
  for (const std::string& file : asked.temporary_files) {
    console.Print(fmt::format("temporary file of a saver, running or killed: {}", file));
  }
}

void Show(const Asked& asked, bool verified, const Console& console, Json& report) {
  report["checkpoints"] = JsonOf(asked, verified);
  if (asked.is_folder) {
    report["state"] = {{"file", asked.state_file}, {"error", asked.state.message()}};
    report["temporary_files"] = asked.temporary_files;
    PrintFolder(asked, verified, console);
  } else {
    PrintTensors(asked.checkpoints.front(), verified, console);
  }
}

// Reads every tensor; the first error becomes the checkpoint's error.
void Verify(Seen& seen) {
  if (!seen.reader) return;
  for (const io::BundleEntry& entry : seen.entries) {
    seen.tensors.push_back(seen.reader->VerifyTensor(entry));
    if (seen.status.ok()) seen.status = seen.tensors.back();
  }
}

}  // namespace

Status ListCheckpoint(const CkptOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const Asked asked, Find(options));
  if (!asked.is_folder) WEIR_TRY(asked.checkpoints.front().status);
  Show(asked, false, console, report);
  return Status();
}

Status VerifyCheckpoint(const CkptOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(Asked asked, Find(options));
  Status first;
  size_t damaged = 0;
  for (Seen& seen : asked.checkpoints) {
    Verify(seen);
    if (seen.status.ok()) continue;
    if (damaged++ == 0) first = seen.status;
  }
  Show(asked, true, console, report);
  if (!asked.is_folder || first.ok()) return first;
  return first.Prepend(fmt::format("{} of {} checkpoints in '{}' cannot be restored whole; the newest of them: ",
                                   damaged, asked.checkpoints.size(), options.paths.front()));
}

}  // namespace weir::cli
