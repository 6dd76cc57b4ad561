#include "core/kernel/resource.h"

#include <gtest/gtest.h>

namespace weir::kernel {
namespace {

TEST(ResourceScope, SharesByKey) {
  ResourceScope scope;
  const ResourceKey w{"/device:CPU:0", "localhost", "w"};
  EXPECT_EQ(scope.Find(w), nullptr);
  const auto first = *scope.GetOrCreate(w, DType::kFloat);
  EXPECT_FALSE(first->value.valid()) << "uninitialised until assigned";
  EXPECT_EQ(*scope.GetOrCreate(w, DType::kFloat), first);
  EXPECT_EQ(scope.Find(w), first);
  EXPECT_NE(*scope.GetOrCreate({"/device:CPU:1", "localhost", "w"}, DType::kFloat), first);
  EXPECT_EQ(scope.size(), 2u);
}

TEST(ResourceScope, TypeIsFixed) {
  ResourceScope scope;
  ASSERT_TRUE(scope.GetOrCreate({"d", "c", "w"}, DType::kFloat).ok());
  const Status status = scope.GetOrCreate({"d", "c", "w"}, DType::kInt32).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "variable 'c/w' on d holds float, wanted int32");
}

TEST(ResourceScope, ClearsOneContainerOrAll) {
  ResourceScope scope;
  for (const char* container : {"a", "b"}) {
    for (const char* name : {"v", "w"}) ASSERT_TRUE(scope.GetOrCreate({"d", container, name}, DType::kFloat).ok());
  }
  const auto held = scope.Find({"d", "a", "v"});
  scope.Clear("a");
  EXPECT_EQ(scope.size(), 2u);
  EXPECT_EQ(scope.Find({"d", "a", "v"}), nullptr);
  EXPECT_NE(held, nullptr) << "whoever holds it keeps it";
  scope.Clear();
  EXPECT_EQ(scope.size(), 0u);
}

}  // namespace
}  // namespace weir::kernel
