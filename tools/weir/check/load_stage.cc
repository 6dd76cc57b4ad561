// Stage load: the dynamic linker, and the effects of constructors on the process.
#include <unistd.h>

#include <cstdio>

#include "core/base/errors.h"
#include "tools/weir/check/process_state.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

Status CheckSilence() {
  std::fflush(nullptr);
  char text[200];
  const ssize_t got = pread(CapturedOutput(), text, sizeof(text), 0);
  if (got <= 0) return {};
  return FailedPrecondition("it prints: {}", std::string_view(text, static_cast<size_t>(got)));
}

}  // namespace

std::vector<RuleResult> LoadStage(const Target& target) {
  return RunInChild("WEIR-LOAD-01", target.time_limit_ms, [&](Recorder& recorder) {
    const ProcessState before = ProcessState::Now();
    Result<Subject> loaded = Unknown("not tried");
    if (!recorder.Try("WEIR-LOAD-01", [&] { return (loaded = Subject::Load(target.path)).status(); })) return;
    const ProcessState after = ProcessState::Now();
    recorder.Try("WEIR-LOAD-02", [&] { return SameSurroundings(before, after); });
    recorder.Try("WEIR-LOAD-04", [&] { return SameActivity(before, after); });
    recorder.Try("WEIR-LOAD-03", [&] {
      const Result<Subject> started = Subject::Start(target);
      if (started.ok() && started->devices() != nullptr) static_cast<void>(Enumerate(*started));
      return CheckSilence();
    });
  });
}

}  // namespace weir::check
