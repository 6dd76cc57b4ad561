// Calls of host kernels one after the other, compared with what TensorFlow gave: tests/ops/sequences/README.md.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/builtin/register.h"
#include "core/kernel/registry.h"
#include "core/ops/declare_all.h"
#include "core/runtime/cancellation.h"
#include "tests/ops/case_table.h"
#include "tools/weir/cases/case_values.h"

namespace weir::testing {
namespace {

using Answer = std::optional<Result<std::vector<Tensor>>>;

struct SequenceLine {
  std::string text;
  std::string waiter;  // of a call that waits, or whose answer is asked for
  std::string maker;   // the name of what it makes
  std::string call;    // "Op attr=value … : operand ; …"; empty: asks for an answer
  std::string wanted;
};

struct Sequence {
  std::string title;
  std::vector<SequenceLine> lines;

  /// What the call that waits at line `i` gives in the end.
  std::string InTheEnd(size_t i) const {
    for (size_t k = i + 1; k < lines.size(); ++k) {
      if (lines[k].call.empty() && lines[k].waiter == lines[i].waiter) return lines[k].wanted;
    }
    return {};
  }
};

SequenceLine ReadLine(const std::string& text) {
  static const std::regex kAnswer("(\\w+) -> (.*)"), kCall("(?:(\\w+): )?(?:(\\w+) = )?([A-Z].*?) -> (.*)");
  SequenceLine line{text, {}, {}, {}, {}};
  std::smatch found;
  if (std::regex_match(text, found, kAnswer)) {
    line.waiter = found[1];
    line.wanted = found[2];
  } else if (std::regex_match(text, found, kCall)) {
    line.waiter = found[1];
    line.maker = found[2];
    line.call = found[3];
    line.wanted = found[4];
  } else {
    ADD_FAILURE() << "cannot read '" << text << "'";
  }
  return line;
}

std::vector<Sequence> ReadSequences(const std::filesystem::path& path) {
  std::vector<Sequence> all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("== ")) {
      all.push_back({line.substr(3), {}});
    } else if (!all.empty()) {
      all.back().lines.push_back(ReadLine(line));
    }
  }
  return all;
}

/// The resources of one sequence and its calls.
class Player {
 public:
  Player() {
    builtin::AddAll(kernels_);
    const Result<const op::OpRegistry*> ops = ops::Catalogue();
    EXPECT_TRUE(ops.ok());
    if (ops.ok()) ops_ = *ops;
  }
  ~Player() { cancellation_.Cancel(Cancelled("the sequence is over")); }

  void Play(const Sequence& sequence) {
    for (size_t i = 0; i < sequence.lines.size(); ++i) {
      const SequenceLine& line = sequence.lines[i];
      const Status status = line.call.empty() ? AskFor(line) : Call(line, sequence.InTheEnd(i));
      EXPECT_TRUE(status.ok()) << sequence.title << "\n" << line.text << "\n" << status.ToString();
    }
    for (const auto& [waiter, answer] : waiting_) ADD_FAILURE() << sequence.title << ": nobody asks for " << waiter;
  }

 private:
  /// The call as a row of op cases; `operands`: which of them are resources.
  Result<OpCase*> RowOf(const SequenceLine& line, const std::string& wanted, std::map<size_t, Tensor>* operands) {
    const size_t colon = std::min(line.call.find(" :"), line.call.size());
    std::string row = line.call.substr(0, colon) + " :";
    std::string rest = colon < line.call.size() ? line.call.substr(colon + 2) : "";
    const op::OpDef* const def = ops_->Find(row.substr(0, row.find(' ')));
    if (def == nullptr) return NotFound("no such op");
    static const std::regex kOperand("(?:^| ;)\\s*(.+?)(?=\\s*(?:$| ; ))");
    size_t i = 0;
    for (auto at = std::sregex_iterator(rest.begin(), rest.end(), kOperand); at != std::sregex_iterator(); ++at, ++i) {
      std::string operand = (*at)[1];
      if (const auto found = made_.find(operand); found != made_.end()) {
        operands->emplace(i, found->second);
        operand = def->inputs[i].dtype == DType::kResource ? "0" : R"(["a","b"])";
      }
      row += (i == 0 ? " " : " ; ") + operand;
    }
    WEIR_ASSIGN(std::vector<OpCase> cases, ParseCases(*ops_, row + " -> " + wanted));
    cases_.push_back(std::move(cases[0]));
    return &cases_.back();
  }

  Status Call(const SequenceLine& line, const std::string& in_the_end) {
    const bool waits = line.wanted == "waits";
    std::map<size_t, Tensor> operands;
    WEIR_ASSIGN(OpCase* const c, RowOf(line, waits ? in_the_end : line.wanted, &operands));
    Answer& answer = answers_.emplace_back();
    Result<std::vector<PartialShape>> shapes = InferCase(*c);
    if (!shapes.ok()) {
      answer = Result<std::vector<Tensor>>(shapes.status());
      return Compare(*c, *answer);
    }
    for (auto& [i, value] : operands) c->inputs[i] = value;
    Start(*c, line.maker, &answer);
    if (waits) {
      waiting_.emplace(line.waiter, std::pair(c, &answer));
      return answer ? Internal("it does not wait") : Status();
    }
    if (!answer) return Internal("it waits");
    if (!line.maker.empty() && answer->ok()) made_[line.maker] = (**answer)[0];
    return Compare(*c, *answer);
  }

