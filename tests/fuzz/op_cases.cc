#include "tests/fuzz/op_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "core/graph/attr_proto.h"
#include "core/proto/descriptors.h"
#include "core/tensor/tensor_proto.h"
#include "tests/fuzz/op_values.h"

namespace weir::fuzz {
namespace {

/// An output that later nodes may use. `of_op` if an op under test produces it.
struct Endpoint {
  std::string name;
  DType dtype = DType::kInvalid;
  bool of_op = false;
  std::string ready;  // the node that must run before its users, such as a variable's first assignment; or empty
};

/// True if the argument accepts only integer types used as indices.
bool IsIndex(const op::OpDef& op, const op::ArgDef& arg) {
  constexpr DTypeSet kIndices =
      Bit(DType::kInt16) | Bit(DType::kInt32) | Bit(DType::kInt64) | Bit(DType::kUint8) | Bit(DType::kInt8);
  if (arg.type_attr.empty()) return Contains(kIndices, arg.dtype);
  const op::AttrDef* const attr = op.FindAttr(arg.type_attr);
  return attr != nullptr && (attr->allowed_types & ~kIndices) == 0;
}

/// Builds one case.
class Builder {
 public:
  Builder(const CaseMaker& maker, Dice& dice)
      : maker_(maker),
        dice_(dice),
        calm_(dice.Percent(50)),
        values_(dice, calm_ ? dice.Of({0, 0, 1}) : dice.Of({0, 2, 5, 10, 40})) {}

  Case Build(size_t first_op) {
    made_.graph.mutable_versions()->set_producer(134);
    const int count = dice_.Percent(60) ? 1 : static_cast<int>(dice_.Between(2, 5));
    for (int i = 0; i < count; ++i) {
      const size_t number = i == 0 ? first_op : dice_.Below(maker_.ops().size());
      made_.ops.push_back(static_cast<int>(number));
      AddOp(*maker_.ops()[number]);
    }
    ChooseFetches();
    ChooseRun();
    made_.bytes = made_.graph.SerializeAsString();
    if (Rarely(6) && !writes_files_) Damage();
    return std::move(made_);
  }

 private:
  using Attrs = std::map<std::string, op::AttrValue>;

  /// True in `percent` of calls, never in a calm case: for faults that keep the graph from running.
  bool Rarely(int percent) { return !calm_ && dice_.Percent(percent); }

  tf::NodeDef& AddNode(std::string_view op) {
    tf::NodeDef& node = *made_.graph.add_node();
    node.set_name(fmt::format("n{}", made_.graph.node_size() - 1));
    node.set_op(std::string(op));
    return node;
  }
  void SetAttr(tf::NodeDef& node, const std::string& name, const op::AttrValue& value) {
    tf::AttrValue proto;
    if (graph::AttrToProto(value, proto).ok()) (*node.mutable_attr())[name] = proto;
  }

  /// Adds a Const; sometimes its message declares another shape or type, or has fewer values than declared.
  std::string AddConst(const Tensor& value) {
    tf::NodeDef& node = AddNode("Const");
    SetAttr(node, "dtype", value.dtype());
    tf::TensorProto& proto = *(*node.mutable_attr())["value"].mutable_tensor();
    const auto encoding = dice_.Percent(50) ? TensorEncoding::kContent : TensorEncoding::kTyped;
    if (!TensorToProto(value, encoding, proto).ok()) proto.set_dtype(tf::DT_FLOAT);
    if (Rarely(1)) SetShape(values_.AbsurdShape(), *proto.mutable_tensor_shape());
    if (Rarely(1)) SetShape(values_.Related(), *proto.mutable_tensor_shape());
    if (Rarely(1)) proto.set_dtype(static_cast<tf::DataType>(values_.AnyType()));
    if (value.dtype() == DType::kBool && dice_.Percent(3)) {
      for (char& byte : *proto.mutable_tensor_content()) byte = static_cast<char>(dice_.Next());
    }
    return node.name();
  }
  static void SetShape(const std::vector<int64_t>& dims, tf::TensorShapeProto& shape) {
    shape.clear_dim();
    for (const int64_t dim : dims) shape.add_dim()->set_size(dim);
  }

