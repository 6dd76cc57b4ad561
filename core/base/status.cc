#include "core/base/status.h"

#include <fmt/format.h>

#include <array>
#include <ostream>

namespace weir {
namespace {
const std::string kEmpty;
}  // namespace

std::string CodeName(Code code) {
  static constexpr std::array<const char*, 17> kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : fmt::format("CODE_{}", static_cast<int>(code));
}

Status::Status(Code code, std::string message) {
  if (code != Code::kOk) state_ = std::make_shared<const State>(State{code, std::move(message), {}, {}});
}

const std::string& Status::message() const { return state_ ? state_->message : kEmpty; }
const std::string& Status::node() const { return state_ ? state_->node : kEmpty; }
const std::string& Status::where() const { return state_ ? state_->where : kEmpty; }

Status Status::WithNode(std::string node, std::string where) const {
  if (ok() || !state_->node.empty()) return *this;
  State state = *state_;
  state.node = std::move(node);
  state.where = std::move(where);
  return Status(std::move(state));
}

Status Status::Prepend(std::string_view text) const {
  if (ok()) return *this;
  State state = *state_;
  state.message.insert(0, text);
  return Status(std::move(state));
}

Status Status::Append(std::string_view text) const {
  if (ok()) return *this;
  State state = *state_;
  state.message.append(text);
  return Status(std::move(state));
}

std::string Status::ToString() const { return ok() ? "OK" : fmt::format("{}: {}", CodeName(code()), message()); }

std::ostream& operator<<(std::ostream& out, const Status& status) { return out << status.ToString(); }

}  // namespace weir
