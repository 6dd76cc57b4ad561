// The interface through which a Session runs steps, and its implementation in this process.
#ifndef WEIR_CORE_CLIENT_SESSION_SESSION_INTERFACE_H_
#define WEIR_CORE_CLIENT_SESSION_SESSION_INTERFACE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/client/graph/graph.h"
#include "core/session/call.h"
#include "core/session/reports.h"
#include "core/session/run_options.h"
#include "core/session/session.h"
#include "core/session/tracer.h"

namespace weir {

/// Runs parts of one graph by name. The calls mean the same as those of session::Session. Thread-safe.
class SessionInterface {
 public:
  using Names = std::span<const std::string>;
  virtual ~SessionInterface() = default;

  virtual Result<std::vector<Tensor>> Run(std::span<const session::Feed> feeds, Names fetches, Names targets,
                                          const session::RunOptions& options, session::RunReport* report) = 0;
  virtual Result<session::CallableHandle> MakeCallable(const session::CallableOptions& options) = 0;
  virtual Status RunCallable(session::CallableHandle handle, std::span<const Tensor> feeds,
                             std::vector<Tensor>* fetches, const session::RunOptions& options,
                             session::RunReport* report) = 0;
  virtual Status ReleaseCallable(session::CallableHandle handle) = 0;
  virtual Result<std::string> PRunSetup(Names feeds, Names fetches, Names targets) = 0;
  virtual Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const session::Feed> feeds,
                                           Names fetches) = 0;
  virtual Status Close() = 0;
  virtual std::vector<session::DeviceAttributes> ListDevices() const = 0;
  virtual session::DeviceReport ReportDevices() const = 0;
  virtual session::Placement ReportPlacement() const = 0;
  virtual Result<std::string> ExplainPlacement(std::span<const session::Feed> feeds, Names fetches, Names targets) = 0;
  virtual std::string ReportMemory() const = 0;
  /// Writes later runs to a trace; null ends this. No run may be under way.
  virtual void TraceTo(std::shared_ptr<session::Tracer> tracer) = 0;
  /// The session of this process that does the runs, or null.
  virtual session::Session* in_process() { return nullptr; }
};

/// A session of this process on `graph`, which outlives it, with just these options. Without a runtime: on the devices
/// that the configuration says.
Result<std::unique_ptr<SessionInterface>> InProcess(Graph& graph, session::SessionOptions options,
                                                    std::shared_ptr<session::Runtime> runtime = nullptr);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SESSION_SESSION_INTERFACE_H_
