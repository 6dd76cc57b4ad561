// Compiled regions kept as files: read again, and made anew when damaged, foreign or stale.
#include "core/compile/store.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/compile/compilers.h"
#include "tests/unit/compile/test_compiler.h"

namespace weir::compile {
namespace {

namespace fs = std::filesystem;

using testing::TestCompiler;
using testing::Told;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    home_ = fs::path(::testing::TempDir()) / ("weir_store_" + std::to_string(getpid()));
    fs::remove_all(home_);
    const char* const before = std::getenv("XDG_CACHE_HOME");
    before_ = before == nullptr ? "" : before;
    setenv("XDG_CACHE_HOME", home_.c_str(), 1);
    Told().fault = testing::Fault::kNone;
    Told().compat = WEIR_COMPAT_SAME;
    Told().key = "test 1";
    Told().compiled = Told().deserialized = 0;
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("XDG_CACHE_HOME");
    } else {
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
    fs::remove_all(home_);
  }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(home_ / "weir" / "regions", error)) files.push_back(entry.path());
    return files;
  }

  /// As a process of its own would: nothing is in memory.
  std::vector<std::string> CompileAnew(float scale = 1, bool keeps = true) {
    Region region;
    const RegionValue value{DType::kFloat, Shape::Of({8}), Tensor()};
    region.inputs = {value, {DType::kFloat, Shape::Of({8}), Tensor()}};
    region.nodes = {{"Neg", {0}, {{"scale", scale}}, {}, value}, {"AddV2", {2, 1}, {}, {}, value}};
    region.outputs = {3};
    Compilers compilers({TestCompiler(keeps)}, "x86-64");
    std::vector<std::string> notes;
    const auto compiled = compilers.Compile(0, compilers.TargetFor("cpu", nullptr), region, {}, notes);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    if (!compiled.ok()) return notes;
    std::vector<float> x(8, 2), y(8, 5), z(8);
    const auto reg = [](std::vector<float>& of) {
      return weir_reg{reinterpret_cast<uint64_t>(of.data()), 0, nullptr, WEIR_FLOAT32, 0};
    };
    const weir_reg regs[] = {reg(x), reg(y), reg(z)};
    weir_env env{};
    EXPECT_EQ(compiled->executable->Run(regs, &env), WEIR_OK);
    EXPECT_EQ(z, std::vector<float>(8, 3));
    return notes;
  }

  static void Change(const fs::path& path, size_t at, char by) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ by);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  fs::path home_;
  std::string before_;
};

TEST_F(StoreTest, F021_a_kept_region_is_read_in_the_next_process) {
  EXPECT_TRUE(CompileAnew().empty());
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_TRUE(CompileAnew().empty());
  EXPECT_EQ(Told().compiled, 1);
  EXPECT_EQ(Told().deserialized, 1);
}

TEST_F(StoreTest, F021_other_regions_keys_and_processors_have_other_files) {
  CompileAnew();
  CompileAnew(2);
  Told().key = "test 2";
  CompileAnew();
  EXPECT_EQ(Files().size(), 3u);
  EXPECT_EQ(Told().compiled, 3);
  EXPECT_EQ(Told().deserialized, 0);
}

TEST_F(StoreTest, F021_a_compiler_without_serialize_keeps_nothing) {
  CompileAnew(1, false);
  CompileAnew(1, false);
  EXPECT_EQ(Told().compiled, 2);
  EXPECT_TRUE(Files().empty());
}

TEST_F(StoreTest, F021_a_damaged_file_is_compiled_anew) {
  CompileAnew();
  const fs::path path = Files().at(0);
  const auto size = static_cast<size_t>(fs::file_size(path));
  int compiled = Told().compiled;
  for (const size_t at : {size_t{0}, size_t{9}, size_t{17}, size_t{40}, size / 2, size - 20, size - 1}) {
    Change(path, at, 0x41);
    const std::vector<std::string> notes = CompileAnew();
    ASSERT_EQ(notes.size(), 1u) << at;
    EXPECT_NE(notes[0].find("is compiled anew by 'test'"), std::string::npos) << notes[0];
    EXPECT_EQ(Told().compiled, ++compiled) << at;
    EXPECT_TRUE(CompileAnew().empty()) << "the new file is whole, " << at;
  }
  for (const size_t length : {size_t{0}, size_t{7}, size_t{24}, size - 1}) {
    fs::resize_file(path, length);
    ASSERT_EQ(CompileAnew().size(), 1u) << length;
    EXPECT_EQ(Told().compiled, ++compiled) << length;
  }
}

TEST_F(StoreTest, F021_a_foreign_or_stale_file_is_compiled_anew) {
  CompileAnew();
  const fs::path first = Files().at(0);
  CompileAnew(2);
  for (const fs::path& path : Files()) {
    if (path != first) fs::copy_file(path, first, fs::copy_options::overwrite_existing);
  }
  std::vector<std::string> notes = CompileAnew();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("is of another region or compiler"), std::string::npos) << notes[0];
  Told().compat = WEIR_COMPAT_RECOMPILE;
  notes = CompileAnew();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("the compiler no longer takes it"), std::string::npos) << notes[0];
}

TEST_F(StoreTest, F021_files_are_bounded) {
  Store::Write("one", "bytes");
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(*Store::Read("one"), "bytes");
  EXPECT_EQ(Store::Read("two").status().code(), Code::kNotFound);
  const fs::path folder = home_ / "weir" / "regions";
  for (size_t i = 0; i < Store::kMostFiles; ++i) {
    const std::ofstream old(folder / ("old" + std::to_string(i) + ".region"));
    ASSERT_TRUE(old.good());
  }
  Store::Write("two", "more");
  EXPECT_LE(Files().size(), Store::kMostFiles * 3 / 4);
  Store::Write("large", std::string(Store::kMostFileBytes + 1, 'x'));
  EXPECT_EQ(Store::Read("large").status().code(), Code::kNotFound);
}

TEST_F(StoreTest, F021_without_a_folder_nothing_is_kept) {
  std::ofstream(home_.string()) << "a file in its place";
  EXPECT_TRUE(CompileAnew().empty());
  EXPECT_TRUE(CompileAnew().empty());
  EXPECT_EQ(Told().compiled, 2);
}

}  // namespace
}  // namespace weir::compile
