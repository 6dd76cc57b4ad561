// 64-bit hashes of strings, with the values of the algorithms' authors.
#ifndef WEIR_CORE_BUILTIN_FINGERPRINT_H_
#define WEIR_CORE_BUILTIN_FINGERPRINT_H_

#include <cstdint>
#include <string_view>

namespace weir::builtin {

/// FarmHash's Fingerprint64 (Google, 2014), which never changes.
uint64_t FarmFingerprint(std::string_view text);

/// SipHash-2-4 of J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF" (2012).
uint64_t SipHash(std::string_view text, uint64_t key0, uint64_t key1);

/// MurmurHash64A of A. Appleby (2008) with TensorFlow's seed.
uint64_t MurmurHash(std::string_view text);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_FINGERPRINT_H_
