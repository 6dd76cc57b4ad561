// The fault table: rows by their number in the list of faults, with what became of each.
#ifndef WEIR_TESTS_E2E_FAULT_TABLE_H_
#define WEIR_TESTS_E2E_FAULT_TABLE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir::testing {

/// True in the test runs of all rows, not only of a few for each number (WEIR_FAULTS=all).
bool AllFaults();

/// What limits a wait, so that a hang fails the test.
constexpr std::chrono::seconds kFaultLimit{120};
/// The patience with peers in rows where a silent one counts as lost. A healthy one answers in time on a busy machine.
constexpr int kSoonMs = WEIR_SANITIZER_KIND == 0 ? 1500 : 6000;

/// One row, added to the table when it ends. The table is printed when the program ends.
class FaultRow {
 public:
  /// `number`: "T4". `text`: who, when and what.
  FaultRow(std::string number, std::string text);
  ~FaultRow();
  FaultRow(const FaultRow&) = delete;
  FaultRow& operator=(const FaultRow&) = delete;

  /// How the fault was told: expects one of the codes and that the text has all parts.
  void Told(const Status& status, const std::vector<Code>& codes, const std::vector<std::string>& parts);
  /// A fault that nobody need notice.
  void Unnoticed(const Status& status);
  /// Steps that were asked for, that succeeded, and that ran.
  void Ran(uint64_t asked, uint64_t succeeded, uint64_t ran);
  /// A wait that did not end within the limit.
  void Hung(const std::string& what);
  /// Why it does not run here.
  void Skip(const std::string& why);

 private:
  const ::testing::ScopedTrace trace_;
  const std::string number_, text_;
  std::string outcome_, skipped_;
  uint64_t asked_ = 0, succeeded_ = 0, ran_ = 0;
  bool failed_before_ = false, told_wrong_ = false;
  int hangs_ = 0;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_FAULT_TABLE_H_
