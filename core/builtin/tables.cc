// The ops of lookup tables.
#include <bit>
#include <charconv>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/pieces.h"
#include "core/builtin/references.h"
#include "core/builtin/table.h"
#include "core/io/files.h"
#include "core/tensor/number.h"
#include "core/tensor/resource.h"

namespace weir::builtin {
namespace {

using Table = std::shared_ptr<LookupTable>;
using TableKind = LookupTable::Kind;

constexpr uint64_t kLargestVocabulary = uint64_t{4} << 30;
constexpr int64_t kLineNumber = -1, kWholeLine = -2;

Status CheckDenseKeys(const kernel::BuiltinCall& call, const LookupTable::Options& options) {
  if (!(call.inputs[0].shape() == call.inputs[1].shape())) {
    return InvalidArgument("Empty and deleted keys must have same shape, got shapes: {} and {}",
                           call.inputs[0].shape().ToString(), call.inputs[1].shape().ToString());
  }
  if (call.inputs[0].SameBits(call.inputs[1])) return InvalidArgument("Empty and deleted keys cannot be equal");
  if (options.key == DType::kString && options.key_shape.rank() > 0) {
    return Unimplemented("keys of several strings each are not supported");
  }
  WEIR_ASSIGN(const int64_t buckets, call.attrs.Int("initial_num_buckets"));
  if (buckets < 4 || !std::has_single_bit(static_cast<uint64_t>(buckets))) {
    return InvalidArgument("Number of buckets must be at least 4 and a power of 2, got: {}", buckets);
  }
  WEIR_ASSIGN(const float load, call.attrs.Float("max_load_factor"));
  if (load > 0 && load < 1) return Status();
  return InvalidArgument("max_load_factor must be between 0 and 1, got: {}", load);
}

enum class Names : uint8_t { kHandle, kReference };

Status MakeTable(kernel::BuiltinCall& call, TableKind kind, Names names) {
  LookupTable::Options options;
  options.kind = kind;
  WEIR_ASSIGN(options.key, call.attrs.Type("key_dtype"));
  WEIR_ASSIGN(options.value, call.attrs.Type("value_dtype"));
  if (options.key != DType::kString && !HasFixedSize(options.key)) {
    return InvalidArgument("a table cannot have keys of type {}", Name(options.key));
  }
  if (const Result<PartialShape> shape = call.attrs.ShapeAttr("value_shape"); shape.ok()) {
    WEIR_ASSIGN(options.value_shape, shape->ToShape());
  }
  if (kind == TableKind::kDense) {
    options.key_shape = call.inputs[0].shape();
    options.empty_key = call.inputs[0];
    options.deleted_key = call.inputs[1];
    WEIR_TRY(CheckDenseKeys(call, options));
  }
  WEIR_ASSIGN(const std::shared_ptr<Resource> made,
              OutputOfSession(call, 0, LookupTable::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                return std::shared_ptr<Resource>(std::make_shared<LookupTable>(options));
              }));
  const auto table = std::dynamic_pointer_cast<LookupTable>(made);
  const std::string name = call.outputs[0].as<ResourceHandle>()[0].name;
  if (names == Names::kReference) ReferToHandle(call, 0);
  if (table && table->options().SameTypes(options)) return Status();
  if (!table) return InvalidArgument("'{}' is no table", name);
  return InvalidArgument("Conflicting key/value dtypes {}->{} with {}-{} for table {}", Name(options.key),
                         Name(options.value), Name(table->options().key), Name(table->options().value), name);
}

Result<Table> TableToInitialize(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(Table table, ResourceBehind<LookupTable>(call, 0));
  if (table->options().kind == TableKind::kStatic) return table;
  if (call.inputs[0].dtype() != DType::kResource) {
    const std::span<const std::string> names = call.inputs[0].as<std::string>();
    return InvalidArgument("Table {} {} is not initializable", names[0], names[1]);
  }
  const ResourceHandle& handle = call.inputs[0].as<ResourceHandle>()[0];
  return InvalidArgument("Table {} {} is not initializable", handle.container, handle.name);
}

Status InitializeTable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, TableToInitialize(call));
  return table->Initialize(call.inputs[1], call.inputs[2]);
}

