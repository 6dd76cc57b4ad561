// The messages of steps. Their tensors are not part of message objects, so that each is copied once.
#ifndef WEIR_CORE_DOOR_STEP_MESSAGES_H_
#define WEIR_CORE_DOOR_STEP_MESSAGES_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::tf {
class RunCallableRequest;
class RunStepRequest;
}  // namespace weir::tf

namespace weir::door {

/// A RunStepRequest.
struct StepRequest {
  std::shared_ptr<const tf::RunStepRequest> message;            // without `feed`; never null
  std::vector<std::pair<std::string, std::string_view>> feeds;  // name, TensorProto within the parsed bytes
};
/// `bytes` must outlive the result. InvalidArgument for malformed bytes.
Result<StepRequest> ParseStepRequest(std::string_view bytes);

/// A RunCallableRequest.
struct CallableRequest {
  std::shared_ptr<const tf::RunCallableRequest> message;  // without `feed`; never null
  std::vector<std::string_view> feeds;                    // TensorProtos within the parsed bytes
};
/// As ParseStepRequest.
Result<CallableRequest> ParseCallableRequest(std::string_view bytes);

/// What a step gave.
struct StepResult {
  std::vector<Tensor> fetched;
  std::string metadata;  // RunMetadata; empty: not asked for
};
/// A RunStepResponse with what the request fetches. ResourceExhausted above protobuf's limit.
Result<std::string> StepReply(const tf::RunStepRequest& request, const StepResult& result);
/// A RunCallableResponse.
Result<std::string> CallableReply(const StepResult& result);

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_STEP_MESSAGES_H_
