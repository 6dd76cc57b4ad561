// Recurrent networks over sequences, under the names of TensorFlow 1.x's tf.nn.
#ifndef WEIR_CORE_CLIENT_RNN_RNN_H_
#define WEIR_CORE_CLIENT_RNN_RNN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/rnn/rnn_cell.h"

namespace weir {

struct RnnOptions {
  /// int32 or int64 [batch]: steps of each example. Behind them outputs are zeros and the state stays. Empty = all.
  std::optional<Operand> sequence_length = {};
  List<Output> initial_state = {};  // empty = zeros of type `dtype`
  DType dtype = DType::kInvalid;    // needed without initial_state
  int64_t parallel_iterations = 32;
  bool swap_memory = false;
  bool time_major = false;      // inputs and outputs are [time, batch, …]
  std::string_view scope = {};  // of variables and nodes; empty = "rnn"
};
struct RnnResult {
  Output outputs;      // [batch, time, output_size]
  List<Output> state;  // after the last step of each example
};

/// Runs a cell over the steps of `inputs` [batch, time, features], as a loop. Variables: `rnn/<cell>/…`. Nodes:
/// `rnn/transpose_1`, `rnn/while/Exit_3` … InvalidArgument "If there is no initial_state, you must give a dtype."
RnnResult DynamicRnn(RnnCell& cell, const Operand& inputs, const RnnOptions& options = {},
                     Where where = Where::current());

struct StaticRnnResult {
  List<Output> outputs;  // one for each input
  List<Output> state;
};
/// The same for a list of steps, each [batch, features], without a loop. InvalidArgument "inputs must not be empty".
StaticRnnResult StaticRnn(RnnCell& cell, const std::vector<Operand>& inputs, const RnnOptions& options = {},
                          Where where = Where::current());

struct BidirectionalOptions {
  std::optional<Operand> sequence_length = {};
  List<Output> initial_state_fw = {};
  List<Output> initial_state_bw = {};
  DType dtype = DType::kInvalid;
  int64_t parallel_iterations = 32;
  bool swap_memory = false;
  bool time_major = false;
  std::string_view scope = {};  // empty = "bidirectional_rnn"
};
struct BidirectionalResult {
  RnnResult forward;
  RnnResult backward;  // outputs in the order of the inputs
};
/// One cell from the first step to the last, another from the last step of each example to its first. Variables:
/// `bidirectional_rnn/fw/<cell>/…`, `bidirectional_rnn/bw/<cell>/…`.
BidirectionalResult BidirectionalDynamicRnn(RnnCell& cell_fw, RnnCell& cell_bw, const Operand& inputs,
                                            const BidirectionalOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_RNN_RNN_H_
