#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/server.h"
#include "core/config/settings.h"
#include "core/config/value.h"
#include "core/door/transports.h"
#include "tools/weir/cluster_commands.h"

namespace weir::cli {
namespace {

using cluster::Clock;
using std::chrono::milliseconds;

constexpr double kMicrosPerMs = 1000;
constexpr double kMostClockMs = 1000;  // difference of clocks beyond the time that the answer took

/// The verdict on a way between two processes, in the words of users.
std::string VerdictOf(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
    case Code::kNotFound:
      return "address or DNS failed";
    case Code::kUnavailable:
      return "refused or unreachable";
    case Code::kDeadlineExceeded:
      return "no answer";
    case Code::kUnauthenticated:
      return "wrong token";
    case Code::kPermissionDenied:
      return "not allowed";
    case Code::kFailedPrecondition:
      return "wrong version or cluster";
    case Code::kAborted:
      return "other incarnation";
    case Code::kUnimplemented:
    case Code::kDataLoss:
      return "wrong protocol";
    default:
      return "failed";
  }
}

int64_t MicrosSinceEpoch() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Prints and counts verdicts.
class Verdicts {
 public:
  Verdicts(const Console& console, nlohmann::ordered_json& report) : console_(console), report_(report) {
    report_["ways"] = nlohmann::ordered_json::array();
  }
  void Add(const std::string& from, const std::string& to, const std::string& address, const Status& status,
           const std::string& detail) {
    ++ways_;
    bad_ += status.ok() ? 0 : 1;
    const std::string verdict = VerdictOf(status);
    report_["ways"].push_back({{"from", from},
                               {"to", to},
                               {"address", address},
                               {"ok", status.ok()},
                               {"verdict", verdict},
                               {"detail", status.ok() ? detail : status.message()}});
    console_.Print(fmt::format("{} -> {} ({}): {}{}", from, to, address, verdict,
                               status.ok() ? (detail.empty() ? "" : ", " + detail)
                                           : ": " + OnOneLine(status.message())));
  }
  Status Finish() const {
    if (bad_ == 0) return Status();
    return FailedPrecondition("{} of {} ways between the tasks do not work", bad_, ways_);
  }

 private:
  const Console& console_;
  nlohmann::ordered_json& report_;
  int ways_ = 0, bad_ = 0;
};

}  // namespace

Status Doctor(const DoctorOptions& options, const Console& console, nlohmann::ordered_json& report) {
  WEIR_ASSIGN(const auto runtime, session::Runtime::For({}));
  WEIR_ASSIGN(const config::Loaded loaded, config::Load(options.sources));
  WEIR_ASSIGN(const config::Config config, loaded.settings.Build());
  WEIR_ASSIGN(const auto cluster, cluster::ClusterSpec::ParseFlag(config.cluster.spec.value()));
  WEIR_ASSIGN(const auto transport, door::TransportOf("weir", *runtime));
  WEIR_ASSIGN(const cluster::LocalEnd self, cluster::EndFrom(config.cluster, {}, cluster::RandomId()));
  const milliseconds limit(options.limit_ms);
  Verdicts verdicts(console, report);
  for (const cluster::TaskName& task : cluster.tasks()) {
    WEIR_ASSIGN(const std::string address, cluster.TaskAddress(task.job, task.index));
    const auto master = transport->ConnectMaster(address, self);
    const int64_t asked = MicrosSinceEpoch();
    const auto ask = [&]() -> Result<cluster::ServerView> {
      if (!master.ok()) return master.status();
      return cluster::AskServer(**master, milliseconds(0), Clock::now() + limit);
    };
    const Result<cluster::ServerView> view = ask();
    const int64_t answered = MicrosSinceEpoch();
    const auto check = [&]() -> Status {
      WEIR_TRY(view.status());
      if (view->task != task) return FailedPrecondition("{} answers there", view->task.ToString());
      return cluster::TryLargeMessage(**master, Clock::now() + limit);
    };
    const Status found = check();
    const double took = static_cast<double>(answered - asked) / kMicrosPerMs;
    const double middle = static_cast<double>(asked + answered) / 2;
    const double clock = (static_cast<double>(view->clock_us) - middle) / kMicrosPerMs;
    verdicts.Add("here", task.ToString(), address, found,
                 fmt::format("{:.1f} ms, weir {}, clock {:+.1f} ms{}{}", took, view->version, clock,
                             view->version == WEIR_VERSION ? "" : ", another version than here",
                             std::abs(clock) - took < kMostClockMs ? "" : ", clocks differ: times in logs do, too"));
    if (!found.ok()) continue;
    const milliseconds all = limit * 2 * static_cast<int>(cluster.tasks().size());
    const Result<cluster::ServerView> peers = cluster::AskServer(**master, limit, Clock::now() + all + limit);
    if (!peers.ok()) {
      verdicts.Add(task.ToString(), "all", address, peers.status(), {});
      continue;
    }
    for (const cluster::PeerView& peer : peers->peers) {
      verdicts.Add(task.ToString(), peer.task.ToString(), peer.address, peer.status,
                   fmt::format("{:.1f} ms{}", static_cast<double>(peer.took.count()) / kMicrosPerMs,
                               peer.draining ? ", draining" : ""));
    }
  }
  return verdicts.Finish();
}

}  // namespace weir::cli
