// Running graphs: Session with structured fetches and feeds, the default session, eval.
#ifndef WEIR_CORE_CLIENT_SESSION_SESSION_H_
#define WEIR_CORE_CLIENT_SESSION_SESSION_H_

#include <atomic>
#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/client/graph/graph.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/operand.h"
#include "core/client/variables/variable.h"
#include "core/config/config.h"
#include "core/session/run_options.h"

namespace weir::session {
// core/session/reports.h, which <weir/extra.h> includes.
struct DeviceAttributes;
struct DeviceReport;
struct PlacedNode;
struct RunReport;
}  // namespace weir::session

namespace weir {

/// TensorFlow's names for the configuration of a session:
/// `Session session(graph, ConfigProto{.gpu_options = GPUOptions{.per_process_gpu_memory_fraction = 0.7}})`.
using ConfigProto = config::Config;
using GPUOptions = config::GpuOptions;
using GraphOptions = config::GraphOptions;
using OptimizerOptions = config::OptimizerOptions;

/// A value, an operation (runs, no result), a variable, a name ("add:0", "add"), or nested lists and maps of these:
/// `{a, b}`, `Fetch::Map{{"a", a}}`.
class Fetch {
 public:
  using List = std::vector<Fetch>;
  using Map = std::map<std::string, Fetch>;
  Fetch(Output output) : node_(output) {}              // NOLINT(google-explicit-constructor)
  Fetch(Operation operation) : node_(operation) {}     // NOLINT(google-explicit-constructor)
  Fetch(const Variable& variable);                     // NOLINT(google-explicit-constructor)
  Fetch(const char* name) : node_(OrEmpty(name)) {}    // NOLINT(google-explicit-constructor)
  Fetch(std::string name) : node_(std::move(name)) {}  // NOLINT(google-explicit-constructor)
  Fetch(std::initializer_list<Fetch> list) : node_(List(list)) {}
  Fetch(List list) : node_(std::move(list)) {}  // NOLINT(google-explicit-constructor)
  Fetch(Map map) : node_(std::move(map)) {}     // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::convertible_to<const T&, Fetch> Fetch(const std::vector<T>& list)  // NOLINT
      : node_(List(list.begin(), list.end())) {}

  /// A Status: the reason why it cannot be fetched.
  using Node = std::variant<Output, Operation, std::string, List, Map, Status>;
  const Node& node() const { return node_; }

 private:
  Node node_;
};

/// Results, nested as the Fetch. An operation gives an invalid tensor.
class Fetched {
 public:
  const Tensor& tensor() const { return tensor_; }
  size_t size() const { return list_.size() + map_.size(); }
  /// Element of a list; beyond its end one without a tensor.
  const Fetched& operator[](size_t i) const;
  /// Entry of a map; for an unknown key one without a tensor.
  const Fetched& at(const std::string& key) const;
  /// As Tensor::scalar: `*fetched->scalar<float>()`. An error for a list or map.
  template <class T>
  Result<T> scalar() const {
    return tensor_.scalar<T>();
  }
  template <class T>
  Result<Elements<const T>> values() const {
    return tensor_.values<T>();
  }
  /// The values as NumPy lays them out; "[a, b]" of a list, "{'key': a}" of a map, "None" of an operation.
  friend std::ostream& operator<<(std::ostream& out, const Fetched& fetched);

 private:
  friend class Assembler;
  Tensor tensor_;
  bool is_list_ = false;
  std::vector<Fetched> list_;
  std::map<std::string, Fetched> map_;
};

/// Flexible literals take the type of the fed value.
class FeedKey {
 public:
  FeedKey(Output output) : output_(output) {}            // NOLINT(google-explicit-constructor)
  FeedKey(const Variable& variable);                     // NOLINT(google-explicit-constructor)
  FeedKey(const char* name) : name_(OrEmpty(name)) {}    // NOLINT(google-explicit-constructor)
  FeedKey(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)
  const Output& output() const { return output_; }
  const std::string& name() const { return name_; }

 private:
  Output output_;
  std::string name_;
};
using Feeds = std::vector<std::pair<FeedKey, Literal>>;

class Callable;
class SessionInterface;

/// Runs a graph, in this process or through another SessionInterface. Run is thread-safe while the graph does not
/// change.
class Session {
 public:
  /// With the configuration of files and environment. status() is the error if it cannot run.
  explicit Session(Graph& graph = Graph::Default());
  /// Members of `config` that were set, even to the default, take precedence.
  Session(Graph& graph, const ConfigProto& config);
  /// On the default graph: `Session session({.device_count = {{"CPU", 2}}})`.
  explicit Session(const ConfigProto& config) : Session(Graph::Default(), config) {}
  /// At a server, "weir://host:port" or "grpc://host:port", or in this process ("", "local").
  explicit Session(const std::string& target, Graph& graph = Graph::Default(), const ConfigProto& config = {});
  /// Runs through `behind`; status() is its error.
  Session(Graph& graph, Result<std::unique_ptr<SessionInterface>> behind);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Status& status() const { return status_; }
  Graph& graph() const { return *graph_; }

