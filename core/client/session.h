// Running graphs: Session with structured fetches and feeds, the default session, eval.
#ifndef WEIR_CORE_CLIENT_SESSION_H_
#define WEIR_CORE_CLIENT_SESSION_H_

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

#include "core/client/graph.h"
#include "core/client/operand.h"
#include "core/client/variable.h"
#include "core/config/config.h"
#include "core/session/session.h"

namespace weir {

/// TensorFlow's names for the configuration of a session:
/// `Session session(graph, ConfigProto{.gpu_options = GPUOptions{.per_process_gpu_memory_fraction = 0.7}})`.
using ConfigProto = config::Config;
using GPUOptions = config::GpuOptions;
using GraphOptions = config::GraphOptions;
using OptimizerOptions = config::OptimizerOptions;

/// What to fetch: a value, an operation (runs, gives nothing), a variable, a name ("add:0" a value, "add" an
/// operation), or any nesting of lists and maps of these: `{a, b}` is a list, `Fetch::Map{{"a", a}}` a map.
class Fetch {
 public:
  using List = std::vector<Fetch>;
  using Map = std::map<std::string, Fetch>;
  Fetch(Output output) : node_(output) {}                // NOLINT(google-explicit-constructor)
  Fetch(Operation operation) : node_(operation) {}       // NOLINT(google-explicit-constructor)
  Fetch(const Variable& variable);                       // NOLINT(google-explicit-constructor)
  Fetch(const char* name) : node_(OrEmpty(name)) {}      // NOLINT(google-explicit-constructor)
  Fetch(std::string name) : node_(std::move(name)) {}    // NOLINT(google-explicit-constructor)
  Fetch(std::initializer_list<Fetch> list) : node_(List(list)) {}
  Fetch(List list) : node_(std::move(list)) {}           // NOLINT(google-explicit-constructor)
  Fetch(Map map) : node_(std::move(map)) {}              // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::convertible_to<const T&, Fetch> Fetch(const std::vector<T>& list)  // NOLINT
      : node_(List(list.begin(), list.end())) {}

  /// A Status: what cannot be fetched, and why.
  using Node = std::variant<Output, Operation, std::string, List, Map, Status>;
  const Node& node() const { return node_; }

 private:
  Node node_;
};

/// What came back, in the shape of what was asked for. An operation gives an invalid tensor.
class Fetched {
 public:
  const Tensor& tensor() const { return tensor_; }
  size_t size() const { return list_.size() + map_.size(); }
  /// Element of a list; one without a tensor beyond its end.
  const Fetched& operator[](size_t i) const;
  /// Entry of a map; one without a tensor when there is none of that key.
  const Fetched& at(const std::string& key) const;
  /// The one number or text that the tensor has, as Tensor::scalar gives it: `*fetched->scalar<float>()`. An error
  /// where T cannot have it, where there are none or several, and for a list or map.
  template <class T>
  Result<T> scalar() const {
    return tensor_.scalar<T>();
  }
  /// The elements; InvalidArgument when their type is not T's.
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

/// Fed values by Output, Variable or name. Flexible literals take the type of what they feed.
class FeedKey {
 public:
  FeedKey(Output output) : output_(output) {}                          // NOLINT(google-explicit-constructor)
  FeedKey(const Variable& variable) : output_(variable.snapshot()) {}  // NOLINT(google-explicit-constructor)
  FeedKey(const char* name) : name_(OrEmpty(name)) {}                  // NOLINT(google-explicit-constructor)
  FeedKey(std::string name) : name_(std::move(name)) {}                // NOLINT(google-explicit-constructor)
  const Output& output() const { return output_; }
  const std::string& name() const { return name_; }