Status InsertIntoTable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, ResourceBehind<LookupTable>(call, 0));
  return table->Insert(call.inputs[1], call.inputs[2], LookupTable::Replace::kNothing);
}

Status ImportTable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, ResourceBehind<LookupTable>(call, 0));
  if (table->options().kind == TableKind::kStatic) return table->Initialize(call.inputs[1], call.inputs[2]);
  return table->Insert(call.inputs[1], call.inputs[2], LookupTable::Replace::kAll);
}

Status RemoveFromTable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, ResourceBehind<LookupTable>(call, 0));
  return table->Remove(call.inputs[1]);
}

Status FindInTable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, ResourceBehind<LookupTable>(call, 0));
  WEIR_ASSIGN(call.outputs[0], table->Find(call.inputs[1], call.inputs[2]));
  return Status();
}

Status ExportTable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, ResourceBehind<LookupTable>(call, 0));
  WEIR_ASSIGN(const DType key, call.attrs.Type("Tkeys"));
  WEIR_ASSIGN(const DType value, call.attrs.Type("Tvalues"));
  if (key != table->options().key || value != table->options().value) {
    return InvalidArgument("Signature mismatch, have: resource->{}, {} expected: resource->{}, {}", Name(key),
                           Name(value), Name(table->options().key), Name(table->options().value));
  }
  WEIR_ASSIGN(auto all, table->Export());
  call.outputs[0] = std::move(all.first);
  call.outputs[1] = std::move(all.second);
  return Status();
}

Status TableSize(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Table table, ResourceBehind<LookupTable>(call, 0));
  call.outputs[0] = Tensor::Scalar(table->size());
  return Status();
}

// Vocabulary files.

/// One column of a file: the keys or values of a table.
class Column {
 public:
  static Result<Column> Make(std::string_view what, DType dtype, int64_t index, int64_t offset, size_t lines) {
    if (index == kLineNumber && dtype != DType::kInt64) {
      return InvalidArgument("{} index for line number requires table {} dtype of int64, got {}", what,
                             what == "Key" ? "key" : "value", Name(dtype));
    }
    const bool known = dtype == DType::kString || dtype == DType::kInt64 || dtype == DType::kInt32 ||
                       dtype == DType::kFloat || dtype == DType::kDouble;
    if (!known) return InvalidArgument("Data type {} not supported.", Name(dtype));
    WEIR_ASSIGN(Tensor elements, Tensor::Make(dtype, Shape{static_cast<int64_t>(lines)}));
    return Column(index, offset, std::move(elements));
  }

  /// `fields` are the columns of the line.
  Status Set(size_t line, std::string_view whole, const std::vector<std::string_view>& fields) {
    if (index_ == kLineNumber) {
      elements_.mutable_as<int64_t>()[line] = static_cast<int64_t>(line) + offset_;
      return Status();
    }
    const std::string_view text = index_ == kWholeLine ? whole : fields[static_cast<size_t>(index_)];
    switch (elements_.dtype()) {
      case DType::kString:
        elements_.mutable_as<std::string>()[line] = text;
        return Status();
      case DType::kInt64:
        return Number<int64_t>(line, text);
      case DType::kInt32:
        return Number<int32_t>(line, text);
      case DType::kFloat:
        return Number<float>(line, text);
      default:
        return Number<double>(line, text);
    }
  }
  Tensor Take() { return std::move(elements_); }

 private:
  Column(int64_t index, int64_t offset, Tensor elements)
      : index_(index), offset_(offset), elements_(std::move(elements)) {}

  template <class T>
  Status Number(size_t line, std::string_view text) {
    T value{};
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size()) {
      return InvalidArgument("Field {} in line {} is not a valid {}.", text, line, Name(elements_.dtype()));
    }
    elements_.mutable_as<T>()[line] = value;
    return Status();
  }

  int64_t index_;
  int64_t offset_;
  Tensor elements_;
};

std::vector<std::string_view> Cut(std::string_view text, char at) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t end = text.find(at);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

