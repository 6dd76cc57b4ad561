#include "core/io/legacy_checkpoint.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/io/file_pattern.h"
#include "core/io/files.h"
#include "core/io/table_file.h"
#include "core/proto/parse.h"
#include "core/tensor/number.h"
#include "core/tensor/tensor_proto.h"
#include "weir/proto/checkpoint.pb.h"

namespace weir::io {
namespace {

constexpr int kLegacyVersion = 1;
/// More bytes would not fit a message.
constexpr int64_t kMostSliceBytes = int64_t{1} << 30;

TensorSlice LegacySlice(const tf::TensorSliceProto& proto) {
  TensorSlice slice;
  for (const auto& extent : proto.extent()) {
    const bool whole = extent.has_length_case() == tf::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    slice.push_back({extent.start(), whole ? SliceExtent::kWholeDim : extent.length()});
  }
  return slice;
}

void LegacySliceToProto(const TensorSlice& slice, tf::TensorSliceProto& proto) {
  for (const SliceExtent& extent : slice) {
    auto* added = proto.add_extent();
    if (extent.start != 0) added->set_start(extent.start);
    if (extent.length != SliceExtent::kWholeDim) added->set_length(extent.length);
  }
}

/// Fills the typed field; type and shape are in the meta entry. False for types without one.
bool FillLegacy(const Tensor& tensor, tf::TensorProto& proto) {
  const int64_t n = tensor.elements();
  switch (tensor.dtype()) {
    case DType::kFloat:
      for (int64_t i = 0; i < n; ++i) proto.add_float_val(static_cast<float>(ElementAsDouble(tensor, i)));
      return true;
    case DType::kDouble:
      for (int64_t i = 0; i < n; ++i) proto.add_double_val(ElementAsDouble(tensor, i));
      return true;
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kUint16:
      for (int64_t i = 0; i < n; ++i) proto.add_int_val(static_cast<int32_t>(ElementAsInt(tensor, i)));
      return true;
    case DType::kQint8:
      for (int64_t i = 0; i < n; ++i) proto.add_int_val(static_cast<int8_t>(tensor.raw()[i]));
      return true;
    case DType::kQuint8:
      for (int64_t i = 0; i < n; ++i) proto.add_int_val(static_cast<uint8_t>(tensor.raw()[i]));
      return true;
    case DType::kQint32:
      for (int64_t i = 0; i < n; ++i) {
        int32_t value = 0;
        std::memcpy(&value, tensor.raw() + i * 4, sizeof value);
        proto.add_int_val(value);
      }
      return true;
    case DType::kInt64:
      for (int64_t i = 0; i < n; ++i) proto.add_int64_val(ElementAsInt(tensor, i));
      return true;
    case DType::kBool:
      for (int64_t i = 0; i < n; ++i) proto.add_bool_val(tensor.raw()[i] != std::byte{0});
      return true;
    case DType::kHalf:
      for (int64_t i = 0; i < n; ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, tensor.raw() + i * 2, sizeof bits);
        proto.add_half_val(bits);
      }
      return true;
    case DType::kComplex64:
      for (int64_t i = 0; i < n; ++i) {
        proto.add_scomplex_val(static_cast<float>(ElementAsComplex(tensor, i).real()));
        proto.add_scomplex_val(static_cast<float>(ElementAsComplex(tensor, i).imag()));
      }
      return true;
    case DType::kComplex128:
      for (int64_t i = 0; i < n; ++i) {
        proto.add_dcomplex_val(ElementAsComplex(tensor, i).real());
        proto.add_dcomplex_val(ElementAsComplex(tensor, i).imag());
      }
      return true;
    case DType::kString:
      for (const std::string& text : tensor.as<std::string>()) proto.add_string_val(text);
      return true;
    default:
      return false;
  }
}

/// Copies the elements of `both` from a tensor of slice `from_slice` to one of slice `to_slice`, marking them. All
/// slices are resolved.
void CopyCommon(const Tensor& from, const TensorSlice& from_slice, Tensor& to, const TensorSlice& to_slice,
                const TensorSlice& both, std::vector<bool>& covered) {
  const size_t rank = both.size(), bytes = SizeOf(to.dtype());
  std::vector<int64_t> at(rank, 0);
  for (;;) {
    int64_t from_at = 0, to_at = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t place = both[d].start + at[d];
      from_at = from_at * from_slice[d].length + place - from_slice[d].start;
      to_at = to_at * to_slice[d].length + place - to_slice[d].start;
    }
    const int64_t run = rank == 0 ? 1 : both[rank - 1].length;
    if (bytes == 0) {
      for (int64_t i = 0; i < run; ++i) {
        to.mutable_as<std::string>()[static_cast<size_t>(to_at + i)] =
            from.as<std::string>()[static_cast<size_t>(from_at + i)];
      }
    } else {
      std::memcpy(to.mutable_raw() + static_cast<size_t>(to_at) * bytes,
                  from.raw() + static_cast<size_t>(from_at) * bytes, static_cast<size_t>(run) * bytes);
    }
    std::fill_n(covered.begin() + to_at, run, true);
    size_t d = rank < 2 ? 0 : rank - 1;
    while (d > 0 && ++at[d - 1] == both[d - 1].length) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

Result<LegacyReader> LegacyReader::Open(const std::string& pattern) {
  WEIR_ASSIGN(const std::vector<std::string> paths, MatchingPaths(pattern));
  if (paths.empty()) {
    return NotFound("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {}", pattern);
  }
  LegacyReader reader;
  for (const std::string& path : paths) WEIR_TRY(reader.Take(path));
  return reader;
}

Status LegacyReader::Take(const std::string& path) {
  Result<std::vector<TableEntry>> table = ReadTable(path);
  if (!table.ok()) return table.status().Prepend(fmt::format("Unable to open table file {}: ", path));
  if (table->empty() || !table->front().key.empty()) return DataLoss("{}: the table describes no tensors", path);
  tf::SavedTensorSlices head;
  if (const Status parsed = proto::ParseBinary(table->front().value, "SavedTensorSlices", head); !parsed.ok()) {
    return DataLoss("{}: {}", path, parsed.message());
  }
  for (const tf::SavedSliceMeta& meta : head.meta().tensor()) {
    Result<Shape> shape = ShapeFromProto(meta.shape());
    if (!shape.ok()) return DataLoss("{}: tensor '{}': {}", path, meta.name(), shape.status().message());
    const auto dtype = static_cast<DType>(meta.type());
    if (!IsKnown(dtype)) return DataLoss("{}: tensor '{}' has unknown type {}", path, meta.name(), Name(dtype));
    Entry& entry = entries_[meta.name()];
    if (entry.dtype == DType::kInvalid) {
      entry = {dtype, *std::move(shape), {}};
    } else if (entry.dtype != dtype || !(entry.shape == *shape)) {
      return DataLoss("{}: tensor '{}' is {} {} here and {} {} in another file", path, meta.name(), Name(dtype),
                      shape->ToString(), Name(entry.dtype), entry.shape.ToString());
    }
    for (const tf::TensorSliceProto& slice : meta.slice()) {
      entry.slices.push_back(LegacySlice(slice));
      if (const Status fits = Resolve(entry.slices.back(), entry.shape).status(); !fits.ok()) {
        return DataLoss("{}: tensor '{}': {}", path, meta.name(), fits.message());
      }
    }
  }
  for (size_t i = 1; i < table->size(); ++i) values_.emplace((*table)[i].key, std::move((*table)[i].value));
  return Status();
}

const LegacyReader::Entry* LegacyReader::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

Result<Tensor> LegacyReader::ReadSlice(std::string_view name, const TensorSlice& slice) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return NotFound("Tensor name \"{}\" not found in checkpoint", name);
  WEIR_ASSIGN(const TensorSlice wanted, Resolve(slice, entry->shape));
  WEIR_ASSIGN(const Shape shape, ShapeOf(wanted));
  const Status uncovered = InvalidArgument("Error copying slice data");
  struct Part {
    TensorSlice slice, both;
    Tensor tensor;
  };
  // Parts are decoded before the whole is allocated, which is then no larger than they are.
  std::vector<Part> parts;
  ExpansionBudget budget;
  int64_t available = 0;
  for (const TensorSlice& stored : entry->slices) {
    WEIR_ASSIGN(TensorSlice resolved, Resolve(stored, entry->shape));
    std::optional<TensorSlice> both = Intersect(resolved, wanted);
    if (!both) continue;
    const auto value = values_.find(SliceKey(name, stored));
    if (value == values_.end()) return DataLoss("tensor '{}': slice {} is missing", name, io::ToString(stored));
    tf::SavedTensorSlices message;
    if (const Status parsed = proto::ParseBinary(value->second, "SavedTensorSlices", message); !parsed.ok()) {
      return DataLoss("tensor '{}': {}", name, parsed.message());
    }
    WEIR_ASSIGN(const Shape part_shape, ShapeOf(resolved));
    tf::TensorProto& data = *message.mutable_data()->mutable_data();
    data.set_dtype(static_cast<tf::DataType>(entry->dtype));
    ShapeToProto(part_shape, *data.mutable_tensor_shape());
    Result<Tensor> tensor = TensorFromProto(data, &budget);
    if (!tensor.ok()) return DataLoss("tensor '{}': {}", name, tensor.status().message());
    available += tensor->elements();
    parts.push_back({std::move(resolved), *std::move(both), *std::move(tensor)});
  }
  if (available < shape.elements()) return uncovered;
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(entry->dtype, shape));
  std::vector<bool> covered(static_cast<size_t>(shape.elements()));
  if (covered.empty()) return tensor;
  for (const Part& part : parts) CopyCommon(part.tensor, part.slice, tensor, wanted, part.both, covered);
  if (std::find(covered.begin(), covered.end(), false) != covered.end()) return uncovered;
  return tensor;
}

