// weir's half of the interop tests: writes files for TensorFlow and TensorBoard, and prints the contents of theirs.
//   interop_peer write DIR        checkpoint, graph, results, events
//   interop_peer checkpoint P D   every tensor of checkpoint P as an .npy file in D
//   interop_peer events FILE      one line per value: step, tag, kind, number
//   interop_peer write_flow DIR   a MetaGraph with conds and loops, and its values
//   interop_peer read_flow META D values and a gradient of such a MetaGraph as .npy files in D
//   interop_peer gradients META D  gradients of a loop of such a MetaGraph, and the graph with them, in D
//   interop_peer run GRAPH FETCH… D   fetches of a GraphDef as .npy files in D
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"
#include "core/io/bundle.h"
#include "core/io/bundle_commit.h"
#include "core/io/event_file.h"
#include "core/io/files.h"
#include "core/io/npy.h"
#include "core/io/summary.h"
#include "core/session/run_metadata.h"
#include "core/session/session.h"
#include "tests/interop/control_flow.h"
#include "tests/support/text_graph.h"

namespace weir {
namespace {

/// "a/b:0" -> "a_b_0".
std::string FileName(std::string name) {
  for (char& c : name) c = c == '/' || c == ':' ? '_' : c;
  return name;
}

/// relu(x w + b) and its softmax, with constant x, w and b, plus strings and integers.
Result<graph::Definition> Network() {
  const op::AttrList kFloat = {{"T", DType::kFloat}};
  std::vector<float> x, w;
  for (int i = 0; i < 12; ++i) x.push_back(0.25f * static_cast<float>(i) - 1);
  for (int i = 0; i < 20; ++i) w.push_back(0.1f * static_cast<float>(i % 7) - 0.3f);
  return testing::MakeGraph({testing::Const("x", Tensor::Of<float>(Shape::Of({3, 4}), x)),
                             testing::Const("w", Tensor::Of<float>(Shape::Of({4, 5}), w)),
                             testing::Const("b", Tensor::Vector<float>({0.5f, -0.5f, 0, 1, -1})),
                             {"product", "MatMul", {"x", "w"}, kFloat},
                             {"sum", "BiasAdd", {"product", "b"}, kFloat},
                             {"relu", "Relu", {"sum"}, kFloat},
                             {"softmax", "Softmax", {"relu"}, kFloat},
                             testing::Const("axis", Tensor::Scalar<int32_t>(1)),
                             {"argmax",
                              "ArgMax",
                              {"softmax", "axis"},
                              {{"T", DType::kFloat}, {"Tidx", DType::kInt32}, {"output_type", DType::kInt64}}}});
}

Status RunAndSave(const graph::Definition& graph, const std::vector<std::string>& fetches, const std::string& folder) {
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph));
  WEIR_ASSIGN(const std::vector<Tensor> values, session->Run({}, fetches, {}));
  for (size_t i = 0; i < fetches.size(); ++i) {
    WEIR_TRY(io::WriteNpy(folder + "/" + FileName(fetches[i]) + ".npy", values[i]));
  }
  return Status();
}

Status WriteCheckpoint(const std::string& prefix) {
  WEIR_ASSIGN(io::BundleWriter writer, io::BundleWriter::Create(prefix));
  WEIR_TRY(writer.Add("layer/kernel", Tensor::Of<float>(Shape::Of({2, 3}), {1, 2, 3, 4, 5, 6})));
  WEIR_TRY(writer.Add("layer/flags", Tensor::Of<bool>(Shape::Of({3}), {true, false, true})));
  WEIR_TRY(writer.Add("names", Tensor::Vector<std::string>({"alpha", "", "gamma"})));
  WEIR_TRY(writer.Add("step", Tensor::Scalar<int64_t>(1234567890123)));
  WEIR_TRY(writer.Add("empty", Tensor::Of<double>(Shape::Of({0, 2}), {})));
  return writer.Finish();
}

/// A checkpoint left by a killed save over another checkpoint: one data file more, which is empty.
Status WriteKilledCheckpoint(const std::string& prefix) {
  const std::string part = prefix + "-part", empty = prefix + "-empty";
  WEIR_TRY(WriteCheckpoint(part));
  WEIR_TRY(io::WriteFileAtomically(empty, ""));
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(part));
  std::map<std::string, io::BundleEntry> entries;
  for (const io::BundleEntry& entry : reader.entries()) entries[entry.name] = entry;
  return io::CommitBundle(prefix, {2, false}, entries, {io::DataPath(part, 0, 1), empty});
}

