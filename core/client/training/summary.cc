#include "core/client/training/summary.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/saver/meta_graph.h"
#include "core/graph/collapsed.h"
#include "core/graph/graph_def.h"
#include "core/io/event_file.h"

namespace weir::summary {
namespace {

/// A tag that can also be a name: without leading slashes, and '_' for what names cannot have.
std::string CleanTag(std::string_view name) {
  std::string tag;
  for (const char c : name) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '/';
    tag += good ? c : '_';
  }
  return tag.substr(std::min(tag.find_first_not_of('/'), tag.size()));
}

struct Kind {
  const char* op;
  const char* tag_node;
};

/// `more`: inputs after the values.
Output Summarize(const Kind& kind, std::string_view name, const Operand& values, bool scalar, const Where& where,
                 op::AttrList attrs = {}, const Operand* more = nullptr) {
  Graph& graph = values.graph() != nullptr ? *values.graph() : Graph::Default();
  const auto fail = [&](const Status& status) {
    (void)graph.Fail(status.Append(" (" + Format(where) + ")"));
    return Output::Absent(graph);
  };
  if (!values.exists()) return fail(InvalidArgument("None values not supported."));
  const NameScope scope(CleanTag(name), graph);
  const std::string path = scope.path();
  const std::string tag = path.substr(0, path.empty() ? 0 : path.size() - 1);
  const Output value = values.In(graph, DType::kInvalid, "values");
  if (scalar && value.shape().rank() > 0) {
    return fail(
        InvalidArgument("tags and values are not the same shape: [] != {} (tag '{}')", value.shape().ToString(), tag));
  }
  OperationSpec spec;
  spec.op = kind.op;
  spec.inputs = {Operand(tag, where).In(graph, DType::kString, kind.tag_node), value};
  if (more != nullptr) spec.inputs.push_back(more->In(graph, DType::kFloat, "sample_rate"));
  spec.attrs = std::move(attrs);
  spec.name = path;
  spec.where = where;
  CollectionEntry entry;
  entry.output = graph.Add(spec).output(0);
  if (entry.output.exists()) graph.AddToCollection(keys::kSummaries, entry);
  return entry.output;
}

}  // namespace

Output Scalar(std::string_view name, const Operand& tensor, Where where) {
  return Summarize({"ScalarSummary", "tags"}, name, tensor, true, where);
}

Output Histogram(std::string_view name, const Operand& values, Where where) {
  return Summarize({"HistogramSummary", "tag"}, name, values, false, where);
}

Output Image(std::string_view name, const Operand& tensor, int max_outputs, Where where) {
  return Summarize({"ImageSummary", "tag"}, name, tensor, false, where, {{"max_images", int64_t{max_outputs}}});
}

Output Audio(std::string_view name, const Operand& tensor, const Operand& sample_rate, int max_outputs, Where where) {
  return Summarize({"AudioSummaryV2", "tag"}, name, tensor, false, where, {{"max_outputs", int64_t{max_outputs}}},
                   &sample_rate);
}

Output Merge(const std::vector<Operand>& summaries, std::string_view name, Where where) {
  Graph* graph = &Graph::Default();
  for (const Operand& summary : summaries) graph = summary.graph() != nullptr ? summary.graph() : graph;
  const std::string node = CleanTag(name);
  const NameScope scope(node.empty() ? "Merge" : node, *graph);
  OperationSpec spec;
  spec.op = "MergeSummary";
  spec.name = node;
  for (const Operand& summary : summaries) spec.inputs.push_back(summary.In(*graph, DType::kString, "inputs"));
  spec.attrs = {{"N", static_cast<int64_t>(summaries.size())}};
  spec.where = where;
  return graph->Add(spec).output(0);
}

Output MergeAll(Graph& graph, Where where) {
  std::vector<Operand> all;
  for (const CollectionEntry& entry : graph.GetCollection(keys::kSummaries)) all.emplace_back(entry.output, where);
  return all.empty() ? Output() : Merge(all, {}, where);
}

