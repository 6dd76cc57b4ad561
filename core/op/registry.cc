#include "core/op/registry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/op/vendor_ops.h"

namespace weir::op {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

bool IsOpName(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '>'; });
}

/// Treats a bare type name as a list argument if the attribute of that name is a list of types.
void ResolveLists(const OpDef& def, std::vector<ArgDef>& args) {
  for (ArgDef& arg : args) {
    if (arg.type_attr.empty() || !arg.number_attr.empty()) continue;
    const AttrDef* attr = def.FindAttr(arg.type_attr);
    if (attr != nullptr && attr->type == "list(type)") arg.type_list_attr = std::exchange(arg.type_attr, {});
  }
}

class Checker {
 public:
  Checker(const OpDef& def, std::vector<std::string>& faults) : def_(def), faults_(faults) {}

  void Check() {
    if (!IsOpName(def_.name)) Fault("the name must be a letter followed by letters, digits, '_' or '>'");
    for (const AttrDef& attr : def_.attrs) Once(attr.name);
    for (const ArgDef& arg : def_.inputs) CheckArg(arg);
    for (const ArgDef& arg : def_.outputs) CheckArg(arg);
    if (!def_.shape) Fault("no shape function");
    if (!def_.gradient && def_.no_gradient.empty()) Fault("neither a gradient nor a reason for none");
    if (def_.gradient && !def_.no_gradient.empty()) Fault("both a gradient and a reason for none");
    CheckTraits();
  }

 private:
  void Fault(std::string_view text) { faults_.push_back(fmt::format("op '{}': {}", def_.name, text)); }

  void CheckTraits() {
    const Traits& traits = def_.traits;
    if ((def_.run_by == RunBy::kUniversal) != (traits.universal != Universal::kNone)) {
      Fault(fmt::format("run by {}, but the core's part is {}", Name(def_.run_by), Name(traits.universal)));
    }
    if (traits.flow != Flow::kPlain && def_.run_by != RunBy::kExecutor) {
      Fault(fmt::format("run by {}, but it is {} to control flow", Name(def_.run_by), Name(traits.flow)));
    }
    if ((traits.universal == Universal::kShapeQuery) != (traits.shape_query != nullptr)) {
      Fault("a shape query needs a function that answers it, and nothing else does");
    }
    if (traits.checks_only && !def_.stateful) Fault("an op that only checks is stateful");
  }

  void Once(const std::string& name) {
    if (std::ranges::find(names_, name) != names_.end()) Fault(fmt::format("the name '{}' is used twice", name));
    names_.push_back(name);
  }

  void CheckArg(const ArgDef& arg) {
    Once(arg.name);
    CheckAttr(arg, arg.type_attr, "type");
    CheckAttr(arg, arg.type_list_attr, "list(type)");
    CheckAttr(arg, arg.number_attr, "int");
    const AttrDef* number = def_.FindAttr(arg.number_attr);
    if (number != nullptr && number->type == "int" && number->minimum.value_or(-1) < 0) {
      Fault(fmt::format("attribute '{}' counts argument '{}' and so needs a minimum of at least 0", number->name,
                        arg.name));
    }
  }

  void CheckAttr(const ArgDef& arg, const std::string& name, std::string_view type) {
    if (name.empty()) return;
    const AttrDef* attr = def_.FindAttr(name);
    if (attr == nullptr) {
      Fault(fmt::format("argument '{}' names attribute '{}', which is not declared", arg.name, name));
    } else if (attr->type != type) {
      Fault(fmt::format("argument '{}' needs attribute '{}' to be of type '{}', but it is '{}'", arg.name, name, type,
                        attr->type));
    }
  }

  const OpDef& def_;
  std::vector<std::string>& faults_;
  std::vector<std::string_view> names_;  // a few
};

/// For ops that will never be known, what to do instead; else empty.
std::string_view WhyAbsent(std::string_view name) {
  if (name == "PyFunc" || name == "PyFuncStateless" || name == "EagerPyFunc") {
    return " (it is Python of the client's process, which no other process can call: compute its value there and feed "
           "it)";
  }
  const bool of_data = name.find("Dataset") != name.npos || name.find("Iterator") != name.npos;
  if (of_data) return " (tf.data does not run here: read by queues and readers, or iterate in the client and feed)";
  return "";
}

}  // namespace

