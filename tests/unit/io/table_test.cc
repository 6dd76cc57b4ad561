#include <fmt/format.h>

#include "core/io/table_file.h"

#include <snappy.h>

#include <map>

#include "core/io/coding.h"
#include "core/io/crc32c.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::io {
namespace {

// A bundle with w = float[2]{1, 2}, written by TensorFlow.
constexpr char kGoldenIndex[] =
    "00000608011a02080100010f770801120412020802280835593ce535000000000100000000"
    "0921adc3000000000100000000c0f2a1b0000102780024000000000100000000ab30707f2908360e"
    "000000000000000000000000000000000000000000000000000000000000000000000000"
    "57fb808b247547db";

std::string Build(const std::map<std::string, std::string>& entries) {
  TableBuilder builder;
  for (const auto& [key, value] : entries) WEIR_EXPECT_OK(builder.Add(key, value));
  return builder.Finish();
}

std::map<std::string, std::string> AsMap(const std::vector<TableEntry>& entries) {
  std::map<std::string, std::string> map;
  for (const TableEntry& entry : entries) map[entry.key] = entry.value;
  EXPECT_EQ(map.size(), entries.size());
  return map;
}

TEST(Table, GoldenBytes) {
  EXPECT_EQ(ToHex(Build({{"", FromHex("08011a020801")}, {"w", FromHex("0801120412020802280835593ce535")}})),
            kGoldenIndex);
}

TEST(Table, RoundTripOverManyBlocks) {
  std::map<std::string, std::string> entries = {{"", "header"}, {std::string("\0\1", 2), "nul"}, {"\xff\xff", "last"}};
  for (int i = 0; i < 20000; ++i) {
    entries[fmt::format("layer_{:03}/cell/kernel_{}", i % 100, i)] = std::string(static_cast<size_t>(i % 61), 'v');
  }
  entries["huge"] = std::string(700000, 'h');
  const std::string file = Build(entries);
  const Result<std::vector<TableEntry>> read = ParseTable(file, "t");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(AsMap(*read), entries);
}

TEST(Table, EmptyTable) {
  const Result<std::vector<TableEntry>> read = ParseTable(TableBuilder().Finish(), "t");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE(read->empty());
}

TEST(Table, KeysMustIncrease) {
  TableBuilder builder;
  WEIR_EXPECT_OK(builder.Add("b", ""));
  WEIR_EXPECT_ERROR(builder.Add("b", ""), Code::kInvalidArgument, "'b' does not follow 'b'");
  WEIR_EXPECT_ERROR(builder.Add("a", ""), Code::kInvalidArgument, "'a' does not follow 'b'");
}

TEST(Table, EveryFlippedBitIsDataLoss) {
  const std::string good = FromHex(kGoldenIndex);
  ASSERT_TRUE(ParseTable(good, "t").ok());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(ParseTable(bad, "t").status().code(), Code::kDataLoss) << "bit " << bit;
  }
}

TEST(Table, EveryTruncationIsDataLoss) {
  const std::string good = FromHex(kGoldenIndex);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(ParseTable(good.substr(0, length), "t").status().code(), Code::kDataLoss) << length;
    EXPECT_EQ(ParseTable(good.substr(good.size() - length), "t").status().code(), Code::kDataLoss) << length;
  }
}

// A table of hand-written blocks, with correct checksums.
class RawTable {
 public:
  std::string Block(std::string_view contents, char type) {
    std::string handle;
    AppendVarint(handle, file_.size());
    AppendVarint(handle, contents.size());
    std::string body(contents);
    body.push_back(type);
    file_ += body;
    AppendFixed32(file_, MaskCrc(Crc32c(body)));
    return handle;
  }
  static std::string Entry(uint64_t shared, std::string_view key, std::string_view value) {
    std::string entry;
    AppendVarint(entry, shared);
    AppendVarint(entry, key.size());
    AppendVarint(entry, value.size());
    return entry.append(key).append(value);
  }
  static std::string Contents(std::string_view entries) {
    std::string contents(entries);
    AppendFixed32(contents, 0);
    AppendFixed32(contents, 1);
    return contents;
  }
  /// A table of one data block with these contents.
  std::string Finish(std::string_view data, char type) {
    const std::string data_handle = Block(data, type);
    return FinishWith(data_handle);
  }
  std::string FinishWith(std::string_view data_handle) {
    const std::string meta = Block(Contents(""), 0);
    const std::string index = Block(Contents(Entry(0, "z", data_handle)), 0);
    std::string footer = meta + index;
    footer.resize(40);
    AppendFixed64(footer, 0xdb4775248b80fb57);
    return file_ + footer;
  }

