#include "core/session/program.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>

#include "core/base/errors.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/rendezvous.h"

namespace weir::session {
namespace {

/// One run of all pieces.
class PiecesRun {
 public:
  PiecesRun(const std::vector<Program::Piece>& pieces, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
            const execute::StepArgs& step, std::deque<execute::TapeTrace>* traces)
      : pieces_(pieces),
        feeds_(feeds),
        fetches_(fetches),
        step_(step),
        traces_(traces),
        cancellation_(step.cancellation) {
    if (step_.rendezvous == nullptr) step_.rendezvous = &here_;
    step_.cancellation = &cancellation_;
    step_.watched = true;
  }

  Status Run() {
    struct Job {
      PiecesRun* run;
      size_t piece;
    };
    for (size_t p = 1; p < pieces_.size(); ++p) {
      auto job = std::make_unique<Job>(Job{this, p});
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++running_;
      }
      const Status started = runtime::RunBlocking(
          [](void* arg) {
            const std::unique_ptr<Job> own(static_cast<Job*>(arg));
            own->run->Ended(own->run->RunPiece(own->piece));
          },
          job.get());
      if (started.ok()) {
        (void)job.release();
      } else {
        Ended(started);
      }
    }
    Note(RunPiece(0));
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0; });
    return status_;
  }

 private:
  Status RunPiece(size_t p) {
    const Program::Piece& piece = pieces_[p];
    std::vector<Tensor> feeds, fetched;
    for (const int feed : piece.feeds) feeds.push_back(feeds_[static_cast<size_t>(feed)]);
    execute::StepArgs step = step_;
    step.trace = traces_ == nullptr ? nullptr : &(*traces_)[p];
    WEIR_TRY(piece.runner->Run(feeds, &fetched, step));
    for (size_t i = 0; i < fetched.size(); ++i) {
      (*fetches_)[static_cast<size_t>(piece.fetches[i])] = std::move(fetched[i]);
    }
    return Status();
  }

  void Ended(const Status& status) {
    Note(status);
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  /// The first error becomes the step's status and cancels the other pieces, whose errors are consequences.
  void Note(const Status& status) {
    if (status.ok()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!status_.ok()) return;
      status_ = status;
    }
    const Status derived = Cancelled("[_Derived_]Another part of the step failed: {}", status.message());
    cancellation_.Cancel(derived);
    step_.rendezvous->Abort(derived);
  }

  const std::vector<Program::Piece>& pieces_;
  const std::span<const Tensor> feeds_;
  std::vector<Tensor>* const fetches_;
  execute::StepArgs step_;
  std::deque<execute::TapeTrace>* const traces_;
  runtime::Cancellation cancellation_;
  runtime::LocalRendezvous here_;
  std::mutex mutex_;  // protects the two below
  std::condition_variable changed_;
  size_t running_ = 0;
  Status status_;
};

}  // namespace

Program::Program(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
  for (const Piece& piece : pieces_) fetches_ += piece.fetches.size();
}

Status Program::RunPieces(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, execute::StepArgs step,
                          Traces* traces) const {
  const std::vector<Tensor> kept(feeds.begin(), feeds.end());  // `feeds` may point into `fetches`
  fetches->assign(fetches_, Tensor());
  Status status = PiecesRun(pieces_, kept, fetches, step, traces).Run();
  if (!status.ok()) fetches->clear();
  return status;
}

Status Program::RunTraced(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, execute::StepArgs step,
                          trace::StepTrace* trace) const {
  if (whole_ != nullptr) {
    execute::TapeTrace tape;
    step.trace = &tape;
    Status status = whole_->Run(feeds, fetches, step);
    *trace = tape.Finish(whole_->plan(), step.step_id);
    return status;
  }
  Traces traces;
  for (size_t p = 0; p < pieces_.size(); ++p) traces.emplace_back();
  Status status = RunPieces(feeds, fetches, step, &traces);
  for (size_t p = 0; p < pieces_.size(); ++p) {
    trace::StepTrace piece = traces[p].Finish(pieces_[p].runner->plan(), step.step_id);
    if (p == 0) {
      *trace = std::move(piece);
    } else {
      std::ranges::move(piece.spans, std::back_inserter(trace->spans));
    }
  }
  return status;
}

std::vector<execute::PlanRunner*> Program::runners() const {
  std::vector<execute::PlanRunner*> runners;
  if (whole_ != nullptr) runners.push_back(whole_.get());
  for (const Piece& piece : pieces_) runners.push_back(piece.runner.get());
  return runners;
}

}  // namespace weir::session
