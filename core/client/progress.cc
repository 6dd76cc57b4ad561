#include "core/client/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace weir {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kBarWidth = 24;

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

ProgressBar::ProgressBar(std::string label, int64_t total, ProgressOutput output)
    : label_(std::move(label)),
      total_(std::max<int64_t>(total, 1)),
      output_(std::move(output)),
      started_(std::chrono::steady_clock::now()) {
  if (!output_.write) output_.write = [](std::string_view) {};
}

ProgressBar::~ProgressBar() { Finish(); }

std::string ProgressBar::Line(std::string_view note) const {
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  std::string line = fmt::format("{} {:3.0f} %  {}/{}  {:.1f} s", label_, share * 100, done_, total_, seconds);
  if (!note.empty()) line += fmt::format("  {}", note);
  if (!output_.terminal) return line;
  const int room = output_.width - 1 - static_cast<int>(line.size()) - 3;
  if (room < 4) return line.substr(0, static_cast<size_t>(std::max(output_.width - 1, 0)));
  const int cells = std::min(room, kBarWidth);
  const int full = static_cast<int>(share * cells);
  const std::string bar =
      std::string(static_cast<size_t>(full), '=') + std::string(static_cast<size_t>(cells - full), ' ');
  return fmt::format("[{}{}{}] {}", output_.color ? "\x1b[32m" : "", bar, output_.color ? "\x1b[0m" : "", line);
}

void ProgressBar::Update(int64_t done, std::string_view note) {
  if (finished_) return;
  done_ = std::clamp<int64_t>(done, 0, total_);
  note_ = note;
  if (output_.terminal) {
    const auto now = std::chrono::steady_clock::now();
    if (drawn_ && now - redrawn_ < kRedraw) return;
    redrawn_ = now;
    drawn_ = true;
    output_.write("\r" + Line(note_) + "\x1b[K");
    return;
  }
  const int64_t tenths = done_ * 10 / total_;
  if (tenths <= printed_tenths_) return;
  printed_tenths_ = tenths;
  output_.write(Line(note_) + "\n");
}

void ProgressBar::Finish() {
  if (finished_) return;
  if (output_.terminal && drawn_) output_.write("\r" + Line(note_) + "\x1b[K\n");
  finished_ = true;
}

}  // namespace weir
