// Names of the ops whose nodes core creates itself.
#ifndef WEIR_CORE_OP_OP_NAMES_H_
#define WEIR_CORE_OP_OP_NAMES_H_

namespace weir::op {

inline constexpr char kArgOp[] = "_Arg";
inline constexpr char kCastOp[] = "Cast";
inline constexpr char kConstOp[] = "Const";
inline constexpr char kEnterOp[] = "Enter";
inline constexpr char kIdentityOp[] = "Identity";
inline constexpr char kMergeOp[] = "Merge";
inline constexpr char kNextIterationOp[] = "NextIteration";
inline constexpr char kPlaceholderOp[] = "Placeholder";
inline constexpr char kRecvOp[] = "_Recv";
inline constexpr char kRetvalOp[] = "_Retval";
inline constexpr char kSendOp[] = "_Send";
inline constexpr char kSwitchOp[] = "Switch";

}  // namespace weir::op

#endif  // WEIR_CORE_OP_OP_NAMES_H_
