#include "core/compile/compilers.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/base/timed.h"
#include "core/compile/region_view.h"
#include "core/compile/store.h"
#include "core/kernel/host.h"

namespace weir::compile {
namespace {

using kernel::CallPlugin;
using kernel::CompilerEntry;

constexpr size_t kMostProposals = 256;  // of one compiler for one candidate
constexpr size_t kMostRemembered = 4096;
constexpr size_t kMostReason = 200;  // characters
constexpr size_t kMostKey = 1024;

/// What a call of `claim` needs and makes; a call that hangs keeps it alive.
struct ClaimCall {
  CompilerEntry entry;
  Target target;
  Region candidate;
  std::vector<Proposal> proposals;
  std::vector<std::string> faults;

  void Emit(const weir_claim* claim) {
    if (claim == nullptr || claim->struct_size < offsetof(weir_claim, reason) || claim->nodes == nullptr) {
      return faults.push_back("it proposed a set of nodes without a complete record");
    }
    if (proposals.size() == kMostProposals) return;
    Proposal proposal;
    for (uint32_t i = 0; i < claim->node_count; ++i) {
      const bool ascends = proposal.nodes.empty() || claim->nodes[i] > proposal.nodes.back();
      if (claim->nodes[i] >= candidate.nodes.size() || !ascends) {
        return faults.push_back(fmt::format("it proposed node {} of {}", claim->nodes[i], candidate.nodes.size()));
      }
      proposal.nodes.push_back(claim->nodes[i]);
    }
    if (proposal.nodes.empty()) return faults.push_back("it proposed an empty set of nodes");
    if (candidate.loop && proposal.nodes.size() != candidate.nodes.size()) {
      return faults.push_back("it proposed some nodes of a loop, wanted all");
    }
    if (!std::isfinite(claim->predicted_ns) || claim->predicted_ns < 0) {
      return faults.push_back("it proposed a set of nodes with a time that is no time");
    }
    proposal.predicted_ns = claim->predicted_ns;
    proposal.compile_ns = claim->compile_ns;
    if (WEIR_HAS(claim, reason.data)) {
      proposal.reason = LegibleLine(std::string(kernel::Text(claim->reason).substr(0, kMostReason)));
    }
    proposals.push_back(std::move(proposal));
  }
};

struct Claimed {
  Status status;
};

std::optional<Claimed> RunClaim(const std::shared_ptr<ClaimCall>& call, std::chrono::milliseconds limit) {
  return RunWithin<Claimed>(limit, [call]() -> Claimed {
    const RegionView view(call->candidate);
    const weir_compile_target target = call->target.View();
    const auto emit = [](void* ctx, const weir_claim* claim) { static_cast<ClaimCall*>(ctx)->Emit(claim); };
    const weir_compiler_api& api = *call->entry.api;
    const auto claim = call->candidate.loop ? api.claim_loop : api.claim;
    return {
        CallPlugin("claim", [&](weir_error* error) { return claim(&target, view.get(), emit, call.get(), error); })};
  });
}

struct Made {
  Status status;
  std::shared_ptr<const Executable> executable;
};

Made Finish(const Status& status, const CompilerEntry& entry, weir_executable* made, const Region& region,
            uint64_t max_tiles) {
  if (!status.ok()) {
    // An executable beside an error is the plugin's to free.
    return {status, nullptr};
  }
  Result<std::shared_ptr<const Executable>> taken = Executable::Take(entry, made, region, max_tiles);
  if (!taken.ok()) return {taken.status(), nullptr};
  return {Status(), std::move(*taken)};
}

}  // namespace

/// A call of `compile` or `deserialize`.
struct Compilers::Job {
  CompilerEntry entry;
  Target target;
  Region region;
  uint64_t max_tiles = 1;
  std::string bytes;  // for deserialize
  std::atomic<bool> cancelled{false};

  Made Compile() {
    const RegionView view(region);
    const weir_compile_target at = target.View();
    weir_compile_options options{};
    options.struct_size = sizeof options;
    options.max_tiles = max_tiles;
    weir_cancel cancel{};
    cancel.struct_size = sizeof cancel;
    cancel.cancelled = [](const weir_cancel* token) { return static_cast<const Job*>(token->arg)->cancelled ? 1 : 0; };
    cancel.arg = this;
    weir_executable* made = nullptr;
    const Status status = CallPlugin("compile", [&](weir_error* error) {
      return entry.api->compile(&at, view.get(), &options, &cancel, &made, error);
    });
    return Finish(status, entry, made, region, max_tiles);
  }

  Made Deserialize() {
    const weir_compile_target at = target.View();
    weir_executable* made = nullptr;
    const Status status = CallPlugin("deserialize", [&](weir_error* error) {
      const int32_t compat = entry.api->compat(&at, bytes.data(), bytes.size());
      if (compat != WEIR_COMPAT_SAME) {
        return device::Report(error, WEIR_FAILED_PRECONDITION, "the compiler no longer takes it");
      }
      return entry.api->deserialize(&at, bytes.data(), bytes.size(), &made, error);
    });
    return Finish(status, entry, made, region, max_tiles);
  }
};

Compilers::Compilers(std::vector<CompilerEntry> entries, std::string isa)
    : entries_(std::move(entries)), isa_(std::move(isa)) {}

Target Compilers::TargetFor(std::string_view platform, const weir_profile* profile) const {
  Target target{std::string(platform), isa_, ProcessorText(), std::nullopt};
  if (profile != nullptr) target.profile = *profile;
  return target;
}

bool Compilers::IsHung(size_t compiler) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return hung_.contains(compiler);
}

void Compilers::SetHung(size_t compiler) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hung_.insert(compiler);
}