 private:
  Output output_;
  std::string name_;
};
using Feeds = std::vector<std::pair<FeedKey, Literal>>;

class Callable;

/// Runs a graph. Becomes the default session of the thread through AsDefaultSession. Thread-safe for Run while the
/// graph does not change.
class Session {
 public:
  /// A session on `graph` as the configuration's files and variables say. status() says why it cannot run, if so.
  explicit Session(Graph& graph = Graph::Default());
  /// The same under what `config` says: members that were given a value, be it the default, win over all else.
  Session(Graph& graph, const ConfigProto& config);
  /// The same on the default graph: `Session session({.device_count = {{"CPU", 2}}})`.
  explicit Session(const ConfigProto& config) : Session(Graph::Default(), config) {}
  /// With just these options; without a runtime on the devices that the configuration says.
  Session(Graph& graph, session::SessionOptions options, std::shared_ptr<session::Runtime> runtime = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Status& status() const { return status_; }
  Graph& graph() const { return *graph_; }

  /// Errors with the texts that TensorFlow's Python client gives for fetches and feeds that are no part of the graph,
  /// and the session's own otherwise. The first error of building the graph comes first.
  Result<Fetched> Run(const Fetch& fetch, const Feeds& feeds = {});
  /// The same with what was run and where.
  Result<Fetched> Run(const Fetch& fetch, const Feeds& feeds, const session::RunOptions& options,
                      session::RunReport* report);
  /// What runs `fetch` again and again, with values for `feed_list` in its order; names are looked up once.
  Result<Callable> MakeCallable(const Fetch& fetch, const std::vector<FeedKey>& feed_list = {});
  /// Prepares a run whose feeds and fetches come in parts; gives its handle, as "a:0,b:0->add:0//1/;0".
  Result<std::string> PartialRunSetup(const Fetch& fetches, const std::vector<FeedKey>& feeds = {});
  /// A part of such a run: every op runs at most once over all parts (session::Session::PRun).
  Result<Fetched> PartialRun(const std::string& handle, const Fetch& fetch, const Feeds& feeds = {});
  Status Close();
  std::vector<session::DeviceAttributes> ListDevices() const;
  session::DeviceReport ReportDevices() const;
  /// Where the nodes are that the session has run, and why: session::ToText and session::ToJson print it.
  session::Placement Placement() const;
  /// The session below; null when status() is an error.
  session::Session* core() { return core_.get(); }

  /// Forgets what containers hold, in all sessions of this process, and closes these (session::Session::Reset).
  static Status Reset(const std::string& target = {}, const std::vector<std::string>& containers = {});
  /// The innermost default session of this thread, or null.
  static Session* Default();

 private:
  friend class Callable;
  void Open(session::SessionOptions options, std::shared_ptr<session::Runtime> runtime);
  Status CheckUsable() const;

  Graph* graph_;
  Status status_;
  std::atomic<bool> closed_ = false;
  std::unique_ptr<session::Session> core_;
  /// By which callables know that it lives: null from its end on.
  const std::shared_ptr<std::atomic<Session*>> self_ = std::make_shared<std::atomic<Session*>>(this);
};

/// The devices of this process as sessions with the default configuration see them, named without job, replica and
/// task: "/device:CPU:0".
Result<std::vector<session::DeviceAttributes>> ListLocalDevices();

/// A prepared run of a session. Moves, is not copied. Thread-safe like Session::Run.
class Callable {
 public:
  /// One that was not made; FailedPrecondition when it is called, as of one that was moved from or has outlived its
  /// session.
  Callable() = default;
  Callable(Callable&& other) noexcept;
  Callable& operator=(Callable&& other) noexcept;
  ~Callable();

  /// `values` by the feed list: too few leave the rest unfed, further ones are ignored. Errors as those of
  /// Session::Run.
  Result<Fetched> operator()(const std::vector<Literal>& values = {}, const session::RunOptions& options = {},
                             session::RunReport* report = nullptr) const;

 private:
  friend class Session;
  Callable(Session& session, Fetch fetch) : session_(session.self_), fetch_(std::move(fetch)) {}
  void Release();
  std::shared_ptr<const std::atomic<Session*>> session_;
  Fetch fetch_ = Output();
  std::vector<Output> feeds_;
  std::vector<int> fed_;                // by fetched tensor: the feed that it is, or -1
  session::CallableHandle handle_ = 0;  // 0: there is nothing to run but what is fed
};

/// Makes a session (and its graph) the default of this thread while it lives. Those of one thread end in reverse order;
/// one that ends earlier gives its graph the error "Nesting violated for default stack of Session objects".
class AsDefaultSession {
 public:
  [[nodiscard]] explicit AsDefaultSession(Session& session, Nesting nesting = Nesting::kEnforced);
  ~AsDefaultSession();
  AsDefaultSession(const AsDefaultSession&) = delete;
  AsDefaultSession& operator=(const AsDefaultSession&) = delete;

 private:
  Session& session_;
  const Nesting nesting_;
  AsDefault graph_;
};

/// A session that is the default one of its thread, as its graph is, from the start until Close or its end. A second
/// one that is open warns on standard error.
class InteractiveSession : public Session {
 public:
  explicit InteractiveSession(Graph& graph = Graph::Default(), const ConfigProto& config = {});
  explicit InteractiveSession(const ConfigProto& config) : InteractiveSession(Graph::Default(), config) {}
  ~InteractiveSession();
  /// Twice is no error.
  Status Close();

 private:
  std::optional<AsDefaultSession> default_;
};

/// Runs in `session`, or the default one; FailedPrecondition with TensorFlow's text when there is none.
Result<Tensor> Eval(const Fetch& fetch, const Feeds& feeds = {}, Session* session = nullptr);
Status RunOperation(const Operation& operation, const Feeds& feeds = {}, Session* session = nullptr);
/// Sets a variable, as TensorFlow's Variable.load: runs its initializer with `value` fed in the place of its initial
/// value.
Status Load(const Variable& variable, const Literal& value, Session* session = nullptr);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SESSION_H_
