#include "core/client/session/session.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <utility>

#include "core/base/errors.h"
#include "core/client/distributed/remote_session.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/session/session_interface.h"
#include "core/session/options.h"
#include "core/session/reports.h"
#include "core/session/resolve.h"
#include "core/session/run_metadata.h"

namespace weir {
namespace {

thread_local std::vector<Session*> default_sessions;
std::atomic<int> interactive_sessions{0};

/// What a fetch asks of the session below, flattened in order of appearance.
struct Request {
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<int> fed;  // by fetch once CutFed has run: the feed that it is, or -1

  /// What is fed may also be fetched: it comes back as it went in, and the session below is not asked for it.
  void CutFed(const std::vector<std::string>& feeds) {
    std::vector<std::string> unfed;
    for (const std::string& fetch : fetches) {
      const auto found = std::find(feeds.begin(), feeds.end(), fetch);
      fed.push_back(found == feeds.end() ? -1 : static_cast<int>(found - feeds.begin()));
      if (found == feeds.end()) unfed.push_back(fetch);
    }
    fetches = std::move(unfed);
  }
  bool empty() const { return fetches.empty() && targets.empty(); }
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

/// The error that kept a fetch from being made.
Status WhyAbsent(const Graph& graph, const Graph* from, graph::NodeId id) {
  if (from == &graph) WEIR_TRY(Internals(graph).ErrorOf(id));
  if (from == &graph || from == nullptr) WEIR_TRY(graph.status());
  return InvalidArgument("Fetch argument None has invalid type <class 'NoneType'>");
}

/// Checks and collects one fetch; nested ones recursively.
Status Collect(Graph& graph, const Fetch& fetch, Request& request) {
  if (const Output* output = std::get_if<Output>(&fetch.node())) {
    if (!output->exists()) return WhyAbsent(graph, output->graph(), output->endpoint().node);
    if (output->graph() != &graph) return NotAnElement(output->ToString());
    WEIR_TRY(CheckFetchable(output->op()));
    request.fetches.push_back(output->name());
    return Status();
  }
  if (const Operation* operation = std::get_if<Operation>(&fetch.node())) {
    if (!operation->exists()) return WhyAbsent(graph, operation->graph(), operation->id());
    if (operation->graph() != &graph) return NotAnElement(operation->ToString());
    WEIR_TRY(CheckFetchable(*operation));
    request.targets.push_back(operation->name());
    return Status();
  }
  if (const std::string* name = std::get_if<std::string>(&fetch.node())) {
    const bool tensor = name->find(':') != std::string::npos;
    const Status found = tensor ? graph.TensorByName(*name).status() : graph.OperationByName(*name).status();
    if (!found.ok()) {
      WEIR_TRY(Internals(graph).ErrorOf(std::string_view(*name).substr(0, name->find(':'))));
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
  if (!output.exists()) {
    if (output.graph() == &graph) WEIR_TRY(Internals(graph).ErrorOf(output.endpoint().node));
    return InvalidArgument("Cannot interpret feed_dict key as Tensor: None");
  }
  if (output.graph() != &graph) {
    return InvalidArgument("Cannot interpret feed_dict key as Tensor: Tensor {} is not an element of this graph.",
                           output.ToString());
  }
  if (!graph.IsFeedable(output)) return InvalidArgument("Tensor {} may not be fed.", output.ToString());
  return output;
}

/// Checked here already: the session below never sees what is both fed and fetched.
Result<Tensor> ValueFor(const Output& output, const Literal& literal) {
  Result<Tensor> value = literal.ForFeed(output.dtype());
  if (!value.ok()) return value.status().Prepend("feeding '" + output.name() + "': ");
  WEIR_TRY(session::CheckFeed(Internals(*output.graph()).definition, output.endpoint(), *value));
  return value;
}

Result<std::vector<session::Feed>> ToCore(Graph& graph, const Feeds& feeds) {
  std::vector<session::Feed> out;
  for (const auto& [key, literal] : feeds) {
    WEIR_ASSIGN(const Output output, KeyOf(graph, key));
    WEIR_ASSIGN(Tensor value, ValueFor(output, literal));
    out.emplace_back(output.name(), std::move(value));
  }
  return out;
}

}  // namespace

/// Gives each place of a fetch its tensor, in the order in which Collect met them.
class Assembler {
 public:
  /// `computed` in order of the request's fetches; `feeds` by Request::fed.
  Assembler(const std::vector<int>& fed, std::vector<Tensor> computed, const auto& feed) {
    size_t next = 0;
    for (const int f : fed) tensors_.push_back(f < 0 ? std::move(computed[next++]) : feed(static_cast<size_t>(f)));
  }

  Fetched Fill(const Fetch& fetch) {
    Fetched filled;
    const bool value = std::holds_alternative<Output>(fetch.node()) ||
                       (std::holds_alternative<std::string>(fetch.node()) &&
                        std::get<std::string>(fetch.node()).find(':') != std::string::npos);
    if (value) {
      filled.tensor_ = tensors_[next_++];
    } else if (const Fetch::List* elements = std::get_if<Fetch::List>(&fetch.node())) {
      filled.is_list_ = true;
      for (const Fetch& element : *elements) filled.list_.push_back(Fill(element));
    } else if (const Fetch::Map* entries = std::get_if<Fetch::Map>(&fetch.node())) {
      for (const auto& [key, element] : *entries) filled.map_.emplace(key, Fill(element));
    }
    return filled;
  }

 private:
  std::vector<Tensor> tensors_;
  size_t next_ = 0;
};

namespace {

/// Of a reference variable the reference, as in TensorFlow.
const Output& ForSession(const Variable& variable) {
  return variable.is_resource() || !variable.handle().exists() ? variable.snapshot() : variable.handle();
}

}  // namespace

FeedKey::FeedKey(const Variable& variable) : output_(ForSession(variable)) {}

Fetch::Fetch(const Variable& variable) {
  if (variable.is_partitioned()) {
    node_ = InvalidArgument(
        "Fetch argument {} has invalid type, must be a string or Tensor. (Can not convert a "
        "PartitionedVariable into a Tensor or Operation.)",
        variable.name());
  } else {
    node_ = ForSession(variable);
  }
}

const Fetched& Fetched::operator[](size_t i) const {
  static const Fetched kNothing;
  return i < list_.size() ? list_[i] : kNothing;
}

const Fetched& Fetched::at(const std::string& key) const {
  static const Fetched kNothing;
  const auto found = map_.find(key);
  return found == map_.end() ? kNothing : found->second;
}

Session::Session(Graph& graph) : Session(graph, ConfigProto()) {}

Session::Session(Graph& graph, const ConfigProto& config) : Session(graph, ConnectSession(graph, {}, config)) {}

Session::Session(const std::string& target, Graph& graph, const ConfigProto& config)
    : Session(graph, ConnectSession(graph, target, config)) {}

Session::Session(Graph& graph, Result<std::unique_ptr<SessionInterface>> behind)
    : graph_(&graph), status_(behind.status()), behind_(std::move(*behind)) {}

Session::~Session() { self_->store(nullptr); }

Result<Fetched> Session::Run(const Fetch& fetch, const Feeds& feeds) { return Run(fetch, feeds, {}, nullptr); }

Status Session::CheckUsable() const {
  WEIR_TRY(status_);
  if (closed_) return Cancelled("Attempted to use a closed Session.");
  WEIR_TRY(Internals(*graph_).ErrorOfAll());
  if (Internals(*graph_).definition.num_nodes() == 0) {
    return FailedPrecondition("The Session graph is empty. Add operations to the graph before calling run().");
  }
  return Status();
}

Result<Fetched> Session::Run(const Fetch& fetch, const Feeds& feeds, const session::RunOptions& options,
                             session::RunReport* report) {
  WEIR_TRY(CheckUsable());
  Request request;
  WEIR_TRY(Collect(*graph_, fetch, request));
  WEIR_ASSIGN(const std::vector<session::Feed> core_feeds, ToCore(*graph_, feeds));
  std::vector<std::string> names;
  for (const session::Feed& feed : core_feeds) names.push_back(feed.first);
  request.CutFed(names);
  std::vector<Tensor> computed;
  if (!request.empty()) {
    WEIR_ASSIGN(computed, behind_->Run(core_feeds, request.fetches, request.targets, options, report));
  }
  return Assembler(request.fed, std::move(computed), [&](size_t i) { return core_feeds[i].second; }).Fill(fetch);
}

Result<std::string> Session::PartialRunSetup(const Fetch& fetches, const std::vector<FeedKey>& feeds) {
  WEIR_TRY(CheckUsable());
  Request request;
  WEIR_TRY(Collect(*graph_, fetches, request));
  std::vector<std::string> names;
  for (const FeedKey& key : feeds) {
    WEIR_ASSIGN(const Output output, KeyOf(*graph_, key));
    names.push_back(output.name());
  }
  return behind_->PRunSetup(names, request.fetches, request.targets);
}

Result<Fetched> Session::PartialRun(const std::string& handle, const Fetch& fetch, const Feeds& feeds) {
  WEIR_TRY(CheckUsable());
  Request request;
  WEIR_TRY(Collect(*graph_, fetch, request));
  if (!request.targets.empty()) {
    return InvalidArgument("partial_run() requires empty target_list. Received '{}': name operations in the setup",
                           request.targets[0]);
  }
  WEIR_ASSIGN(const std::vector<session::Feed> core_feeds, ToCore(*graph_, feeds));
  WEIR_ASSIGN(std::vector<Tensor> computed, behind_->PRun(handle, core_feeds, request.fetches));
  request.CutFed({});
  return Assembler(request.fed, std::move(computed), [](size_t) { return Tensor(); }).Fill(fetch);
}

Result<Callable> Session::MakeCallable(const Fetch& fetch, const std::vector<FeedKey>& feed_list) {
  WEIR_TRY(CheckUsable());
  Request request;
  WEIR_TRY(Collect(*graph_, fetch, request));
  Callable callable(*this, fetch);
  session::CallableOptions options;
  for (const FeedKey& key : feed_list) {
    WEIR_ASSIGN(const Output output, KeyOf(*graph_, key));
    callable.feeds_.push_back(output);
    options.feeds.push_back(output.name());
  }
  request.CutFed(options.feeds);
  callable.fed_ = request.fed;
  if (!request.empty()) {
    options.fetches = std::move(request.fetches);
    options.targets = std::move(request.targets);
    WEIR_ASSIGN(callable.handle_, behind_->MakeCallable(options));
  }
  return callable;
}

Callable::Callable(Callable&& other) noexcept
    : session_(std::move(other.session_)),
      fetch_(std::move(other.fetch_)),
      feeds_(std::move(other.feeds_)),
      fed_(std::move(other.fed_)),
      handle_(std::exchange(other.handle_, 0)) {}

Callable& Callable::operator=(Callable&& other) noexcept {
  if (this == &other) return *this;
  Release();
  session_ = std::move(other.session_);
  fetch_ = std::move(other.fetch_);
  feeds_ = std::move(other.feeds_);
  fed_ = std::move(other.fed_);
  handle_ = std::exchange(other.handle_, 0);
  return *this;
}

Callable::~Callable() { Release(); }

void Callable::Release() {
  Session* const session = session_ ? session_->load() : nullptr;
  if (session != nullptr && handle_ != 0) (void)session->behind_->ReleaseCallable(handle_);
}

Result<Fetched> Callable::operator()(const std::vector<Literal>& values, const session::RunOptions& options,
                                     session::RunReport* report) const {
  Session* const held = session_ ? session_->load() : nullptr;
  if (held == nullptr) {
    return FailedPrecondition(
        "This callable belongs to no session: it was not made, was moved from, or its session is gone.");
  }
  Session& session = *held;
  if (values.size() < feeds_.size()) {
    Feeds feeds;
    for (size_t i = 0; i < values.size(); ++i) feeds.emplace_back(feeds_[i], values[i]);
    return session.Run(fetch_, feeds, options, report);
  }
  WEIR_TRY(session.CheckUsable());
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    WEIR_ASSIGN(Tensor value, ValueFor(feeds_[i], values[i]));
    tensors.push_back(std::move(value));
  }
  std::vector<Tensor> computed;
  if (handle_ != 0) WEIR_TRY(session.behind_->RunCallable(handle_, tensors, &computed, options, report));
  return Assembler(fed_, std::move(computed), [&](size_t i) { return tensors[i]; }).Fill(fetch_);
}

Status Session::Close() {
  closed_ = true;
  return behind_ ? behind_->Close() : Status();
}

Status Session::Reset(const std::string& target, const std::vector<std::string>& containers) {
  if (target.find("://") != std::string::npos) return ResetServer(target, containers);
  return session::Session::Reset(target, containers);
}

std::vector<session::DeviceAttributes> Session::ListDevices() const {
  return behind_ ? behind_->ListDevices() : std::vector<session::DeviceAttributes>();
}

session::Placement Session::Placement() const { return behind_ ? behind_->ReportPlacement() : session::Placement(); }

Result<std::string> Session::ExplainPlacement(const Fetch& fetch, const Feeds& feeds) {
  WEIR_TRY(CheckUsable());
  Request request;
  WEIR_TRY(Collect(*graph_, fetch, request));
  WEIR_ASSIGN(const std::vector<session::Feed> core_feeds, ToCore(*graph_, feeds));
  return behind_->ExplainPlacement(core_feeds, request.fetches, request.targets);
}

std::string Session::ReportMemory() const { return behind_ ? behind_->ReportMemory() : std::string(); }

Result<std::string> Session::RunMetadata(const session::RunReport& report) const {
  return session::RunMetadata(Internals(*graph_).definition, report);
}

session::DeviceReport Session::ReportDevices() const {
  return behind_ ? behind_->ReportDevices() : session::DeviceReport();
}

Result<std::vector<session::DeviceAttributes>> ListLocalDevices() {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  std::vector<session::DeviceAttributes> list = session::ListDevices(*runtime);
  for (session::DeviceAttributes& device : list) device.name = device.name.substr(device.name.rfind("/device:"));
  return list;
}

Session* Session::Default() { return default_sessions.empty() ? nullptr : default_sessions.back(); }

AsDefaultSession::AsDefaultSession(Session& session, Nesting nesting)
    : session_(session), nesting_(nesting), graph_(session.graph(), nesting) {
  default_sessions.push_back(&session);
}

AsDefaultSession::~AsDefaultSession() {
  const auto own = std::find(default_sessions.rbegin(), default_sessions.rend(), &session_);
  if (own != default_sessions.rbegin() && nesting_ == Nesting::kEnforced) {
    (void)session_.graph().Fail(FailedPrecondition("Nesting violated for default stack of Session objects"));
  }
  if (own != default_sessions.rend()) default_sessions.erase(std::next(own).base());
}

InteractiveSession::InteractiveSession(Graph& graph, const ConfigProto& config) : Session(graph, config) {
  if (interactive_sessions++ > 0) {
    std::fputs(
        "weir: An interactive session is already active. This can cause out-of-memory errors in some cases. You must "
        "explicitly call `InteractiveSession.close()` to release resources held by the other session(s).\n",
        stderr);
  }
  default_.emplace(*this, Nesting::kFree);
}

InteractiveSession::~InteractiveSession() { (void)Close(); }

Status InteractiveSession::Close() {
  if (default_) --interactive_sessions;
  default_.reset();
  return Session::Close();
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

Status Load(const Variable& variable, const Literal& value, Session* session) {
  if (!variable.initializer().exists()) {
    return InvalidArgument("{} has no initializer to load a value with", variable.ToString());
  }
  return RunOperation(variable.initializer(), {{variable.initializer().inputs()[1], value}}, session);
}

}  // namespace weir
