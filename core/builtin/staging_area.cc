#include "core/builtin/staging_area.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"

namespace weir::builtin {
namespace {

Status CheckTypes(const std::vector<DType>& wanted, const std::vector<Tensor>& got) {
  if (wanted.size() != got.size()) {
    return InvalidArgument("Mismatch stage/unstage: {} vs. {}", got.size(), wanted.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i].dtype() == wanted[i]) continue;
    return InvalidArgument("component {} of a staged tuple is {}, wanted {}", i, Name(got[i].dtype()), Name(wanted[i]));
  }
  return Status();
}

Status CheckAscending(const std::vector<int32_t>& indices) {
  if (indices.empty()) return InvalidArgument("Indices are empty");
  const auto no_less = [](int32_t a, int32_t b) { return a >= b; };
  if (std::ranges::adjacent_find(indices, no_less) == indices.end()) return Status();
  return InvalidArgument("Indices are not strictly ordered");
}

Status CheckBounds(int64_t key, const std::vector<int32_t>& indices, size_t components) {
  for (const int32_t index : indices) {
    if (index >= 0 && static_cast<size_t>(index) < components) continue;
    return InvalidArgument("Index '{}' for key '{}' was out of bounds '{}'.", index, key, components);
  }
  return Status();
}

}  // namespace

uint64_t StagingBase::MemoryBytes() const {
  const std::lock_guard lock(waiting_.mutex());
  return static_cast<uint64_t>(bytes_);
}

int64_t StagingBase::size() const {
  const std::lock_guard lock(waiting_.mutex());
  return Count();
}

void StagingBase::Empty() {
  (void)waiting_.Change(shared_from_this(), [this] {
    Drop();
    bytes_ = 0;
    return Status();
  });
}

void StagingBase::Clear() {
  waiting_.EndAll(Cancelled("{} was destroyed", type_name()), [this] {
    Drop();
    bytes_ = 0;
  });
}

int64_t StagingBase::Bytes(const Tuple& tuple) {
  int64_t bytes = 0;
  for (const Tensor& component : tuple) bytes += static_cast<int64_t>(component.bytes());
  return bytes;
}

Status StagingBase::CheckMemory(int64_t bytes) const {
  if (limits_.memory_limit == 0 || bytes <= limits_.memory_limit) return Status();
  return ResourceExhausted(
      "Attempted to insert tensors with combined size of '{}' bytes into Staging Area with a memory limit of '{}'.",
      bytes, limits_.memory_limit);
}

bool StagingBase::HasRoom(int64_t bytes, bool whole) const {
  if (limits_.memory_limit > 0 && bytes_ > limits_.memory_limit - bytes) return false;
  return !whole || limits_.capacity == 0 || Count() < limits_.capacity;
}

std::string StagingArea::DebugString() const { return fmt::format("staging area with {} tuples", size()); }

void StagingArea::Put(Tuple tuple, runtime::Cancellation* cancellation, runtime::Completion done) {
  const int64_t bytes = Bytes(tuple);
  if (const Status fits = CheckMemory(bytes); !fits.ok()) return done(fits);
  auto put = [this, bytes, tuple = std::move(tuple)]() mutable -> std::optional<Answer> {
    if (!HasRoom(bytes, true)) return std::nullopt;
    bytes_ += bytes;
    tuples_.push_back(std::move(tuple));
    return Answer(std::vector<Tensor>());
  };
  Run(std::move(put), cancellation, std::move(done));
}

void StagingArea::Take(std::vector<DType> types, runtime::Cancellation* cancellation, runtime::Completion done) {
  auto take = [this, types = std::move(types)]() -> std::optional<Answer> {
    if (tuples_.empty()) return std::nullopt;
    if (const Status same = CheckTypes(types, tuples_.front()); !same.ok()) return Answer(same);
    Tuple taken = std::move(tuples_.front());
    tuples_.pop_front();
    bytes_ -= Bytes(taken);
    return Answer(std::move(taken));
  };
  Run(std::move(take), cancellation, std::move(done));
}

void StagingArea::Peek(size_t index, std::vector<DType> types, runtime::Cancellation* cancellation,
                       runtime::Completion done) {
  auto peek = [this, index, types = std::move(types)]() -> std::optional<Answer> {
    if (index >= tuples_.size()) return std::nullopt;
    if (const Status same = CheckTypes(types, tuples_[index]); !same.ok()) return Answer(same);
    return Answer(tuples_[index]);
  };
  Run(std::move(peek), cancellation, std::move(done));
}

std::string StagingMap::DebugString() const {
  return fmt::format("staging map with {} whole tuples and {} others", size(), incomplete_size());
}

int64_t StagingMap::incomplete_size() const {
  const std::lock_guard lock(waiting_.mutex());
  return static_cast<int64_t>(incomplete_.size());
}

