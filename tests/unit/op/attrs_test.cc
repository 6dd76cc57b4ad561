#include "core/op/attrs.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include "core/op/registry.h"
#include "core/op/shape_context.h"

namespace weir::op {
namespace {

class AttrsTest : public testing::Test {
 protected:
  void SetUp() override {
    Declare("ToyNeg").In("x: T").Out("y: T").Attr("T: {float, int32}");
    Declare("ToyAddN").In("inputs: N*T").Out("sum: T").Attr("N: int >= 1").Attr("T: type");
    Declare("ToyIdentityN").In("input: T").Out("output: T").Attr("T: list(type) >= 1");
    Declare("ToyAssign").In("ref: Ref(T)").In("value: T").Out("out: Ref(T)").Attr("T: type").Attr("lock: bool = true");
    Declare("ToySplit").In("dim: int32").In("value: T").Out("output: n*T").Attr("n: int >= 0").Attr("T: type");
    Declare("Everything")
        .Attr("i: int = 7")
        .Attr("f: float = 0.5")
        .Attr("b: bool = true")
        .Attr("s: string = 'x'")
        .Attr("t: type = DT_HALF")
        .Attr("h: shape = [2]")
        .Attr("v: tensor")
        .Attr("li: list(int) = [1, 2]")
        .Attr("lf: list(float) = [1.5]")
        .Attr("lb: list(bool) = [true]")
        .Attr("ls: list(string) = ['a']")
        .Attr("lt: list(type) = [DT_INT8]")
        .Attr("lh: list(shape) = [[3]]")
        .Attr("m: {'SAME', 'VALID'} = 'SAME'");
    ASSERT_TRUE(ops_.Freeze().ok()) << ops_.Freeze().message();
  }
  OpBuilder Declare(std::string_view name) { return ops_.Declare(name).Shape(Unknown()).NoGradient("a test"); }
  AttrView View(std::string_view op, const AttrList& attrs) { return AttrView(*ops_.Find(op), attrs); }

