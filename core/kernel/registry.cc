#include "core/kernel/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <tuple>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "core/kernel/operand_args.h"

namespace weir::kernel {
namespace {

std::span<const weir_type_constraint> Constraints(const weir_kernel& record) {
  return {record.types, record.types != nullptr ? record.type_count : 0};
}

// True for the same constraints in any order; no attribute is constrained twice.
bool SameTypes(std::span<const weir_type_constraint> a, std::span<const weir_type_constraint> b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [b](const weir_type_constraint& type) {
           return std::any_of(b.begin(), b.end(), [&type](const weir_type_constraint& other) {
             return type.dtypes == other.dtypes && Text(type.attr) == Text(other.attr);
           });
         });
}

bool SameKey(const weir_kernel& a, const weir_kernel& b) {
  return a.priority == b.priority && Text(a.platform) == Text(b.platform) &&
         SameTypes(Constraints(a), Constraints(b));
}

// "DT_FLOAT, DT_INT32"
std::string TypeNames(DTypeSet set) {
  std::string names;
  for (uint32_t t = 1; t < 64; ++t) {
    if (!Contains(set, static_cast<DType>(t)) || !IsKnown(static_cast<DType>(t))) continue;
    if (!names.empty()) names += ", ";
    names += EnumName(static_cast<DType>(t));
  }
  return names;
}

bool Fits(const weir_type_constraint& constraint, const op::AttrView& attrs) {
  const op::AttrValue* value = attrs.Find(Text(constraint.attr));
  if (value == nullptr) return false;
  if (const DType* type = value->get<DType>()) return Contains(constraint.dtypes, BaseType(*type));
  const auto* types = value->get<std::vector<DType>>();
  if (types == nullptr) return value->get<op::EmptyList>() != nullptr;
  return std::all_of(types->begin(), types->end(), [&](DType t) { return Contains(constraint.dtypes, BaseType(t)); });
}

// Checks of the record that do not need the op's definition.
Status CheckRecord(const weir_kernel* record) {
  if (record == nullptr) return InvalidArgument("a null kernel record");
  const auto declared = static_cast<uint32_t>(offsetof(weir_kernel, supports));
  if (record->struct_size < declared) {
    return InvalidArgument("a kernel record of {} bytes, wanted at least {}", record->struct_size, declared);
  }
  const std::string_view op = Text(record->op);
  if (op.empty()) return InvalidArgument("a kernel record without an op");
  if (Text(record->platform).empty()) return InvalidArgument("kernel {}: no platform", op);
  if (Text(record->platform) == kHostPlatform) {
    return InvalidArgument("kernel {}: platform '{}' is the core's own", op, kHostPlatform);
  }
  if (record->type_count != 0 && record->types == nullptr) return InvalidArgument("kernel {}: types are missing", op);
  if (!WEIR_HAS(record, prepare) && !WEIR_HAS(record, compute)) {
    return InvalidArgument("kernel {}: neither a prepared nor a dynamic form", op);
  }
  if ((record->flags & WEIR_KERNEL_ASYNC) != 0 && record->variable_writes != 0) {
    return InvalidArgument("kernel {}: an ASYNC kernel writes no variable: a lock is not held until it completes", op);
  }
  if (WEIR_HAS(record, create) && !WEIR_HAS(record, compute)) {
    return InvalidArgument("kernel {}: create without compute", op);
  }
  return {};
}

bool IsOpaque(DType type) { return type == DType::kResource || type == DType::kVariant; }

// Handles and variants stay in the core: kernels see a variable only as its value.
Status CheckOpaque(const weir_kernel& record, const op::OpDef& op) {
  const uint64_t variables = record.variable_reads | record.variable_writes;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!IsOpaque(op.inputs[i].dtype) || Masked(variables, static_cast<int>(i))) continue;
    return InvalidArgument("kernel {}: input '{}' is a {}, which plugins are not given but as the value of a variable",
                           op.name, op.inputs[i].name, Name(op.inputs[i].dtype));
  }
  for (const op::ArgDef& output : op.outputs) {
    if (!IsOpaque(output.dtype)) continue;
    return InvalidArgument("kernel {}: output '{}' is a {}, which plugins cannot make", op.name, output.name,
                           Name(output.dtype));
  }
  return {};
}

// True if a type attribute of the node is resource or variant.
bool HasOpaqueType(const op::AttrView& attrs) {
  return std::any_of(attrs.def().attrs.begin(), attrs.def().attrs.end(), [&](const op::AttrDef& def) {
    if (def.type != "type" && def.type != "list(type)") return false;
    const op::AttrValue* const value = attrs.Find(def.name);
    if (value == nullptr) return false;
    if (const DType* type = value->get<DType>()) return IsOpaque(*type);
    const auto* const types = value->get<std::vector<DType>>();
    return types != nullptr && std::any_of(types->begin(), types->end(), IsOpaque);
  });
}

