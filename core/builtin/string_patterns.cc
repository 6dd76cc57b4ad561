// Patterns in strings, and their hashes.
#include <re2/re2.h>

#include "core/builtin/families.h"
#include "core/builtin/fingerprint.h"
#include "core/builtin/texts.h"

namespace weir::builtin {
namespace {

Status BadPattern(const re2::RE2& regex) {
  return InvalidArgument("Invalid pattern: {}, error: {}", regex.pattern(), regex.error());
}

Status Replace(kernel::BuiltinCall& call, const std::string& pattern, const std::string& rewrite) {
  WEIR_ASSIGN(const bool global, call.attrs.Bool("replace_global"));
  const re2::RE2 regex(pattern, re2::RE2::Quiet);
  if (!regex.ok()) return BadPattern(regex);
  return MapTexts<std::string>(call, [&](std::string text) {
    global ? static_cast<void>(re2::RE2::GlobalReplace(&text, regex, rewrite))
           : static_cast<void>(re2::RE2::Replace(&text, regex, rewrite));
    return text;
  });
}

/// The string in scalar input i; `what` as TensorFlow's text names it.
Result<std::string> OneText(const kernel::BuiltinCall& call, size_t i, std::string_view what) {
  WEIR_ASSIGN(const std::span<const std::string> text, Elements<std::string>(call, i, what));
  const Shape& shape = call.inputs[i].shape();
  if (shape.rank() != 0) return InvalidArgument("{} must be scalar, but received {}", what, shape.ToString());
  return text[0];
}

Status RegexReplace(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_ASSIGN(const std::string pattern, OneText(call, 1, "Pattern"));
  WEIR_ASSIGN(const std::string rewrite, OneText(call, 2, "Rewrite"));
  return Replace(call, pattern, rewrite);
}

Status StaticRegexReplace(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::string pattern, call.attrs.String("pattern"));
  WEIR_ASSIGN(const std::string rewrite, call.attrs.String("rewrite"));
  return Replace(call, pattern, rewrite);
}

Status RegexFullMatch(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::string pattern, OneText(call, 1, "Pattern"));
  const re2::RE2 regex(pattern, re2::RE2::Quiet);
  if (!regex.ok()) return BadPattern(regex);
  return MapTexts<bool>(call, [&regex](const std::string& text) { return re2::RE2::FullMatch(text, regex); });
}

template <class Hash>
Status ToBuckets(kernel::BuiltinCall& call, Hash&& hash) {
  WEIR_ASSIGN(const int64_t buckets, call.attrs.Int("num_buckets"));
  if (buckets < 1) return InvalidArgument("num_buckets must be at least 1, got {}", buckets);
  return MapTexts<int64_t>(
      call, [&](const std::string& text) { return static_cast<int64_t>(hash(text) % static_cast<uint64_t>(buckets)); });
}

Status ToBucketFast(kernel::BuiltinCall& call) { return ToBuckets(call, FarmFingerprint); }
Status ToBucket(kernel::BuiltinCall& call) { return ToBuckets(call, MurmurHash); }
Status ToBucketStrong(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::vector<int64_t> key, call.attrs.Ints("key"));
  if (key.size() != 2) return InvalidArgument("Key must have 2 elements");
  return ToBuckets(call, [&key](std::string_view text) {
    return SipHash(text, static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1]));
  });
}

}  // namespace

void AddStringPatterns(kernel::KernelRegistry& kernels) {
  kernels.AddHost("RegexReplace", RegexReplace);
  kernels.AddHost("StaticRegexReplace", StaticRegexReplace);
  kernels.AddHost("RegexFullMatch", RegexFullMatch);
  kernels.AddHost("StringToHashBucketFast", ToBucketFast);
  kernels.AddHost("StringToHashBucketStrong", ToBucketStrong);
  kernels.AddHost("StringToHashBucket", ToBucket);
}

}  // namespace weir::builtin
