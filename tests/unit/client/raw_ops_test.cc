// The generated builders: each op of the catalogue gets the inputs and attributes that its builder is given.
#include <map>
#include <set>

#include "core/client/graph/graph_internal.h"
#include "core/op/attrs.h"
#include "core/ops/declare_all.h"
#include "opgen/raw_calls.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// Inputs and attributes for one op, by its declaration; remembers what it gave.
class Source {
 public:
  /// Whether attributes that have defaults get others where that is simple.
  enum class Attrs { kOther, kDefault };
  explicit Source(Attrs attrs) : attrs_(attrs) {}

  void Start(const char* op) { def_ = *(*ops::Catalogue())->Get(op); }

  Output Value(const std::string& input) {
    const op::ArgDef& arg = Arg(input);
    return Given(arg, arg.type_attr.empty() ? arg.dtype : Type(arg.type_attr));
  }
  std::vector<Operand> Values(const std::string& input) {
    const op::ArgDef& arg = Arg(input);
    std::vector<DType> types(2, arg.type_attr.empty() ? arg.dtype : Type(arg.type_attr));
    if (!arg.type_list_attr.empty()) {
      types = TwoOf(def_->FindAttr(arg.type_list_attr)->allowed_types);
      wanted_[arg.type_list_attr] = types;
    } else {
      wanted_[arg.number_attr] = int64_t{2};
    }
    std::vector<Operand> values;
    for (const DType type : types) values.emplace_back(Given(arg, type));
    return values;
  }
  /// Of an attribute without default.
  template <class T>
  T Attr(const std::string& name) {
    const T value = Pick<T>(*def_->FindAttr(name));
    wanted_[name] = value;
    return value;
  }
  template <class T>
  T Attr(const std::string& name, const T& default_value) {
    const T value = attrs_ == Attrs::kOther ? Other(*def_->FindAttr(name), default_value) : default_value;
    wanted_[name] = value;
    return value;
  }

  const op::OpDef& def() const { return *def_; }
  const std::vector<Output>& inputs() const { return inputs_; }
  const std::map<std::string, op::AttrValue>& wanted() const { return wanted_; }

 private:
  const op::ArgDef& Arg(const std::string& name) const {
    return *std::ranges::find(def_->inputs, name, &op::ArgDef::name);
  }
  DType Type(const std::string& attr) {
    const DType type = Pick<DType>(*def_->FindAttr(attr));
    wanted_[attr] = type;
    return type;
  }
  Output Given(const op::ArgDef& arg, DType type) {
    inputs_.push_back(arg.is_ref ? BuildOp("VariableV2", {}, {{"shape", PartialShape()}, {"dtype", type}}).output(0)
                                 : Placeholder(type));
    return inputs_.back();
  }

  /// The last of the values that ask for no further attribute and that the CPU has.
  static std::string LastPlain(const std::vector<std::string>& allowed) {
    const auto plain = [](const std::string& value) { return value != "EXPLICIT" && value != "NCHW_VECT_C"; };
    const auto last = std::find_if(allowed.rbegin(), allowed.rend(), plain);
    return last == allowed.rend() ? allowed.back() : *last;
  }

  static constexpr DType kTypes[] = {DType::kFloat, DType::kInt32,     DType::kInt64, DType::kString,
                                     DType::kBool,  DType::kComplex64, DType::kUint8, DType::kQuint8};
  /// The first two of kTypes that are allowed, or the one that is.
  static std::vector<DType> TwoOf(DTypeSet allowed) {
    std::vector<DType> types;
    for (const DType type : kTypes) {
      if (Contains(allowed, type) && types.size() < 2) types.push_back(type);
    }
    types.resize(2, types.empty() ? DType::kInvalid : types[0]);
    return types;
  }

  template <class T>
  static T Pick(const op::AttrDef& attr) {
    if constexpr (std::is_same_v<T, DType>) {
      return TwoOf(attr.allowed_types)[0];
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (attr.name == "equation") return "a,b->ab";
      return attr.allowed_strings.empty() ? "text" : LastPlain(attr.allowed_strings);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return attr.minimum.value_or(0) + 2;
    } else if constexpr (std::is_same_v<T, float>) {
      return 1.0f;
    } else if constexpr (std::is_same_v<T, bool>) {
      return true;
    } else if constexpr (std::is_same_v<T, PartialShape>) {
      return PartialShape::Of({2});
    } else if constexpr (std::is_same_v<T, Tensor>) {
      return Tensor::Scalar<float>(3);
    } else if constexpr (std::is_same_v<T, op::FuncRef>) {
      return {"function", nullptr};
    } else {
      op::AttrDef element = attr;
      element.minimum.reset();
      const auto one = Pick<typename T::value_type>(element);
      return T(static_cast<size_t>(std::max<int64_t>(4, attr.minimum.value_or(0))), one);
    }
  }
  template <class T>
  static T Other(const op::AttrDef& attr, const T& default_value) {
    if constexpr (std::is_same_v<T, bool>) {
      return !default_value;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return std::max(default_value, attr.minimum.value_or(default_value)) + 1;
    } else if constexpr (std::is_same_v<T, float>) {
      return default_value / 2 + 1;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return attr.allowed_strings.empty() ? default_value + "x" : LastPlain(attr.allowed_strings);
    } else {
      return default_value;
    }
  }

