// Treats denormal numbers as zero during a step.
#ifndef WEIR_CORE_EXECUTE_DENORMALS_H_
#define WEIR_CORE_EXECUTE_DENORMALS_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::execute {

/// Sets this thread's flush-to-zero and denormals-are-zero modes and restores them on destruction. On many processors
/// arithmetic on denormals, which training produces, takes a hundred times as long. No effect on other architectures.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) {
    if ((before_ & kBoth) != kBoth) _mm_setcsr(before_ | kBoth);
  }
  ~FlushDenormals() {
    if ((before_ & kBoth) != kBoth) _mm_setcsr(before_);
  }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kBoth = 0x8040;  // FTZ, DAZ
  const unsigned before_;
#endif
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_DENORMALS_H_