// Checks of the type constraints that do not need the op's definition.
Status CheckConstraints(const weir_kernel& record) {
  const auto constraints = Constraints(record);
  for (size_t i = 0; i < constraints.size(); ++i) {
    const std::string_view attr = Text(constraints[i].attr);
    for (size_t j = 0; j < i; ++j) {
      if (Text(constraints[j].attr) != attr) continue;
      return InvalidArgument("kernel {}: '{}' is constrained twice", Text(record.op), attr);
    }
    if (constraints[i].dtypes == 0) {
      return InvalidArgument("kernel {}: '{}' may have no type at all", Text(record.op), attr);
    }
  }
  return {};
}

Status CheckAgainstOp(const op::OpRegistry& ops, const weir_kernel& record) {
  const std::string_view op = Text(record.op);
  const op::OpDef* def = ops.Find(op);
  if (def == nullptr) return InvalidArgument("kernel {}: {}", op, ops.Get(op).status().message());
  if (def->run_by != op::RunBy::kKernel) {
    return InvalidArgument("kernel {}: the core runs this op itself ({}) on every device", op, Name(def->run_by));
  }
  WEIR_TRY(CheckOpaque(record, *def));
  for (const weir_type_constraint& constraint : Constraints(record)) {
    const op::AttrDef* attr = def->FindAttr(Text(constraint.attr));
    if (attr != nullptr && (attr->type == "type" || attr->type == "list(type)")) continue;
    return InvalidArgument("kernel {}: the op has no type attribute '{}'", op, Text(constraint.attr));
  }
  return {};
}

}  // namespace

Status KernelRegistry::Add(const op::OpRegistry& ops, KernelEntry entry) {
  WEIR_TRY(CheckRecord(entry.record));
  WEIR_TRY(CheckAgainstOp(ops, *entry.record));
  entry.check.Set(RecordCheck::Outcome::kFits);
  return AddOnUse(ops, std::move(entry));
}

Status KernelRegistry::AddOnUse(const op::OpRegistry& ops, KernelEntry entry) {
  WEIR_TRY(CheckRecord(entry.record));
  const weir_kernel& record = *entry.record;
  const std::string_view op = Text(record.op);
  if (!ops.Has(op)) return InvalidArgument("kernel {}: {}", op, ops.Get(op).status().message());
  WEIR_TRY(CheckConstraints(record));
  auto same_op = by_op_.find(op);
  if (same_op == by_op_.end()) same_op = by_op_.emplace(std::string(op), std::vector<KernelEntry>()).first;
  for (const KernelEntry& other : same_op->second) {
    if (other.file == entry.file && SameKey(*other.record, record)) {
      return InvalidArgument("kernel {}: a second record for platform {}, the same types and priority {}", op,
                             Text(record.platform), record.priority);
    }
  }
  if (entry.check.outcome() == RecordCheck::Outcome::kOpen) ops_ = &ops;
  same_op->second.push_back(std::move(entry));
  return {};
}

bool KernelRegistry::Usable(const KernelEntry& entry) const {
  if (entry.check.outcome() == RecordCheck::Outcome::kOpen) {
    const bool fits = entry.host || CheckAgainstOp(*ops_, *entry.record).ok();
    entry.check.Set(fits ? RecordCheck::Outcome::kFits : RecordCheck::Outcome::kFaulty);
  }
  return entry.check.outcome() == RecordCheck::Outcome::kFits;
}

std::vector<RecordFault> KernelRegistry::Faults() const {
  std::vector<RecordFault> faults;
  for (const auto& [op, of_op] : by_op_) {
    for (const KernelEntry& entry : of_op) {
      if (Usable(entry)) continue;
      faults.push_back({entry.plugin, entry.file, std::string(CheckAgainstOp(*ops_, *entry.record).message())});
    }
  }
  std::sort(faults.begin(), faults.end(), [](const RecordFault& a, const RecordFault& b) {
    return std::tie(a.file, a.plugin, a.message) < std::tie(b.file, b.plugin, b.message);
  });
  return faults;
}

void KernelRegistry::AddHostKernel(std::string op, BuiltinKernel kernel) {
  if (by_op_.empty()) by_op_.reserve(1024);  // the ops of the catalogue, which each start registers
  if (FindHost(op) != nullptr) return;
  struct Own {
    std::string op;
    BuiltinKernel kernel;
    weir_kernel record{};
  };
  const auto own = std::make_shared<Own>(Own{std::move(op), std::move(kernel)});
  own->record.struct_size = sizeof(weir_kernel);
  own->record.op = {own->op.data(), own->op.size()};
  own->record.platform = {kHostPlatform.data(), kHostPlatform.size()};
  own->record.host_inputs = own->record.host_outputs = std::numeric_limits<uint64_t>::max();
  KernelEntry& entry = by_op_[own->op].emplace_back();
  entry.record = &own->record;
  entry.plugin = "core";
  entry.host = std::shared_ptr<const BuiltinKernel>(own, &own->kernel);
}