FileWriter::FileWriter(const std::string& logdir, Graph* graph, const FileWriterOptions& options)
    : logdir_(logdir), options_(options), closed_(true) {
  status_ = Reopen();
  if (graph != nullptr && status_.ok()) status_ = AddGraph(*graph);
}

Status FileWriter::Reopen() {
  if (!closed_) return status_;
  io::EventWriterOptions io_options;
  io_options.max_queue = options_.max_queue;
  io_options.flush_secs = options_.flush_secs;
  io_options.filename_suffix = options_.filename_suffix;
  Result<std::unique_ptr<io::EventWriter>> writer = io::EventWriter::Create(logdir_, std::move(io_options));
  status_ = writer.status();
  if (!writer.ok()) return status_;
  writer_ = std::move(*writer);
  closed_ = false;
  return Status();
}

FileWriter::~FileWriter() = default;

std::string FileWriter::path() const { return writer_ ? writer_->path() : ""; }

Status FileWriter::AddSummary(const Tensor& summary, int64_t step) {
  WEIR_TRY(status_);
  if (summary.dtype() != DType::kString || summary.elements() != 1) {
    return InvalidArgument("a summary is one string, got {} {}", NumpyName(summary.dtype()),
                           summary.shape().ToString());
  }
  return writer_->AddSummary(*summary.scalar<std::string>(), step);
}

Status FileWriter::AddScalar(std::string_view tag, double value, int64_t step) {
  WEIR_TRY(status_);
  return writer_->AddSummary(io::ScalarSummary(tag, static_cast<float>(value)), step);
}

Status FileWriter::AddSessionLog(SessionEvent event, int64_t step, const std::string& checkpoint_path) {
  WEIR_TRY(status_);
  return writer_->AddSessionLog(static_cast<io::SessionStatus>(event), checkpoint_path, {}, step);
}

Status FileWriter::AddGraph(Graph& graph, int64_t step) {
  WEIR_TRY(status_);
  const graph::Definition& nodes = Internals(graph).definition;
  const bool large = options_.most_graph_nodes > 0 && nodes.num_nodes() > options_.most_graph_nodes;
  const graph::CollapseOptions collapse{.most_nodes = static_cast<size_t>(options_.most_graph_nodes)};
  WEIR_ASSIGN(const std::string graph_def,
              large ? graph::ExportCollapsed(nodes, collapse)
                    : graph::ExportGraphDef(nodes, graph::GraphFormat::kBinary, graph::OutputShapes::kWrite));
  WEIR_TRY(writer_->AddGraph(graph_def, step));
  WEIR_ASSIGN(const std::string meta_graph, ExportMetaGraph(graph));
  return writer_->AddMetaGraph(meta_graph, step);
}

Status FileWriter::AddPlacedGraph(Graph& graph, const session::Placement& placement, int64_t step) {
  WEIR_TRY(status_);
  const graph::Definition& nodes = Internals(graph).definition;
  graph::CollapseOptions options;
  options.most_nodes = static_cast<size_t>(options_.most_graph_nodes > 0 ? options_.most_graph_nodes
                                                                         : std::max<int64_t>(nodes.num_nodes(), 1));
  for (const session::PlacedNode& node : placement) options.devices.emplace(node.node, node.device);
  WEIR_ASSIGN(const std::string graph_def, graph::ExportCollapsed(nodes, options));
  return writer_->AddGraph(graph_def, step);
}

Status FileWriter::AddRunMetadata(std::string_view run_metadata, const std::string& tag, int64_t step) {
  WEIR_TRY(status_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!tags_.insert(tag).second) return InvalidArgument("The provided tag was already used for this event type");
  }
  return writer_->AddRunMetadata(run_metadata, tag, step);
}

Status FileWriter::Flush() { return writer_ ? writer_->Flush() : status_; }
Status FileWriter::Close() {
  closed_ = true;
  return writer_ ? writer_->Close() : status_;
}

}  // namespace weir::summary
