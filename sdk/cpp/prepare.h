// A kernel's view of a node during prepare: attributes, operands, and the kernel's requests.
#ifndef WEIR_SDK_CPP_PREPARE_H_
#define WEIR_SDK_CPP_PREPARE_H_

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sdk/abi/kernel.h"
#include "sdk/cpp/status.h"
#include "sdk/cpp/views.h"

namespace weir::sdk {

/// The host table; null before init.
inline const weir_host*& HostTable() {
  static const weir_host* host = nullptr;
  return host;
}

/// Attributes and name of a node. A look-up returns `otherwise` if the node has no such attribute of that type.
class Node {
 public:
  explicit Node(const weir_node* node) : node_(node) {}

  std::string_view name() const { return ToView(HostTable()->node_name(node_)); }
  std::string_view op() const { return ToView(HostTable()->node_op(node_)); }

  int64_t Int(std::string_view attr, int64_t otherwise = 0) const {
    const auto value = Find(attr, WEIR_VALUE_INT);
    return value ? value->i : otherwise;
  }
  bool Bool(std::string_view attr, bool otherwise = false) const {
    const auto value = Find(attr, WEIR_VALUE_BOOL);
    return value ? value->i != 0 : otherwise;
  }
  double Float(std::string_view attr, double otherwise = 0) const {
    const auto value = Find(attr, WEIR_VALUE_FLOAT);
    return value ? value->f : otherwise;
  }
  /// Lives as long as the node.
  std::string_view String(std::string_view attr, std::string_view otherwise = {}) const {
    const auto value = Find(attr, WEIR_VALUE_STRING);
    return value ? ToView(value->s) : otherwise;
  }
  uint32_t DType(std::string_view attr, uint32_t otherwise = WEIR_INVALID) const {
    const auto value = Find(attr, WEIR_VALUE_DTYPE);
    return value ? static_cast<uint32_t>(value->i) : otherwise;
  }
  /// Lives as long as the node.
  std::span<const int64_t> Ints(std::string_view attr) const {
    const auto value = Find(attr, WEIR_VALUE_INT | WEIR_VALUE_LIST);
    return value ? std::span<const int64_t>(value->ints, value->count) : std::span<const int64_t>();
  }

  const weir_node* get() const { return node_; }

 private:
  std::optional<weir_attr> Find(std::string_view attr, uint32_t type) const {
    weir_attr value{};
    value.struct_size = sizeof value;
    if (HostTable()->attr(node_, Str(attr), &value) != WEIR_OK || value.type != type) return std::nullopt;
    return value;
  }

  const weir_node* node_;
};

/// One specialisation of a node. Shapes are concrete; the op's shape function sets those of the outputs.
class Prep {
 public:
  Prep(const weir_prep_args& args, const Error& error) : args_(args), node_(args.node), error_(error) {}

  const Node& node() const { return node_; }
  const Error& error() const { return error_; }
  /// The device that will run the node; may be null in Estimate.
  weir_device* device() const { return args_.device; }
  uint32_t inputs() const { return args_.input_count; }
  uint32_t outputs() const { return args_.output_count; }
  const weir_operand& input(uint32_t i) const { return *args_.inputs[i]; }
  const weir_operand& output(uint32_t i) const { return *args_.outputs[i]; }
  const weir_shape& shape(uint32_t i) const { return args_.inputs[i]->shape; }
  int64_t size(uint32_t i) const { return SizeOf(shape(i)); }
  uint64_t max_tiles() const { return args_.max_tiles; }
  const weir_prep_args& args() const { return args_; }

  /// The value of an integer input that is a constant.
  std::optional<Integers> Constant(uint32_t i) const {
    const weir_tensor* value = input(i).value;
    if (value == nullptr || value->buf.host == nullptr) return std::nullopt;
    return Integers(value->buf.host, value->dtype, {value->rank, 0, value->dims});
  }

  /// Requests scratch memory for each call.
  void Scratch(uint64_t bytes, uint64_t alignment = 64) {
    scratch_bytes_ = bytes;
    scratch_alignment_ = alignment;
  }
  /// The call may be split into up to `n` tiles; Run does tiles [env.tile_begin(), env.tile_end()).
  void Tiles(uint64_t n) { tiles_ = std::max<uint64_t>(1, std::min(n, args_.max_tiles)); }
  uint64_t tiles() const { return tiles_; }
  /// The output may reuse the input's buffer if nothing else uses it.
  void MayAlias(uint32_t input, uint32_t output) { aliases_.push_back({input, output, WEIR_ALIAS_MAY, 0}); }
  /// The output aliases the input: a variable updated in place, a view.
  void MustAlias(uint32_t input, uint32_t output) { aliases_.push_back({input, output, WEIR_ALIAS_MUST, 0}); }

  const std::vector<weir_alias>& aliases() const { return aliases_; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t scratch_alignment() const { return scratch_alignment_; }

 private:
  const weir_prep_args& args_;
  Node node_;
  Error error_;
  uint64_t scratch_bytes_ = 0;
  uint64_t scratch_alignment_ = 0;
  uint64_t tiles_ = 1;
  std::vector<weir_alias> aliases_;
};

/// One call of a prepared kernel.
class Env {
 public:
  Env(const weir_env* env, uint64_t tiles) : env_(env), tiles_(tiles) {}

  Error error() const { return Error(env_->error); }
  /// The part of [0, n) that this call's tiles cover.
  std::pair<int64_t, int64_t> Range(int64_t n) const {
    if (tiles_ <= 1) return {0, n};
    const auto at = [&](uint64_t tile) { return static_cast<int64_t>(static_cast<__int128>(n) * tile / tiles_); };
    return {at(env_->tile_begin), at(env_->tile_end)};
  }
  weir_stream* stream() const { return env_->stream; }
  uint64_t native_stream() const { return env_->native_stream; }

 private:
  const weir_env* env_;
  uint64_t tiles_;
};

/// The cost of a call, for kernels with `static Cost Estimate(const Prep&)` or `Estimate(const Prep&, const
/// weir_profile*)`; the profile of the device may be null. A finite whole_ns is the total time; otherwise the profile's
/// formula computes it from the other fields.
struct Cost {
  double flops = 0;
  double bytes = 0;
  double fixed_ns = 0;
  double whole_ns = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_PREPARE_H_
