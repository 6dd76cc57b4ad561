#include "core/session/tracer.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/trace/writer.h"

namespace weir::session {
namespace {

int64_t MicrosecondsNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

class Tracer::File {
 public:
  File(const TracerOptions& options, io::OutputFile file)
      : options_(options),
        file_(std::move(file)),
        writer_(options.path.ends_with(".pftrace") ? trace::MakePerfettoWriter(MicrosecondsNow())
                                                   : trace::MakeChromeWriter(MicrosecondsNow())) {}

  Status Begin() { return Append(writer_->Begin()); }
  Run BeginRun();
  void EndRun(const Run& run, const trace::StepTrace& step);
  Status Close();
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  Phase PhaseOf(int64_t run) const;
  std::string Tail() const;
  bool Fits(const std::string& events) const {
    return options_.limit_bytes == 0 || body_bytes_ + events.size() + Tail().size() <= options_.limit_bytes;
  }
  Status Append(const std::string& events);

  const TracerOptions options_;
  mutable std::mutex mutex_;  // protects all below
  io::OutputFile file_;
  uint64_t body_bytes_ = 0;  // of the file without its tail
  const std::unique_ptr<trace::TraceWriter> writer_;
  std::multiset<int64_t> starts_us_;  // of active runs
  Counts counts_;
  bool full_ = false;
  bool closed_ = false;
  Status status_;
};

Result<std::shared_ptr<Tracer>> Tracer::Open(const TracerOptions& options) {
  for (const auto& [name, number] : {std::pair("skip", options.skip), std::pair("wait", options.wait),
                                     std::pair("warmup", options.warmup), std::pair("repeat", options.repeat)}) {
    if (number < 0) return InvalidArgument("{} of a trace is {}, wanted 0 or more", name, number);
  }
  if (options.active < 1) return InvalidArgument("active of a trace is {}, wanted 1 or more", options.active);
  WEIR_ASSIGN(io::OutputFile file, io::OutputFile::Create(options.path));
  auto written = std::make_unique<File>(options, std::move(file));
  WEIR_TRY(written->Begin());
  return std::shared_ptr<Tracer>(new Tracer(std::move(written)));
}

Tracer::Tracer(std::unique_ptr<File> file) : file_(std::move(file)) {}
Tracer::~Tracer() { (void)Close(); }
Tracer::Run Tracer::Begin() { return file_->BeginRun(); }
void Tracer::End(const Run& run, const trace::StepTrace& step) { file_->EndRun(run, step); }
Status Tracer::Close() { return file_->Close(); }
Tracer::Counts Tracer::counts() const { return file_->counts(); }

Tracer::Phase Tracer::File::PhaseOf(int64_t run) const {
  if (run < options_.skip) return Phase::kOff;
  run -= options_.skip;
  // Each part in turn, as their sum may overflow.
  int64_t cycle = 0;
  const auto length =
      static_cast<double>(options_.wait) + static_cast<double>(options_.warmup) + static_cast<double>(options_.active);
  if (length < static_cast<double>(std::numeric_limits<int64_t>::max())) {
    const int64_t whole = options_.wait + options_.warmup + options_.active;
    cycle = run / whole;
    run %= whole;
  }
  if (options_.repeat > 0 && cycle >= options_.repeat) return Phase::kOff;
  if (run < options_.wait) return Phase::kOff;
  return run - options_.wait < options_.warmup ? Phase::kWarmup : Phase::kActive;
}

Tracer::Run Tracer::File::BeginRun() {
  const std::lock_guard lock(mutex_);
  Run run;
  const int64_t number = counts_.runs++;
  if (closed_ || full_) return run;
  run.phase = PhaseOf(number);
  if (run.phase != Phase::kActive) return run;
  run.start_us = MicrosecondsNow();
  starts_us_.insert(run.start_us);
  return run;
}

void Tracer::File::EndRun(const Run& run, const trace::StepTrace& step) {
  if (run.phase != Phase::kActive) return;
  const std::lock_guard lock(mutex_);
  starts_us_.erase(starts_us_.find(run.start_us));
  if (closed_ || !status_.ok()) return;
  if (full_) {
    ++counts_.dropped;
    return;
  }
  // Runs under way may still have changes of memory after their starts.
  std::string events = writer_->Add(step);
  events += writer_->Memory(starts_us_.empty() ? std::numeric_limits<int64_t>::max() : *starts_us_.begin());
  full_ = !Fits(events);
  ++(full_ ? counts_.dropped : counts_.written);
  status_ = Append(full_ ? std::string() : events);
}

Status Tracer::File::Close() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return status_;
  if (status_.ok()) {
    const std::string events = full_ ? std::string() : writer_->Memory(std::numeric_limits<int64_t>::max());
    status_ = Append(Fits(events) ? events : std::string());
  }
  const Status closed = file_.Close();
  if (status_.ok()) status_ = closed;
  return status_;
}

std::string Tracer::File::Tail() const { return writer_->End({counts_.runs, counts_.written, counts_.dropped}); }

/// Replaces the tail of the file by `events` and a new tail.
Status Tracer::File::Append(const std::string& events) {
  if (body_bytes_ > 0) WEIR_TRY(file_.TruncateTo(body_bytes_));
  WEIR_TRY(file_.Append(events));
  body_bytes_ += events.size();
  WEIR_TRY(file_.Append(Tail()));
  return file_.Flush();
}

}  // namespace weir::session