  std::string AddPlaceholder(const Tensor& value) {
    tf::NodeDef& node = AddNode("Placeholder");
    SetAttr(node, "dtype", value.dtype());
    if (dice_.Percent(60)) {
      tf::TensorShapeProto& shape = *(*node.mutable_attr())["shape"].mutable_shape();
      std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
      for (int64_t& dim : dims) dim = dice_.Percent(20) ? -1 : dim;
      SetShape(values_.Wild() ? values_.AbsurdShape() : dims, shape);
    } else {
      (*node.mutable_attr())["shape"].mutable_shape()->set_unknown_rank(true);
    }
    if (!values_.Wild()) made_.feeds.emplace_back(node.name(), value);
    return node.name();
  }

  /// Adds a resource variable, usually assigned in the same step. Returns the handle's name and sets `ready` to the
  /// assignment.
  std::string AddHandle(DType dtype, std::string& ready) {
    return AddHandle(dtype, values_.Random(values_.Wild() ? values_.AnyType() : dtype, values_.Related()), ready);
  }
  std::string AddHandle(DType dtype, const Tensor& value, std::string& ready) {
    tf::NodeDef& handle = AddNode("VarHandleOp");
    const std::string name = handle.name();
    SetAttr(handle, "dtype", values_.Wild() ? values_.AnyType() : dtype);
    SetAttr(handle, "shared_name", values_.Wild() ? std::string("v") : name);
    const PartialShape known = dice_.Percent(70) ? PartialShape(value.shape()) : PartialShape();
    SetAttr(handle, "shape", values_.Wild() ? PartialShape::Of(values_.Related()) : known);
    if (Rarely(5)) return name;
    const std::string from = AddConst(value);
    tf::NodeDef& assign = AddNode("AssignVariableOp");
    assign.add_input(name);
    assign.add_input(from);
    SetAttr(assign, "dtype", value.dtype());
    ready = assign.name();
    return name;
  }

  /// Adds a handle of the kind that the op uses, created with types that fit the op's; empty for ops on variables.
  std::string AddResource(const op::OpDef& op) {
    struct Kind {
      std::string_view users, maker;
      std::vector<std::pair<std::string_view, std::string_view>>
          types;  // attribute of the creating op, attribute of the using op
    };
    static const std::vector<Kind> kKinds = {
        {"Stack", "StackV2", {{"elem_type", "elem_type"}, {"elem_type", "T"}}},
        {"TensorArray", "TensorArrayV3", {{"dtype", "dtype"}, {"dtype", "T"}}},
        {"InitializeTable", "HashTableV2", {{"key_dtype", "Tkey"}, {"value_dtype", "Tval"}}},
        {"LookupTable",
         "MutableHashTableV2",
         {{"key_dtype", "Tin"}, {"value_dtype", "Tout"}, {"key_dtype", "Tkeys"}, {"value_dtype", "Tvalues"}}},
        {"Queue", "FIFOQueueV2", {{"component_types", "Tcomponents"}, {"component_types", "component_types"}}}};
    for (const Kind& kind : kKinds) {
      if (!op.name.starts_with(kind.users)) continue;
      const bool sized = kind.maker == "StackV2" || kind.maker == "TensorArrayV3";
      const std::string size = sized ? AddConst(values_.Index(DType::kInt32, "size")) : std::string();
      tf::NodeDef& node = AddNode(kind.maker);
      if (sized) node.add_input(size);
      for (const char* missing : {"elem_type", "dtype", "key_dtype", "value_dtype"}) {
        const bool has = std::ranges::any_of(kind.types, [&](const auto& pair) { return pair.first == missing; });
        if (has) SetAttr(node, missing, DType::kFloat);
      }
      if (kind.maker == "FIFOQueueV2") SetAttr(node, "component_types", std::vector<DType>{DType::kFloat});
      for (const auto& [to, from] : kind.types) {
        const auto it = attrs_of_op_->find(std::string(from));
        if (it != attrs_of_op_->end()) SetAttr(node, std::string(to), it->second);
      }
      return node.name();
    }
    return {};
  }

