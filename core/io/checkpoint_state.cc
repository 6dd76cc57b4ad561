#include "core/io/checkpoint_state.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <tuple>

#include "core/base/errors.h"
#include "core/io/bundle.h"
#include "core/io/files.h"
#include "core/proto/parse.h"
#include "weir/proto/checkpoint.pb.h"

namespace weir::io {
namespace {

constexpr uint64_t kMaxStateBytes = 16 << 20;

bool IsAbsolute(std::string_view path) { return path.starts_with('/'); }

std::string RelativeTo(const std::string& path, const std::string& dir) {
  if (IsAbsolute(path)) return path;
  const std::filesystem::path base = dir.empty() ? "." : dir;
  const std::string relative =
      std::filesystem::path(path).lexically_normal().lexically_relative(base.lexically_normal()).string();
  return relative.empty() ? path : relative;
}

// The 100 of "DIR/model.ckpt-100".
std::optional<int64_t> StepOf(const std::string& prefix) {
  const std::string digits = prefix.substr(prefix.rfind('-') + 1);
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (digits.size() == prefix.size() || error != std::errc() || end != digits.data() + digits.size()) return {};
  return step < 0 ? std::nullopt : std::optional(step);
}

std::string BeforeStep(const FoundCheckpoint& each) {
  return each.step ? each.prefix.substr(0, each.prefix.rfind('-')) : each.prefix;
}

}  // namespace

std::string FormatCheckpointState(const CheckpointState& state) {
  tf::CheckpointState message;
  message.set_model_checkpoint_path(state.model_checkpoint_path);
  for (const std::string& path : state.all_model_checkpoint_paths) message.add_all_model_checkpoint_paths(path);
  for (const double time : state.all_model_checkpoint_timestamps) message.add_all_model_checkpoint_timestamps(time);
  message.set_last_preserved_timestamp(state.last_preserved_timestamp);
  return proto::Print(message);
}

Result<CheckpointState> ParseCheckpointState(std::string_view text) {
  tf::CheckpointState message;
  WEIR_TRY(proto::ParseText(text, "CheckpointState", message));
  CheckpointState state;
  state.model_checkpoint_path = message.model_checkpoint_path();
  state.all_model_checkpoint_paths.assign(message.all_model_checkpoint_paths().begin(),
                                          message.all_model_checkpoint_paths().end());
  state.all_model_checkpoint_timestamps.assign(message.all_model_checkpoint_timestamps().begin(),
                                               message.all_model_checkpoint_timestamps().end());
  state.last_preserved_timestamp = message.last_preserved_timestamp();
  return state;
}

Status WriteCheckpointState(const std::string& dir, CheckpointState state, const std::string& name) {
  std::vector<std::string>& all = state.all_model_checkpoint_paths;
  if (all.empty() || all.back() != state.model_checkpoint_path) all.push_back(state.model_checkpoint_path);
  if (!IsAbsolute(dir)) {
    state.model_checkpoint_path = RelativeTo(state.model_checkpoint_path, dir);
    for (std::string& path : all) path = RelativeTo(path, dir);
  }
  return WriteFileAtomically(JoinPath(dir, name), FormatCheckpointState(state));
}

Result<CheckpointState> ReadCheckpointState(const std::string& dir, const std::string& name) {
  const std::string path = JoinPath(dir, name);
  WEIR_ASSIGN(const std::string text, ReadFile(path, kMaxStateBytes));
  Result<CheckpointState> state = ParseCheckpointState(text);
  if (!state.ok()) return state.status().Prepend(path + ": ");
  if (state->model_checkpoint_path.empty()) return InvalidArgument("{}: no model_checkpoint_path", path);
  state->model_checkpoint_path = JoinPath(dir, state->model_checkpoint_path);
  for (std::string& each : state->all_model_checkpoint_paths) each = JoinPath(dir, each);
  return state;
}

Result<std::vector<FoundCheckpoint>> FindCheckpoints(const std::string& dir) {
  constexpr std::string_view kSuffix = ".index";
  WEIR_ASSIGN(const std::vector<std::string> names, ListDirectory(dir));
  std::vector<FoundCheckpoint> found;
  std::map<std::string, double> newest;  // by the prefix before the step
  for (const std::string& name : names) {
    if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) continue;
    FoundCheckpoint each{JoinPath(dir, name.substr(0, name.size() - kSuffix.size())), {}, 0};
    each.step = StepOf(each.prefix);
    each.seconds = ModifiedSeconds(JoinPath(dir, name)).value_or(0);
    double& time = newest[BeforeStep(each)];
    time = std::max(time, each.seconds);
    found.push_back(std::move(each));
  }
  const auto order = [&](const FoundCheckpoint& each) {
    const std::string base = BeforeStep(each);
    return std::make_tuple(newest[base], base, each.step.value_or(INT64_MAX));
  };
  std::ranges::sort(found, std::greater<>(), order);
  return found;
}

bool CheckpointExists(const std::string& prefix) { return FileExists(IndexPath(prefix)) || FileExists(prefix); }

std::string LatestCheckpoint(const std::string& dir, const std::string& name) {
  const Result<CheckpointState> state = ReadCheckpointState(dir, name);
  if (!state.ok() || !CheckpointExists(state->model_checkpoint_path)) return "";
  return state->model_checkpoint_path;
}

}  // namespace weir::io
