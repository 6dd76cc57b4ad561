#include "core/op/registry.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/op/grad_context.h"
#include "core/op/shape_context.h"

namespace weir::op {
namespace {

OpBuilder Good(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Shape(Unknown()).NoGradient("a test");
}

bool Has(const Status& status, std::string_view text) { return status.message().find(text) != std::string::npos; }

TEST(RegistryTest, TheChainFillsTheRecord) {
  OpRegistry ops;
  ops.Declare("ToyRelu")
      .In("features: T")
      .Out("activations: T")
      .Attr("T: realnumbertype = DT_FLOAT")
      .Doc("max(features, 0)")
      .Is(Category::kNeural)
      .RunsAs(Universal::kForward)
      .Stateful()
      .Commutative()
      .Aggregate()
      .AllowsUninitialized()
      .Shape(SameAs(0))
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> { return One(g.Dy(0)); });
  ASSERT_TRUE(ops.Freeze().ok()) << ops.Freeze().message();
  const OpDef* relu = ops.Find("ToyRelu");
  ASSERT_NE(relu, nullptr);
  EXPECT_EQ(relu->inputs[0].name, "features");
  EXPECT_EQ(relu->outputs[0].type_attr, "T");
  EXPECT_EQ(relu->doc, "max(features, 0)");
  EXPECT_EQ(relu->category, Category::kNeural);
  EXPECT_EQ(relu->run_by, RunBy::kUniversal);
  EXPECT_TRUE(relu->stateful && relu->commutative && relu->aggregate && relu->allows_uninitialized_input);
  EXPECT_TRUE(relu->shape && relu->gradient);
  EXPECT_NE(relu->FindAttr("T"), nullptr);
  EXPECT_EQ(relu->FindAttr("U"), nullptr);
}

TEST(RegistryTest, ListArgumentsAreKnownInEitherOrder) {
  OpRegistry ops;
  Good(ops, "Before").Attr("T: list(type) >= 1").In("input: T").Out("output: T");
  Good(ops, "After").In("input: T").Out("output: T").Attr("T: list(type)");
  ASSERT_TRUE(ops.Freeze().ok()) << ops.Freeze().message();
  for (const char* name : {"Before", "After"}) {
    EXPECT_EQ(ops.Find(name)->inputs[0].type_list_attr, "T");
    EXPECT_EQ(ops.Find(name)->inputs[0].type_attr, "");
    EXPECT_EQ(ops.Find(name)->outputs[0].type_list_attr, "T");
  }
}

TEST(RegistryTest, FreezeReportsAllFaultsTogether) {
  OpRegistry ops;
  Good(ops, "A").In("x T").Out("y: ").Attr("T: wibble");
  Good(ops, "Twice");
  Good(ops, "Twice");
  ops.Declare("NoShape").NoGradient("none");
  ops.Declare("NoGrad").Shape(Unknown());
  Good(ops, "Both").Grad([](GradContext&) -> Result<std::vector<Grad>> { return std::vector<Grad>{}; });
  Good(ops, "Undeclared").In("x: T").In("n: N*float");
  Good(ops, "WrongKind").In("x: T").In("y: T*float").Attr("T: int");
  Good(ops, "NoMinimum").In("x: N*float").Attr("N: int");
  Good(ops, "ListNumber").In("x: N*T").Attr("N: list(int)").Attr("T: list(type)");
  Good(ops, "SameName").In("x: float").Out("x: float");
  Good(ops, "3D");
  const Status status = ops.Freeze();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  for (const char* fault :
       {"op 'A': input \"x T\", column 3: wanted ':'", "op 'A': output \"y: \", column 4: wanted a type",
        "op 'A': attribute \"T: wibble\", column 4", "op 'Twice': declared twice", "op 'NoShape': no shape function",
        "op 'NoGrad': neither a gradient nor a reason for none", "op 'Both': both a gradient and a reason for none",
        "op 'Undeclared': argument 'x' names attribute 'T', which is not declared",
        "op 'Undeclared': argument 'n' names attribute 'N', which is not declared",
        "op 'WrongKind': argument 'x' needs attribute 'T' to be of type 'type', but it is 'int'",
        "op 'NoMinimum': attribute 'N' counts argument 'x' and so needs a minimum of at least 0",
        "op 'ListNumber': argument 'x' needs attribute 'N' to be of type 'int', but it is 'list(int)'",
        "op 'ListNumber': argument 'x' needs attribute 'T' to be of type 'type', but it is 'list(type)'",
        "op 'SameName': the name 'x' is used twice", "op '3D': the name must be a letter"}) {
    EXPECT_TRUE(Has(status, fault)) << fault << "\n--\n" << status.message();
  }
}

TEST(RegistryTest, NothingChangesAfterFreeze) {
  OpRegistry ops;
  OpBuilder builder = Good(ops, "A");
  ASSERT_TRUE(ops.Freeze().ok());
  builder.In("x: float").Doc("late");
  EXPECT_TRUE(ops.Find("A")->inputs.empty());
  EXPECT_EQ(ops.Find("A")->doc, "");
  ops.Declare("B");
  EXPECT_EQ(ops.Find("B"), nullptr);
  EXPECT_TRUE(Has(ops.Freeze(), "op 'A': changed after Freeze"));
  EXPECT_TRUE(Has(ops.Freeze(), "op 'B': declared after Freeze"));
}

TEST(RegistryTest, RecordsAreCheckedOnUse) {
  OpRegistry ops;
  Good(ops, "A").In("x: T").Out("y: T").Attr("T: {half, float} = DT_FLOAT").Doc("a toy.");
  Good(ops, "Damaged").In("x T");
  Good(ops, "Undeclared").In("x: T");
  EXPECT_EQ(ops.Find("A")->inputs.size(), 1u) << "before Freeze";
  ASSERT_TRUE(ops.Freeze(OpRegistry::Checks::kOnUse).ok()) << ops.Freeze().message();
  EXPECT_EQ(ops.Find("Damaged"), nullptr);
  EXPECT_EQ(ops.Find("Undeclared"), nullptr);
  EXPECT_TRUE(ops.Has("Damaged"));
  EXPECT_FALSE(ops.Has("B"));
  const Status fault = ops.Get("Damaged").status();
  EXPECT_EQ(fault.code(), Code::kInvalidArgument);
  EXPECT_TRUE(Has(fault, "op 'Damaged': input \"x T\", column 3: wanted ':'")) << fault.message();
  EXPECT_TRUE(Has(fault, "op 'Undeclared': argument 'x' names attribute 'T'")) << fault.message();
  const OpDef* a = ops.Find("A");
  ASSERT_NE(a, nullptr);
  ASSERT_EQ(a->inputs.size(), 1u) << "parsed once";
  EXPECT_EQ(a->inputs[0].type_attr, "T");
  EXPECT_EQ(a->attrs.size(), 1u);
  EXPECT_EQ(a->doc, "a toy.");
  EXPECT_EQ(a->no_gradient, "a test");
  EXPECT_EQ(ops.All(), std::vector<const OpDef*>{a});
}

TEST(RegistryTest, ThreadsThatUseARecordFirstSeeAllOfIt) {
  OpRegistry ops;
  for (int i = 0; i < 50; ++i) Good(ops, "Op" + std::to_string(i)).In("x: T").Out("y: T").Attr("T: type");
  ASSERT_TRUE(ops.Freeze(OpRegistry::Checks::kOnUse).ok());
  std::atomic<int> whole = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const OpDef* def = ops.Find("Op" + std::to_string(i));
        if (def != nullptr && def->inputs.size() == 1 && def->FindAttr("T") != nullptr) ++whole;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole, 200);
}