struct VocabularyAttrs {
  int64_t key = 0, value = 0, vocab_size = -1, offset = 0;
  char delimiter = '\t';
};

Result<VocabularyAttrs> ReadVocabularyAttrs(const kernel::BuiltinCall& call) {
  VocabularyAttrs attrs;
  WEIR_ASSIGN(attrs.key, call.attrs.Int("key_index"));
  WEIR_ASSIGN(attrs.value, call.attrs.Int("value_index"));
  WEIR_ASSIGN(attrs.vocab_size, call.attrs.Int("vocab_size"));
  WEIR_ASSIGN(attrs.offset, call.attrs.Int("offset"));
  WEIR_ASSIGN(const std::string delimiter, call.attrs.String("delimiter"));
  if (delimiter.size() != 1) return InvalidArgument("delimiter should be only 1 char");
  attrs.delimiter = delimiter[0];
  return attrs;
}

Status InitializeFromFile(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const VocabularyAttrs attrs, ReadVocabularyAttrs(call));
  WEIR_ASSIGN(const Table table, TableToInitialize(call));
  WEIR_ASSIGN(const std::string path, Scalar<std::string>(call, 1, "filename"));
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kLargestVocabulary));
  std::vector<std::string_view> lines = Cut(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  if (attrs.vocab_size > static_cast<int64_t>(lines.size())) {
    return InvalidArgument("Invalid vocab_size in {}: expected {} but got {}", path, attrs.vocab_size, lines.size());
  }
  if (attrs.vocab_size >= 0) lines.resize(static_cast<size_t>(attrs.vocab_size));
  WEIR_ASSIGN(Column keys, Column::Make("Key", table->options().key, attrs.key, attrs.offset, lines.size()));
  WEIR_ASSIGN(Column values, Column::Make("Value", table->options().value, attrs.value, attrs.offset, lines.size()));
  const int64_t columns = std::max(attrs.key, attrs.value) + 1;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_with('\r')) lines[i].remove_suffix(1);
    const std::vector<std::string_view> fields =
        columns > 0 ? Cut(lines[i], attrs.delimiter) : std::vector<std::string_view>();
    if (columns > static_cast<int64_t>(fields.size())) {
      return InvalidArgument("Invalid number of columns in {} line {} ({}) : expected at least {} got {}", path, i,
                             lines[i], columns, fields.size());
    }
    WEIR_TRY(keys.Set(i, lines[i], fields));
    WEIR_TRY(values.Set(i, lines[i], fields));
  }
  return table->Initialize(keys.Take(), values.Take());
}

}  // namespace

void AddTables(kernel::KernelRegistry& kernels) {
  using kernel::InputUse;
  for (const Names names : {Names::kHandle, Names::kReference}) {
    const std::string version = names == Names::kHandle ? "V2" : "";
    const auto make = [names](TableKind kind) {
      return [kind, names](kernel::BuiltinCall& call) { return MakeTable(call, kind, names); };
    };
    kernels.AddHost("HashTable" + version, make(TableKind::kStatic));
    kernels.AddHost("MutableHashTable" + version, make(TableKind::kMutable));
    kernels.AddHost("MutableHashTableOfTensors" + version, make(TableKind::kMutable));
    kernels.AddHost("InitializeTable" + version, InitializeTable, InputUse::kKept);
    kernels.AddHostBlocking("InitializeTableFromTextFile" + version, InitializeFromFile);
    kernels.AddHost("LookupTableInsert" + version, InsertIntoTable, InputUse::kKept);
    kernels.AddHost("LookupTableImport" + version, ImportTable, InputUse::kKept);
    kernels.AddHost("LookupTableFind" + version, FindInTable);
    kernels.AddHost("LookupTableExport" + version, ExportTable);
    kernels.AddHost("LookupTableSize" + version, TableSize);
  }
  kernels.AddHost(
      "MutableDenseHashTableV2",
      [](kernel::BuiltinCall& call) { return MakeTable(call, TableKind::kDense, Names::kHandle); }, InputUse::kKept);
  kernels.AddHost("LookupTableRemoveV2", RemoveFromTable);
}

}  // namespace weir::builtin
