// The location of external test data.
#ifndef WEIR_TESTS_SUPPORT_TEST_DATA_H_
#define WEIR_TESTS_SUPPORT_TEST_DATA_H_

#include <cstdlib>
#include <string>

namespace weir::testing {

/// $WEIR_TEST_DATA. If it is empty, tests that need it are skipped with that reason.
inline std::string TestData() {
  const char* folder = std::getenv("WEIR_TEST_DATA");
  return folder == nullptr ? std::string() : std::string(folder);
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_TEST_DATA_H_
