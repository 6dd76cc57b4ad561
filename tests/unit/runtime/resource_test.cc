#include "core/runtime/resource.h"
#include "core/tensor/resource.h"

#include <gtest/gtest.h>

namespace weir::runtime {
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
  const auto held = scope.Find(ResourceKey{"d", "a", "v"});
  scope.Clear("a");
  EXPECT_EQ(scope.size(), 2u);
  EXPECT_EQ(scope.Find(ResourceKey{"d", "a", "v"}), nullptr);
  EXPECT_NE(held, nullptr) << "whoever holds it keeps it";
  scope.Clear();
  EXPECT_EQ(scope.size(), 0u);
}

TEST(ResourceScope, AVariableThatHoldsItselfIsFreedWithItsScope) {
  for (const bool destroyed : {false, true}) {
    ResourceScope scope;
    const ResourceKey key{"d", "c", "self"};
    auto variable = *scope.GetOrCreate(key, DType::kResource);
    const std::weak_ptr<Variable> held = variable;
    const ResourceHandle handle = HandleOf(key, variable);
    variable->value = Tensor::Scalar(handle);
    variable.reset();
    if (destroyed) {
      ASSERT_TRUE(scope.Destroy(ResourceHandle{"d", "c", "self", 0, std::string(Variable::kTypeName), nullptr}).ok());
    } else {
      scope.Clear();
    }
    EXPECT_EQ(held.use_count(), 1) << "the handle of this test";
  }
}

TEST(ResourceScope, AVariableOfNumbersKeepsItsValueForItsUsers) {
  ResourceScope scope;
  const auto variable = *scope.GetOrCreate({"d", "c", "v"}, DType::kFloat);
  variable->value = Tensor::Scalar(1.0f);
  scope.Clear();
  EXPECT_TRUE(variable->value.valid()) << "work on a device may still read it";
}

class Counter final : public Resource {
 public:
  static constexpr std::string_view kTypeName = "test::Counter";
  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override { return "a counter"; }
  uint64_t MemoryBytes() const override { return held; }
  uint64_t held = 8;

 protected:
  void Clear() override { held = 0; }
};

Result<std::shared_ptr<Resource>> MakeCounter() { return std::shared_ptr<Resource>(std::make_shared<Counter>()); }

TEST(ResourceScope, TypesOfOneKeyDiffer) {
  ResourceScope scope;
  const ResourceKey key{"d", "c", "x"};
  ASSERT_TRUE(scope.GetOrCreate(key, DType::kFloat).ok());
  const Result<ResourceHandle> handle =
      scope.GetOrMake(key, ResourceScope::Sharing::kByName, Counter::kTypeName, MakeCounter);
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(scope.size(), 2u);
  EXPECT_EQ(scope.Variables().size(), 1u);
  EXPECT_EQ(handle->name, "x");
  EXPECT_EQ(scope.GetOrMake(key, ResourceScope::Sharing::kByName, Counter::kTypeName, MakeCounter)->resource,
            handle->resource);
}

TEST(ResourceScope, ResourcesOfNodesHaveNamesOfTheirOwn) {
  ResourceScope scope;
  const ResourceKey key{"d", "c", "node"};
  const auto own = [&] { return *scope.GetOrMake(key, ResourceScope::Sharing::kOwn, Counter::kTypeName, MakeCounter); };
  const ResourceHandle first = own();
  EXPECT_TRUE(first.name.starts_with("_") && first.name.ends_with("_node")) << first.name;
  EXPECT_EQ(own().resource, first.resource);
  EXPECT_NE(scope.GetOrMake(key, ResourceScope::Sharing::kByName, Counter::kTypeName, MakeCounter)->resource,
            first.resource);
  ASSERT_TRUE(scope.Destroy(first).ok());
  EXPECT_NE(own().resource, first.resource) << "made again once it was destroyed";
}

TEST(ResourceScope, HandlesFindTheirResourceAsLongAsItLives) {
  ResourceScope scope, other;
  ResourceHandle handle = scope.Add({"d", "c", "x"}, std::make_shared<Counter>());
  EXPECT_TRUE(scope.Owns(handle));
  EXPECT_FALSE(other.Owns(handle));
  EXPECT_EQ(*scope.Find(handle), handle.resource);
  EXPECT_EQ(other.Find(handle).status().code(), Code::kNotFound);
  ResourceHandle names = handle;
  names.resource.reset();
  EXPECT_EQ(*scope.Find(names), handle.resource);
  ++names.hash_code;
  EXPECT_EQ(scope.Find(names).status().code(), Code::kNotFound) << "another resource had that name";
  ASSERT_TRUE(scope.Destroy(handle).ok());
  EXPECT_EQ(handle.resource->MemoryBytes(), 0u) << "a dead handle keeps no memory";
  const Status gone = scope.Destroy(handle);
  EXPECT_EQ(gone.code(), Code::kNotFound);
  EXPECT_EQ(gone.message(), "Resource c/" + handle.name + "/N4test7CounterE does not exist.");
}

TEST(ResourceScope, HandlesAreDeadOnceTheScopeIsGone) {
  ResourceHandle handle;
  {
    ResourceScope scope;
    handle = scope.Add({"d", "c", "x"}, std::make_shared<Counter>());
    EXPECT_NE(handle.resource->scope(), 0u);
  }
  EXPECT_EQ(handle.resource->scope(), 0u);
  EXPECT_EQ(handle.resource->MemoryBytes(), 0u);
}

}  // namespace
}  // namespace weir::runtime