  const Attrs attrs_;
  const op::OpDef* def_ = nullptr;
  std::vector<Output> inputs_;
  std::map<std::string, op::AttrValue> wanted_;
};

using Call = Operation (*)(Source&);

/// Whether the node is what the source gave to its builder.
void ExpectNode(const Operation& operation, const Source& source) {
  SCOPED_TRACE(source.def().name);
  EXPECT_EQ(operation.type(), source.def().name);
  EXPECT_EQ(operation.name(), "node");
  EXPECT_EQ(std::vector<Output>(operation.inputs()), source.inputs());
  for (const auto& [name, value] : source.wanted()) {
    const op::AttrValue* const attr = operation.node().attrs().Find(name);
    ASSERT_NE(attr, nullptr) << name;
    const bool is_function = value.get<op::FuncRef>() != nullptr;
    EXPECT_TRUE(is_function ? attr->get<op::FuncRef>()->name == value.get<op::FuncRef>()->name : *attr == value)
        << name << " is " << attr->ToString() << ", wanted " << value.ToString();
  }
}

TEST(RawOps, EveryOpIsBuiltFromItsInputsAndAttributes) {
  std::set<std::string> built, by_default;
  raw::ForEachRawCall<Source>([&](const char* name, Call call) {
    std::string errors;
    for (const Source::Attrs attrs : {Source::Attrs::kOther, Source::Attrs::kDefault}) {
      Fresh f;
      Source source(attrs);
      const Operation operation = call(source);
      if (operation.exists()) {
        ExpectNode(operation, source);
        built.insert(name);
        if (attrs == Source::Attrs::kDefault) by_default.insert(name);
        return;
      }
      errors += f.error() + "\n";
    }
    ADD_FAILURE() << name << ": " << errors;
  });
  for (const op::OpDef* op : (*ops::Catalogue())->All()) {
    EXPECT_TRUE(op->name.starts_with('_') || built.contains(op->name)) << op->name;
  }
  EXPECT_LT(by_default.size() * 10, built.size()) << "too many ops refuse other attributes";
}

TEST(RawOps, DefaultsAreThoseOfTheCatalogue) {
  Fresh f;
  const Output a = Placeholder(DType::kFloat), b = Placeholder(DType::kFloat);
  const Output plain = raw::MatMul(a, b), turned = raw::MatMul(a, b, {.transpose_b = true}, "turned");
  EXPECT_FALSE(*plain.op().node().attrs().Find("transpose_b")->get<bool>());
  EXPECT_TRUE(*turned.op().node().attrs().Find("transpose_b")->get<bool>());
  EXPECT_EQ(turned.name(), "turned:0");
}

TEST(RawOps, LiteralsListsAndSeveralOutputs) {
  Fresh f;
  const List<Output> halves = raw::Split(1, {{1.0f, 2.0f, 3.0f, 4.0f}}, 2);
  EXPECT_EQ(halves.size(), 2u);
  const raw::UniqueOutputs unique = raw::Unique(Literal({5, 5, 7}));
  const Output joined = raw::Pack({halves[0], halves[0]});
  Session session(f.graph);
  const Result<Fetched> values = session.Run({unique.y, unique.idx, joined});
  ASSERT_TRUE(Succeeds(values));
  EXPECT_EQ((*values)[0].tensor().elements(), 2);
  EXPECT_EQ((*values)[1].tensor().elements(), 3);
  EXPECT_EQ((*values)[2].tensor().shape(), Shape::Of({2, 1, 2}));
}

TEST(RawOps, AnErrorGivesValuesThatStandForIt) {
  Fresh f;
  const List<Output> parts = raw::Split(0, Placeholder(DType::kFloat, {3}), 2);
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_FALSE(parts[1].exists());
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(parts[1]), Code::kInvalidArgument, "raw_ops_test.cc:"));
}

}  // namespace
}  // namespace weir::test
