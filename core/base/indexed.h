// Typed indices, and vectors that take no other ones.
#ifndef WEIR_CORE_BASE_INDEXED_H_
#define WEIR_CORE_BASE_INDEXED_H_

#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

/// A position in a table of things of one kind, which `Tag` names; -1 is none. Ids of two kinds do not convert.
template <class Tag, class Number = int32_t>
class Id {
 public:
  constexpr Id() = default;
  /// `position` fits in Number, as those of all tables do.
  template <class Integer>
  requires std::is_integral_v<Integer>
  constexpr explicit Id(Integer position) : position_(static_cast<Number>(position)) {}

  constexpr bool valid() const { return position_ >= 0; }
  /// To print, hash or pass across an interface without types.
  constexpr int32_t number() const { return position_; }
  constexpr size_t position() const { return static_cast<size_t>(position_); }
  constexpr Id& operator++() {
    ++position_;
    return *this;
  }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Number position_ = -1;
};

/// The position that an index stands for; plain integers are indices of their own kind (graph::NodeId).
template <class Tag, class Number>
constexpr size_t PositionOf(Id<Tag, Number> id) {
  return id.position();
}
template <class Integer>
requires std::is_integral_v<Integer>
constexpr size_t PositionOf(Integer index) { return static_cast<size_t>(index); }

/// The first `size` indices of a kind in order, or backwards.
template <class I>
class IdRange {
 public:
  template <int kStep>
  class Steps {
   public:
    explicit Steps(size_t at) : at_(at) {}
    I operator*() const { return I(at_); }
    Steps& operator++() {
      at_ += kStep;
      return *this;
    }
    bool operator==(const Steps&) const = default;

   private:
    size_t at_;
  };
  class Backwards {
   public:
    explicit Backwards(size_t size) : size_(size) {}
    Steps<-1> begin() const { return Steps<-1>(size_ - 1); }
    Steps<-1> end() const { return Steps<-1>(static_cast<size_t>(-1)); }

   private:
    size_t size_;
  };

  explicit IdRange(size_t size) : size_(size) {}
  Steps<1> begin() const { return Steps<1>(0); }
  Steps<1> end() const { return Steps<1>(size_); }
  Backwards backwards() const { return Backwards(size_); }
  size_t size() const { return size_; }

 private:
  size_t size_;
};

/// A std::vector that is indexed by I, an Id or a plain integer type.
template <class I, class T>
class IndexedVector {
 public:
  using Elements = std::vector<T>;
  using reference = typename Elements::reference;  // of a vector<bool> a proxy
  using const_reference = typename Elements::const_reference;

  IndexedVector() = default;
  IndexedVector(std::initializer_list<T> elements) : elements_(elements) {}
  explicit IndexedVector(size_t size, const T& value = T()) : elements_(size, value) {}

  reference operator[](I index) { return elements_[Checked(index)]; }
  const_reference operator[](I index) const { return elements_[Checked(index)]; }

  /// Appends, and gives the index of the new element.
  I Add(T element) {
    elements_.push_back(std::move(element));
    return I(elements_.size() - 1);
  }
  void push_back(T element) { elements_.push_back(std::move(element)); }
  template <class... Args>
  reference emplace_back(Args&&... args) {
    return elements_.emplace_back(std::forward<Args>(args)...);
  }
  /// The index that the next element will have.
  I end_index() const { return I(elements_.size()); }
  bool Has(I index) const { return PositionOf(index) < elements_.size(); }

  size_t size() const { return elements_.size(); }
  bool empty() const { return elements_.empty(); }
  void reserve(size_t size) { elements_.reserve(size); }
  void resize(size_t size) { elements_.resize(size); }
  void resize(size_t size, const T& value) { elements_.resize(size, value); }
  void assign(size_t size, const T& value) { elements_.assign(size, value); }
  void clear() { elements_.clear(); }
  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }
  /// Inserts [first, last) before element `at`.
  template <class Iterator>
  void InsertAt(I at, Iterator first, Iterator last) {
    elements_.insert(elements_.begin() + static_cast<ptrdiff_t>(PositionOf(at)), first, last);
  }
  reference back() { return elements_.back(); }
  const_reference back() const { return elements_.back(); }
  const T* data() const { return elements_.data(); }
  /// Where order is all that counts.
  const Elements& elements() const { return elements_; }

  /// All indices in order: `for (const ValueId id : values.indices())`.
  IdRange<I> indices() const { return IdRange<I>(elements_.size()); }
  bool operator==(const IndexedVector&) const = default;

 private:
  size_t Checked(I index) const {
    const size_t position = PositionOf(index);
    assert(position < elements_.size());
    return position;
  }

  Elements elements_;
};

/// A value for each pair of an R and a C, row by row.
template <class R, class C, class T>
class IndexedTable {
 public:
  IndexedTable() = default;
  IndexedTable(size_t rows, size_t columns, const T& value = T()) { assign(rows, columns, value); }
  void assign(size_t rows, size_t columns, const T& value = T()) {
    columns_ = columns;
    elements_.assign(rows * columns, value);
  }

  T& operator()(R row, C column) { return elements_[At(row, column)]; }
  const T& operator()(R row, C column) const { return elements_[At(row, column)]; }
  /// Row by row.
  const std::vector<T>& elements() const { return elements_; }
  std::span<T> Row(R row) { return {elements_.data() + PositionOf(row) * columns_, columns_}; }
  std::span<const T> Row(R row) const { return {elements_.data() + PositionOf(row) * columns_, columns_}; }
  /// Adds a row; it has as many elements as the others.
  void AddRow(std::span<const T> row) {
    columns_ = row.size();
    elements_.insert(elements_.end(), row.begin(), row.end());
  }

 private:
  size_t At(R row, C column) const {
    const size_t at = PositionOf(row) * columns_ + PositionOf(column);
    assert(PositionOf(column) < columns_ && at < elements_.size());
    return at;
  }

  size_t columns_ = 0;
  std::vector<T> elements_;
};

}  // namespace weir

template <class Tag, class Number>
struct std::hash<weir::Id<Tag, Number>> {
  size_t operator()(weir::Id<Tag, Number> id) const noexcept { return static_cast<size_t>(id.number()); }
};

#endif  // WEIR_CORE_BASE_INDEXED_H_
