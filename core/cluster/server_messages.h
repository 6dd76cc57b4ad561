// The calls of a server that TensorFlow's MasterService lacks: "ServerReport", "ServerProfile" and "EndJob".
#ifndef WEIR_CORE_CLUSTER_SERVER_MESSAGES_H_
#define WEIR_CORE_CLUSTER_SERVER_MESSAGES_H_

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/cluster/server.h"

namespace weir::cluster {

inline constexpr std::string_view kServerReport = "ServerReport", kServerProfile = "ServerProfile", kEndJob = "EndJob";

struct ReportRequest {
  std::chrono::milliseconds peer_limit{0};  // for asking peers; 0 = none are asked
  std::string padding;                      // to be sent back
};
Result<std::string> WriteView(const ServerView& view, std::string padding);
Result<ReportRequest> ReadReportRequest(std::string_view bytes);
/// The time to record for.
Result<std::chrono::milliseconds> ReadProfileRequest(std::string_view bytes);
Result<std::string> WriteProfile(const ServerProfile& profile);
Result<std::string> WriteEndJob(bool ends);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_SERVER_MESSAGES_H_
