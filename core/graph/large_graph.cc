#include "core/graph/large_graph.h"

#include <google/protobuf/arena.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/graph/graph_message.h"
#include "core/io/bundle.h"
#include "core/io/file_bytes.h"
#include "core/io/files.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

std::string ConstantsPrefix(const std::string& path) { return path + ".constants"; }

/// The tensors of a checkpoint that were read.
class Constants {
 public:
  explicit Constants(std::string prefix) : prefix_(std::move(prefix)) {}

  Result<Tensor> Get(std::string_view name) {
    if (!reader_) {
      WEIR_ASSIGN(io::BundleReader reader, io::BundleReader::Open(prefix_));
      reader_.emplace(std::move(reader));
    }
    if (const auto known = read_.find(name); known != read_.end()) return known->second;
    WEIR_ASSIGN(Tensor tensor, reader_->Read(name));
    return read_.emplace(name, std::move(tensor)).first->second;
  }

 private:
  const std::string prefix_;
  std::optional<io::BundleReader> reader_;
  std::map<std::string, Tensor, std::less<>> read_;
};

}  // namespace

Status WriteLargeGraph(const Definition& graph, const std::string& path, uint64_t least_bytes) {
  std::optional<io::BundleWriter> writer;
  const PutAside put = [&](const Node& node, std::string_view attr, const Tensor& tensor) -> Result<bool> {
    const bool moves = attr == "value" && node.op().traits.universal == op::Universal::kConstant &&
                       HasFixedSize(tensor.dtype()) && tensor.bytes() >= least_bytes;
    if (!moves) return false;
    if (!writer) {
      WEIR_ASSIGN(io::BundleWriter created, io::BundleWriter::Create(ConstantsPrefix(path)));
      writer.emplace(std::move(created));
    }
    WEIR_TRY(writer->Add(node.name(), tensor));
    return true;
  };
  google::protobuf::Arena arena;
  auto* const def = google::protobuf::Arena::CreateMessage<tf::GraphDef>(&arena);
  WEIR_TRY(GraphToMessage(graph, OutputShapes::kOmit, put, *def));
  WEIR_ASSIGN(const std::string bytes, proto::Serialize(*def, "GraphDef"));
  if (writer) WEIR_TRY(writer->Finish());
  return io::WriteFileAtomically(path, bytes);
}

ConstantFn ConstantsBeside(std::string path) {
  return [constants = std::make_shared<Constants>(ConstantsPrefix(path))](std::string_view name) {
    return constants->Get(name);
  };
}

Status ReadLargeGraph(const std::string& path, ImportOptions options, Definition& graph) {
  WEIR_ASSIGN(const io::FileBytes file, io::FileBytes::Open(path, proto::kMaxMessageBytes));
  options.owner = file.owner();
  options.constants = ConstantsBeside(path);
  return ImportGraphDef(file.bytes(), options, graph);
}

}  // namespace weir::graph
