#include "core/graph/origins.h"

#include <charconv>
#include <map>

#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

using SourceLine = tf::GraphDebugInfo::FileLineCol;

std::string Place(const tf::GraphDebugInfo& info, const SourceLine& frame) {
  const int file = frame.file_index();
  if (file < 0 || file >= info.files_size()) return {};
  return info.files(file) + ":" + std::to_string(frame.line());
}

/// The innermost frame of a trace; frames are stored from the outermost call to the innermost.
std::string PlaceOf(const tf::GraphDebugInfo& info, const tf::GraphDebugInfo::StackTrace& trace) {
  if (trace.file_line_cols_size() > 0) return Place(info, trace.file_line_cols(trace.file_line_cols_size() - 1));
  if (trace.frame_id_size() == 0) return {};
  const auto frame = info.frames_by_id().find(trace.frame_id(trace.frame_id_size() - 1));
  return frame == info.frames_by_id().end() ? std::string() : Place(info, frame->second);
}

/// Strips the function from a key "node@function"; it is empty for nodes of the graph itself.
std::string NodeOf(const std::string& key) { return key.ends_with('@') ? key.substr(0, key.size() - 1) : key; }

}  // namespace

Result<std::unordered_map<std::string, std::string>> ReadOrigins(std::string_view debug_info) {
  std::unordered_map<std::string, std::string> origins;
  if (debug_info.empty()) return origins;
  tf::GraphDebugInfo info;
  WEIR_TRY(proto::ParseBinary(debug_info, "GraphDebugInfo", info));
  for (const auto& [key, trace] : info.traces()) origins[NodeOf(key)] = PlaceOf(info, trace);
  for (const auto& [key, id] : info.name_to_trace_id()) {
    const auto trace = info.traces_by_id().find(id);
    if (trace != info.traces_by_id().end()) origins[NodeOf(key)] = PlaceOf(info, trace->second);
  }
  return origins;
}

void WriteOrigins(const Definition& graph, tf::GraphDebugInfo& info) {
  std::map<std::string_view, int> files;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const std::string_view origin = graph.node(id).origin();
    const size_t colon = origin.rfind(':');
    int line = 0;
    if (colon == std::string_view::npos) continue;
    if (std::from_chars(origin.data() + colon + 1, origin.data() + origin.size(), line).ec != std::errc()) continue;
    const auto [file, fresh] = files.try_emplace(origin.substr(0, colon), info.files_size());
    if (fresh) info.add_files(std::string(file->first));
    SourceLine& frame = *(*info.mutable_traces())[graph.node(id).name() + "@"].add_file_line_cols();
    frame.set_file_index(file->second);
    frame.set_line(line);
  }
}

}  // namespace weir::graph
