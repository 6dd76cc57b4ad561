// Calls of workers and masters as bytes: what a transport carries as meta.
#ifndef WEIR_CORE_CLUSTER_WORKER_MESSAGES_H_
#define WEIR_CORE_CLUSTER_WORKER_MESSAGES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/worker.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir::cluster {

/// The numbers are part of the protocol.
enum class Method : uint32_t {
  kGetStatus = 1,
  kCreateSession = 2,
  kDeleteSession = 3,
  kRegisterPart = 4,  // one body: a GraphDef
  kDeregisterPart = 5,
  kRunStep = 6,     // bodies: the feeds; of the reply, the fetches
  kRecvTensor = 7,  // body of the reply: the value unless it is dead
  kCancelStep = 8,
  kCleanupStep = 9,
  kResetContainers = 10,
  kGetTransports = 11,
  kSendTensor = 12,   // body: the value unless it is dead
  kHoldSession = 13,  // has no reply: the session ends with the call
  kMeasure = 14,      // one body, which the reply repeats
  kGetKernels = 15,
  kKeepSession = 16,  // no reply while the task knows the session: its master lives; a task that misses it drops it
  kTakeTrace = 20,    // body of the reply: a trace (step_traces.h)
  kMaster = 32,       // one body: the request of MasterService; of the reply, its response
};
/// "RunStep"; "method 77" for an unknown one.
std::string NameOf(Method method);

/// Type and shape of a tensor whose bytes are a body.
struct TensorHead {
  DType dtype = DType::kInvalid;
  Shape shape;
  bool operator==(const TensorHead&) const = default;
};

/// Another transport by which a task can be reached.
struct Alternate {
  std::string scheme, address;
  bool operator==(const Alternate&) const = default;
};

/// A request; each method uses some of the fields.
struct WireRequest {
  Method method = Method::kGetStatus;
  uint64_t session = 0, part = 0, step = 0, request = 0;
  bool alone = false, trace = false;
  bool forget = false;  // StepRequest::forgotten is set
  TaskName link = {};   // the task that calls, if values of the step go along with the call; else an empty job
  std::string key;
  WorkerSessionSpec spec;
  Status why;
  std::vector<std::string> containers;
  std::vector<TensorHead> tensors;
  bool dead = false;
  std::string master_method;
};

struct WireReply {
  Status status;
  WorkerStatus worker;  // without the task
  PartHandle part;
  std::vector<TensorHead> tensors;
  bool dead = false;
  bool forgotten = false;
  std::vector<Alternate> alternates;
  std::vector<kernel::KernelDescription> kernels;
};

Result<std::string> Encode(const WireRequest& request);
Result<std::string> Encode(const WireReply& reply);

/// Of bytes from another process. InvalidArgument for bytes that are no such message, an unknown method, a tensor of an
/// unknown or reference type or an impossible shape, a reason to cancel that is none, devices whose names or figures no
/// device has, and more than kMostDevices. Unimplemented for a method of a later version.
inline constexpr int kMostDevices = 1024;
Result<WireRequest> DecodeRequest(uint32_t method, std::string_view bytes);
Result<WireReply> DecodeReply(std::string_view bytes);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_WORKER_MESSAGES_H_
