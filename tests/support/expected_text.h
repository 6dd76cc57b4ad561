// Expected texts of tests, kept in files beside them.
#ifndef WEIR_TESTS_SUPPORT_EXPECTED_TEXT_H_
#define WEIR_TESTS_SUPPORT_EXPECTED_TEXT_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::testing {

/// True if WEIR_UPDATE_EXPECTED is set in the environment: files are then written instead of compared.
inline bool UpdatesExpected() { return std::getenv("WEIR_UPDATE_EXPECTED") != nullptr; }

inline std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Expects the file to contain `text`, or writes it.
inline void ExpectFileText(const std::string& path, const std::string& text) {
  if (UpdatesExpected()) {
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text, FileText(path)) << "WEIR_UPDATE_EXPECTED=1 rewrites " << path;
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_EXPECTED_TEXT_H_
