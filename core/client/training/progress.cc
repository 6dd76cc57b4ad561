#include "core/client/training/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace weir {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kNextLine = std::chrono::seconds(1);
constexpr int kBarWidth = 30;
constexpr int kSecondsPerMinute = 60, kSecondsPerHour = 3600;

/// "1:02:03", "2:03", "3s".
std::string TimeLeft(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  const int64_t minutes = whole / kSecondsPerMinute % kSecondsPerMinute, rest = whole % kSecondsPerMinute;
  if (whole > kSecondsPerHour) return fmt::format("{}:{:02}:{:02}", whole / kSecondsPerHour, minutes, rest);
  if (whole > kSecondsPerMinute) return fmt::format("{}:{:02}", whole / kSecondsPerMinute, rest);
  return fmt::format("{}s", whole);
}

/// "2s/step", "3ms/step", "4us/step".
std::string TimePer(double seconds, std::string_view unit) {
  if (seconds >= 1 || seconds == 0) return fmt::format("{:.0f}s/{}", seconds, unit);
  if (seconds >= 1e-3) return fmt::format("{:.0f}ms/{}", seconds * 1e3, unit);
  return fmt::format("{:.0f}us/{}", seconds * 1e6, unit);
}

/// " - loss: 0.5569 - rate: 1.0000e-04".
std::string TextOf(const ProgressMetrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    text +=
        std::abs(value) > 1e-3 ? fmt::format(" - {}: {:.4f}", name, value) : fmt::format(" - {}: {:.4e}", name, value);
  }
  return text;
}

}  // namespace

ProgressOutput ProgressOutput::Stderr() {
  ProgressOutput output;
  output.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  output.terminal = isatty(STDERR_FILENO) != 0 && !dumb;
  const char* no_color = std::getenv("NO_COLOR");
  output.color = output.terminal && (no_color == nullptr || *no_color == '\0');
  winsize size = {};
  if (output.terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) output.width = size.ws_col;
  return output;
}

ProgressBar::ProgressBar(std::string label, int64_t total, ProgressOutput output, int verbose)
    : label_(std::move(label)), total_(std::max<int64_t>(total, 1)), output_(std::move(output)), verbose_(verbose) {
  if (!output_.write) output_.write = [](std::string_view) {};
  if (!output_.clock) output_.clock = std::chrono::steady_clock::now;
  started_ = redrawn_ = output_.clock();
}

ProgressBar::~ProgressBar() { Finish(); }

double ProgressBar::Elapsed() const { return std::chrono::duration<double>(output_.clock() - started_).count(); }
double ProgressBar::Share() const { return static_cast<double>(done_) / static_cast<double>(total_); }
double ProgressBar::PerStep() const { return done_ == 0 ? 0 : Elapsed() / static_cast<double>(done_); }

std::string ProgressBar::Line() const {
  const auto full = static_cast<int64_t>(kBarWidth * Share());
  std::string bar(static_cast<size_t>(kBarWidth), '.');
  std::fill_n(bar.begin(), full, '=');
  if (full > 0 && done_ < total_) bar[static_cast<size_t>(full) - 1] = '>';
  const std::string total = std::to_string(total_), metrics = TextOf(metrics_);
  const std::string time = done_ < total_ ? "ETA: " + TimeLeft(PerStep() * static_cast<double>(total_ - done_))
                                          : fmt::format("{:.0f}s {}", Elapsed(), TimePer(PerStep(), "step"));
  const std::string count = fmt::format("{:>{}}/{}", done_, total.size(), total);
  const std::string plain = fmt::format("{} [{}] - {}{}", count, bar, time, metrics);
  if (!output_.terminal) return plain;
  if (static_cast<int>(plain.size()) >= output_.width) {
    return plain.substr(0, static_cast<size_t>(std::max(output_.width - 1, 0)));
  }
  return output_.color ? fmt::format("{} [\x1b[32m{}\x1b[0m] - {}{}", count, bar, time, metrics) : plain;
}

std::string ProgressBar::Summary() const {
  return fmt::format("{}/{} - {:.0f}s{} - {} - {}", done_, total_, Elapsed(), TextOf(metrics_),
                     TimePer(Elapsed(), "epoch"), TimePer(PerStep(), "step"));
}

void ProgressBar::Print(std::string_view line) {
  if (!drawn_ && !label_.empty()) output_.write(label_ + "\n");
  drawn_ = true;
  redrawn_ = output_.clock();
  output_.write(line);
}

void ProgressBar::Update(int64_t done, const ProgressMetrics& metrics) {
  if (finished_) return;
  done_ = std::clamp<int64_t>(done, 0, total_);
  metrics_ = metrics;
  if (verbose_ != 1) return;
  const auto since = output_.clock() - redrawn_;
  if (output_.terminal) {
    if (!drawn_ || since >= kRedraw) Print("\r" + Line() + "\x1b[K");
    return;
  }
  constexpr int kTenths = 10;
  const auto tenths = static_cast<int64_t>(kTenths * Share());
  if (tenths <= printed_tenths_ || (done_ < total_ && since < kNextLine)) return;
  printed_tenths_ = tenths;
  Print(Line() + "\n");
}

void ProgressBar::Finish() {
  if (finished_) return;
  finished_ = true;
  if (verbose_ == 2) {
    Print(Summary() + "\n");
  } else if (verbose_ == 1 && output_.terminal && drawn_) {
    Print("\r" + Line() + "\x1b[K\n");
  }
}

}  // namespace weir
