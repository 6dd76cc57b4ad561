#include "tests/e2e/fault_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace weir::testing {
namespace {

struct Line {
  std::string number, text, outcome;
  uint64_t asked = 0, succeeded = 0, ran = 0;
  int hangs = 0;
  bool skipped = false, wrong = false, passed = true;
};

class Table final : public ::testing::Environment {
 public:
  static Table& Get() {
    static Table* const table = new Table;  // owned by gtest
    return *table;
  }
  void Add(Line line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(std::move(line));
  }
  void TearDown() override {
    if (lines_.empty()) return;
    Line all;
    int passed = 0, skipped = 0, wrong = 0;
    uint64_t twice = 0;
    for (const Line& line : lines_) {
      std::string steps;
      if (line.asked > 0) steps = fmt::format("steps {}/{}/{}", line.asked, line.succeeded, line.ran);
      std::printf("%-4s %-62s %-28s %-18s %s\n", line.number.c_str(), line.text.c_str(), line.outcome.c_str(),
                  steps.c_str(), line.skipped ? "skipped" : line.passed ? "ok" : "FAILED");
      skipped += line.skipped ? 1 : 0;
      passed += !line.skipped && line.passed ? 1 : 0;
      wrong += line.wrong ? 1 : 0;
      all.hangs += line.hangs;
      all.asked += line.asked;
      all.succeeded += line.succeeded;
      all.ran += line.ran;
      if (line.ran > line.asked) twice += line.ran - line.asked;
    }
    std::printf("%zu rows: %d ok, %d skipped, %zu failed; %d hangs, %d wrong codes or texts; %llu steps asked for, "
                "%llu succeeded, %llu ran, %llu twice\n",
                lines_.size(), passed, skipped, lines_.size() - static_cast<size_t>(passed + skipped), all.hangs, wrong,
                static_cast<unsigned long long>(all.asked), static_cast<unsigned long long>(all.succeeded),
                static_cast<unsigned long long>(all.ran), static_cast<unsigned long long>(twice));
  }

 private:
  std::mutex mutex_;  // protects lines_
  std::vector<Line> lines_;
};

::testing::Environment* const registered = ::testing::AddGlobalTestEnvironment(&Table::Get());

}  // namespace

bool AllFaults() {
  const char* const asked = std::getenv("WEIR_FAULTS");
  return asked != nullptr && std::string(asked) == "all";
}

FaultRow::FaultRow(std::string number, std::string text)
    : trace_(__FILE__, __LINE__, number + " " + text),
      number_(std::move(number)),
      text_(std::move(text)),
      failed_before_(::testing::Test::HasFailure()) {}

FaultRow::~FaultRow() {
  Line line{number_, text_, skipped_.empty() ? outcome_ : skipped_, asked_, succeeded_, ran_, hangs_};
  line.skipped = !skipped_.empty();
  line.wrong = told_wrong_;
  line.passed = failed_before_ || !::testing::Test::HasFailure();
  if (line.skipped) std::printf("%s %s: skipped: %s\n", number_.c_str(), text_.c_str(), skipped_.c_str());
  Table::Get().Add(std::move(line));
}

void FaultRow::Told(const Status& status, const std::vector<Code>& codes, const std::vector<std::string>& parts) {
  outcome_ = CodeName(status.code());
  const bool right = std::ranges::find(codes, status.code()) != codes.end();
  EXPECT_TRUE(right) << status.ToString();
  told_wrong_ = told_wrong_ || !right;
  for (const std::string& part : parts) {
    const bool has = status.message().find(part) != std::string::npos;
    EXPECT_TRUE(has) << "no '" << part << "' in " << status.ToString();
    told_wrong_ = told_wrong_ || !has;
  }
}

void FaultRow::Unnoticed(const Status& status) {
  outcome_ = status.ok() ? "survived" : CodeName(status.code());
  EXPECT_TRUE(status.ok()) << status.ToString();
}

void FaultRow::Ran(uint64_t asked, uint64_t succeeded, uint64_t ran) {
  asked_ += asked;
  succeeded_ += succeeded;
  ran_ += ran;
  EXPECT_GE(ran, succeeded) << "steps were lost";
  EXPECT_LE(ran, asked) << "a step ran twice";
}

void FaultRow::Hung(const std::string& what) {
  ++hangs_;
  ADD_FAILURE() << "hangs: " << what;
}

void FaultRow::Skip(const std::string& why) { skipped_ = why; }

}  // namespace weir::testing
