#include "core/builtin/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/sum.h"

namespace weir::builtin {

/// The elements of a family of lists, each derived from another. An element has one entry per version that changed it.
struct TensorList::History {
  struct Entry {
    uint64_t since;
    Tensor value;
  };
  std::mutex mutex;  // protects all below
  std::unordered_map<int64_t, std::vector<Entry>> elements;
  uint64_t newest = 0;     // version of the newest list
  size_t overwritten = 0;  // entries not visible in the newest list

  const Entry* Find(int64_t i, uint64_t version) const {
    const auto found = elements.find(i);
    if (found == elements.end()) return nullptr;
    const std::vector<Entry>& entries = found->second;
    const auto later =
        std::find_if(entries.rbegin(), entries.rend(), [&](const Entry& entry) { return entry.since <= version; });
    return later == entries.rend() ? nullptr : &*later;
  }
};

Result<PartialShape> MergedShape(const PartialShape& a, const PartialShape& b) {
  Result<PartialShape> both = a.Merge(b);
  if (both.ok()) return both;
  return InvalidArgument("PartialTensorShape: Incompatible shapes during merge: {} vs. {}", a.ToString(), b.ToString());
}

std::shared_ptr<const TensorList> TensorList::Make(Kind kind) {
  return std::shared_ptr<const TensorList>(new TensorList(std::move(kind), std::make_shared<History>(), 0, 0));
}

std::shared_ptr<const TensorList> TensorList::New(std::shared_ptr<History> history, uint64_t version,
                                                  int64_t length) const {
  return std::shared_ptr<const TensorList>(new TensorList(kind_, std::move(history), version, length));
}

Status TensorList::EachSet(const std::function<Status(int64_t i, const Tensor& element)>& visit) const {
  std::vector<std::pair<int64_t, Tensor>> set;
  {
    const std::lock_guard lock(history_->mutex);
    for (const auto& [i, entries] : history_->elements) {
      const History::Entry* const entry = i < length_ ? history_->Find(i, version_) : nullptr;
      if (entry != nullptr) set.emplace_back(i, entry->value);
    }
  }
  for (const auto& [i, value] : set) WEIR_TRY(visit(i, value));
  return Status();
}

std::string TensorList::DebugString() const { return fmt::format("TensorList of {} {}", length_, Name(kind_.dtype)); }

uint64_t TensorList::MemoryBytes() const {
  uint64_t bytes = 0;
  const Status summed = EachSet([&](int64_t, const Tensor& element) {
    bytes += element.bytes();
    return Status();
  });
  return summed.ok() ? bytes : 0;
}

Tensor TensorList::At(int64_t i) const {
  if (i < 0 || i >= length_) return Tensor();
  const std::lock_guard lock(history_->mutex);
  const History::Entry* const entry = history_->Find(i, version_);
  return entry == nullptr ? Tensor() : entry->value;
}

std::shared_ptr<TensorList::History> TensorList::Copied(int64_t length) const {
  auto copy = std::make_shared<History>();
  const std::lock_guard lock(history_->mutex);
  for (const auto& [i, entries] : history_->elements) {
    const History::Entry* const entry = i < std::min(length, length_) ? history_->Find(i, version_) : nullptr;
    if (entry != nullptr) copy->elements[i].push_back({0, entry->value});
  }
  return copy;
}

std::shared_ptr<const TensorList> TensorList::With(int64_t i, Tensor element) const {
  const int64_t length = std::max(length_, i + 1);
  {
    const std::lock_guard lock(history_->mutex);
    // Limits the memory of overwritten elements to the number of elements of the list.
    if (history_->newest == version_ && history_->overwritten <= static_cast<size_t>(length)) {
      std::vector<History::Entry>& entries = history_->elements[i];
      if (!entries.empty()) ++history_->overwritten;
      entries.push_back({++history_->newest, std::move(element)});
      return New(history_, history_->newest, length);
    }
  }
  std::shared_ptr<History> own = Copied(length_);
  own->elements[i] = {{0, std::move(element)}};
  return New(std::move(own), 0, length);
}

std::shared_ptr<const TensorList> TensorList::WithoutLast() const { return New(history_, version_, length_ - 1); }

std::shared_ptr<const TensorList> TensorList::Resized(int64_t length) const {
  // Elements past the end of a truncated list belong to other lists; they are unset in a list that grows again.
  return length <= length_ ? New(history_, version_, length) : New(Copied(length_), 0, length);
}

Result<PartialShape> TensorList::CommonShape(const PartialShape& hint, int skip) const {
  const auto rest = [&](const PartialShape& shape) {
    return shape.rank() < skip ? PartialShape() : PartialShape::Of(shape.dims().subspan(static_cast<size_t>(skip)));
  };
  WEIR_ASSIGN(PartialShape common, MergedShape(rest(hint), rest(kind_.element_shape)));
  const Status merged = EachSet([&](int64_t, const Tensor& element) -> Status {
    WEIR_ASSIGN(common, MergedShape(common, rest(element.shape())));
    return Status();
  });
  WEIR_TRY(merged);
  return common;
}

Result<Variant> TensorList::ZerosLike() const {
  std::shared_ptr<const TensorList> zeros = Make(kind_)->Resized(length_);
  WEIR_TRY(EachSet([&](int64_t i, const Tensor& element) -> Status {
    WEIR_ASSIGN(Tensor zero, weir::ZerosLike(element));
    zeros = zeros->With(i, std::move(zero));
    return Status();
  }));
  return Variant{std::move(zeros)};
}

Result<Variant> TensorList::Add(const VariantValue& value) const {
  const auto* const other = dynamic_cast<const TensorList*>(&value);
  if (other == nullptr) return InvalidArgument("a {} cannot be added to a TensorList", value.type_name());
  if (kind_.dtype != other->kind_.dtype) {
    return InvalidArgument("Trying to add two lists of tensors of different dtypes. One is {} and the other is {}",
                           Name(kind_.dtype), Name(other->kind_.dtype));
  }
  if (length_ != other->length_) {
    return InvalidArgument("Trying to add two lists of tensors with different lengths. One is {} and the other is {}",
                           length_, other->length_);
  }
  Kind kind = kind_;
  const Result<PartialShape> shape = kind_.element_shape.Merge(other->kind_.element_shape);
  if (!shape.ok()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with incompatible element shapes. One is {} and the other is {}",
        kind_.element_shape.ToString(), other->kind_.element_shape.ToString());
  }
  kind.element_shape = *shape;
  std::shared_ptr<const TensorList> sum = Make(std::move(kind))->Resized(length_);
  WEIR_TRY(EachSet([&](int64_t i, const Tensor& element) {
    sum = sum->With(i, element);
    return Status();
  }));
  WEIR_TRY(other->EachSet([&](int64_t i, Tensor element) -> Status {  // unset elements count as zeros
    if (const Tensor ours = At(i); ours.valid()) {
      WEIR_ASSIGN(element, Sum(ours, element));
    }
    sum = sum->With(i, std::move(element));
    return Status();
  }));
  return Variant{std::move(sum)};
}

}  // namespace weir::builtin