const KernelEntry* KernelRegistry::FindHost(std::string_view op) const {
  const auto it = by_op_.find(op);
  if (it == by_op_.end()) return nullptr;
  const auto found = std::find_if(it->second.begin(), it->second.end(), [](const KernelEntry& e) { return e.host; });
  return found == it->second.end() ? nullptr : &*found;
}

std::vector<const KernelEntry*> KernelRegistry::Find(const op::AttrView& attrs, std::string_view platform) const {
  std::vector<const KernelEntry*> found;
  const auto it = by_op_.find(attrs.def().name);
  if (it == by_op_.end() || HasOpaqueType(attrs)) return found;
  for (const KernelEntry& entry : it->second) {
    if (entry.host || !Usable(entry)) continue;
    const auto constraints = Constraints(*entry.record);
    const bool fits =
        Text(entry.record->platform) == platform &&
        std::all_of(constraints.begin(), constraints.end(), [&](const auto& c) { return Fits(c, attrs); });
    if (fits) found.push_back(&entry);
  }
  const auto hidden = [&found](const KernelEntry* entry) {
    return std::any_of(found.begin(), found.end(), [entry](const KernelEntry* other) {
      return other->plugin == entry->plugin && other->record->priority == entry->record->priority &&
             other->isa_level > entry->isa_level;
    });
  };
  std::vector<const KernelEntry*> visible;
  std::copy_if(found.begin(), found.end(), std::back_inserter(visible),
               [&](const KernelEntry* e) { return !hidden(e); });
  std::stable_sort(visible.begin(), visible.end(), [](const KernelEntry* a, const KernelEntry* b) {
    if (a->record->priority != b->record->priority) return a->record->priority > b->record->priority;
    return a->plugin < b->plugin;
  });
  return visible;
}

std::vector<const KernelEntry*> KernelRegistry::ForOp(std::string_view op) const {
  std::vector<const KernelEntry*> entries;
  const auto it = by_op_.find(op);
  if (it == by_op_.end()) return entries;
  for (const KernelEntry& entry : it->second) {
    if (Usable(entry)) entries.push_back(&entry);
  }
  return entries;
}

std::vector<const KernelEntry*> KernelRegistry::All() const {
  std::vector<const KernelEntry*> entries;
  for (const auto& [op, of_op] : by_op_) {
    for (const KernelEntry& entry : of_op) {
      if (Usable(entry)) entries.push_back(&entry);
    }
  }
  std::sort(entries.begin(), entries.end(), [](const KernelEntry* a, const KernelEntry* b) {
    return std::tuple(Text(a->record->op), Text(a->record->platform), std::string_view(a->file), a) <
           std::tuple(Text(b->record->op), Text(b->record->platform), std::string_view(b->file), b);
  });
  return entries;
}

size_t KernelRegistry::size() const {
  size_t count = 0;
  for (const auto& [op, of_op] : by_op_) {
    count += static_cast<size_t>(
        std::count_if(of_op.begin(), of_op.end(), [this](const KernelEntry& entry) { return Usable(entry); }));
  }
  return count;
}

KernelListing ListKernels(const KernelRegistry& kernels, const op::AttrView& attrs) {
  std::map<std::string, std::string> printed;
  for (const op::AttrDef& def : attrs.def().attrs) {
    if (const op::AttrValue* value = attrs.Find(def.name)) printed[def.name] = value->ToString();
  }
  for (const auto& [name, value] : attrs.explicit_values()) printed[name] = value.ToString();
  KernelListing listing;
  std::string_view comma;
  for (const auto& [name, value] : printed) {
    listing.attrs += fmt::format("{}{}={}", comma, name, value);
    comma = ", ";
  }
  listing.kernels = "Registered kernels:\n";
  const std::vector<const KernelEntry*> registered = kernels.ForOp(attrs.def().name);
  for (const KernelEntry* entry : registered) {
    const std::string_view platform = Text(entry->record->platform);
    listing.kernels += fmt::format("  device='{}'", platform == "cpu" ? "CPU" : platform);
    for (const weir_type_constraint& type : Constraints(*entry->record)) {
      listing.kernels += fmt::format("; {} in [{}]", Text(type.attr), TypeNames(type.dtypes));
    }
    listing.kernels += '\n';
  }
  if (registered.empty()) listing.kernels += "  <no registered kernels>\n";
  return listing;
}

Status NoKernelError(const KernelRegistry& kernels, const op::AttrView& attrs, std::string_view node,
                     const std::vector<std::string>& device_kinds) {
  const KernelListing listing = ListKernels(kernels, attrs);
  return InvalidArgument(
             "No OpKernel was registered to support Op '{}' used by {{{{node {}}}}} with these attrs: [{}]\nRegistered "
             "devices: [{}]\n{}",
             attrs.def().name, node, listing.attrs, fmt::join(device_kinds, ", "), listing.kernels)
      .WithNode(std::string(node));
}

}  // namespace weir::kernel
