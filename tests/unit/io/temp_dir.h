// A fresh folder for one test, removed with everything in it.
#ifndef WEIR_TESTS_UNIT_IO_TEMP_DIR_H_
#define WEIR_TESTS_UNIT_IO_TEMP_DIR_H_

#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir {

class TempDir : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "weir-io-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    dir_ = path;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  std::string Path(std::string_view name) const { return (std::filesystem::path(dir_) / name).string(); }

  void Write(const std::string& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  std::string Slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Files of the folder, without those of subfolders.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string dir_;
};

/// "00ff" -> two bytes.
inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

inline std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

}  // namespace weir

#define WEIR_EXPECT_OK(expr)                                               \
  do {                                                                     \
    const ::weir::Status weir_expect_status = (expr);                      \
    EXPECT_TRUE(weir_expect_status.ok()) << weir_expect_status.ToString(); \
  } while (false)
#define WEIR_ASSERT_OK(expr)                                               \
  do {                                                                     \
    const ::weir::Status weir_expect_status = (expr);                      \
    ASSERT_TRUE(weir_expect_status.ok()) << weir_expect_status.ToString(); \
  } while (false)
/// The expression is an error of that code whose text contains `text`.
#define WEIR_EXPECT_ERROR(expr, expected_code, text)                                                        \
  do {                                                                                                      \
    const ::weir::Status weir_expect_status = (expr);                                                       \
    EXPECT_EQ(weir_expect_status.code(), expected_code) << weir_expect_status.ToString();                   \
    EXPECT_NE(weir_expect_status.message().find(text), std::string::npos) << weir_expect_status.ToString(); \
  } while (false)

#endif  // WEIR_TESTS_UNIT_IO_TEMP_DIR_H_
