#include "tests/bench/measure.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/bench/limit_loops.h"

namespace weir::bench {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double TimeNs(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

void Measure(int rounds, const std::function<double()>& work, const std::function<double()>& probe, Row* row) {
  std::vector<double> measured, limits;
  for (int i = 0; i < rounds; ++i) {
    limits.push_back(probe());
    measured.push_back(work());
    if (measured.back() < 0 || limits.back() < 0) {
      if (row->error.empty()) row->error = "a measurement failed";
      return;
    }
  }
  row->measured = Median(measured);
  row->fastest = *std::min_element(measured.begin(), measured.end());
  row->limit = Median(limits);
}

std::string Machine() {
  std::string model = "unknown CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname system{};
  uname(&system);
  return fmt::format("{}, {} cores, {} {}, g++ {}", model, sysconf(_SC_NPROCESSORS_ONLN), system.sysname,
                     system.release, __VERSION__);
}

int TellMissed(const std::vector<std::string>& missed) {
  for (const std::string& line : missed) std::fprintf(stderr, "gate missed: %s\n", line.c_str());
  return missed.empty() ? 0 : 1;
}

std::string Markdown(const std::vector<Row>& rows) {
  std::string text = fmt::format(
      "Machine: {}; limits: {}\n\n| id | what | measured | best | limit probe | measured / limit | gate | goal |\n"
      "|---|---|---|---|---|---|---|---|\n",
      Machine(), LimitIsa());
  for (const Row& row : rows) {
    if (row.failed()) {
      text += fmt::format("| {} | {} | failed: {} | | | | | |\n", row.id, row.what, row.error);
      continue;
    }
    const auto beside = [&row](double figure) {
      return figure == 0 ? "" : fmt::format("{:.6g} {}", figure, row.measured <= figure ? "met" : "MISSED");
    };
    text += fmt::format("| {} | {} | {:.4g} {} | {:.4g} | {:.4g} ({}) | {:.2f} | {} | {} |\n", row.id, row.what,
                        row.measured, row.unit, row.fastest, row.limit, row.limit_what, row.measured / row.limit,
                        beside(row.gate), beside(row.goal));
  }
  return text;
}

std::string JsonText(const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["machine"] = Machine();
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json entry = {{"id", row.id}, {"what", row.what}, {"unit", row.unit}};
    if (row.error.empty()) {
      entry.update({{"measured", row.measured},
                    {"fastest", row.fastest},
                    {"limit", row.limit},
                    {"limit_what", row.limit_what},
                    {"gate", row.gate},
                    {"goal", row.goal}});
    } else {
      entry["error"] = row.error;
    }
    json["rows"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

}  // namespace weir::bench