  OpRegistry ops_;
};

using Types = std::vector<DType>;

TEST_F(AttrsTest, TypedReadsTakeDefaults) {
  const AttrList attrs = {{"i", 9}, {"v", Tensor::Scalar(3.0f)}};
  const AttrView view = View("Everything", attrs);
  EXPECT_EQ(*view.Int("i"), 9);
  EXPECT_EQ(*view.Float("f"), 0.5f);
  EXPECT_EQ(*view.Bool("b"), true);
  EXPECT_EQ(*view.String("s"), "x");
  EXPECT_EQ(*view.Type("t"), DType::kHalf);
  EXPECT_EQ(*view.ShapeAttr("h"), PartialShape::Of({2}));
  EXPECT_EQ(view.TensorAttr("v")->scalar<float>(), 3.0f);
  EXPECT_EQ(*view.Ints("li"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*view.Floats("lf"), std::vector<float>{1.5f});
  EXPECT_EQ(*view.Bools("lb"), std::vector<bool>{true});
  EXPECT_EQ(*view.Strings("ls"), std::vector<std::string>{"a"});
  EXPECT_EQ(*view.Types("lt"), Types{DType::kInt8});
  EXPECT_EQ(*view.Shapes("lh"), std::vector<PartialShape>{PartialShape::Of({3})});
  EXPECT_TRUE(view.Has("i"));
  EXPECT_FALSE(view.Has("unknown"));
}

TEST_F(AttrsTest, TypedReadsOfWrongOrMissing) {
  const AttrList attrs = {{"i", 0.5f}, {"li", EmptyList{}}, {"lt", 3}};
  const AttrView view = View("Everything", attrs);
  EXPECT_EQ(view.Int("i").status().message(),
            "AttrValue had value with type 'float' when 'int' expected\n\t for attr 'i'");
  EXPECT_EQ(view.Types("lt").status().message(),
            "AttrValue had value with type 'int' when 'list(type)' expected\n\t for attr 'lt'");
  EXPECT_TRUE(view.Ints("li")->empty());
  EXPECT_TRUE(
      view.TensorAttr("v").status().message().starts_with("NodeDef missing attr 'v' from Op<name=Everything; "));
}

TEST_F(AttrsTest, Expand) {
  const struct {
    const char* op;
    AttrList attrs;
    Types inputs, outputs;
    std::vector<int> input_counts, output_counts;
  } kCases[] = {
      {"ToyNeg", {{"T", DType::kInt32}}, {DType::kInt32}, {DType::kInt32}, {1}, {1}},
      {"ToyAddN", {{"N", 3}, {"T", DType::kFloat}}, Types(3, DType::kFloat), {DType::kFloat}, {3}, {1}},
      {"ToyIdentityN",
       {{"T", Types{DType::kFloat, DType::kString}}},
       {DType::kFloat, DType::kString},
       {DType::kFloat, DType::kString},
       {2},
       {2}},
      {"ToyIdentityN", {{"T", EmptyList{}}}, {}, {}, {0}, {0}},
      {"ToyAssign",
       {{"T", DType::kFloat}},
       {RefType(DType::kFloat), DType::kFloat},
       {RefType(DType::kFloat)},
       {1, 1},
       {1}},
      {"ToySplit", {{"n", 0}, {"T", DType::kFloat}}, {DType::kInt32, DType::kFloat}, {}, {1, 1}, {0}},
      {"Everything", {}, {}, {}, {}, {}},
  };
  for (const auto& c : kCases) {
    const Result<Signature> signature = Expand(View(c.op, c.attrs));
    ASSERT_TRUE(signature.ok()) << signature.status().message();
    EXPECT_EQ(signature->inputs, c.inputs) << c.op;
    EXPECT_EQ(signature->outputs, c.outputs) << c.op;
    EXPECT_EQ(signature->input_counts, c.input_counts) << c.op;
    EXPECT_EQ(signature->output_counts, c.output_counts) << c.op;
  }
}

TEST_F(AttrsTest, ExpandRefusesUnknownCounts) {
  const struct {
    const char* op;
    AttrList attrs;
    const char* error;
  } kCases[] = {{"ToyNeg", {}, "NodeDef missing attr 'T' from Op<name=ToyNeg;"},
                {"ToyNeg", {{"T", 1}}, "AttrValue had value with type 'int' when 'type' expected"},
                {"ToyAddN", {{"T", DType::kFloat}}, "NodeDef missing attr 'N'"},
                {"ToyAddN", {{"N", int64_t{1} << 40}, {"T", DType::kFloat}}, "Value for attr 'N' of 1099511627776"},
                {"ToyAddN", {{"N", -1}, {"T", DType::kFloat}}, "Value for attr 'N' of -1 must be between 0 and"},
                {"ToyIdentityN", {{"T", DType::kFloat}}, "with type 'type' when 'list(type)' expected"}};
  for (const auto& c : kCases) {
    const Status status = Expand(View(c.op, c.attrs)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(c.error), std::string::npos) << status.message();
  }
}

TEST_F(AttrsTest, ValidateAcceptsAndIgnores) {
  const std::pair<const char*, AttrList> kCases[] = {
      {"ToyNeg", {{"T", DType::kFloat}}},
      {"ToyNeg", {{"T", DType::kFloat}, {"_class", std::vector<std::string>{"loc:@x"}}, {"newer", 3}}},
      {"ToyNeg", {{"T", AttrPlaceholder{"T"}}}},
      {"Everything", {{"v", Tensor::Scalar(1.0f)}, {"li", EmptyList{}}, {"ls", EmptyList{}}}},
      {"ToyAssign", {{"T", DType::kFloat}}},
      {"ToyAddN", {{"N", 1}, {"T", DType::kVariant}}},
  };
  for (const auto& [op, attrs] : kCases) {
    EXPECT_TRUE(Validate(View(op, attrs)).ok()) << Validate(View(op, attrs)).message();
  }
}

TEST_F(AttrsTest, ValidateUsesTensorFlowsTexts) {
  const struct {
    const char* op;
    AttrList attrs;
    const char* error;
  } kCases[] = {
      {"ToyNeg",
       {},
       "NodeDef missing attr 'T' from Op<name=ToyNeg; signature=x:T -> y:T; "
       "attr=T:type,allowed=[DT_FLOAT, DT_INT32]>"},
      {"ToyAddN",
       {},
       "NodeDef missing attrs 'N', 'T' from Op<name=ToyAddN; signature=inputs:N*T -> sum:T; "
       "attr=N:int,min=1; attr=T:type>"},
      {"ToyNeg",
       {{"T", DType::kString}},
       "Value for attr 'T' of string is not in the list of allowed values: float, int32"},
      {"ToyNeg", {{"T", 3}}, "AttrValue had value with type 'int' when 'type' expected\n\t for attr 'T'"},
      {"ToyNeg", {{"T", AttrValue()}}, "AttrValue missing value with expected type 'type'\n\t for attr 'T'"},
      {"ToyAddN", {{"N", 0}, {"T", DType::kFloat}}, "Value for attr 'N' of 0 must be at least minimum 1"},
      {"ToyIdentityN", {{"T", Types{}}}, "Length for attr 'T' of 0 must be at least minimum 1"},
      {"ToyIdentityN", {{"T", EmptyList{}}}, "Length for attr 'T' of 0 must be at least minimum 1"},
      {"ToyAddN",
       {{"N", EmptyList{}}, {"T", DType::kFloat}},
       "AttrValue had value with type 'list' when 'int' expected\n\t for attr 'N'"},
      {"Everything",
       {{"v", Tensor::Scalar(1.0f)}, {"m", "FULL"}},
       "Value for attr 'm' of \"FULL\" is not in the list of allowed values: \"SAME\", \"VALID\""},
  };
  for (const auto& c : kCases) {
    const Status status = Validate(View(c.op, c.attrs));
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), c.error);
  }
  const AttrList unknown = {{"N", 1}, {"T", static_cast<DType>(77)}};
  EXPECT_TRUE(
      Validate(View("ToyAddN", unknown)).message().starts_with("Value for attr 'T' of DT_77 is not in the list"));
  const AttrList reference = {{"N", 1}, {"T", RefType(DType::kFloat)}};
  EXPECT_EQ(Validate(View("ToyAddN", reference)).message(),
            "AttrValue must not have reference type value of float_ref");
}

}  // namespace
}  // namespace weir::op
