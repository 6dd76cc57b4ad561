#include "core/door/step_messages.h"

#include "core/base/errors.h"
#include "core/proto/parse.h"
#include "core/proto/wire_fields.h"
#include "core/tensor/tensor_content.h"
#include "weir/proto/master.pb.h"

namespace weir::door {
namespace {

using proto::WireFields;

constexpr uint32_t kBytes = 2;  // the wire type

/// Moves the contents of field `number` out of a message and parses the rest.
template <class Message>
Status ParseWithout(std::string_view bytes, uint32_t number, std::string_view what, Message& message,
                    std::vector<std::string_view>& moved) {
  std::string others;
  WireFields fields(bytes);
  for (std::string_view left = bytes; fields.Next(); left = fields.rest()) {
    if (fields.Is(number, kBytes)) {
      moved.push_back(fields.bytes());
    } else {
      others += left.substr(0, left.size() - fields.rest().size());
    }
  }
  return proto::ParseBinary(fields.ok() ? std::string_view(others) : bytes, what, message);
}

void AppendHead(uint32_t number, size_t size, std::string& to) {
  to.push_back(static_cast<char>(number << 3 | kBytes));
  proto::AppendVarint(size, to);
}

size_t HeadSize(size_t size) {
  size_t bytes = 2;
  for (; size >= 0x80; size >>= 7) ++bytes;
  return bytes;
}

/// A message of tensors, each as field 1 or, with a name, within field 1, and of metadata as field 2.
Result<std::string> Reply(const google::protobuf::RepeatedPtrField<std::string>* names, const StepResult& result,
                          std::string_view what) {
  std::vector<TensorPieces> pieces;
  std::vector<size_t> sizes;  // of the fields 1
  size_t total = result.metadata.empty() ? 0 : HeadSize(result.metadata.size()) + result.metadata.size();
  for (size_t i = 0; i < result.fetched.size(); ++i) {
    WEIR_ASSIGN(TensorPieces made, PiecesOf(result.fetched[i]));
    size_t size = made.size();
    if (names != nullptr) {
      const std::string& name = (*names)[static_cast<int>(i)];
      size += HeadSize(made.size()) + HeadSize(name.size()) + name.size();
    }
    total += HeadSize(size) + size;
    sizes.push_back(size);
    pieces.push_back(std::move(made));
  }
  if (total > proto::kMaxMessageBytes) {
    return ResourceExhausted("{} of {} bytes: protobuf allows at most {}", what, total, proto::kMaxMessageBytes);
  }
  std::string reply;
  reply.reserve(total);
  for (size_t i = 0; i < pieces.size(); ++i) {
    AppendHead(1, sizes[i], reply);
    if (names != nullptr) {
      const std::string& name = (*names)[static_cast<int>(i)];
      AppendHead(1, name.size(), reply);
      reply += name;
      AppendHead(2, pieces[i].size(), reply);
    }
    reply += pieces[i].head;
    reply += pieces[i].content;
  }
  if (!result.metadata.empty()) {
    AppendHead(2, result.metadata.size(), reply);
    reply += result.metadata;
  }
  return reply;
}

}  // namespace

Result<StepRequest> ParseStepRequest(std::string_view bytes) {
  StepRequest request;
  const auto message = std::make_shared<tf::RunStepRequest>();
  request.message = message;
  std::vector<std::string_view> feeds;
  WEIR_TRY(ParseWithout(bytes, tf::RunStepRequest::kFeedFieldNumber, "RunStepRequest", *message, feeds));
  for (const std::string_view feed : feeds) {
    auto& [name, tensor] = request.feeds.emplace_back();
    WireFields fields(feed);
    while (fields.Next()) {
      if (fields.Is(tf::NamedTensor::kNameFieldNumber, kBytes)) name = fields.bytes();
      if (fields.Is(tf::NamedTensor::kTensorFieldNumber, kBytes)) tensor = fields.bytes();
    }
    if (!fields.ok()) return InvalidArgument("RunStepRequest: a feed of {} bytes cannot be parsed", feed.size());
  }
  return request;
}

Result<CallableRequest> ParseCallableRequest(std::string_view bytes) {
  CallableRequest request;
  const auto message = std::make_shared<tf::RunCallableRequest>();
  request.message = message;
  WEIR_TRY(ParseWithout(bytes, tf::RunCallableRequest::kFeedFieldNumber, "RunCallableRequest", *message,
                        request.feeds));
  return request;
}

Result<std::string> StepReply(const tf::RunStepRequest& request, const StepResult& result) {
  return Reply(&request.fetch(), result, "RunStepResponse");
}

Result<std::string> CallableReply(const StepResult& result) { return Reply(nullptr, result, "RunCallableResponse"); }

}  // namespace weir::door
