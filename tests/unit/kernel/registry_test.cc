#include "core/kernel/registry.h"
#include "core/base/errors.h"

#include "tests/unit/kernel/toy_ops.h"

namespace weir::kernel {
namespace {

KernelEntry Entry(const weir_kernel& record, std::string plugin = "toy", std::string file = "toy.so", int isa = 0) {
  return {&record, std::move(plugin), std::move(file), isa};
}

class RegistryTest : public ::testing::Test {
 protected:
  Status Add(const KernelEntry& entry) { return registry_.Add(ToyOps(), entry); }
  KernelRegistry registry_;
  ToyNode float_add_{"ToyAdd", {{"T", op::AttrValue(DType::kFloat)}}};
};

TEST_F(RegistryTest, FindsByPlatformAndType) {
  const weir_type_constraint floats{Str("T"), WEIR_DTYPE_BIT(WEIR_FLOAT32) | WEIR_DTYPE_BIT(WEIR_FLOAT64)};
  weir_kernel record = ToyRecord("ToyAdd");
  record.types = &floats;
  record.type_count = 1;
  ASSERT_TRUE(Add(Entry(record)).ok());
  EXPECT_EQ(registry_.Find(float_add_.attrs(), "toy").size(), 1u);
  EXPECT_TRUE(registry_.Find(float_add_.attrs(), "toy/2").empty());
  ToyNode of_int("ToyAdd", {{"T", op::AttrValue(DType::kInt32)}});
  EXPECT_TRUE(registry_.Find(of_int.attrs(), "toy").empty());
  ToyNode of_ref("ToyAdd", {{"T", op::AttrValue(RefType(DType::kDouble))}});
  EXPECT_EQ(registry_.Find(of_ref.attrs(), "toy").size(), 1u);
  EXPECT_EQ(registry_.ForOp("ToyAdd").size(), 1u);
  EXPECT_EQ(registry_.size(), 1u);
}

TEST_F(RegistryTest, ConstraintsHoldForEveryTypeOfAList) {
  const weir_type_constraint floats{Str("Tall"), WEIR_DTYPE_BIT(WEIR_FLOAT32)};
  weir_kernel record = ToyRecord("ToyJoin");
  record.types = &floats;
  record.type_count = 1;
  ASSERT_TRUE(Add(Entry(record)).ok());
  const auto found = [&](std::vector<DType> types) {
    ToyNode node("ToyJoin", {{"Tall", op::AttrValue(std::move(types))}});
    return registry_.Find(node.attrs(), "toy").size();
  };
  EXPECT_EQ(found({DType::kFloat, DType::kFloat}), 1u);
  EXPECT_EQ(found({DType::kFloat, DType::kInt32}), 0u);
}

TEST_F(RegistryTest, OrdersByPriorityThenPlugin) {
  weir_kernel low = ToyRecord("ToyAdd");
  weir_kernel high = ToyRecord("ToyAdd");
  high.priority = 5;
  ASSERT_TRUE(Add(Entry(low, "b", "b.so")).ok());
  ASSERT_TRUE(Add(Entry(low, "a", "a.so")).ok());
  ASSERT_TRUE(Add(Entry(high, "z", "z.so")).ok());
  std::vector<std::string> order;
  for (const KernelEntry* entry : registry_.Find(float_add_.attrs(), "toy")) order.push_back(entry->plugin);
  EXPECT_EQ(order, (std::vector<std::string>{"z", "a", "b"}));
}

TEST_F(RegistryTest, HigherIsaHidesLowerOfThePlugin) {
  const weir_kernel record = ToyRecord("ToyAdd");
  ASSERT_TRUE(Add(Entry(record, "fast", "fast.so", 3)).ok());
  ASSERT_TRUE(Add(Entry(record, "fast", "fast@v4.so", 4)).ok());
  ASSERT_TRUE(Add(Entry(record, "other", "other.so", 0)).ok());
  std::vector<std::string> files;
  for (const KernelEntry* entry : registry_.Find(float_add_.attrs(), "toy")) files.push_back(entry->file);
  EXPECT_EQ(files, (std::vector<std::string>{"fast@v4.so", "other.so"}));
}

TEST_F(RegistryTest, TheHostsKernelServesWhereNoDeviceHasItsOwn) {
  const BuiltinFn first = [](BuiltinCall&) { return Unimplemented("first"); };
  const BuiltinFn second = [](BuiltinCall&) { return Unimplemented("second"); };
  registry_.AddHost("ToyAdd", first);
  registry_.AddHost("ToyAdd", second);
  const KernelEntry* const host = registry_.FindHost("ToyAdd");
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(Text(host->record->op), "ToyAdd");
  EXPECT_EQ(Text(host->record->platform), kHostPlatform);
  BuiltinCall call{"node", float_add_.attrs(), {}, {}};
  EXPECT_EQ(host->host->fn(call).message(), "first");
  EXPECT_EQ(registry_.FindHost("ToyJoin"), nullptr);
  EXPECT_TRUE(registry_.Find(float_add_.attrs(), kHostPlatform).empty()) << "it is no kernel of a device";
  const weir_kernel record = ToyRecord("ToyAdd");
  ASSERT_TRUE(Add(Entry(record)).ok()) << "a device may have its own beside it";
  EXPECT_EQ(registry_.Find(float_add_.attrs(), "toy").size(), 1u);
  EXPECT_EQ(registry_.ForOp("ToyAdd").size(), 2u);
}

TEST_F(RegistryTest, HandlesAndVariantsNeverReachPlugins) {
  const weir_kernel record = ToyRecord("ToyAdd");
  ASSERT_TRUE(Add(Entry(record)).ok());
  for (const DType type : {DType::kResource, DType::kVariant}) {
    ToyNode node("ToyAdd", {{"T", op::AttrValue(type)}});
    EXPECT_TRUE(registry_.Find(node.attrs(), "toy").empty()) << Name(type);
  }
  op::OpRegistry ops;
  const auto declare = [&ops](std::string_view name) {
    return ops.Declare(name).Shape([](op::ShapeContext&) { return Status(); }).NoGradient("a toy");
  };
  declare("Takes").In("list: variant").Out("length: int32");
  declare("Makes").Out("list: variant");
  declare("Updates").In("variable: resource").In("by: float");
  ASSERT_TRUE(ops.Freeze().ok());
  const auto message = [&](const char* op, uint64_t variables) {
    weir_kernel record = ToyRecord(op);
    record.variable_writes = variables;
    return std::string(registry_.Add(ops, Entry(record)).message());
  };
  EXPECT_EQ(message("Takes", 0),
            "kernel Takes: input 'list' is a variant, which plugins are not given but as the value of a variable");
  EXPECT_EQ(message("Makes", 0), "kernel Makes: output 'list' is a variant, which plugins cannot make");
  EXPECT_EQ(
      message("Updates", 0),
      "kernel Updates: input 'variable' is a resource, which plugins are not given but as the value of a variable");
  EXPECT_EQ(message("Updates", 1), "");
}

TEST_F(RegistryTest, RefusesInvalidRecords) {
  const auto refused = [&](const weir_kernel& record, std::string_view part) {
    const Status status = Add(Entry(record));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused(ToyRecord("ToyAdds"), "ToyAdd");  // nearest name
  refused(ToyRecord("ToyConst"), "the core runs this op itself");
  refused(ToyRecord(""), "without an op");
  refused(ToyRecord("ToyAdd", ""), "no platform");
  refused(ToyRecord("ToyAdd", "host"), "platform 'host' is the core's own");
  weir_kernel formless = ToyRecord("ToyAdd");
  formless.compute = nullptr;
  refused(formless, "neither a prepared nor a dynamic form");
  weir_kernel shorter = ToyRecord("ToyAdd");
  shorter.struct_size = 24;
  refused(shorter, "24 bytes");

  weir_type_constraint constraint{Str("U"), WEIR_ANY_DTYPE};
  weir_kernel typed = ToyRecord("ToyAdd");
  typed.types = &constraint;
  typed.type_count = 1;
  refused(typed, "no type attribute 'U'");
  constraint.attr = Str("scale");
  refused(typed, "no type attribute 'scale'");
  constraint = {Str("T"), 0};
  refused(typed, "no type at all");
  EXPECT_EQ(Add({}).code(), Code::kInvalidArgument);
  EXPECT_EQ(registry_.size(), 0u);
}

TEST_F(RegistryTest, RecordsAddedForUseAreComparedWithTheirOpsLater) {
  const auto add = [this](const weir_kernel& record, const char* file = "toy.so") {
    return registry_.AddOnUse(ToyOps(), Entry(record, "toy", file));
  };
  const weir_kernel good = ToyRecord("ToyAdd");
  weir_type_constraint constraint{Str("U"), WEIR_ANY_DTYPE};
  weir_kernel typed = ToyRecord("ToyAdd");
  typed.types = &constraint;
  typed.type_count = 1;
  const weir_kernel constant = ToyRecord("ToyConst");
  EXPECT_NE(add(ToyRecord("ToyAdds")).message().find("ToyAdd"), std::string::npos) << "of no op at all";
  ASSERT_TRUE(add(good).ok());
  ASSERT_TRUE(add(typed).ok());
  ASSERT_TRUE(add(constant, "other.so").ok());
  EXPECT_NE(add(good).message().find("a second record"), std::string::npos);
  const KernelRegistry copy = registry_;
  for (const KernelRegistry* registry : {&copy, static_cast<const KernelRegistry*>(&registry_)}) {
    ASSERT_EQ(registry->ForOp("ToyAdd").size(), 1u);
    EXPECT_EQ(registry->ForOp("ToyAdd")[0]->record, &good);
    EXPECT_EQ(registry->Find(float_add_.attrs(), "toy").size(), 1u);
    EXPECT_EQ(registry->All().size(), 1u);
    EXPECT_EQ(registry->size(), 1u);
    const std::vector<RecordFault> faults = registry->Faults();
    ASSERT_EQ(faults.size(), 2u);
    EXPECT_EQ(faults[0].file, "other.so");
    EXPECT_NE(faults[0].message.find("the core runs this op itself"), std::string::npos) << faults[0].message;
    EXPECT_NE(faults[1].message.find("no type attribute 'U'"), std::string::npos) << faults[1].message;
  }
}

TEST_F(RegistryTest, SecondRecordOfOneKeyInOneFile) {
  const weir_type_constraint types[] = {{Str("T"), 6}, {Str("Tall"), 6}};
  const weir_type_constraint turned[] = {types[1], types[0]};
  weir_kernel first = ToyRecord("ToyJoin");
  weir_kernel second = ToyRecord("ToyJoin");
  first.types = types;
  second.types = turned;
  first.type_count = second.type_count = 2;
  ASSERT_TRUE(Add(Entry(first)).ok());
  EXPECT_NE(Add(Entry(second)).message().find("a second record"), std::string::npos);
  EXPECT_TRUE(Add(Entry(second, "toy", "other.so")).ok()) << "another file competes";
  second.priority = 1;
  EXPECT_TRUE(Add(Entry(second)).ok());
}

TEST_F(RegistryTest, MissingKernelHasTensorFlowsText) {
  const weir_type_constraint floats{Str("T"), WEIR_DTYPE_BIT(WEIR_FLOAT32) | WEIR_DTYPE_BIT(WEIR_INT32)};
  weir_kernel record = ToyRecord("ToyAdd", "cpu");
  record.types = &floats;
  record.type_count = 1;
  ASSERT_TRUE(Add(Entry(record)).ok());
  ToyNode node("ToyAdd", {{"T", op::AttrValue(DType::kDouble)}});
  const Status status = NoKernelError(registry_, node.attrs(), "n", {"CPU", "GPU"});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.node(), "n");
  EXPECT_EQ(status.message(),
            "No OpKernel was registered to support Op 'ToyAdd' used by {{node n}} with these attrs: "
            "[T=DT_DOUBLE, scale=1.5]\nRegistered devices: [CPU, GPU]\nRegistered kernels:\n"
            "  device='CPU'; T in [DT_FLOAT, DT_INT32]\n");
  ToyNode join("ToyJoin", {});
  EXPECT_NE(NoKernelError(registry_, join.attrs(), "n", {}).message().find("  <no registered kernels>\n"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::kernel