void Compilers::Note(std::string text, std::vector<std::string>& notes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (told_.size() < kMostRemembered && told_.insert(text).second) notes.push_back(std::move(text));
}

std::vector<Proposal> Compilers::Claim(const Target& target, const Region& candidate, std::chrono::milliseconds limit,
                                       std::vector<std::string>& notes) {
  std::vector<Proposal> all;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (IsHung(i) || (candidate.loop && !kernel::TakesLoops(entries_[i].api))) continue;
    const auto call = std::make_shared<ClaimCall>();
    call->entry = entries_[i];
    call->target = target;
    call->candidate = candidate;
    const std::optional<Claimed> claimed = RunClaim(call, limit);
    if (!claimed) {
      SetHung(i);
      Note(fmt::format("compiler '{}' is not called again: claim did not end within {} ms", name(i), limit.count()),
           notes);
      continue;
    }
    if (!claimed->status.ok()) {
      Note(fmt::format("compiler '{}' claims nothing of a region: {}", name(i), claimed->status.message()), notes);
      continue;
    }
    for (const std::string& fault : call->faults) Note(fmt::format("compiler '{}': {}", name(i), fault), notes);
    for (Proposal& proposal : call->proposals) {
      proposal.compiler = i;
      all.push_back(std::move(proposal));
    }
  }
  return all;
}

std::string Compilers::KeyOf(size_t compiler, const Target& target, const Region& region, uint64_t max_tiles) const {
  const CompilerEntry& entry = entries_[compiler];
  std::string own;
  if (kernel::Serializes(entry.api)) {
    (void)CallPlugin("key", [&](weir_error*) {
      const weir_compile_target at = target.View();
      const auto emit = [](void* ctx, weir_str text) {
        static_cast<std::string*>(ctx)->assign(kernel::Text(text).substr(0, kMostKey));
      };
      entry.api->key(&at, emit, &own);
      return WEIR_OK;
    });
  }
  return fmt::format("{} {}\n{}\n{} {}\n{}\ntiles {}\n{}", entry.plugin, entry.version, own, target.platform,
                     target.isa, target.cpu, max_tiles, ToString(region));
}

Result<std::shared_ptr<const Executable>> Compilers::Make(size_t compiler, const std::string& key, const Target& target,
                                                          const Region& region, const CompileLimits& limits,
                                                          std::vector<std::string>& notes) {
  const CompilerEntry& entry = entries_[compiler];
  const auto job = std::make_shared<Job>();
  job->entry = entry;
  job->target = target;
  job->region = region;
  job->max_tiles = limits.max_tiles;
  const auto late = [&](std::string_view call) {
    job->cancelled = true;
    SetHung(compiler);
    return DeadlineExceeded("{} did not end within {} ms; it is not called again", call, limits.time.count());
  };
  const bool keeps = limits.keep && kernel::Serializes(entry.api);
  if (keeps) {
    Result<std::string> kept = Store::Read(key);
    if (kept.ok()) {
      job->bytes = std::move(*kept);
      const std::optional<Made> read = RunWithin<Made>(limits.time, [job] { return job->Deserialize(); });
      if (!read) return late("deserialize");
      if (read->status.ok()) return read->executable;
      kept = read->status;
    }
    if (kept.status().code() != Code::kNotFound) {
      Note(fmt::format("a kept region is compiled anew by '{}': {}", entry.plugin, kept.status().message()), notes);
      Store::Remove(key);
    }
  }
  const std::optional<Made> made = RunWithin<Made>(limits.time, [job] { return job->Compile(); });
  if (!made) return late("compile");
  WEIR_TRY(made->status);
  if (keeps) {
    std::string bytes;
    const auto sink = [](void* ctx, const void* data, uint64_t size) -> int32_t {
      auto* const to = static_cast<std::string*>(ctx);
      if (size > Store::kMostFileBytes - std::min<uint64_t>(to->size(), Store::kMostFileBytes)) {
        return WEIR_RESOURCE_EXHAUSTED;
      }
      to->append(static_cast<const char*>(data), size);
      return WEIR_OK;
    };
    const Status serialized = CallPlugin("serialize", [&](weir_error* error) {
      return entry.api->serialize(made->executable->get(), sink, &bytes, error);
    });
    if (serialized.ok()) {
      Store::Write(key, bytes);
    } else {
      Note(fmt::format("regions of compiler '{}' are not kept: {}", entry.plugin, serialized.message()), notes);
    }
  }
  return made->executable;
}

Result<Compilers::Compiled> Compilers::Compile(size_t compiler, const Target& target, const Region& region,
                                               const CompileLimits& limits, std::vector<std::string>& notes) {
  if (IsHung(compiler)) return Unimplemented("it did not end an earlier call");
  const std::string key = KeyOf(compiler, target, region, limits.max_tiles);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto failed = failed_.find(key); failed != failed_.end()) return failed->second;
    if (const auto alive = alive_.find(key); alive != alive_.end()) {
      if (std::shared_ptr<const Executable> executable = alive->second.lock()) {
        return Compiled{HashText(key), std::move(executable)};
      }
    }
  }
  Result<std::shared_ptr<const Executable>> made = Make(compiler, key, target, region, limits, notes);
  if (!made.ok() && made.status().code() != Code::kUnimplemented) {
    Note(fmt::format("compiler '{}' failed, the nodes of its regions run as kernels: {}", name(compiler),
                     made.status().message()),
         notes);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!made.ok()) {
    if (failed_.size() < kMostRemembered) failed_.emplace(key, made.status());
    return made.status();
  }
  if (alive_.size() >= kMostRemembered) std::erase_if(alive_, [](const auto& entry) { return entry.second.expired(); });
  alive_[key] = *made;
  return Compiled{HashText(key), std::move(*made)};
}

}  // namespace weir::compile