  Status AskFor(const SequenceLine& line) {
    const auto found = waiting_.find(line.waiter);
    if (found == waiting_.end()) return NotFound("no call of this name waits");
    const auto [c, answer] = found->second;
    waiting_.erase(found);
    return *answer ? Compare(*c, **answer) : Internal("it still waits");
  }

  void Start(const OpCase& c, const std::string& name, Answer* answer) {
    called_.insert(c.def->name);
    const kernel::KernelEntry* const entry = kernels_.FindHost(c.def->name);
    if (entry == nullptr) {
      *answer = Result<std::vector<Tensor>>(NotFound("no kernel"));
      return;
    }
    kernel::BuiltinCall call{name, c.view(), c.inputs, std::vector<Tensor>(c.signature.outputs.size())};
    call.scope = &scope_;
    call.step_scope = &step_;
    call.cancellation = &cancellation_;
    if (entry->host->async) {
      const auto done = [answer](Result<std::vector<Tensor>> given) { *answer = std::move(given); };
      return entry->host->async(std::move(call), runtime::Completion(done));
    }
    const Status status = entry->host->fn(call);
    *answer = status.ok() ? Result<std::vector<Tensor>>(std::move(call.outputs)) : Result<std::vector<Tensor>>(status);
  }

  static Status Compare(const OpCase& c, const Result<std::vector<Tensor>>& answer) {
    if (c.fails) {
      static const std::regex kNumber("\\b_\\d+_");
      const std::string text = std::regex_replace(std::string(answer.status().message()), kNumber, "_N_");
      if (!answer.ok() && text.find(c.error) != std::string::npos) return {};
      return Internal("'{}' instead of '{}'", answer.ok() ? "ok" : text, c.error);
    }
    WEIR_TRY(answer.status());
    if (c.any) return {};
    if (answer->size() != c.outputs.size()) return Internal("{} outputs", answer->size());
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      const Status same = SameCaseValue((*answer)[i], c.outputs[i], 0);
      if (!same.ok()) return Internal("output {}: {}", i, same.message());
    }
    return {};
  }

 public:
  static std::set<std::string> called_;

 private:
  kernel::KernelRegistry kernels_;
  const op::OpRegistry* ops_ = nullptr;
  std::deque<OpCase> cases_;  // calls that wait use their attributes
  std::deque<Answer> answers_;
  runtime::Cancellation cancellation_;
  runtime::ResourceScope scope_, step_;
  std::map<std::string, Tensor> made_;
  std::map<std::string, std::pair<const OpCase*, Answer*>> waiting_;
};

std::set<std::string> Player::called_;

/// The prefix of the names of the ops of a table, and how many of these it has to call.
struct Table {
  const char* name;
  std::vector<std::string> ops;
};

const Table kTables[] = {
    {"accumulators",
     {"ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator",
      "AccumulatorApplyGradient", "AccumulatorTakeGradient", "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep",
      "ResourceAccumulatorApplyGradient", "ResourceAccumulatorTakeGradient", "ResourceAccumulatorNumAccumulated",
      "ResourceAccumulatorSetGlobalStep", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"}},
    {"barriers",
     {"Barrier", "BarrierInsertMany", "BarrierTakeMany", "BarrierClose", "BarrierReadySize", "BarrierIncompleteSize"}},
    {"map_staging",
     {"MapStage", "MapPeek", "MapUnstage", "MapUnstageNoKey", "MapSize", "MapIncompleteSize", "MapClear",
      "OrderedMapStage", "OrderedMapPeek", "OrderedMapUnstage", "OrderedMapUnstageNoKey", "OrderedMapSize",
      "OrderedMapIncompleteSize", "OrderedMapClear"}},
    {"queues",
     {"FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue", "QueueEnqueue", "QueueEnqueueMany",
      "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo", "QueueClose", "QueueSize", "QueueIsClosed"}},
    {"staging", {"Stage", "Unstage", "StagePeek", "StageSize", "StageClear"}},
    {"tables",
     {"HashTable", "MutableHashTable", "MutableHashTableOfTensors", "InitializeTable", "LookupTableInsert",
      "LookupTableImport", "LookupTableFind", "LookupTableExport", "LookupTableSize"}}};

class Sequences : public ::testing::TestWithParam<Table> {};

TEST_P(Sequences, AreThoseOfTensorFlow) {
  Player::called_.clear();
  const std::filesystem::path folder = std::filesystem::path(WEIR_OP_CASES) / ".." / "sequences";
  const std::vector<Sequence> sequences = ReadSequences(folder / (std::string(GetParam().name) + ".txt"));
  EXPECT_GE(sequences.size(), 4u);
  for (const Sequence& sequence : sequences) Player().Play(sequence);
  for (const std::string& op : GetParam().ops) EXPECT_TRUE(Player::called_.contains(op)) << "no sequence calls " << op;
}

INSTANTIATE_TEST_SUITE_P(Tables, Sequences, ::testing::ValuesIn(kTables),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::testing