 private:
  std::string file_;
};

TEST(Table, SnappyBlocksAreRead) {
  std::string entries = RawTable::Entry(0, "key", std::string(1000, 'v'));
  std::string packed;
  const std::string contents = RawTable::Contents(entries);
  snappy::Compress(contents.data(), contents.size(), &packed);
  const Result<std::vector<TableEntry>> read = ParseTable(RawTable().Finish(packed, 1), "t");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(AsMap(*read), (std::map<std::string, std::string>{{"key", std::string(1000, 'v')}}));
}

TEST(Table, CraftedBlocksWithRightChecksumsAreRefused) {
  std::string huge_length;
  AppendVarint(huge_length, uint64_t{1} << 31);
  WEIR_EXPECT_ERROR(ParseTable(RawTable().Finish(huge_length + "abc", 1), "t").status(), Code::kDataLoss,
                    "impossible length");
  WEIR_EXPECT_ERROR(ParseTable(RawTable().Finish("\x05 garbage", 1), "t").status(), Code::kDataLoss, "snappy");
  WEIR_EXPECT_ERROR(ParseTable(RawTable().Finish("abc", 7), "t").status(), Code::kDataLoss, "unknown block type 7");
  WEIR_EXPECT_ERROR(ParseTable(RawTable().Finish("abc", 0), "t").status(), Code::kDataLoss, "restart count");
  std::string restarts = "abcd";
  AppendFixed32(restarts, 0x40000001);
  WEIR_EXPECT_ERROR(ParseTable(RawTable().Finish(restarts, 0), "t").status(), Code::kDataLoss, "restart count");
  const auto with_entry = [](const std::string& entry) { return RawTable().Finish(RawTable::Contents(entry), 0); };
  WEIR_EXPECT_ERROR(ParseTable(with_entry(RawTable::Entry(1, "a", "")), "t").status(), Code::kDataLoss, "exceeds");
  WEIR_EXPECT_ERROR(ParseTable(with_entry(std::string("\0\x7f\0", 3)), "t").status(), Code::kDataLoss, "exceeds");
  WEIR_EXPECT_ERROR(ParseTable(with_entry(std::string(12, '\xff')), "t").status(), Code::kDataLoss, "exceeds");
  WEIR_EXPECT_ERROR(ParseTable(with_entry(RawTable::Entry(0, "b", "") + RawTable::Entry(0, "a", "")), "t").status(),
                    Code::kDataLoss, "not in order");
  WEIR_EXPECT_ERROR(ParseTable(with_entry(RawTable::Entry(0, "zz", "")), "t").status(), Code::kDataLoss,
                    "greater than its index entry");
  std::string far_handle;
  AppendVarint(far_handle, UINT64_MAX - 3);
  AppendVarint(far_handle, 100);
  WEIR_EXPECT_ERROR(ParseTable(RawTable().FinishWith(far_handle), "t").status(), Code::kDataLoss, "block handle says");
}

TEST(Table, SharedPrefixesCannotBlowUpMemory) {
  // 60 kB that decode to 10000 keys of 20 kB.
  std::string entries = RawTable::Entry(0, std::string(20000, 'k'), "");
  for (int i = 0; i < 10000; ++i) entries += RawTable::Entry(20000 + static_cast<uint64_t>(i), "k", "");
  WEIR_EXPECT_ERROR(ParseTable(RawTable().Finish(RawTable::Contents(entries), 0), "t").status(),
                    Code::kResourceExhausted, "expand");
}

}  // namespace
}  // namespace weir::io