  /// Adds a reference variable, usually used through its first assignment.
  std::string AddReference(const Tensor& value) {
    tf::NodeDef& variable = AddNode("VariableV2");
    const std::string name = variable.name();
    SetAttr(variable, "dtype", value.dtype());
    SetAttr(variable, "shape", dice_.Percent(80) ? PartialShape(value.shape()) : PartialShape());
    if (Rarely(10)) return name;
    const std::string from = AddConst(value);
    tf::NodeDef& assign = AddNode("Assign");
    assign.add_input(name);
    assign.add_input(from);
    SetAttr(assign, "T", value.dtype());
    if (dice_.Percent(30)) SetAttr(assign, "validate_shape", false);
    return assign.name();
  }

  Endpoint AddRead(DType dtype) {
    std::string ready;
    const std::string handle = AddHandle(dtype, ready);
    tf::NodeDef& read = AddNode("ReadVariableOp");
    read.add_input(handle);
    if (!ready.empty()) read.add_input("^" + ready);
    SetAttr(read, "dtype", dtype);
    return {read.name(), dtype, false, {}};
  }

  /// Adds a tensor whose declared shape may differ from its actual one.
  Endpoint AddClaimed(DType dtype) {
    std::vector<int64_t> dims = values_.AbsurdShape();
    const std::string shape = AddConst(Tensor::Vector<int64_t>(dims));
    const bool random = dtype == DType::kFloat || dtype == DType::kDouble;
    const std::string value = random ? "" : AddConst(values_.Random(dtype, {}));
    tf::NodeDef& node = AddNode(random ? "RandomUniform" : "Fill");
    node.add_input(shape);
    if (!random) node.add_input(value);
    SetAttr(node, random ? "dtype" : "T", dtype);
    SetAttr(node, random ? "T" : "index_type", DType::kInt64);
    return {node.name(), dtype, false, {}};
  }

  /// Adds a new operand of the type.
  Endpoint AddSource(const op::OpDef& op, const op::ArgDef& arg, DType dtype) {
    if (IsRef(dtype)) return {AddReference(values_.Random(BaseType(dtype), values_.Related())), dtype, false, {}};
    if (dtype == DType::kResource && !dice_.Percent(3)) {
      Endpoint handle{"", dtype, false, {}};
      handle.name = dice_.Percent(90) ? AddResource(op) : std::string();
      if (handle.name.empty()) handle.name = AddHandle(handle_type_, handle.ready);
      return handle;
    }
    if (dice_.Percent(3)) return AddRead(dtype);
    if (values_.Wild() && dice_.Percent(30)) return AddClaimed(dtype);
    const Tensor value = IsIndex(op, arg) ? values_.Index(dtype, arg.name) : values_.Random(dtype, values_.Related());
    return AddValue(value);
  }
  Endpoint AddValue(const Tensor& value) {
    return {dice_.Percent(55) ? AddConst(value) : AddPlaceholder(value), value.dtype(), false, {}};
  }

  /// Adds the operands of a row of op cases: all as the row has them, or some of them changed.
  std::vector<Endpoint> AddOperandsOf(const testing::OpCase& row) {
    const bool exact = dice_.Percent(calm_ ? 65 : 30);
    std::vector<Endpoint> operands;
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      const DType declared = row.signature.inputs[i];
      const Endpoint* const old = !exact && dice_.Percent(20) ? FromPool(declared) : nullptr;
      if (old != nullptr) {
        operands.push_back(*old);
        continue;
      }
      const Tensor value = exact ? row.inputs[i] : values_.Near(row.inputs[i]);
      if (IsRef(declared)) {
        operands.push_back({AddReference(value), declared, false, {}});
      } else if (declared == DType::kResource) {
        operands.push_back({"", declared, false, {}});
        operands.back().name = AddHandle(value.dtype(), value, operands.back().ready);
      } else {
        operands.push_back(AddValue(value));
      }
      pool_.push_back(operands.back());
    }
    return operands;
  }

