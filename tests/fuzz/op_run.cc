#include "tests/fuzz/op_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"
#include "core/session/session.h"
#include "core/tensor/resource.h"

namespace weir::fuzz {
namespace {

constexpr double kMemoryMiB = 64;
constexpr int64_t kStepMs = 5000;

/// A value that depends on every byte, so that reading them is not optimised away. Reads words where there are any: the
/// sanitizer checks each read, so that an address is checked with its word.
uint64_t Digest(const Tensor& tensor) {
  uint64_t digest = 0;
  const auto add = [&digest](const void* from, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(from);
    for (uint64_t word = 0; bytes >= sizeof(word); at += sizeof(word), bytes -= sizeof(word)) {
      std::memcpy(&word, at, sizeof(word));
      digest = digest * 31 + word;
    }
    for (; bytes > 0; ++at, --bytes) digest = digest * 31 + *at;
  };
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.as<std::string>()) add(text.data(), text.size());
  } else if (tensor.dtype() == DType::kResource) {
    for (const ResourceHandle& handle : tensor.as<ResourceHandle>()) add(handle.name.data(), handle.name.size());
  } else if (tensor.raw() != nullptr) {
    add(tensor.raw(), tensor.bytes());
  }
  return digest;
}

volatile uint64_t digest_of_all = 0;

/// Texts of INTERNAL that an input may cause. None: INTERNAL says that weir or a plugin is wrong. An entry needs a
/// reason.
constexpr std::array<std::string_view, 0> kAllowedInternal = {};

bool Allowed(std::string_view message) {
  return std::ranges::any_of(kAllowedInternal,
                             [&](std::string_view text) { return message.find(text) != std::string_view::npos; });
}

/// True if no op has a declared shape that its operands may violate. TensorFlow does not enforce these shapes either,
/// so that inferred shapes may be wrong behind such an op.
bool ShapesBind(const graph::Definition& graph) {
  static const std::set<std::string_view> kLoose = {"LoopCond", "PlaceholderWithDefault",
                                                    "SoftmaxCrossEntropyWithLogits"};
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (kLoose.contains(graph.node(id).op().name)) return false;
  }
  return true;
}

std::string FaultOf(const graph::Definition& graph, const std::string& fetch, const Tensor& value) {
  digest_of_all = digest_of_all + Digest(value);
  const Result<graph::InputName> name = graph::ParseInputName(fetch);
  const graph::Node* const node = name.ok() ? graph.Find(name->node) : nullptr;
  if (node == nullptr || name->index >= node->num_outputs())
    return fmt::format("fetched {}, which is no output", fetch);
  const graph::Endpoint endpoint{node->id(), name->index};
  const DType declared = BaseType(graph.TypeOf(endpoint));
  if (value.dtype() != declared) {
    return fmt::format("{} of {} is {}, but its node declares {}", fetch, node->op().name, Name(value.dtype()),
                       Name(declared));
  }
  if (declared != DType::kResource && !graph.ShapeOf(endpoint).CompatibleWith(value.shape()) && ShapesBind(graph)) {
    return fmt::format("{} of {} has shape {}, but {} was inferred", fetch, node->op().name, value.shape().ToString(),
                       graph.ShapeOf(endpoint).ToString());
  }
  return {};
}

Result<std::vector<Tensor>> RunOnce(session::Session& session, const Case& made) {
  session::RunOptions options;
  options.timeout_in_ms = kStepMs;
  options.check_numerics = made.check_numerics;
  std::vector<std::string> fed;
  std::vector<Tensor> values;
  for (const auto& [name, value] : made.feeds) {
    fed.push_back(name);
    values.push_back(value);
  }
  switch (made.entry) {
    case Entry::kExplain: {
      WEIR_TRY(session.ExplainPlacement(made.feeds, made.fetches, made.targets).status());
      break;
    }
    case Entry::kCallable: {
      WEIR_ASSIGN(const session::CallableHandle call, session.MakeCallable({fed, made.fetches, made.targets}));
      std::vector<Tensor> fetched;
      WEIR_TRY(session.RunCallable(call, values, &fetched, options));
      return fetched;
    }
    case Entry::kPartialRun: {
      WEIR_ASSIGN(const std::string run, session.PRunSetup(fed, made.fetches, made.targets));
      const size_t half = made.feeds.size() / 2;
      WEIR_TRY(session.PRun(run, std::span(made.feeds).first(half), {}).status());
      return session.PRun(run, std::span(made.feeds).subspan(half), made.fetches);
    }
    case Entry::kRun:
      break;
  }
  return session.Run(made.feeds, made.fetches, made.targets, options);
}

Status RunAll(const std::shared_ptr<session::Runtime>& runtime, const Case& made, std::string& fault) {
  WEIR_ASSIGN(const graph::Definition graph,
              graph::ParseGraph(made.bytes, *runtime->ops, {.max_expansion_bytes = uint64_t{64} << 20}));
  session::SessionOptions options = made.options;
  options.operation_timeout_in_ms = kStepMs;
  options.placement_log = [](const std::string&) {};
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  for (int i = 0; i < made.runs; ++i) {
    WEIR_ASSIGN(const std::vector<Tensor> fetched, RunOnce(*session, made));
    if (fetched.size() != made.fetches.size()) fault = "another number of tensors than asked for";
    for (size_t f = 0; f < fetched.size() && fault.empty(); ++f) fault = FaultOf(graph, made.fetches[f], fetched[f]);
  }
  return session->Close();
}

}  // namespace

Result<std::shared_ptr<session::Runtime>> LoadRuntime() {
  plugin::LoadOptions options;
  options.config.device["CPU:0"].memory_limit_mb = kMemoryMiB;
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Load(options));
  if (runtime->plugins->kernels().ForOp("MatMul").empty()) {
    return FailedPrecondition("no kernel set was found in {}", runtime->plugins->folders().empty()
                                                                   ? std::string("any folder")
                                                                   : runtime->plugins->folders()[0]);
  }
  return runtime;
}

Outcome RunCase(const std::shared_ptr<session::Runtime>& runtime, const Case& made) {
  Outcome outcome;
  const Status status = RunAll(runtime, made, outcome.fault);
  outcome.code = status.code();
  if (!status.ok()) outcome.message = status.ToString();
  if (outcome.fault.empty() && status.code() == Code::kInternal && !Allowed(status.message())) {
    outcome.fault = "INTERNAL for an input: " + outcome.message;
  }
  return outcome;
}

}  // namespace weir::fuzz
