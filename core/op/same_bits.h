// What an op promises about equal runs.
#ifndef WEIR_CORE_OP_SAME_BITS_H_
#define WEIR_CORE_OP_SAME_BITS_H_

#include <cstdint>
#include <string_view>

#include "core/op/op_def.h"

namespace weir::op {

/// When two runs of an op give equal bits, on one machine with one set of kernels. Kernels that cannot keep the promise
/// decline in a deterministic session (weir_prep_args.deterministic), which also refuses ops of kSeeds without a seed.
enum class SameBits : uint8_t {
  kAlways,     // for equal inputs
  kSeeds,      // for equal inputs and seeds, counted from the session's first run of the node
  kState,      // for equal inputs and equal state: variables, queues, tables, stacks
  kFunctions,  // as the ops of the functions that it calls
  kNever,      // files, clocks, other tasks, the device: nothing is promised
};

/// Follows from the record: seeds, handles, functions, category and `stateful`.
SameBits SameBitsOf(const OpDef& op);

/// "always", "with equal seeds", "with equal state", "as its functions", "not promised".
std::string_view Name(SameBits promise);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_SAME_BITS_H_