  /// The attributes of the row; sometimes one of them has another value.
  Attrs AttrsOf(const op::OpDef& op, const testing::OpCase& row) {
    Attrs attrs(row.attrs.begin(), row.attrs.end());
    if (op.attrs.empty() || !dice_.Percent(calm_ ? 5 : 15)) return attrs;
    const op::AttrDef& attr = dice_.Of(op.attrs);
    attrs[attr.name] = attr.type == "type" ? op::AttrValue(ChooseType(op, attr)) : values_.Attr(attr);
    return attrs;
  }

  const Endpoint* FromPool(DType dtype) {
    std::vector<const Endpoint*> fit;
    for (const Endpoint& endpoint : pool_) {
      if (endpoint.dtype == dtype || BaseType(endpoint.dtype) == dtype) fit.push_back(&endpoint);
    }
    return fit.empty() ? nullptr : dice_.Of(fit);
  }

  void AddOperands(const op::OpDef& op, const op::ArgDef& arg, const Attrs& attrs, std::vector<Endpoint>& operands) {
    const auto find = [&]<class T>(const std::string& name, T missing) {
      const auto it = attrs.find(name);
      const T* const value = it == attrs.end() ? nullptr : it->second.get<T>();
      return value == nullptr ? missing : *value;
    };
    DType one = arg.type_attr.empty() ? arg.dtype : find(arg.type_attr, DType::kFloat);
    std::vector<DType> types = {one};
    if (!arg.number_attr.empty()) {
      const int64_t number = find(arg.number_attr, int64_t{1});
      types.assign(static_cast<size_t>(std::clamp<int64_t>(number, 0, 9)), one);
    }
    if (!arg.type_list_attr.empty()) types = find(arg.type_list_attr, std::vector<DType>());
    if (Rarely(1)) types.resize(dice_.Below(types.size() + 2), one);
    for (DType dtype : types) {
      if (Rarely(1)) dtype = values_.AnyType();
      if (arg.is_ref) dtype = RefType(dtype);
      const Endpoint* const old = dice_.Percent(IsIndex(op, arg) ? 10 : 45) ? FromPool(dtype) : nullptr;
      operands.push_back(old != nullptr ? *old : AddSource(op, arg, dtype));
      if (old == nullptr) pool_.push_back(operands.back());
    }
  }

  /// Chooses a type for the attribute: usually that of an existing value, or one that a kernel supports.
  DType ChooseType(const op::OpDef& op, const op::AttrDef& attr) {
    if (Rarely(2)) return values_.AnyType();
    const DTypeSet runnable = maker_.Runnable(op, attr);
    if (dice_.Percent(60)) {
      std::vector<DType> there;
      for (const Endpoint& endpoint : pool_) {
        if (endpoint.of_op && Contains(runnable, BaseType(endpoint.dtype))) there.push_back(BaseType(endpoint.dtype));
      }
      if (!there.empty()) return dice_.Of(there);
    }
    const DTypeSet from = dice_.Percent(5) ? attr.allowed_types : runnable;
    std::vector<DType> types;
    for (uint32_t number = 1; number <= 32; ++number) {
      const auto dtype = static_cast<DType>(number);
      if (Contains(from, dtype) && IsKnown(dtype) && dtype != DType::kVariant) types.push_back(dtype);
    }
    return types.empty() ? values_.AnyType() : dice_.Of(types);
  }

  Attrs ChooseAttrs(const op::OpDef& op) {
    Attrs attrs;
    for (const op::AttrDef& attr : op.attrs) {
      const bool counts = std::ranges::any_of(op.inputs, [&](const auto& in) { return in.number_attr == attr.name; });
      if (attr.default_value.set() && !counts && attr.type != "type" && dice_.Percent(30)) continue;
      if (attr.type == "type") attrs[attr.name] = ChooseType(op, attr);
      else if (counts && !values_.Wild())
        attrs[attr.name] = std::max<int64_t>(attr.minimum.value_or(0), dice_.Between(1, 3));
      else attrs[attr.name] = values_.Attr(attr);
    }
    const auto value = attrs.find("value");  // of Const
    if (value != attrs.end() && value->second.get<Tensor>() != nullptr && !values_.Wild()) {
      attrs["dtype"] = value->second.get<Tensor>()->dtype();
    }
    return attrs;
  }