TEST(RegistryTest, LookUp) {
  OpRegistry ops;
  for (const char* name : {"MatMul", "Add", "AddV2"}) Good(ops, name);
  ASSERT_TRUE(ops.Freeze().ok());
  std::vector<std::string> names;
  for (const OpDef* def : ops.All()) names.push_back(def->name);
  EXPECT_EQ(names, (std::vector<std::string>{"Add", "AddV2", "MatMul"}));
  EXPECT_EQ(*ops.Get("Add"), ops.Find("Add"));
  const Status status = ops.Get("MatMull").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_TRUE(status.message().starts_with("Op type not registered 'MatMull' in binary running on "));
  EXPECT_TRUE(status.message().ends_with(" (nearest: 'MatMul')"));
}

TEST(RegistryTest, SummaryIsTensorFlows) {
  OpRegistry ops;
  Good(ops, "Neg").In("x: T").Out("y: T").Attr("T: {half, float}");
  Good(ops, "AddN").In("inputs: N*T").Out("sum: T").Attr("N: int >= 1").Attr("T: type").Commutative().Aggregate();
  Good(ops, "AssignLike")
      .In("ref: Ref(T)")
      .In("value: float")
      .Out("out: Ref(T)")
      .Attr("T: type")
      .Attr("use_locking: bool = true")
      .Attr("mode: {'A', 'B'} = 'A'")
      .Stateful()
      .AllowsUninitialized();
  ASSERT_TRUE(ops.Freeze().ok());
  EXPECT_EQ(Summarize(*ops.Find("Neg")), "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_FLOAT, DT_HALF]>");
  EXPECT_EQ(Summarize(*ops.Find("AddN")),
            "Op<name=AddN; signature=inputs:N*T -> sum:T; attr=N:int,min=1; attr=T:type; is_commutative=true; "
            "is_aggregate=true>");
  EXPECT_EQ(Summarize(*ops.Find("AssignLike")),
            "Op<name=AssignLike; signature=ref:Ref(T), value:float -> out:Ref(T); attr=T:type; "
            "attr=use_locking:bool,default=true; attr=mode:string,default=\"A\",allowed=[\"A\", \"B\"]; "
            "is_stateful=true; allows_uninitialized_input=true>");
}

