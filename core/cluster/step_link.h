// Values of a step that go along the call of a part.
#ifndef WEIR_CORE_CLUSTER_STEP_LINK_H_
#define WEIR_CORE_CLUSTER_STEP_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/wire_tensors.h"
#include "core/runtime/rendezvous.h"

namespace weir::cluster {

/// One end of the call by which the master's task has another task run a part. Both give each other the values of the
/// step by it, in messages that nobody answers: one is lost only with the call, which ends the step. A value that is
/// too large stays at its sender, which tells that it may be asked for. The functions are thread-safe.
struct StepLink {
  TaskName own, other;
  /// Gives `other` a value. One that is neither dead nor valid says that it may ask. False: the value is too large, or
  /// of a kind that does not cross.
  std::function<bool(std::string_view key, const runtime::Message& message)> send;
  /// A value of `other` has come.
  std::function<void(std::string_view key, runtime::Message message)> taken;
};

/// A value as a message of a call.
struct SentValue {
  std::string meta;
  OutgoingTensors tensors;
};
/// The errors of OutgoingTensors.
Result<SentValue> EncodeValue(std::string_view key, const runtime::Message& message);

struct CameValue {
  std::string key;
  runtime::Message message;
};
/// `body`: the bodies one after the other, of these sizes. InvalidArgument for what is no value; ResourceExhausted if
/// the budget or memory runs out.
Result<CameValue> DecodeValue(uint32_t method, std::string_view meta, std::span<const uint64_t> sizes, const void* body,
                              const std::shared_ptr<ByteBudget>& budget);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_STEP_LINK_H_
