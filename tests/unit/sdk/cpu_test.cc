#include "sdk/cpp/cpu.h"

#include <gtest/gtest.h>

namespace weir::sdk {
namespace {

TEST(Cpu, TheClassFollowsMakerFamilyAndLevel) {
  const Cpu zen5{.amd = true, .zen5 = true, .isa = Isa::kV4}, zen4{.amd = true, .isa = Isa::kV4};
  EXPECT_EQ(Name(zen5.Class(Isa::kAuto)), "amd-zen5");
  EXPECT_EQ(Name(zen5.Class(Isa::kV3)), "amd-avx2") << "under a lower limit it is one of many";
  EXPECT_EQ(Name(zen4.Class(Isa::kAuto)), "amd-avx512");
  EXPECT_EQ(Name(Cpu{.isa = Isa::kV4}.Class(Isa::kAuto)), "intel-avx512");
  EXPECT_EQ(Name(Cpu{.isa = Isa::kV3}.Class(Isa::kV4)), "intel-avx2") << "the processor has no more";
  EXPECT_EQ(Name(Cpu{.amd = true, .isa = Isa::kV2}.Class(Isa::kAuto)), "baseline");
}

TEST(Cpu, AFamilyIsTheSumOfTwoFieldsWhereTheFirstIsFull) {
  EXPECT_EQ(internal::FamilyOf(0x00b00f21), 26u);  // Zen 5
  EXPECT_EQ(internal::FamilyOf(0x00a10f11), 25u);  // Zen 4
  EXPECT_EQ(internal::FamilyOf(0x000c06f2), 6u);   // Emerald Rapids
}

TEST(Cpu, WhatIsReadOnceAgreesWithTheModel) {
  const Cpu& cpu = ThisCpu();
  if (cpu.amd && cpu.isa == Isa::kV4) {
    EXPECT_EQ(cpu.zen5, ReadCpuModel().family >= 26);
  } else {
    EXPECT_FALSE(cpu.zen5);
  }
}

}  // namespace
}  // namespace weir::sdk