Status WriteEvents(const std::string& folder, const graph::Definition& graph) {
  WEIR_ASSIGN(const std::unique_ptr<io::EventWriter> writer, io::EventWriter::Create(folder));
  WEIR_ASSIGN(const std::string graph_def, graph::ExportGraphDef(graph));
  WEIR_TRY(writer->AddGraph(graph_def));
  for (int step = 0; step < 3; ++step) {
    WEIR_TRY(writer->AddSummary(io::ScalarSummary("loss", 1.0f / static_cast<float>(step + 1)), step));
  }
  WEIR_ASSIGN(const std::string histogram,
              io::HistogramSummary("weights", Tensor::Of<float>(Shape::Of({2, 2}), {1, 2, 3, 4}), "weights"));
  WEIR_TRY(writer->AddSummary(histogram, 2));
  return writer->Close();
}

/// Writes the metadata of a run with x fed.
Status WriteRunMetadata(const graph::Definition& graph, const std::string& path) {
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph));
  WEIR_ASSIGN(const session::RunOptions options,
              session::ParseRunOptions("trace_level: FULL_TRACE output_partition_graphs: true"));
  const Tensor x = Tensor::Of<float>(Shape::Of({3, 4}), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const std::vector<session::Feed> feeds = {{"x:0", x}};
  const std::vector<std::string> fetches = {"softmax:0"};
  session::RunReport report;
  WEIR_TRY(session->Run(feeds, fetches, {}, options, &report).status());
  WEIR_ASSIGN(const std::string bytes, session::RunMetadata(graph, report));
  return io::WriteFileAtomically(path, bytes);
}

Status Write(const std::string& folder) {
  for (const char* name : {"/model.ckpt", "/over", "/over", "/over"}) WEIR_TRY(WriteCheckpoint(folder + name));
  WEIR_TRY(WriteKilledCheckpoint(folder + "/killed"));
  WEIR_ASSIGN(const graph::Definition graph, Network());
  WEIR_ASSIGN(const std::string bytes, graph::ExportGraphDef(graph));
  WEIR_TRY(io::WriteFileAtomically(folder + "/graph.pb", bytes));
  WEIR_TRY(RunAndSave(graph, {"relu:0", "softmax:0", "argmax:0"}, folder));
  WEIR_TRY(WriteRunMetadata(graph, folder + "/run_metadata.pb"));
  return WriteEvents(folder + "/events", graph);
}

Status Checkpoint(const std::string& prefix, const std::string& folder) {
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(prefix));
  for (const io::BundleEntry& entry : reader.entries()) {
    WEIR_ASSIGN(const Tensor tensor, reader.Read(entry.name));
    WEIR_TRY(io::WriteNpy(folder + "/" + FileName(entry.name) + ".npy", tensor));
  }
  return Status();
}

Status Events(const std::string& path) {
  WEIR_ASSIGN(io::EventReader reader, io::EventReader::Open(path));
  while (true) {
    WEIR_ASSIGN(const std::optional<io::Event> event, reader.Next());
    if (!event) return Status();
    if (!event->graph_def.empty()) fmt::print("{} graph\n", event->step);
    for (const io::SummaryValue& value : event->summary) {
      if (value.kind == io::SummaryKind::kScalar)
        fmt::print("{} {} scalar {:.6g}\n", event->step, value.tag, value.scalar);
      if (value.kind == io::SummaryKind::kHistogram) {
        fmt::print("{} {} histogram {:.6g}\n", event->step, value.tag, value.histogram.num);
      }
    }
  }
}

Status RunGraph(const std::string& path, const std::vector<std::string>& fetches, const std::string& folder) {
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  WEIR_ASSIGN(const std::string bytes, io::ReadFile(path, uint64_t{2} << 30));
  WEIR_ASSIGN(const graph::Definition graph, graph::ParseGraph(bytes, *runtime->ops));
  return RunAndSave(graph, fetches, folder);
}

Status Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == "write") return Write(arguments[1]);
  if (arguments.size() == 3 && arguments[0] == "checkpoint") return Checkpoint(arguments[1], arguments[2]);
  if (arguments.size() == 2 && arguments[0] == "events") return Events(arguments[1]);
  if (arguments.size() == 2 && arguments[0] == "write_flow") return WriteControlFlow(arguments[1]);
  if (arguments.size() == 3 && arguments[0] == "read_flow") return ReadControlFlow(arguments[1], arguments[2]);
  if (arguments.size() == 3 && arguments[0] == "gradients") return WriteGradients(arguments[1], arguments[2]);
  if (arguments.size() >= 4 && arguments[0] == "run") {
    return RunGraph(arguments[1], {arguments.begin() + 2, arguments.end() - 1}, arguments.back());
  }
  return InvalidArgument(
      "usage: interop_peer write DIR | checkpoint PREFIX DIR | events FILE | write_flow DIR | read_flow META DIR | "
      "gradients META DIR | run GRAPH FETCH... DIR");
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const weir::Status status = weir::Main({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
