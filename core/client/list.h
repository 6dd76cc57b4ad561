// Lists that builders and graphs give out.
#ifndef WEIR_CORE_CLIENT_LIST_H_
#define WEIR_CORE_CLIENT_LIST_H_

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace weir {

/// A vector that may be asked for more than it has: beyond its end an element reads as the one that stands for none
/// (of Outputs one that does not exist, whose graph has the error), and a write goes nowhere. So `Split(x, 2)[1]` is
/// safe after an error too, where nobody knows how many values there would have been.
template <class T>
class List : public std::vector<T> {
 public:
  List() = default;
  List(std::initializer_list<T> elements) : std::vector<T>(elements) {}
  List(std::vector<T> elements, T none = T())  // NOLINT(google-explicit-constructor)
      : std::vector<T>(std::move(elements)), none_(std::move(none)) {}
  template <class Iterator>
  requires requires(Iterator i) {
    *i;
    ++i;
  }
  List(Iterator first, Iterator last) : std::vector<T>(first, last) {}
  /// `count` elements that stand for none.
  static List Absent(size_t count, T none) { return List(std::vector<T>(count, none), none); }

  const T& operator[](size_t i) const { return i < this->size() ? this->data()[i] : none_; }
  T& operator[](size_t i) {
    if (i < this->size()) return this->data()[i];
    written_ = none_;
    return written_;
  }
  const T& at(size_t i) const { return (*this)[i]; }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[this->size() - 1]; }

 private:
  T none_ = T();
  T written_ = T();
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_LIST_H_
