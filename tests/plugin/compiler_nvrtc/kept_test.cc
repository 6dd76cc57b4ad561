// Executables as bytes, whole and damaged.
#include "plugins/compiler_nvrtc/executable.h"

#include <gtest/gtest.h>

#include "sdk/abi/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::compiler_nvrtc {
namespace {

Description Example() {
  test::RegionSpec region;
  const uint32_t x = region.Input(WEIR_FLOAT32, {3, 4}), y = region.Input(WEIR_FLOAT32, {4});
  region.Output(region.Node("AddV2", {x, y}, WEIR_FLOAT32, {3, 4}));
  return Description::Of(*region.Get(), std::string("// text", 8));
}
std::span<const uint8_t> SpanOf(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

TEST(NvrtcKept, BytesGiveTheSameDescription) {
  const std::string bytes = Example().ToBytes();
  Description read;
  std::string why;
  ASSERT_TRUE(Description::FromBytes(SpanOf(bytes), &read, &why)) << why;
  EXPECT_EQ(read.ToBytes(), bytes);
  EXPECT_EQ(read.elements, 12);
  EXPECT_EQ(Description::Compare(SpanOf(bytes)), WEIR_COMPAT_SAME);
  weir_executable_spec spec{};
  spec.struct_size = sizeof spec;
  const Executable executable(std::move(read), nullptr);
  executable.FillSpec(&spec);
  EXPECT_EQ(spec.input_count, 2u);
  EXPECT_EQ(spec.output_count, 1u);
  ASSERT_EQ(spec.alias_count, 1u);  // the sum over its operand of the same shape
  EXPECT_EQ(spec.aliases[0].input, 0u);
}

TEST(NvrtcKept, DamagedBytesAreRefused) {
  const std::string bytes = Example().ToBytes();
  Description read;
  std::string why;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    EXPECT_FALSE(Description::FromBytes(SpanOf(damaged), &read, &why)) << at;
    EXPECT_FALSE(Description::FromBytes(SpanOf(bytes).first(at), &read, &why)) << at;
    EXPECT_NE(Description::Compare(SpanOf(damaged)), WEIR_COMPAT_SAME) << at;
  }
}

}  // namespace
}  // namespace weir::compiler_nvrtc