TEST(RegistryTest, TraitsAreOneText) {
  OpRegistry ops;
  Good(ops, "Fused").Fuses("Step", 2, "Product").Stateful();
  Good(ops, "Step").RunsAs(Universal::kForward).PassesValue().HandlesFromAnywhere();
  Good(ops, "Product").RunsAs(Flow::kSwitch).MovesElements().AllowsUninitialized();
  Good(ops, "Check").Stateful().ChecksOnly();
  Good(ops, "Variable").Out("handle: resource");
  ASSERT_TRUE(ops.Freeze().ok()) << ops.Freeze().message();
  EXPECT_EQ(TraitsText(*ops.Find("Fused")), "kernel, stateful, fuses Step with Product as input 2");
  EXPECT_EQ(TraitsText(*ops.Find("Step")), "universal forward, passes value, handles from anywhere");
  EXPECT_EQ(TraitsText(*ops.Find("Product")), "executor switch, allows uninitialized input, moves elements");
  EXPECT_EQ(TraitsText(*ops.Find("Check")), "kernel, stateful, checks only");
  EXPECT_EQ(TraitsText(*ops.Find("Variable")), "kernel, makes state");
  ASSERT_EQ(ops.Fusions().size(), 1u);
  EXPECT_EQ(ops.Fusions()[0], ops.Find("Fused"));
  EXPECT_TRUE(ops.Find("Fused")->MayDiffer());
  EXPECT_FALSE(ops.Find("Check")->MayDiffer());
}

TEST(RegistryTest, TraitsAgreeWithWhoRunsTheOp) {
  OpRegistry ops;
  Good(ops, "A").RunsOn(RunBy::kUniversal);
  Good(ops, "B").RunsAs(Flow::kSwitch).RunsOn(RunBy::kKernel);
  Good(ops, "C").RunsAs(Universal::kShapeQuery);
  Good(ops, "D").ChecksOnly();
  Good(ops, "E").Fuses("A", 0, "F");
  const Status faults = ops.Freeze();
  EXPECT_TRUE(Has(faults, "op 'A': run by universal, but the core's part is none")) << faults.message();
  EXPECT_TRUE(Has(faults, "op 'B': run by kernel, but it is switch to control flow"));
  EXPECT_TRUE(Has(faults, "op 'C': a shape query needs a function that answers it, and nothing else does"));
  EXPECT_TRUE(Has(faults, "op 'D': an op that only checks is stateful"));
  EXPECT_TRUE(Has(faults, "op 'E': it fuses 'A' and 'F', which are not both declared"));
}

TEST(RegistryTest, NamesOfCategoriesAndRunners) {
  EXPECT_EQ(Name(Category::kControlFlow), "control flow");
  EXPECT_EQ(Name(RunBy::kKernel), "kernel");
}

}  // namespace
}  // namespace weir::op
