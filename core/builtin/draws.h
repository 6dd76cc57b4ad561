// A sequence of pseudo-random numbers by seed, the same as TensorFlow's.
#ifndef WEIR_CORE_BUILTIN_DRAWS_H_
#define WEIR_CORE_BUILTIN_DRAWS_H_

#include <array>
#include <cstdint>

namespace weir::builtin {

/// The words of Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) one by one. The
/// seeds are the key and the upper half of the counter; two zeros stand for seeds of the system. Single-threaded.
class Draws {
 public:
  Draws(int64_t seed, int64_t seed2);
  uint32_t Next();

 private:
  std::array<uint32_t, 4> Block() const;

  uint64_t key_, stream_, block_ = 0;
  std::array<uint32_t, 4> words_{};
  size_t used_ = 4;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_DRAWS_H_
