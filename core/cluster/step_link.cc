#include "core/cluster/step_link.h"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/worker_messages.h"

namespace weir::cluster {

Result<SentValue> EncodeValue(std::string_view key, const runtime::Message& message) {
  WireRequest wire;
  wire.method = Method::kSendTensor;
  wire.key = key;
  wire.dead = message.dead;
  std::vector<Tensor> values;
  if (message.value.valid()) values.push_back(message.value);
  SentValue sent;
  WEIR_ASSIGN(sent.tensors, OutgoingTensors::Make(std::move(values)));
  wire.tensors = sent.tensors.heads();
  WEIR_ASSIGN(sent.meta, Encode(wire));
  return sent;
}

Result<CameValue> DecodeValue(uint32_t method, std::string_view meta, std::span<const uint64_t> sizes, const void* body,
                              const std::shared_ptr<ByteBudget>& budget) {
  if (method != static_cast<uint32_t>(Method::kSendTensor)) {
    return InvalidArgument("{} came along with a call, wanted a value", NameOf(static_cast<Method>(method)));
  }
  WEIR_ASSIGN(WireRequest wire, DecodeRequest(method, meta));
  if (sizes.size() > (wire.dead ? 0u : 1u)) return InvalidArgument("{} values came for one key", sizes.size());
  WEIR_ASSIGN(IncomingTensors tensors, IncomingTensors::Make(wire.tensors, sizes, budget));
  const auto* from = static_cast<const std::byte*>(body);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 0) std::memcpy(tensors.to(i), from, sizes[i]);
    from += sizes[i];
  }
  WEIR_ASSIGN(std::vector<Tensor> values, tensors.Take());
  CameValue came{std::move(wire.key), {Tensor(), wire.dead}};
  if (!values.empty()) came.message.value = std::move(values.front());
  return came;
}

}  // namespace weir::cluster