OpDef* OpBuilder::Open() {
  if (!registry_->frozen()) return &record_->def;
  registry_->AddFault(fmt::format("op '{}': changed after Freeze", record_->def.name));
  return nullptr;
}

OpBuilder& OpBuilder::In(std::string_view signature) {
  if (Open() != nullptr) registry_->AddText(*record_, OpText::Kind::kInput, signature);
  return *this;
}
OpBuilder& OpBuilder::Out(std::string_view signature) {
  if (Open() != nullptr) registry_->AddText(*record_, OpText::Kind::kOutput, signature);
  return *this;
}
OpBuilder& OpBuilder::Attr(std::string_view signature) {
  if (Open() != nullptr) registry_->AddText(*record_, OpText::Kind::kAttr, signature);
  return *this;
}
OpBuilder& OpBuilder::Doc(std::string_view text) {
  if (Open() != nullptr) registry_->AddText(*record_, OpText::Kind::kDoc, text);
  return *this;
}
OpBuilder& OpBuilder::Is(Category category) {
  if (OpDef* def = Open()) def->category = category;
  return *this;
}
OpBuilder& OpBuilder::RunsOn(RunBy run_by) {
  if (OpDef* def = Open()) def->run_by = run_by;
  return *this;
}
OpBuilder& OpBuilder::RunsAs(Universal universal) {
  if (OpDef* def = Open()) def->traits.universal = universal;
  return RunsOn(RunBy::kUniversal);
}
OpBuilder& OpBuilder::RunsAs(Flow flow) {
  if (OpDef* def = Open()) def->traits.flow = flow;
  return RunsOn(RunBy::kExecutor);
}
OpBuilder& OpBuilder::PassesValue() {
  if (OpDef* def = Open()) def->traits.passes_value = true;
  return *this;
}
OpBuilder& OpBuilder::MovesElements() {
  if (OpDef* def = Open()) def->traits.moves_elements = true;
  return *this;
}
OpBuilder& OpBuilder::ChecksOnly() {
  if (OpDef* def = Open()) def->traits.checks_only = true;
  return *this;
}
OpBuilder& OpBuilder::HandlesFromAnywhere() {
  if (OpDef* def = Open()) def->traits.handles_from_anywhere = true;
  return *this;
}
OpBuilder& OpBuilder::Stack(StackRole role) {
  if (OpDef* def = Open()) def->traits.stack = role;
  return *this;
}
OpBuilder& OpBuilder::SameIfEmpty(int input) {
  if (OpDef* def = Open()) def->traits.same_if_empty = input;
  return *this;
}
OpBuilder& OpBuilder::ShapeQuery(ShapeQueryFn fn) {
  if (OpDef* def = Open()) def->traits.shape_query = fn;
  return RunsAs(Universal::kShapeQuery);
}
OpBuilder& OpBuilder::KnownInts(KnownIntsFn fn) {
  if (OpDef* def = Open()) def->traits.known_ints = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::Refusal(RefusalFn fn) {
  if (OpDef* def = Open()) def->traits.refusal = fn;
  return *this;
}
OpBuilder& OpBuilder::Fuses(std::string_view consumer, int input, std::string_view producer) {
  if (OpDef* def = Open()) def->fusion = {std::string(consumer), input, std::string(producer)};
  return *this;
}
OpBuilder& OpBuilder::Computes(std::string_view expression, AttrList attrs) {
  if (OpDef* def = Open()) def->computes.push_back({std::string(expression), std::move(attrs)});
  return *this;
}
OpBuilder& OpBuilder::MeasuredAs(std::string_view op, int inputs) {
  if (OpDef* def = Open()) def->measured_as = {std::string(op), inputs};
  return *this;
}
OpBuilder& OpBuilder::Elementwise() {
  if (OpDef* def = Open()) def->traits.elementwise = true;
  return *this;
}
OpBuilder& OpBuilder::Region() {
  if (OpDef* def = Open()) def->traits.region = true;
  return *this;
}
OpBuilder& OpBuilder::Stateful() {
  if (OpDef* def = Open()) def->stateful = true;
  return *this;
}
OpBuilder& OpBuilder::Commutative() {
  if (OpDef* def = Open()) def->commutative = true;
  return *this;
}
OpBuilder& OpBuilder::Aggregate() {
  if (OpDef* def = Open()) def->aggregate = true;
  return *this;
}
OpBuilder& OpBuilder::AllowsUninitialized() {
  if (OpDef* def = Open()) def->allows_uninitialized_input = true;
  return *this;
}
OpBuilder& OpBuilder::Shape(ShapeFn fn) {
  if (OpDef* def = Open()) def->shape = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::Grad(GradFn fn) {
  if (OpDef* def = Open()) def->gradient = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::NoGradient(std::string_view why) {
  if (Open() != nullptr) registry_->AddText(*record_, OpText::Kind::kNoGradient, why);
  return *this;
}

OpBuilder OpRegistry::Declare(std::string_view name) {
  if (records_.empty()) {  // room for a whole catalogue, which is declared at each start of a process
    by_name_.reserve(1024);
    texts_.reserve(8192);
  }
  OpRecord& record = records_.emplace_back();
  record.def.name = name;
  if (frozen_) {
    AddFault(fmt::format("op '{}': declared after Freeze", name));
  } else if (!by_name_.emplace(record.def.name, &record).second) {
    AddFault(fmt::format("op '{}': declared twice", name));
  }
  return OpBuilder(*this, record);
}

void OpRegistry::AddText(OpRecord& record, OpText::Kind kind, std::string_view text) {
  // Texts lie one after the other in blocks: most are short and an allocation each would cost more than the copy.
  constexpr size_t kBlock = 16384;
  if (text_blocks_.empty() || text_blocks_.back().capacity() - text_blocks_.back().size() < text.size()) {
    text_blocks_.emplace_back().reserve(std::max(kBlock, text.size()));
  }
  std::string& block = text_blocks_.back();
  const size_t begin = block.size();
  block += text;
  const int index = static_cast<int>(texts_.size());
  texts_.push_back({kind, std::string_view(block).substr(begin)});
  (record.last < 0 ? record.first : texts_[static_cast<size_t>(record.last)].next) = index;
  record.last = index;
  record.complete.store(false, std::memory_order_relaxed);  // of a registry that is not frozen: one thread
}

void OpRegistry::ParseTexts(OpRecord& record, std::vector<std::string>& faults) const {
  OpDef& def = record.def;
  const auto parsed = [&](auto result, std::string_view what, auto& list) {
    if (result.ok()) {
      list.push_back(std::move(*result));
    } else {
      faults.push_back(fmt::format("op '{}': {} {}", def.name, what, result.status().message()));
    }
  };
  for (int at = std::exchange(record.first, -1); at >= 0; at = texts_[static_cast<size_t>(at)].next) {
    const OpText& text = texts_[static_cast<size_t>(at)];
    switch (text.kind) {
      case OpText::Kind::kInput:
        parsed(ParseArg(text.text), "input", def.inputs);
        break;
      case OpText::Kind::kOutput:
        parsed(ParseArg(text.text), "output", def.outputs);
        break;
      case OpText::Kind::kAttr:
        parsed(ParseAttr(text.text), "attribute", def.attrs);
        break;
      case OpText::Kind::kDoc:
        def.doc = text.text;
        break;
      case OpText::Kind::kNoGradient:
        def.no_gradient = text.text;
        break;
    }
  }
  record.last = -1;
  ResolveLists(def, def.inputs);
  ResolveLists(def, def.outputs);
}

const OpDef* OpRegistry::Complete(OpRecord& record) const {
  if (!record.complete.load(std::memory_order_acquire)) {
    const std::lock_guard lock(completing_);
    if (!record.complete.load(std::memory_order_relaxed)) {
      const size_t before = late_faults_.size();
      ParseTexts(record, late_faults_);
      if (frozen_) Checker(record.def, late_faults_).Check();
      record.faulty = frozen_ && late_faults_.size() > before;
      record.complete.store(true, std::memory_order_release);
    }
  }
  return record.faulty ? nullptr : &record.def;
}

std::vector<OpRecord*> OpRegistry::Sorted() const {
  std::vector<OpRecord*> sorted;
  for (const auto& [name, record] : by_name_) sorted.push_back(record);
  std::ranges::sort(sorted, {}, [](const OpRecord* record) -> std::string_view { return record->def.name; });
  return sorted;
}

Status OpRegistry::Freeze(Checks checks) {
  if (!frozen_) {
    if (checks == Checks::kNow) {
      for (OpRecord& record : records_) ParseTexts(record, faults_);
      for (OpRecord* record : Sorted()) Checker(record->def, faults_).Check();
    }
    // A record that was used before now is checked when it is used again.
    for (OpRecord& record : records_) {
      record.complete.store(checks == Checks::kNow, std::memory_order_relaxed);
    }
    frozen_ = true;
    for (OpRecord& record : records_) {
      const OpDef& def = record.def;
      const bool fuses = !def.fusion.consumer.empty();
      if (!fuses && def.computes.empty() && !def.traits.region) continue;
      Complete(record);  // passes use these records without a look-up
      if (!def.computes.empty()) fused_ops_.push_back(&def);
      if (def.traits.region) region_op_ = &def;
      if (const std::string& base = def.measured_as.op; !base.empty() && !by_name_.contains(base)) {
        AddFault(fmt::format("op '{}': it is measured as '{}', which is not declared", def.name, base));
      }
      if (!fuses) continue;
      if (!by_name_.contains(def.fusion.consumer) || !by_name_.contains(def.fusion.producer)) {
        AddFault(fmt::format("op '{}': it fuses '{}' and '{}', which are not both declared", def.name,
                             def.fusion.consumer, def.fusion.producer));
      }
      fusions_.push_back(&def);
    }
    faults_.insert(faults_.end(), late_faults_.begin(), late_faults_.end());
    late_faults_.clear();
  }
  if (faults_.empty()) return {};
  return InvalidArgument("{} faults in the declarations of ops:\n{}", faults_.size(), fmt::join(faults_, "\n"));
}

bool OpRegistry::Has(std::string_view name) const {
  return by_name_.contains(name) || (frozen_ && FindVendorOp(name) != nullptr);
}

const OpDef* OpRegistry::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) return Complete(*it->second);
  return frozen_ ? FindVendorOp(name) : nullptr;
}

Result<const OpDef*> OpRegistry::Get(std::string_view name) const {
  if (const OpDef* def = Find(name)) return def;
  if (by_name_.contains(name)) {
    const std::lock_guard lock(completing_);
    return InvalidArgument("faults in the declarations of ops:\n{}", fmt::join(late_faults_, "\n"));
  }
  std::vector<std::string_view> names;
  for (const auto& [known, record] : by_name_) names.push_back(known);
  for (const OpDef* known : frozen_ ? AllVendorOps() : std::vector<const OpDef*>()) names.push_back(known->name);
  return NotFound(
      "Op type not registered '{}' in binary running on {}. Make sure the Op and Kernel are registered in the binary "
      "running in this process.{}",
      name, HostName(), WhyAbsent(name).empty() ? NearestHint(name, names) : WhyAbsent(name));
}

std::vector<const OpDef*> OpRegistry::All() const {
  std::vector<const OpDef*> all;
  for (const auto& [name, record] : by_name_) {
    if (const OpDef* def = Complete(*record)) all.push_back(def);
  }
  if (frozen_) std::ranges::copy(AllVendorOps(), std::back_inserter(all));
  std::ranges::sort(all, {}, &OpDef::name);
  return all;
}

void OpRegistry::AddFault(std::string fault) { faults_.push_back(std::move(fault)); }

}  // namespace weir::op
