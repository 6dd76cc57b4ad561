// Merging of devices, names of variable scopes.
#include <gtest/gtest.h>

#include "core/scope/device_merge.h"
#include "core/scope/variable_scopes.h"

namespace weir::scope {
namespace {

std::string Merged(std::string_view inner, std::string_view outer) {
  const Result<std::string> merged = MergeDevices(inner, outer);
  return merged.ok() ? *merged : merged.status().message();
}

TEST(DeviceMerge, each_part_counts_for_itself) {
  EXPECT_EQ(Merged("/cpu:0", "/job:ps"), "/job:ps/device:CPU:0");
  EXPECT_EQ(Merged("/job:worker/task:1", "/job:ps/device:GPU:2"), "/job:worker/task:1/device:GPU:2");
  EXPECT_EQ(Merged("/device:CPU:*", "/job:ps/gpu:2"), "/job:ps/device:CPU:2");
  EXPECT_EQ(Merged("", "/gpu:1"), "/device:GPU:1");
  EXPECT_EQ(Merged("/gpu:1", ""), "/device:GPU:1");
  EXPECT_EQ(Merged("", ""), "");
  EXPECT_NE(Merged("/foo", "").find("/foo"), std::string::npos);
}

TEST(VariableScopes, default_names_count_up_until_the_outer_scope_ends) {
  VariableScopes scopes;
  EXPECT_EQ(scopes.Unique("", "scope"), "scope");
  scopes.Open("scope");
  EXPECT_EQ(scopes.Unique("", "scope"), "scope_1");
  EXPECT_EQ(scopes.Unique("scope", "in"), "in");
  scopes.Open("scope/in");
  scopes.Open("scope_1");
  EXPECT_EQ(scopes.Unique("scope", "in"), "in_1");
  scopes.CloseBelow("scope");
  EXPECT_EQ(scopes.Unique("scope", "in"), "in");
  EXPECT_EQ(scopes.Unique("", "scope"), "scope_2");
  EXPECT_EQ(JoinScopes("", "a"), "a");
  EXPECT_EQ(JoinScopes("a", ""), "a/");
  EXPECT_EQ(JoinScopes("a", "b"), "a/b");
}

TEST(VariableScopes, a_jump_leaves_no_trace) {
  VariableScopes scopes;
  scopes.Open("a");
  const auto before = scopes.Snapshot();
  scopes.Open("a/b");
  scopes.Restore(before);
  EXPECT_EQ(scopes.Unique("a", "b"), "b");
  EXPECT_EQ(scopes.Unique("", "a"), "a_1");
}

}  // namespace
}  // namespace weir::scope
