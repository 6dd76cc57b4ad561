#include "core/client/session/session_interface.h"

#include <utility>

#include "core/client/graph/graph_internal.h"
#include "core/client/session/traced_run_internal.h"
#include "core/session/reports.h"

namespace weir {
namespace {

class InProcessSession final : public SessionInterface {
 public:
  explicit InProcessSession(std::unique_ptr<session::Session> session) : session_(std::move(session)) {}

  Result<std::vector<Tensor>> Run(std::span<const session::Feed> feeds, Names fetches, Names targets,
                                  const session::RunOptions& options, session::RunReport* report) override {
    const auto run = [&](const session::RunOptions& traced, session::RunReport* written) {
      return session_->Run(feeds, fetches, targets, traced, written);
    };
    return RunTraced(tracer_.get(), options, report, run);
  }
  Result<session::CallableHandle> MakeCallable(const session::CallableOptions& options) override {
    return session_->MakeCallable(options);
  }
  Status RunCallable(session::CallableHandle handle, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                     const session::RunOptions& options, session::RunReport* report) override {
    const auto run = [&](const session::RunOptions& traced, session::RunReport* written) {
      return session_->RunCallable(handle, feeds, fetches, traced, written);
    };
    return RunTraced(tracer_.get(), options, report, run);
  }
  Status ReleaseCallable(session::CallableHandle handle) override { return session_->ReleaseCallable(handle); }
  Result<std::string> PRunSetup(Names feeds, Names fetches, Names targets) override {
    return session_->PRunSetup(feeds, fetches, targets);
  }
  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const session::Feed> feeds,
                                   Names fetches) override {
    return session_->PRun(handle, feeds, fetches);
  }
  Status Close() override { return session_->Close(); }
  std::vector<session::DeviceAttributes> ListDevices() const override { return session_->ListDevices(); }
  session::DeviceReport ReportDevices() const override { return session_->ReportDevices(); }
  session::Placement ReportPlacement() const override { return session_->ReportPlacement(); }
  Result<std::string> ExplainPlacement(std::span<const session::Feed> feeds, Names fetches, Names targets) override {
    WEIR_ASSIGN(const place::Explanation why, session_->ExplainPlacement(feeds, fetches, targets));
    return place::ToText(why);
  }
  std::string ReportMemory() const override { return session::ToText(session_->ReportMemory()); }
  void TraceTo(std::shared_ptr<session::Tracer> tracer) override { tracer_ = std::move(tracer); }
  session::Session* in_process() override { return session_.get(); }

 private:
  const std::unique_ptr<session::Session> session_;
  std::shared_ptr<session::Tracer> tracer_;  // null: none
};

}  // namespace

Result<std::unique_ptr<SessionInterface>> InProcess(Graph& graph, session::SessionOptions options,
                                                    std::shared_ptr<session::Runtime> runtime) {
  if (!runtime) {
    WEIR_ASSIGN(runtime, session::Runtime::Default());
  }
  WEIR_ASSIGN(std::unique_ptr<session::Session> made,
              session::Session::Make(std::move(runtime), Internals(graph).definition, std::move(options)));
  return std::unique_ptr<SessionInterface>(std::make_unique<InProcessSession>(std::move(made)));
}

}  // namespace weir