Status LegacyWriter::Add(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& tensor) {
  WEIR_ASSIGN(const TensorSlice resolved, Resolve(slice, full));
  WEIR_ASSIGN(const Shape shape, ShapeOf(resolved));
  if (!(shape == tensor.shape())) {
    return InvalidArgument("slice {} of shape {} has shape {}, but the tensor has {}", io::ToString(slice),
                           full.ToString(), shape.ToString(), tensor.shape().ToString());
  }
  LegacyReader::Entry& entry = entries_[name];
  if (entry.dtype == DType::kInvalid) entry = {tensor.dtype(), full, {}};
  if (entry.dtype != tensor.dtype() || !(entry.shape == full)) {
    return InvalidArgument("Mismatching shapes or types: existing tensor = {} {}, trying to add name {}, {} {}",
                           Name(entry.dtype), entry.shape.ToString(), name, Name(tensor.dtype()), full.ToString());
  }
  tf::SavedTensorSlices message;
  tf::SavedSlice& data = *message.mutable_data();
  data.set_name(name);
  LegacySliceToProto(slice, *data.mutable_slice());
  if (HasFixedSize(tensor.dtype()) &&
      tensor.elements() > kMostSliceBytes / static_cast<int64_t>(SizeOf(tensor.dtype()))) {
    return InvalidArgument("Tensor slice is too large to serialize (conservative estimate: {} elements)",
                           tensor.elements());
  }
  if (!FillLegacy(tensor, *data.mutable_data())) {
    return Unimplemented("Saving data type {} not yet supported", Name(tensor.dtype()));
  }
  WEIR_ASSIGN(std::string bytes, proto::Serialize(message, "SavedTensorSlices"));
  if (values_.insert_or_assign(SliceKey(name, slice), std::move(bytes)).second) entry.slices.push_back(slice);
  return Status();
}

Status LegacyWriter::Finish() {
  tf::SavedTensorSlices head;
  for (const auto& [name, entry] : entries_) {
    tf::SavedSliceMeta& meta = *head.mutable_meta()->add_tensor();
    meta.set_name(name);
    ShapeToProto(PartialShape(entry.shape), *meta.mutable_shape());
    meta.set_type(static_cast<tf::DataType>(entry.dtype));
    for (const TensorSlice& slice : entry.slices) LegacySliceToProto(slice, *meta.add_slice());
  }
  head.mutable_meta()->mutable_versions()->set_producer(kLegacyVersion);
  WEIR_ASSIGN(const std::string first, proto::Serialize(head, "SavedTensorSlices"));
  TableBuilder table;
  WEIR_TRY(table.Add("", first));
  for (const auto& [key, value] : values_) WEIR_TRY(table.Add(key, value));
  WEIR_TRY(MakeDirectory(DirName(path_)));
  return WriteFileAtomically(path_, table.Finish());
}

}  // namespace weir::io
