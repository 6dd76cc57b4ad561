// Initial values of variables from a checkpoint.
#ifndef WEIR_CORE_CLIENT_SAVER_INIT_FROM_CHECKPOINT_H_
#define WEIR_CORE_CLIENT_SAVER_INIT_FROM_CHECKPOINT_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/client/variables/variable.h"

namespace weir {

/// What a tensor of a checkpoint initializes: a variable, or by name one of GetVariable, or a scope ("layer/").
class InitTarget {
 public:
  InitTarget(const Variable& variable) : target_(variable) {}            // NOLINT(google-explicit-constructor)
  InitTarget(const char* name) : target_(std::string(OrEmpty(name))) {}  // NOLINT(google-explicit-constructor)
  InitTarget(std::string name) : target_(std::move(name)) {}             // NOLINT(google-explicit-constructor)
  const std::variant<Variable, std::string>& target() const { return target_; }

 private:
  std::variant<Variable, std::string> target_;
};

/// By name in the checkpoint. A scope there ("old/", or "/" for all) goes with one here: `{{"old/", "new/"}}`.
using AssignmentMap = std::vector<std::pair<std::string, InitTarget>>;

/// Replaces the initializers of variables by reads of a checkpoint, or of the newest one of a folder. Variables keep
/// their shapes. TensorFlow's train.init_from_checkpoint, with its texts: "Tensor zz is not found in PATH checkpoint
/// {'v': [2, 2]}", "Shape of variable q:0 ((3,)) doesn't match with shape of tensor v ([2, 2]) from checkpoint reader."
/// No initializer is replaced if one entry is wrong. Initial values that other variables took from these stay.
Status InitFromCheckpoint(const std::string& path_or_dir, const AssignmentMap& assignments,
                          Graph& graph = Graph::Default(), Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_INIT_FROM_CHECKPOINT_H_
