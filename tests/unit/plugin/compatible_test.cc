#include "core/plugin/compatible.h"

#include <gtest/gtest.h>

namespace weir::plugin {
namespace {

PluginNote Note() {
  PluginNote note;
  note.abi_major = 1;
  note.machine = WEIR_MACHINE_X86_64;
  note.name = "toy";
  return note;
}

HostTraits Host() {
  HostTraits host;
  host.abi_major = 1;
  host.abi_minor = 4;
  host.machine = WEIR_MACHINE_X86_64;
  host.isa = host.cpu_isa = WEIR_ISA_X86_64_V2 | WEIR_ISA_X86_64_V3;
  return host;
}

void Refused(const PluginNote& note, std::string_view text) {
  const Status status = CheckCompatible(note, Host());
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.message(), text);
}

TEST(Compatible, AcceptsOlderNewerAndLower) {
  PluginNote note = Note();
  EXPECT_TRUE(CheckCompatible(note, Host()).ok());
  note.needs_minor = 4;
  note.built_minor = 9;
  EXPECT_TRUE(CheckCompatible(note, Host()).ok()) << "built with a newer header, but using nothing of it";
  note.isa = WEIR_ISA_X86_64_V2 | WEIR_ISA_X86_64_V3;
  EXPECT_TRUE(CheckCompatible(note, Host()).ok());
}

TEST(Compatible, RefusesSayingBothSides) {
  PluginNote note = Note();
  note.machine = WEIR_MACHINE_AARCH64;
  Refused(note, "built for machine 183 (ELF number), this is 62");
  note = Note();
  note.abi_major = 2;
  Refused(note, "built for ABI major 2, this weir has 1");
  note = Note();
  note.needs_minor = 5;
  Refused(note, "needs ABI 1.5, this weir has 1.4");
  note = Note();
  note.must_understand = 2;
  Refused(note, "its note has must-understand bits 0x2, none of which this weir knows");
  note = Note();
  note.sanitizer = WEIR_SANITIZER_ADDRESS;
  Refused(note, "built with the address sanitizer, this weir with no sanitizer");
  note = Note();
  note.isa = 1u << 20;
  Refused(note, "needs instruction-set bits 0x100000, of which this weir knows 0x7");
}

TEST(Compatible, InstructionsBeyondTheCpuOrTheConfiguration) {
  PluginNote note = Note();
  note.isa = WEIR_ISA_X86_64_V2 | WEIR_ISA_X86_64_V3 | WEIR_ISA_X86_64_V4;
  HostTraits host = Host();
  EXPECT_TRUE(CheckCompatible(note, host).ok()) << "it fits, if not this CPU";
  EXPECT_EQ(CheckIsa(note, host).message(), "needs x86-64-v4, this CPU has x86-64-v3");
  host.cpu_isa = note.isa;
  EXPECT_EQ(CheckIsa(note, host).message(), "needs x86-64-v4, plugins.isa allows x86-64-v3");
  host.isa = IsaUpTo("x86-64");
  EXPECT_EQ(CheckIsa(note, host).message(), "needs x86-64-v4, plugins.isa allows plain x86-64");
  host.isa = IsaUpTo("auto");
  EXPECT_TRUE(CheckIsa(note, host).ok());
  EXPECT_EQ(IsaLevel(IsaUpTo("x86-64-v2")), 2);
  EXPECT_EQ(IsaLevel(IsaUpTo("x86-64-v3")), 3);
  EXPECT_EQ(HostTraits::Current("x86-64").isa, 0u);
  EXPECT_EQ(HostTraits::Current("x86-64-v4").isa, HostTraits::Current().isa);
}

TEST(Compatible, LevelsIncludeEachOther) {
  const HostTraits host = HostTraits::Current();
#if defined(__x86_64__)
  const bool v2 = (host.isa & WEIR_ISA_X86_64_V2) != 0, v3 = (host.isa & WEIR_ISA_X86_64_V3) != 0;
  EXPECT_TRUE(v2 || !v3);
  EXPECT_EQ(v3, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"));
#endif
  EXPECT_EQ(IsaLevel(0), 0);
  EXPECT_EQ(IsaLevel(WEIR_ISA_X86_64_V2), 2);
  EXPECT_EQ(IsaLevel(WEIR_ISA_X86_64_V2 | WEIR_ISA_X86_64_V3 | WEIR_ISA_X86_64_V4), 4);
  EXPECT_EQ(host.machine != 0, true);
}

}  // namespace
}  // namespace weir::plugin
