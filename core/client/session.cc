#include "core/client/session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/session/options.h"

namespace weir {
namespace {

thread_local std::vector<Session*> default_sessions;

/// Fetches flattened in order of appearance, and how to put the results back together.
struct Request {
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

Status NotAnElement(const std::string& what) {
  return InvalidArgument(
      "Fetch argument {} cannot be interpreted as a Tensor. (Tensor {} is not an element of this graph.)", what, what);
}

Status CheckFetchable(const Operation& operation) {
  if (operation.graph()->IsFetchable(operation)) return Status();
  return InvalidArgument("Operation '{}' has been marked as not fetchable: it is inside a cond or a loop.",
                         operation.name());
}

/// Checks and collects one fetch; nested ones recursively.
Status Collect(Graph& graph, const Fetch& fetch, Request& request) {
  if (const Output* output = std::get_if<Output>(&fetch.node())) {
    if (!output->exists()) return InvalidArgument("Fetch argument None has invalid type <class 'NoneType'>");
    if (output->graph() != &graph) return NotAnElement(output->ToString());
    WEIR_TRY(CheckFetchable(output->op()));
    request.fetches.push_back(output->name());
    return Status();
  }
  if (const Operation* operation = std::get_if<Operation>(&fetch.node())) {
    if (!operation->exists()) return InvalidArgument("Fetch argument None has invalid type <class 'NoneType'>");
    if (operation->graph() != &graph) return NotAnElement(operation->ToString());
    WEIR_TRY(CheckFetchable(*operation));
    request.targets.push_back(operation->name());
    return Status();
  }
  if (const std::string* name = std::get_if<std::string>(&fetch.node())) {
    const bool tensor = name->find(':') != std::string::npos;
    const Status found = tensor ? graph.TensorByName(*name).status() : graph.OperationByName(*name).status();
    if (!found.ok()) {
      return InvalidArgument("Fetch argument '{}' cannot be interpreted as a {}. (\"{}\")", *name,
                             tensor ? "Tensor" : "Tensor or Operation", found.message());
    }
    WEIR_ASSIGN(const graph::InputName parts, graph::ParseInputName(*name));
    WEIR_ASSIGN(const Operation operation, graph.OperationByName(parts.node));
    WEIR_TRY(CheckFetchable(operation));
    (tensor ? request.fetches : request.targets).push_back(*name);
    return Status();
  }
  if (const Fetch::List* list = std::get_if<Fetch::List>(&fetch.node())) {
    for (const Fetch& element : *list) WEIR_TRY(Collect(graph, element, request));
    return Status();
  }
  if (const Status* why = std::get_if<Status>(&fetch.node())) return *why;
  for (const auto& [key, element] : std::get<Fetch::Map>(fetch.node())) WEIR_TRY(Collect(graph, element, request));
  return Status();
}

Result<Output> KeyOf(Graph& graph, const FeedKey& key) {
  Output output = key.output();
  if (!key.name().empty()) {
    Result<Output> named = graph.TensorByName(key.name());
    if (!named.ok()) {
      return InvalidArgument("Cannot interpret feed_dict key as Tensor: {}", named.status().message());
    }
    output = *named;
  }
  if (!output.exists()) return InvalidArgument("Cannot interpret feed_dict key as Tensor: None");
  if (output.graph() != &graph) {
    return InvalidArgument("Cannot interpret feed_dict key as Tensor: Tensor {} is not an element of this graph.",
                           output.ToString());
  }
  if (!graph.IsFeedable(output)) return InvalidArgument("Tensor {} may not be fed.", output.ToString());
  return output;
}

Result<std::vector<session::Feed>> ToCore(Graph& graph, const Feeds& feeds) {
  std::vector<session::Feed> out;
  for (const auto& [key, literal] : feeds) {
    WEIR_ASSIGN(const Output output, KeyOf(graph, key));
    Result<Tensor> value = literal.ForFeed(output.dtype());
    if (!value.ok()) return value.status().Prepend("feeding '" + output.name() + "': ");
    out.emplace_back(output.name(), std::move(*value));
  }
  return out;
}

}  // namespace

/// Gives each place of the request its tensor, in the order in which Collect met them.
class Assembler {
 public:
  explicit Assembler(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  void Fill(const Fetch& fetch, Tensor& tensor, std::vector<Fetched>& list, std::map<std::string, Fetched>& map,
            const auto& recurse) {
    const bool value = std::holds_alternative<Output>(fetch.node()) ||
                       (std::holds_alternative<std::string>(fetch.node()) &&
                        std::get<std::string>(fetch.node()).find(':') != std::string::npos);
    if (value) {
      tensor = tensors_[next_++];
    } else if (const Fetch::List* elements = std::get_if<Fetch::List>(&fetch.node())) {
      for (const Fetch& element : *elements) list.push_back(recurse(element));
    } else if (const Fetch::Map* entries = std::get_if<Fetch::Map>(&fetch.node())) {
      for (const auto& [key, element] : *entries) map.emplace(key, recurse(element));
    }
  }

 private:
  std::vector<Tensor> tensors_;
  size_t next_ = 0;
};

Fetch::Fetch(const Variable& variable) {
  if (variable.is_partitioned()) {
    node_ = InvalidArgument(
        "Fetch argument {} has invalid type, must be a string or Tensor. (Can not convert a "
        "PartitionedVariable into a Tensor or Operation.)",
        variable.name());
  } else {
    node_ = variable.value();
  }
}

const Fetched& Fetched::at(const std::string& key) const {
  static const Fetched kNothing;
  const auto found = map_.find(key);
  return found == map_.end() ? kNothing : found->second;
}

Session::Session(Graph& graph) : Session(graph, ConfigProto()) {}

Session::Session(Graph& graph, const ConfigProto& config) : graph_(&graph) {
  Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::For(config);
  status_ = runtime.status();
  if (!runtime.ok()) return;
  session::SessionOptions options = session::SessionOptionsFrom((*runtime)->config);
  Open(std::move(options), std::move(*runtime));
}

Session::Session(Graph& graph, session::SessionOptions options, std::shared_ptr<session::Runtime> runtime)
    : graph_(&graph) {
  if (!runtime) {
    Result<std::shared_ptr<session::Runtime>> shared = session::Runtime::Default();
    if (!shared.ok()) {
      status_ = shared.status();
      return;
    }
    runtime = std::move(*shared);
  }
  Open(std::move(options), std::move(runtime));
}

void Session::Open(session::SessionOptions options, std::shared_ptr<session::Runtime> runtime) {
  Result<std::unique_ptr<session::Session>> made =
      session::Session::Make(std::move(runtime), graph_->definition(), std::move(options));
  status_ = made.status();
  if (made.ok()) core_ = std::move(*made);
}

Session::~Session() = default;

Result<Fetched> Session::Run(const Fetch& fetch, const Feeds& feeds) { return Run(fetch, feeds, {}, nullptr); }

Result<Fetched> Session::Run(const Fetch& fetch, const Feeds& feeds, const session::RunOptions& options,
                             session::RunReport* report) {
  WEIR_TRY(status_);
  if (closed_) return Cancelled("Attempted to use a closed Session.");
  WEIR_TRY(graph_->status());
  if (graph_->definition().num_nodes() == 0) {
    return FailedPrecondition("The Session graph is empty. Add operations to the graph before calling run().");
  }
  Request request;
  WEIR_TRY(Collect(*graph_, fetch, request));
  WEIR_ASSIGN(const std::vector<session::Feed> core_feeds, ToCore(*graph_, feeds));
  std::vector<Tensor> tensors;
  if (!request.fetches.empty() || !request.targets.empty()) {
    // What is fed may also be fetched: it comes back as it went in.
    std::vector<std::string> unfed;
    std::vector<int> fed(request.fetches.size(), -1);
    for (size_t i = 0; i < request.fetches.size(); ++i) {
      for (size_t f = 0; f < core_feeds.size(); ++f) {
        if (core_feeds[f].first == request.fetches[i]) fed[i] = static_cast<int>(f);
      }
      if (fed[i] < 0) unfed.push_back(request.fetches[i]);
    }
    std::vector<Tensor> fetched;
    if (!unfed.empty() || !request.targets.empty()) {
      WEIR_ASSIGN(fetched, core_->Run(core_feeds, unfed, request.targets, options, report));
    }
    size_t next = 0;
    for (const int f : fed) tensors.push_back(f < 0 ? fetched[next++] : core_feeds[static_cast<size_t>(f)].second);
  }
  Assembler assembler(std::move(tensors));
  const auto assemble = [&](const Fetch& part, const auto& self) -> Fetched {
    Fetched result;
    assembler.Fill(part, result.tensor_, result.list_, result.map_,
                   [&](const Fetch& inner) { return self(inner, self); });
    return result;
  };
  return assemble(fetch, assemble);
}

Status Session::Close() {
  closed_ = true;
  return core_ ? core_->Close() : Status();
}

std::vector<session::DeviceAttributes> Session::ListDevices() const {
  return core_ ? core_->ListDevices() : std::vector<session::DeviceAttributes>();
}

session::DeviceReport Session::ReportDevices() const {
  return core_ ? core_->ReportDevices() : session::DeviceReport();
}

Result<std::vector<session::DeviceAttributes>> ListLocalDevices() {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  std::vector<session::DeviceAttributes> list = session::ListDevices(*runtime);
  for (session::DeviceAttributes& device : list) device.name = device.name.substr(device.name.rfind("/device:"));
  return list;
}

Session* Session::Default() { return default_sessions.empty() ? nullptr : default_sessions.back(); }

AsDefaultSession::AsDefaultSession(Session& session) : session_(session), graph_(session.graph()) {
  default_sessions.push_back(&session);
}

AsDefaultSession::~AsDefaultSession() {
  const auto own = std::find(default_sessions.rbegin(), default_sessions.rend(), &session_);
  if (own != default_sessions.rbegin()) {
    (void)session_.graph().Fail(FailedPrecondition("Nesting violated for default stack of Session objects"));
  }
  if (own != default_sessions.rend()) default_sessions.erase(std::next(own).base());
}

Result<Tensor> Eval(const Fetch& fetch, const Feeds& feeds, Session* session) {
  if (session == nullptr) session = Session::Default();
  if (session == nullptr) {
    return FailedPrecondition(
        "Cannot evaluate tensor using `eval()`: No default session is registered. Use `with "
        "sess.as_default()` or pass an explicit session to `eval(session=sess)`");
  }
  WEIR_ASSIGN(const Fetched fetched, session->Run(fetch, feeds));
  return fetched.tensor();
}

Status RunOperation(const Operation& operation, const Feeds& feeds, Session* session) {
  if (session == nullptr) session = Session::Default();
  if (session == nullptr) {
    return FailedPrecondition(
        "Cannot execute operation using `run()`: No default session is registered. Use `with "
        "sess.as_default():` or pass an explicit session to `run(session=sess)`");
  }
  return session->Run(operation, feeds).status();
}

}  // namespace weir
