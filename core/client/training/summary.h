// Summaries for TensorBoard: ops that make them, and the writer of event files.
#ifndef WEIR_CORE_CLIENT_TRAINING_SUMMARY_H_
#define WEIR_CORE_CLIENT_TRAINING_SUMMARY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/client/graph/graph.h"
#include "core/client/ops/operand.h"
#include "core/session/reports.h"
#include "core/tensor/tensor.h"

namespace weir::io {
class EventWriter;
}

namespace weir::summary {

/// A serialized Summary with one number. `name`: the tag, with the name scopes before it; characters that a name may
/// not have become '_'. tensor: a scalar of a real type. Also goes to the collection "summaries".
Output Scalar(std::string_view name, const Operand& tensor, Where where = Where::current());
/// The distribution of a tensor of any shape.
Output Histogram(std::string_view name, const Operand& values, Where where = Where::current());
/// The first `max_outputs` images of [batch, height, width, channels] as PNG files with tags name/image/0 and so on, or
/// name/image if it is 1. tensor: uint8, or a floating type, which is scaled to a pixel's range; 1, 3 or 4 channels.
Output Image(std::string_view name, const Operand& tensor, int max_outputs = 3, Where where = Where::current());
/// The first `max_outputs` sounds of [batch, samples, channels] or [batch, samples] as WAV files with tags name/audio/0
/// and so on, or name/audio if it is 1. tensor: floats between -1 and 1; sample_rate: a float scalar, in hertz.
Output Audio(std::string_view name, const Operand& tensor, const Operand& sample_rate, int max_outputs = 3,
             Where where = Where::current());
/// Several summaries as one, `Merge/MergeSummary` or `name/name`; the same tag twice is an error of the run.
Output Merge(const std::vector<Operand>& summaries, std::string_view name = {}, Where where = Where::current());
/// All summaries of the graph's collection as one; an Output that does not exist when there are none.
Output MergeAll(Graph& graph = Graph::Default(), Where where = Where::current());

struct FileWriterOptions {
  int max_queue = 10;       // so many waiting events are written at once
  double flush_secs = 120;  // no event waits longer
  std::string filename_suffix = {};
  int64_t most_graph_nodes = 20'000;  // a larger GraphDef has scopes as single nodes (core/graph/collapsed.h); 0: never
};

/// Writes an event file into a folder, from a thread of its own. The file begins with its version, the GraphDef and the
/// MetaGraphDef of `graph`. Thread-safe.
class FileWriter {
 public:
  explicit FileWriter(const std::string& logdir, Graph* graph = nullptr, const FileWriterOptions& options = {});
  /// Closes.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Why nothing can be written, if so.
  const Status& status() const { return status_; }
  /// Of the event file.
  std::string path() const;

  /// `summary`: what running a summary op gave.
  Status AddSummary(const Tensor& summary, int64_t step = 0);
  /// A summary with one number under a tag, which no op made.
  Status AddScalar(std::string_view tag, double value, int64_t step = 0);
  Status AddGraph(Graph& graph, int64_t step = 0);
  /// The graph for display, with the devices that a session chose (Session::Placement), so that TensorBoard colours it
  /// by them. Nodes that were not placed keep the device that they ask for. Attributes above 1 KiB are left out, and
  /// scopes of a graph with more than `most_graph_nodes` nodes are single nodes. TensorBoard shows the last graph.
  Status AddPlacedGraph(Graph& graph, const session::Placement& placement, int64_t step = 0);
  /// `run_metadata`: bytes of Session::RunMetadata; TensorBoard shows its times and memory by node under `tag`.
  /// InvalidArgument for a tag that this writer has used.
  Status AddRunMetadata(std::string_view run_metadata, const std::string& tag, int64_t step = 0);
  /// That a session starts or stops. A start at a step makes TensorBoard discard later data of earlier files.
  enum class SessionEvent { kStart = 1, kStop = 2, kCheckpoint = 3 };
  Status AddSessionLog(SessionEvent event, int64_t step = 0, const std::string& checkpoint_path = {});
  /// Everything added before is in the file.
  Status Flush();
  /// Flush, and no more events until Reopen.
  Status Close();
  /// After Close: another file in the folder. Not while another thread uses the writer.
  Status Reopen();

 private:
  const std::string logdir_;
  const FileWriterOptions options_;
  Status status_;
  bool closed_ = false;
  std::mutex mutex_;            // protects tags_
  std::set<std::string> tags_;  // of run metadata
  std::unique_ptr<io::EventWriter> writer_;
};

}  // namespace weir::summary

#endif  // WEIR_CORE_CLIENT_TRAINING_SUMMARY_H_