  void AddOp(const op::OpDef& op) {
    writes_files_ = writes_files_ || op.category == op::Category::kFiles || op.category == op::Category::kSummary;
    const testing::OpCase* const row = calm_ || dice_.Percent(40) ? maker_.RowOf(op, dice_) : nullptr;
    const Attrs attrs = row != nullptr ? AttrsOf(op, *row) : ChooseAttrs(op);
    attrs_of_op_ = &attrs;
    handle_type_ = DType::kFloat;
    for (const char* name : {"dtype", "T", "Tparams"}) {
      const auto it = attrs.find(name);
      const DType* const dtype = it == attrs.end() ? nullptr : it->second.get<DType>();
      if (dtype != nullptr) handle_type_ = *dtype;
    }
    if (Rarely(8)) handle_type_ = values_.AnyType();
    std::vector<Endpoint> operands;
    if (row != nullptr) operands = AddOperandsOf(*row);
    else
      for (const op::ArgDef& arg : op.inputs) AddOperands(op, arg, attrs, operands);
    tf::NodeDef& node = AddNode(op.name);
    std::set<std::string> controls;
    for (const Endpoint& operand : operands) {
      node.add_input(operand.name);
      if (!operand.ready.empty()) controls.insert(operand.ready);
    }
    if (!last_op_.empty() && dice_.Percent(10)) controls.insert(last_op_);
    for (const std::string& control : controls) node.add_input("^" + control);
    for (const auto& [name, value] : attrs) SetAttr(node, name, value);
    if (Rarely(3)) {
      node.set_device(
          dice_.Of({"/cpu:0", "/device:CPU:0", "/device:CPU:7", "/gpu:0", "/job:x/task:99999999999", "::"}));
    }
    if (Rarely(2))
      SetAttr(node, "_class", std::vector<std::string>{std::string("loc:@") + dice_.Of({"n0", "n1", "n99", ""})});
    last_op_ = node.name();
    AddOutputs(op, node.name(), attrs);
  }

  void AddOutputs(const op::OpDef& op, const std::string& node, const Attrs& attrs) {
    const op::AttrList list(attrs.begin(), attrs.end());
    const Result<op::Signature> signature = op::Expand(op::AttrView(op, list));
    if (!signature.ok()) return;
    for (size_t i = 0; i < std::min<size_t>(signature->outputs.size(), 8); ++i) {
      pool_.push_back({i == 0 ? node : fmt::format("{}:{}", node, i), signature->outputs[i], true, {}});
    }
    if (signature->outputs.empty()) made_.targets.push_back(node);
  }

  void ChooseFetches() {
    for (const Endpoint& endpoint : pool_) {
      if (endpoint.of_op && dice_.Percent(60)) made_.fetches.push_back(endpoint.name);
    }
    if (made_.fetches.empty() && !pool_.empty() && pool_.back().of_op) made_.fetches.push_back(pool_.back().name);
    if (!pool_.empty() && Rarely(5)) made_.fetches.push_back(dice_.Of(pool_).name);
    if (!last_op_.empty() && dice_.Percent(10)) made_.targets.push_back(last_op_);
    if (!pool_.empty() && Rarely(3)) {
      made_.feeds.emplace_back(dice_.Of(pool_).name, values_.Random(values_.AnyType(), values_.Related()));
    }
  }

  void ChooseRun() {
    session::SessionOptions& options = made_.options;
    options.inter_op_parallelism_threads = dice_.Percent(85) ? -1 : 2;
    options.intra_op_parallelism_threads = dice_.Percent(85) ? 1 : 2;
    options.constant_folding = dice_.Percent(60);
    options.common_subexpressions = dice_.Percent(70);
    options.fusion = dice_.Percent(75);
    options.deterministic = dice_.Percent(10);
    options.allow_soft_placement = dice_.Percent(80);
    made_.check_numerics = dice_.Percent(5);
    made_.runs = dice_.Percent(20) ? 2 : 1;
    made_.entry = dice_.Percent(75) ? Entry::kRun : dice_.Of({Entry::kCallable, Entry::kPartialRun, Entry::kExplain});
  }

