#include "core/client/saver/checkpoint_reader.h"

#include <filesystem>

#include "core/base/errors.h"
#include "core/client/saver/saver.h"
#include "core/io/bundle.h"

namespace weir {

Result<CheckpointReader> CheckpointReader::Open(const std::string& path_or_dir) {
  std::string path = path_or_dir;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    path = LatestCheckpoint(path_or_dir);
    if (path.empty()) {
      return InvalidArgument("Couldn't find 'checkpoint' file or checkpoints in given directory {}", path_or_dir);
    }
  }
  WEIR_ASSIGN(io::BundleReader bundle, io::BundleReader::Open(path));
  CheckpointReader reader;
  reader.bundle_ = std::make_shared<const io::BundleReader>(std::move(bundle));
  return reader;
}

std::map<std::string, std::vector<int64_t>> CheckpointReader::VariableToShapeMap() const {
  std::map<std::string, std::vector<int64_t>> shapes;
  if (bundle_ == nullptr) return shapes;
  for (const io::BundleEntry& entry : bundle_->entries()) {
    const auto dims = entry.shape.dims();
    shapes[entry.name].assign(dims.begin(), dims.end());
  }
  return shapes;
}

std::map<std::string, DType> CheckpointReader::VariableToDtypeMap() const {
  std::map<std::string, DType> dtypes;
  if (bundle_ == nullptr) return dtypes;
  for (const io::BundleEntry& entry : bundle_->entries()) dtypes[entry.name] = entry.dtype;
  return dtypes;
}

bool CheckpointReader::HasTensor(const std::string& name) const {
  return bundle_ != nullptr && bundle_->Find(name) != nullptr;
}

Result<Tensor> CheckpointReader::GetTensor(const std::string& name) const {
  if (bundle_ == nullptr) return NotFound("Key {} not found in checkpoint: none is open", name);
  return bundle_->Read(name);
}

std::string CheckpointReader::DebugString() const {
  std::string text;
  if (bundle_ == nullptr) return text;
  for (const io::BundleEntry& entry : bundle_->entries()) {
    text += entry.name + " (" + EnumName(entry.dtype) + ") " + entry.shape.ToString() + "\n";
  }
  return text;
}

Result<std::vector<std::pair<std::string, std::vector<int64_t>>>> ListVariables(const std::string& path_or_dir) {
  WEIR_ASSIGN(const CheckpointReader reader, CheckpointReader::Open(path_or_dir));
  const std::map<std::string, std::vector<int64_t>> shapes = reader.VariableToShapeMap();
  return std::vector<std::pair<std::string, std::vector<int64_t>>>(shapes.begin(), shapes.end());
}

Result<Tensor> LoadVariable(const std::string& path_or_dir, const std::string& name) {
  WEIR_ASSIGN(const CheckpointReader reader, CheckpointReader::Open(path_or_dir));
  return reader.GetTensor(name);
}

}  // namespace weir
