// Records of comma-separated values: RFC 4180.
#include <algorithm>

#include "core/builtin/families.h"
#include "core/builtin/numerals.h"
#include "core/builtin/operands.h"

namespace weir::builtin {
namespace {

struct CsvForm {
  char delimiter = ',';
  bool quotes = true;
  std::string missing;           // stands for no value, as the empty field does
  std::vector<int64_t> columns;  // those read, increasing; empty: all
};

Result<CsvForm> FormOf(const kernel::BuiltinCall& call) {
  CsvForm form;
  WEIR_ASSIGN(const std::string delimiter, call.attrs.String("field_delim"));
  WEIR_ASSIGN(form.quotes, call.attrs.Bool("use_quote_delim"));
  WEIR_ASSIGN(form.missing, call.attrs.String("na_value"));
  WEIR_ASSIGN(form.columns, call.attrs.Ints("select_cols"));
  if (!form.columns.empty() && form.columns.size() != call.outputs.size()) {
    return InvalidArgument("select_cols should match output size");
  }
  for (size_t i = 0; i < form.columns.size(); ++i) {
    if (form.columns[i] < 0) return InvalidArgument("select_cols should be non-negative indices");
    if (i > 0 && form.columns[i] <= form.columns[i - 1]) {
      return InvalidArgument("select_cols should be strictly increasing indices");
    }
  }
  if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
  form.delimiter = delimiter[0];
  return form;
}

/// Reads the field that begins at `at`; then `at` is behind the delimiter, or behind the end of the record plus one.
Result<std::string> ReadField(std::string_view record, const CsvForm& form, size_t* at) {
  std::string field;
  if (!form.quotes || *at >= record.size() || record[*at] != '"') {
    const size_t end = std::min(record.find(form.delimiter, *at), record.size());
    field = record.substr(*at, end - *at);
    if (form.quotes && field.find_first_of("\"\n\r") != std::string::npos) {
      return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
    }
    *at = end + 1;
    return field;
  }
  size_t i = *at + 1;
  for (; i < record.size(); ++i) {
    if (record[i] != '"') {
      field += record[i];
    } else if (i + 1 == record.size() || record[i + 1] == form.delimiter) {
      *at = i + 2;
      return field;
    } else if (record[i + 1] == '"') {
      field += '"';
      ++i;
    } else {
      return InvalidArgument("Quote inside a string has to be escaped by another quote");
    }
  }
  return InvalidArgument("Quoted field has to end with quote followed by delim or end");
}

/// The wanted fields of a record.
Result<std::vector<std::string>> ReadRecord(std::string_view record, const CsvForm& form) {
  std::vector<std::string> fields;
  size_t next = 0;
  int64_t column = 0;
  for (size_t at = 0; !record.empty() && at <= record.size(); ++column) {
    WEIR_ASSIGN(std::string field, ReadField(record, form, &at));
    const bool wanted = form.columns.empty() || (next < form.columns.size() && form.columns[next] == column);
    if (!wanted) continue;
    fields.push_back(std::move(field));
    ++next;
  }
  return fields;
}

/// Writes one field to element `i` of its column.
template <class T>
Status SetField(const std::string& field, size_t column, size_t i, Tensor* to) {
  if constexpr (std::is_same_v<T, std::string>) {
    to->mutable_as<std::string>()[i] = field;
  } else {
    T value = 0;
    if (!ReadNumber(field, &value)) {
      return InvalidArgument("Field {} in record {} is not a valid {}: {}", column, i, Name(DTypeOf<T>::value), field);
    }
    to->mutable_as<T>()[i] = value;
  }
  return Status();
}

template <class T>
Status WriteField(const std::string& field, bool missing, const Tensor& value, size_t column, size_t i, Tensor* to) {
  if (!missing) return SetField<T>(field, column, i, to);
  if (value.elements() == 0) return InvalidArgument("Field {} is required but missing in record {}!", column, i);
  to->mutable_as<T>()[i] = value.as<T>()[0];
  return Status();
}

Status WriteField(const std::string& field, bool missing, const Tensor& value, size_t column, size_t i, Tensor* to) {
  switch (to->dtype()) {
    case DType::kFloat:
      return WriteField<float>(field, missing, value, column, i, to);
    case DType::kDouble:
      return WriteField<double>(field, missing, value, column, i, to);
    case DType::kInt32:
      return WriteField<int32_t>(field, missing, value, column, i, to);
    case DType::kInt64:
      return WriteField<int64_t>(field, missing, value, column, i, to);
    case DType::kString:
      return WriteField<std::string>(field, missing, value, column, i, to);
    default:
      return InvalidArgument("csv: data type {} not supported in field {}", Name(to->dtype()), column);
  }
}

Status DecodeCsv(kernel::BuiltinCall& call) {
  const size_t columns = call.outputs.size();
  if (columns == 0 || call.inputs.size() != columns + 1) {
    return InvalidArgument("DecodeCSV wants as many defaults as outputs, got {} and {}", call.inputs.size(), columns);
  }
  WEIR_ASSIGN(const std::span<const std::string> records, Elements<std::string>(call, 0, "records"));
  WEIR_ASSIGN(const CsvForm form, FormOf(call));
  for (size_t i = 0; i < columns; ++i) {
    const Tensor& value = call.inputs[i + 1];
    if (value.shape().rank() > 1) return InvalidArgument("Each record default should be at most rank 1");
    if (value.elements() > 1) {
      return InvalidArgument("There should only be 1 default per field but field {} has {}", i, value.elements());
    }
    WEIR_ASSIGN(call.outputs[i], Tensor::Make(value.dtype(), call.inputs[0].shape()));
  }
  for (size_t i = 0; i < records.size(); ++i) {
    WEIR_ASSIGN(const std::vector<std::string> fields, ReadRecord(records[i], form));
    if (fields.size() != columns) {
      return InvalidArgument("Expect {} fields but have {} in record {}", columns, fields.size(), i);
    }
    for (size_t k = 0; k < columns; ++k) {
      const bool missing = fields[k].empty() || fields[k] == form.missing;
      WEIR_TRY(WriteField(fields[k], missing, call.inputs[k + 1], k, i, &call.outputs[k]));
    }
  }
  return Status();
}

}  // namespace

void AddCsv(kernel::KernelRegistry& kernels) { kernels.AddHost("DecodeCSV", DecodeCsv); }

}  // namespace weir::builtin
