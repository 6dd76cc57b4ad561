// Requests, replies and traces between tasks. What is decoded can be encoded again and gives the same; memory for
// tensors is taken only if it fits the budget, and tensors of the right sizes are whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/cluster/step_link.h"
#include "core/cluster/step_traces.h"
#include "core/cluster/wire_tensors.h"
#include "core/cluster/worker_messages.h"

namespace {

using namespace weir;
using namespace weir::cluster;

constexpr uint64_t kBudget = 1 << 20;

void Check(bool good) {
  if (!good) std::abort();
}

/// Fills tensors of these heads with the bytes.
void Fill(const std::vector<TensorHead>& heads, const std::vector<uint64_t>& sizes, std::string_view bytes) {
  const auto budget = std::make_shared<ByteBudget>(kBudget);
  {
    Result<IncomingTensors> made = IncomingTensors::Make(heads, sizes, budget);
    Check(budget->used() <= kBudget);
    if (!made.ok()) return;
    for (size_t i = 0; i < made->size(); ++i) {
      std::byte* const to = made->to(i);
      for (uint64_t at = 0; to != nullptr && at < sizes[i]; ++at) {
        to[at] = bytes.empty() ? std::byte{0} : static_cast<std::byte>(bytes[at % bytes.size()]);
      }
    }
    const Result<std::vector<Tensor>> taken = made->Take();
    if (taken.ok()) Check(taken->size() == heads.size());
  }
  Check(budget->used() == 0);
}

/// A value along a call, if there are bytes for its body.
void TakeAlong(std::string_view meta, const std::vector<uint64_t>& sizes, std::string_view body) {
  uint64_t total = 0;
  for (const uint64_t size : sizes) {
    if (__builtin_add_overflow(total, size, &total)) return;
  }
  if (total > body.size()) return;
  const auto budget = std::make_shared<ByteBudget>(kBudget);
  const Result<CameValue> came =
      DecodeValue(static_cast<uint32_t>(Method::kSendTensor), meta, sizes, body.data(), budget);
  Check(!came.ok() || !came->message.dead || !came->message.value.valid());
  Check(budget->used() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  if (data[0] % 64 == 62) {
    const Result<trace::StepTrace> trace = DecodeTrace(bytes);
    if (!trace.ok()) return 0;
    const Result<trace::StepTrace> same = DecodeTrace(*EncodeTrace(*trace));
    Check(same.ok() && same->spans.size() == trace->spans.size());
    const trace::StepTrace merged = MergeTraces({{{"ps", 0}, 1000, *trace}, {{"ps", 1}, 0, *same}}, 1);
    for (const trace::Span& span : merged.spans) Check(0 <= span.start_ns && span.start_ns <= span.end_ns);
    return 0;
  }
  std::vector<TensorHead> heads;
  if (data[0] % 64 != 63) {
    const Result<WireRequest> request = DecodeRequest(data[0] % 64, bytes);
    if (!request.ok()) return 0;
    const Result<std::string> again = Encode(*request);
    Check(again.ok());
    const Result<WireRequest> same = DecodeRequest(data[0] % 64, *again);
    Check(same.ok() && same->tensors == request->tensors && same->key == request->key && same->step == request->step);
    heads = request->tensors;
  } else {
    const Result<WireReply> reply = DecodeReply(bytes);
    if (!reply.ok()) return 0;
    const Result<std::string> again = Encode(*reply);
    Check(again.ok());
    const Result<WireReply> same = DecodeReply(*again);
    Check(same.ok() && same->tensors == reply->tensors && same->status.code() == reply->status.code());
    heads = reply->tensors;
  }
  // The right sizes where there is one, else one of the input.
  std::vector<uint64_t> sizes;
  for (const TensorHead& head : heads) {
    const uint64_t each = SizeOf(head.dtype);
    uint64_t wanted = data[1];
    if (each != 0 && __builtin_mul_overflow(static_cast<uint64_t>(head.shape.elements()), each, &wanted)) wanted = 0;
    sizes.push_back(wanted);
  }
  Fill(heads, sizes, bytes);
  TakeAlong(bytes, sizes, bytes);
  if (!sizes.empty()) ++sizes[0];
  Fill(heads, sizes, bytes);
  return 0;
}