  /// Returns first the graph's errors that belong to no value, then those of the fetches' building. Errors of fetches
  /// and feeds that are not in the graph have the texts of TensorFlow's Python client.
  Result<Fetched> Run(const Fetch& fetch, const Feeds& feeds = {});
  Result<Fetched> Run(const Fetch& fetch, const Feeds& feeds, const session::RunOptions& options,
                      session::RunReport* report);
  /// A prepared run with values for `feed_list` in order; names are looked up once.
  Result<Callable> MakeCallable(const Fetch& fetch, const std::vector<FeedKey>& feed_list = {});
  /// Prepares a run whose feeds and fetches come in parts; returns its handle, as "a:0,b:0->add:0//1/;0".
  Result<std::string> PartialRunSetup(const Fetch& fetches, const std::vector<FeedKey>& feeds = {});
  /// A part of such a run: every op runs at most once over all parts (session::Session::PRun).
  Result<Fetched> PartialRun(const std::string& handle, const Fetch& fetch, const Feeds& feeds = {});
  Status Close();
  std::vector<session::DeviceAttributes> ListDevices() const;
  session::DeviceReport ReportDevices() const;
  /// Devices of the nodes that ran, with reasons: session::ToText and session::ToJson print it.
  std::vector<session::PlacedNode> Placement() const;
  /// The placement of such a run with all candidates, as text; runs nothing.
  Result<std::string> ExplainPlacement(const Fetch& fetch, const Feeds& feeds = {});
  /// Memory held and left on each device, with the largest holders, as text.
  std::string ReportMemory() const;
  /// The report of a run as a serialized RunMetadata.
  Result<std::string> RunMetadata(const session::RunReport& report) const;
  SessionInterface* behind() { return behind_.get(); }

  /// Closes all sessions of this process and drops the contents of containers. With the target of a server it drops
  /// the contents of containers in all tasks of its cluster.
  static Status Reset(const std::string& target = {}, const std::vector<std::string>& containers = {});
  /// The innermost default session of this thread, or null.
  static Session* Default();

 private:
  friend class Callable;
  Status CheckUsable() const;

  Graph* graph_;
  Status status_;
  std::atomic<bool> closed_ = false;
  std::unique_ptr<SessionInterface> behind_;
  /// Null after the end of the session, for callables.
  const std::shared_ptr<std::atomic<Session*>> self_ = std::make_shared<std::atomic<Session*>>(this);
};

/// The devices of this process under the default configuration: "/device:CPU:0".
Result<std::vector<session::DeviceAttributes>> ListLocalDevices();

/// A prepared run of a session. Move-only. Thread-safe like Session::Run.
class Callable {
 public:
  /// Not callable: FailedPrecondition, as after a move and after the end of the session.
  Callable() = default;
  Callable(Callable&& other) noexcept;
  Callable& operator=(Callable&& other) noexcept;
  ~Callable();

  /// `values` in the order of the feed list; missing ones are not fed, further ones ignored. Errors as Session::Run.
  Result<Fetched> operator()(const std::vector<Literal>& values = {}, const session::RunOptions& options = {},
                             session::RunReport* report = nullptr) const;

 private:
  friend class Session;
  Callable(Session& session, Fetch fetch) : session_(session.self_), fetch_(std::move(fetch)) {}
  void Release();
  std::shared_ptr<const std::atomic<Session*>> session_;
  Fetch fetch_ = Output();
  std::vector<Output> feeds_;
  std::vector<int> fed_;  // by fetched tensor: the feed that it is, or -1
  int64_t handle_ = 0;    // of the session; 0: there is nothing to run but what is fed
};

/// Makes a session and its graph the default of this thread while it lives. They end in reverse order, else the graph
/// gets the error "Nesting violated for default stack of Session objects".
class AsDefaultSession : Scope {
 public:
  [[nodiscard]] explicit AsDefaultSession(Session& session, Nesting nesting = Nesting::kEnforced);
  ~AsDefaultSession();

 private:
  Session& session_;
  const Nesting nesting_;
  AsDefault graph_;
};

/// A session that is the default of its thread, with its graph, until Close or its end. A second open one warns on
/// standard error.
class InteractiveSession : public Session {
 public:
  explicit InteractiveSession(Graph& graph = Graph::Default(), const ConfigProto& config = {});
  explicit InteractiveSession(const ConfigProto& config) : InteractiveSession(Graph::Default(), config) {}
  ~InteractiveSession();
  Status Close();

 private:
  std::optional<AsDefaultSession> default_;
};

/// Runs in `session`, or the default one; FailedPrecondition with TensorFlow's text when there is none.
Result<Tensor> Eval(const Fetch& fetch, const Feeds& feeds = {}, Session* session = nullptr);
Status RunOperation(const Operation& operation, const Feeds& feeds = {}, Session* session = nullptr);
/// Sets a variable by running its initializer with `value` fed as the initial value (TensorFlow's Variable.load).
Status Load(const Variable& variable, const Literal& value, Session* session = nullptr);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SESSION_SESSION_H_