Status StagingMap::CheckPut(int64_t key, const std::vector<int32_t>& indices, const Tuple& values) const {
  WEIR_TRY(CheckAscending(indices));
  WEIR_TRY(CheckBounds(key, indices, types_.size()));
  if (indices.size() != values.size()) {
    return InvalidArgument("{} values for key '{}' have {} indices", values.size(), key, indices.size());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const DType wanted = types_[static_cast<size_t>(indices[i])];
    if (values[i].dtype() == wanted) continue;
    return InvalidArgument("the value for index '{}' of key '{}' is {}, wanted {}", indices[i], key,
                           Name(values[i].dtype()), Name(wanted));
  }
  return CheckMemory(Bytes(values));
}

void StagingMap::Put(int64_t key, std::vector<int32_t> indices, Tuple values, runtime::Cancellation* cancellation,
                     runtime::Completion done) {
  if (const Status good = CheckPut(key, indices, values); !good.ok()) return done(good);
  const int64_t bytes = Bytes(values);
  auto put = [this, key, bytes, indices = std::move(indices),
              values = std::move(values)]() mutable -> std::optional<Answer> {
    const bool whole = indices.size() == types_.size();
    if (!HasRoom(bytes, whole)) return std::nullopt;
    if (whole) {
      if (whole_.emplace(key, std::move(values)).second) bytes_ += bytes;
    } else if (const Status good = PutParts(key, indices, values); !good.ok()) {
      return Answer(good);
    }
    return Answer(std::vector<Tensor>());
  };
  Run(std::move(put), cancellation, std::move(done));
}

Status StagingMap::PutParts(int64_t key, const std::vector<int32_t>& indices, Tuple& values) {
  Tuple& tuple = incomplete_.try_emplace(key, types_.size()).first->second;
  for (const int32_t index : indices) {
    if (!tuple[static_cast<size_t>(index)].valid()) continue;
    return InvalidArgument("The tensor for index '{}' for key '{}' was already initialized '{}'.", index, key,
                           types_.size());
  }
  bytes_ += Bytes(values);
  for (size_t i = 0; i < indices.size(); ++i) tuple[static_cast<size_t>(indices[i])] = std::move(values[i]);
  if (!std::ranges::all_of(tuple, [](const Tensor& one) { return one.valid(); })) return Status();
  Tuple made = std::move(tuple);
  incomplete_.erase(key);
  const int64_t bytes = Bytes(made);
  if (!whole_.emplace(key, std::move(made)).second) bytes_ -= bytes;
  return Status();
}

StagingBase::Answer StagingMap::Found(Tuples::iterator at, const std::vector<int32_t>& indices,
                                      const std::vector<DType>& types, Use use) {
  auto& [key, tuple] = *at;
  WEIR_TRY(CheckBounds(key, indices, tuple.size()));
  Tuple parts;
  for (const int32_t index : indices) {
    parts.push_back(tuple[static_cast<size_t>(index)]);
    if (parts.back().valid()) continue;
    return InvalidArgument("Tensor at index '{}' for key '{}' has already been removed.", index, key);
  }
  WEIR_TRY(CheckTypes(types, parts));
  if (use == Use::kPeek) return parts;
  bytes_ -= Bytes(parts);
  for (const int32_t index : indices) tuple[static_cast<size_t>(index)] = Tensor();
  if (std::ranges::none_of(tuple, [](const Tensor& one) { return one.valid(); })) whole_.erase(at);
  return parts;
}

void StagingMap::Get(int64_t key, std::vector<int32_t> indices, std::vector<DType> types, Use use,
                     runtime::Cancellation* cancellation, runtime::Completion done) {
  if (const Status good = CheckAscending(indices); !good.ok()) return done(good);
  auto get = [this, key, indices = std::move(indices), types = std::move(types),
                    use]() -> std::optional<Answer> {
    const auto found = whole_.find(key);
    if (found == whole_.end()) return std::nullopt;
    return Found(found, indices, types, use);
  };
  Run(std::move(get), cancellation, std::move(done));
}

void StagingMap::TakeFirst(std::vector<int32_t> indices, std::vector<DType> types, runtime::Cancellation* cancellation,
                           runtime::Completion done) {
  if (const Status good = CheckAscending(indices); !good.ok()) return done(good);
  auto take = [this, indices = std::move(indices), types = std::move(types)]() -> std::optional<Answer> {
    if (whole_.empty()) return std::nullopt;
    const Tensor key = Tensor::Scalar(whole_.begin()->first);
    Answer parts = Found(whole_.begin(), indices, types, Use::kTake);
    if (parts.ok()) parts->insert(parts->begin(), key);
    return parts;
  };
  Run(std::move(take), cancellation, std::move(done));
}

}  // namespace weir::builtin
