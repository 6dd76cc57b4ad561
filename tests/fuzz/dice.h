// Random choices, reproducible from a seed on every machine and with every library.
#ifndef WEIR_TESTS_FUZZ_DICE_H_
#define WEIR_TESTS_FUZZ_DICE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace weir::fuzz {

/// SplitMix64.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 … n - 1; 0 for an n of 0.
  size_t Below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(Next() % n); }
  /// low … high, both included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<size_t>(high - low) + 1));
  }
  bool Percent(int percent) { return Below(100) < static_cast<size_t>(percent); }
  /// One element of a non-empty container.
  template <class C>
  const auto& Of(const C& all) {
    return all.begin()[static_cast<std::ptrdiff_t>(Below(all.size()))];
  }
  template <class T>
  T Of(std::initializer_list<T> all) {
    return all.begin()[Below(all.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_DICE_H_
