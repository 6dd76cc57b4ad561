#include "core/device/device_name.h"

#include <gtest/gtest.h>

namespace weir::device {
namespace {

struct Spelling {
  const char* text;
  const char* canonical;
};

TEST(DeviceName, F104_AcceptsEverySpelling) {
  const Spelling spellings[] = {
      {"", ""},
      {"/", ""},
      {"/cpu:0", "/device:CPU:0"},
      {"/gpu:1", "/device:GPU:1"},
      {"/CPU:0", "/device:CPU:0"},
      {"/GPU:12", "/device:GPU:12"},
      {"cpu:0", "/device:CPU:0"},
      {"GPU:0", "/device:GPU:0"},
      {"gpu:2", "/device:GPU:2"},
      {"/device:cpu:0", "/device:CPU:0"},
      {"NPU:3", "/device:NPU:3"},
      {"/cpu", "/device:CPU:*"},
      {"/device:GPU:2", "/device:GPU:2"},
      {"device:GPU:2", "/device:GPU:2"},
      {"/device:gpu:2", "/device:GPU:2"},
      {"/device:CPU:*", "/device:CPU:*"},
      {"/device:CPU", "/device:CPU:*"},
      {"/device:*:1", "/device:*:1"},
      {"/device:*", ""},
      {"/device:XLA_CPU:0", "/device:XLA_CPU:0"},
      {"/job:worker", "/job:worker"},
      {"/job:*/replica:*/task:*", ""},
      {"/task:3/job:ps", "/job:ps/task:3"},
      {"/job:worker/cpu:0", "/job:worker/device:CPU:0"},
      {"/device:GPU:1/job:a_1/task:1/replica:0", "/job:a_1/replica:0/task:1/device:GPU:1"},
      {"/job:worker/replica:0/task:1/device:GPU:0", "/job:worker/replica:0/task:1/device:GPU:0"},
  };
  for (const Spelling& s : spellings) {
    const Result<DeviceName> name = ParseDeviceName(s.text);
    ASSERT_TRUE(name.ok()) << s.text << ": " << name.status().ToString();
    EXPECT_EQ(name->ToString(), s.canonical) << s.text;
    const Result<DeviceName> again = ParseDeviceName(name->ToString());
    ASSERT_TRUE(again.ok()) << name->ToString();
    EXPECT_EQ(*again, *name) << s.text;
  }
}

TEST(DeviceName, F104_RefusesWithTextAndColumn) {
  const Spelling faults[] = {
      {"/foo:0", "Unknown attribute: 'foo' in '/foo:0' (column 2)"},
      {"/cpu:0/gpu:1", "Cannot specify multiple device types: /cpu:0/gpu:1"},
      {"/job:", "(column 6: wanted a job name"},
      {"/job:1a", "(column 6: wanted a job name"},
      {"/job:a/job:b", "(column 8: wanted /job only once)"},
      {"/job:a/task:x", "(column 13: wanted a number from 0 to 2147483647, or '*')"},
      {"/task:-1", "(column 7: wanted a number"},
      {"/task:2147483648", "wanted a number"},
      {"/cpu:0x", "(column 6: wanted a number"},
      {"/device", "wanted ':' and a device type"},
      {"/device:", "wanted a device type"},
      {"/device:G-U:0", "wanted a device type"},
      {"//cpu:0", "(column 2: wanted job, replica"},
      {"/cpu:0/", "(column 8: wanted job, replica"},
      {"/job:a b", "wanted a job name"},
  };
  for (const Spelling& s : faults) {
    const Result<DeviceName> name = ParseDeviceName(s.text);
    ASSERT_FALSE(name.ok()) << s.text;
    EXPECT_EQ(name.status().code(), Code::kInvalidArgument);
    EXPECT_NE(name.status().message().find(s.canonical), std::string::npos) << name.status().message();
  }
}

TEST(DeviceName, FullNeedsEveryPart) {
  EXPECT_TRUE(ParseDeviceName("/job:w/replica:0/task:0/device:CPU:0")->full());
  EXPECT_FALSE(ParseDeviceName("/job:w/replica:0/task:0/device:CPU:*")->full());
  EXPECT_FALSE(ParseDeviceName("/cpu:0")->full());
}

TEST(DeviceName, MatchesEveryStatedPart) {
  const DeviceName gpu1 = *ParseDeviceName("/job:w/replica:0/task:2/device:GPU:1");
  for (const char* spec : {"", "/gpu:1", "/job:w", "/task:2/device:GPU:*", "/replica:0"}) {
    EXPECT_TRUE(Matches(*ParseDeviceName(spec), gpu1)) << spec;
  }
  for (const char* spec : {"/gpu:0", "/job:ps", "/task:1", "/device:CPU:*", "/replica:1"}) {
    EXPECT_FALSE(Matches(*ParseDeviceName(spec), gpu1)) << spec;
  }
}

TEST(DeviceName, MergesAndNamesBothInAConflict) {
  const auto merge = [](const char* a, const char* b, bool soft) {
    return MergeNames(*ParseDeviceName(a), *ParseDeviceName(b), soft);
  };
  EXPECT_EQ(merge("/job:ps", "/gpu:0", false)->ToString(), "/job:ps/device:GPU:0");
  EXPECT_EQ(merge("/device:GPU:*", "/gpu:3", false)->ToString(), "/device:GPU:3");
  EXPECT_EQ(merge("/gpu:0", "/cpu:0", false).status().message(),
            "Cannot merge devices with incompatible types: '/device:GPU:0' and '/device:CPU:0'");
  EXPECT_EQ(merge("/gpu:0", "/gpu:1", false).status().message(),
            "Cannot merge devices with incompatible ids: '/device:GPU:0' and '/device:GPU:1'");
  EXPECT_EQ(merge("/job:a/gpu:0", "/cpu:0", true)->ToString(), "/job:a");
  EXPECT_EQ(merge("/gpu:0", "/gpu:1", true)->ToString(), "/device:GPU:*");
  EXPECT_EQ(merge("/job:a", "/job:b", true).status().message(),
            "Cannot merge devices with incompatible jobs: '/job:a' and '/job:b'");
  EXPECT_FALSE(merge("/task:0", "/task:1", true).ok());
  EXPECT_FALSE(merge("/replica:0", "/replica:1", true).ok());
}

}  // namespace
}  // namespace weir::device