  /// Changes, removes or repeats a few bytes.
  void Damage() {
    made_.damaged = true;
    std::string& bytes = made_.bytes;
    for (int64_t left = dice_.Between(1, 4); left > 0 && !bytes.empty(); --left) {
      const size_t at = dice_.Below(bytes.size());
      switch (dice_.Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(dice_.Next());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice_.Below(8)));
          break;
        case 2:
          bytes.erase(at, dice_.Below(9));
          break;
        default:
          bytes.insert(dice_.Below(bytes.size()), bytes.substr(at, dice_.Below(30)));
      }
    }
  }

  const CaseMaker& maker_;
  Dice& dice_;
  const bool calm_;  // most of the graph fits, so that it runs
  Values values_;
  Case made_;
  std::vector<Endpoint> pool_;
  std::string last_op_;
  const Attrs* attrs_of_op_ = nullptr;  // of the op being made
  DType handle_type_ = DType::kFloat;   // of resource variables used by the op being made
  bool writes_files_ = false;
};

}  // namespace

CaseMaker::CaseMaker(const op::OpRegistry& ops, const kernel::KernelRegistry& kernels) : ops_(ops.All()) {
  for (const testing::OpCase& row : testing::OpCases()) rows_[row.def->name].push_back(&row);
  for (const kernel::KernelEntry* const entry : kernels.All()) {
    const weir_kernel& record = *entry->record;
    const std::string op(record.op.data, record.op.size);
    for (uint32_t i = 0; i < record.type_count; ++i) {
      const weir_type_constraint& constraint = record.types[i];
      types_[{op, std::string(constraint.attr.data, constraint.attr.size)}] |= constraint.dtypes;
    }
  }
}

const testing::OpCase* CaseMaker::RowOf(const op::OpDef& op, Dice& dice) const {
  const auto it = rows_.find(op.name);
  return it == rows_.end() ? nullptr : dice.Of(it->second);
}

DTypeSet CaseMaker::Runnable(const op::OpDef& op, const op::AttrDef& attr) const {
  const auto it = types_.find({op.name, attr.name});
  const DTypeSet both = it == types_.end() ? attr.allowed_types : attr.allowed_types & it->second;
  return both == 0 ? attr.allowed_types : both;
}

Case CaseMaker::Make(uint64_t seed, uint64_t number) const {
  Dice dice(Dice(seed ^ (number * 0x9e3779b97f4a7c15)).Next() + number);
  return Builder(*this, dice).Build(static_cast<size_t>(number % ops_.size()));
}

std::string Describe(const Case& made) {
  std::string text =
      fmt::format("# fetches: {}\n# targets: {}\n", fmt::join(made.fetches, " "), fmt::join(made.targets, " "));
  for (const auto& [name, value] : made.feeds) {
    text += fmt::format("# feed {}: {} {} {}\n", name, Name(value.dtype()), value.shape().ToString(),
                        value.dtype() == DType::kResource ? "" : value.SummarizeValues(64));
  }
  const session::SessionOptions& options = made.options;
  text += fmt::format(
      "# entry {}, runs {}, folding {}, common subexpressions {}, fusion {}, deterministic {}, soft placement {}, "
      "check numerics {}, threads {} and {}\n",
      static_cast<int>(made.entry), made.runs, options.constant_folding, options.common_subexpressions, options.fusion,
      options.deterministic, options.allow_soft_placement, made.check_numerics, options.inter_op_parallelism_threads,
      options.intra_op_parallelism_threads);
  if (made.damaged) {
    text += "# what is imported are these bytes, damaged from the graph below:\n# ";
    for (const char byte : made.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    text += '\n';
  }
  std::string graph;
  proto::NeedDescriptors();
  google::protobuf::TextFormat::PrintToString(made.graph, &graph);
  return text + graph;
}

}  // namespace weir::fuzz
