// What calls, cuts, gradients of loops and ops that wait cost over what they stand for.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/client/control_flow/control_flow.h"
#include "core/client/gradients/gradients.h"
#include "core/client/ops/ops.h"
#include "core/graph/graph_def.h"
#include "core/runtime/cancellation.h"
#include "tests/bench/open.h"
#include "tests/bench/rows.h"

namespace weir::bench {
namespace {

constexpr int kFrameRounds = 9;

Result<Program> OpenText(const std::shared_ptr<session::Runtime>& runtime, const std::string& text,
                         const session::CallableOptions& call, const session::SessionOptions& options) {
  Program program;
  WEIR_ASSIGN(graph::Definition graph, graph::ParseGraph(text, *runtime->ops));
  program.graph = std::make_unique<graph::Definition>(std::move(graph));
  WEIR_ASSIGN(program.session, session::Session::Make(runtime, *program.graph, options));
  WEIR_ASSIGN(program.call, program.session->MakeCallable(call));
  program.names = call;
  for (size_t i = 0; i < call.feeds.size(); ++i) program.feeds.push_back(Tensor::Scalar<float>(1));
  return program;
}

constexpr char kX[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
    "attr { key: 'shape' value { shape { } } } }\n";

std::string NegText(const std::string& name, const std::string& input, const std::string& device = "") {
  return fmt::format("name: '{}' op: 'Neg' input: '{}' device: '{}' attr {{ key: 'T' value {{ type: DT_FLOAT }} }}",
                     name, input, device);
}

/// x -> two ops, `calls` times, each time as a call of a function or as they are.
std::string CallsText(int calls, bool functions) {
  std::string text = kX;
  std::string last = "x";
  for (int i = 0; i < calls; ++i) {
    if (functions) {
      text += fmt::format(
          "node {{ name: 'y{}' op: 'PartitionedCall' input: '{}' attr {{ key: 'Tin' value {{ list {{ type: DT_FLOAT }} "
          "}} }} attr {{ key: 'Tout' value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: 'f' value {{ func {{ name: "
          "'two' }} }} }} }}\n",
          i, last);
    } else {
      text += fmt::format("node {{ {} }}\nnode {{ {} }}\n", NegText(fmt::format("a{}", i), last),
                          NegText(fmt::format("y{}", i), fmt::format("a{}", i)));
    }
    last = fmt::format("y{}", i);
  }
  if (!functions) return text;
  return text +
         fmt::format(
             "library {{ function {{ signature {{ name: 'two' input_arg {{ name: 'x' type: DT_FLOAT }} output_arg {{ "
             "name: 'y' type: DT_FLOAT }} }} node_def {{ {} }} node_def {{ {} }} ret {{ key: 'y' value: 'b:y:0' }} }} "
             "}}\n",
             NegText("a", "x"), NegText("b", "a:y:0"));
}

/// A chain of ops that lie on so many CPUs by turns.
std::string TurnsText(int ops, int devices) {
  std::string text = kX;
  for (int i = 0; i < ops; ++i) {
    const std::string input = i == 0 ? std::string("x") : fmt::format("y{}", i - 1);
    const std::string device = fmt::format("/device:CPU:{}", i % devices);
    text += fmt::format("node {{ {} }}\n", NegText(fmt::format("y{}", i), input, device));
  }
  return text;
}

/// How much longer a run of `dear` takes than one of `cheap`, for each of `items`, in null ops of the same round.
void AddNullOpsRow(const std::shared_ptr<session::Runtime>& runtime, Row row, Result<Program> dear,
                   Result<Program> cheap, int items, int runs, std::vector<Row>* rows) {
  Result<Program> null = Chain(runtime, "Neg", DType::kInt8, 10000);
  for (const Result<Program>* program : {&dear, &cheap, &null}) {
    if (!program->ok()) row.error = program->status().ToString();
  }
  std::vector<double> ratios;
  for (int round = 0; round < kFrameRounds && !row.failed(); ++round) {
    const double null_ns = null->RunNs(20, &row.error) / 10000;
    const double more = dear->RunNs(runs, &row.error) - cheap->RunNs(runs, &row.error);
    ratios.push_back(more / items / null_ns);
  }
  if (!row.failed()) {
    row.measured = Median(ratios);
    row.fastest = *std::min_element(ratios.begin(), ratios.end());
  }
  rows->push_back(std::move(row));
}

void AddCallRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  constexpr int kCalls = 500;
  const session::CallableOptions names = {{"x:0"}, {fmt::format("y{}:0", kCalls - 1)}, {}};
  AddNullOpsRow(runtime,
                {"frame", "call of a function of two ops over those ops", "null ops", 0, 0, "null op", 1, 15, {}},
                OpenText(runtime, CallsText(kCalls, true), names, Unfolded()),
                OpenText(runtime, CallsText(kCalls, false), names, Unfolded()), kCalls, 200, rows);
}

void AddTransferRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  constexpr int kTransfers = 200;
  Row row{
      "frame", "Send and Recv between two CPUs of one process over one tape, each", "null ops", 0, 0, "null op", 1, 30,
      {}};
  Row linked = row;
  linked.what = "edge between two CPUs of one process over an edge on one CPU, by default";
  config::Config config;
  config.device_count["CPU"] = 2;
  const Result<std::shared_ptr<session::Runtime>> two = session::Runtime::For(config);
  if (!two.ok()) {
    row.error = linked.error = two.status().ToString();
    for (const Row& each : {linked, row}) rows->push_back(each);
    return;
  }
  session::SessionOptions whole = Unfolded(), cut = Unfolded();
  cut.cut_between_devices = true;
  const session::CallableOptions names = {{"x:0"}, {fmt::format("y{}:0", kTransfers)}, {}};
  const std::string text = TurnsText(kTransfers + 1, 2);
  AddNullOpsRow(runtime, linked, OpenText(*two, text, names, whole),
                OpenText(*two, TurnsText(kTransfers + 1, 1), names, whole), kTransfers, 200, rows);
  AddNullOpsRow(runtime, row, OpenText(*two, text, names, cut), OpenText(*two, text, names, whole), kTransfers, 20,
                rows);
}

/// A loop of 1,000 iterations over a scalar, or over a matrix that is multiplied; `gradient`: with what its result's
/// gradient takes. With folding, which removes what gradients ask about shapes.
Result<Program> GradientLoop(const std::shared_ptr<session::Runtime>& runtime, bool product, bool gradient) {
  constexpr int kIterations = 1000;
  Graph graph;
  const AsDefault in(graph);
  const PartialShape shape = product ? PartialShape::Of({8, 8}) : PartialShape::Of({});
  const Output x = weir::Placeholder(DType::kFloat, shape, "x");
  const LoopVars exits = WhileLoop([&](const LoopVars& v) { return Less(v[0], kIterations); },
                                   [&](const LoopVars& v) {
                                     return LoopVars{v[0] + 1, product ? MatMul(v[1], x) : v[1] * x};
                                   },
                                   {0, x});
  WEIR_TRY(graph.status());
  Output result = exits.back();
  if (gradient) {
    WEIR_ASSIGN(const auto gradients, Gradients({result}, {x}));
    result = gradients[0].values;
  }
  WEIR_ASSIGN(Program program, Open(runtime, graph, {{x.name()}, {result.name()}, {}}, {}));
  WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kFloat, product ? Shape::Of({8, 8}) : Shape()));
  std::fill_n(value.mutable_as<float>().begin(), value.elements(), 0.125f);
  program.feeds = {value};
  return program;
}

void AddGradientRow(const std::shared_ptr<session::Runtime>& runtime, bool product, std::vector<Row>* rows) {
  Row row{"frame",
          product ? "forward and gradient of a loop of 1,000 products" : "forward and gradient of a loop, scalar body",
          "x",
          0,
          0,
          "forward",
          1,
          product ? 4.0 : 3.0,
          {}};
  Result<Program> forward = GradientLoop(runtime, product, false), both = GradientLoop(runtime, product, true);
  for (const Result<Program>* program : {&forward, &both}) {
    if (!program->ok()) row.error = program->status().ToString();
  }
  std::vector<double> ratios;
  for (int round = 0; round < kFrameRounds && !row.failed(); ++round) {
    const double ns = forward->RunNs(20, &row.error);
    ratios.push_back(both->RunNs(20, &row.error) / ns);
  }
  if (!row.failed()) {
    row.measured = Median(ratios);
    row.fastest = *std::min_element(ratios.begin(), ratios.end());
  }
  rows->push_back(row);
}

/// Two threads that wake each other so many times by a condition variable, in ns.
double WakeUpsNs(int times) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;  // protected by mutex
  const auto play = [&](int parity) {
    std::unique_lock lock(mutex);
    for (int i = parity; i < times; i += 2) {
      changed.wait(lock, [&] { return turn % 2 == parity; });
      ++turn;
      changed.notify_one();
    }
  };
  return TimeNs([&] {
    std::thread other([&] { play(1); });
    play(0);
    other.join();
  });
}

/// Bytes that the process has from malloc.
double AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

double Threads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<double>(std::distance(begin(threads), end(threads)));
}

void AddWaitingRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  constexpr int kOps = 10000;
  Row row{"frame", "10,000 ops that wait in one step, all cancelled", "ms", 0, 0, "10,000 wake-ups", 0, 0, {}};
  Row memory{"frame", "the same, memory that each takes while it waits", "bytes", 0, 0, "2 KiB", 2048, 2048, {}};
  Row threads{"frame", "the same, threads of the process", "threads", 0, 0, "12 threads", 12, 12, {}};
  std::string text =
      "node { name: 'queue' op: 'FIFOQueueV2' attr { key: 'component_types' value { list { type: DT_FLOAT } } } }\n";
  std::string all = "node { name: 'all' op: 'NoOp'";
  for (int i = 0; i < kOps; ++i) {
    text += fmt::format(
        "node {{ name: 'd{}' op: 'QueueDequeueV2' input: 'queue' attr {{ key: 'component_types' value {{ list {{ type: "
        "DT_FLOAT }} }} }} }}\n",
        i);
    all += fmt::format(" input: '^d{}'", i);
  }
  session::SessionOptions options = Unfolded();
  options.inter_op_parallelism_threads = 2;
  Result<Program> program = OpenText(runtime, text + all + " }\n", {{}, {}, {"all"}}, options);
  if (!program.ok()) row.error = program.status().ToString();
  std::vector<double> times, wakes, bytes;
  for (int round = 0; round < 6 && !row.failed(); ++round) {
    const double before = AllocatedBytes();
    runtime::Cancellation cancellation;
    session::RunOptions run;
    run.cancellation = &cancellation;
    std::thread caller([&] {
      std::vector<Tensor> fetched;
      (void)program->session->RunCallable(program->call, {}, &fetched, run);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // they all wait by then
    const double waiting = AllocatedBytes() - before;
    threads.measured = std::max(threads.measured, Threads());
    const double ns = TimeNs([&] {
      cancellation.Cancel(Cancelled("enough"));
      caller.join();
    });
    if (round == 0) continue;  // makes the memory of the step, which later rounds use again
    bytes.push_back(waiting / kOps);
    times.push_back(ns / 1e6);
    wakes.push_back(WakeUpsNs(kOps) / 1e6);
  }
  if (!row.failed()) {
    row.measured = Median(times);
    row.fastest = *std::min_element(times.begin(), times.end());
    row.limit = row.gate = Median(wakes);
    memory.measured = Median(bytes);
    memory.fastest = *std::min_element(bytes.begin(), bytes.end());
    threads.fastest = threads.measured;
  }
  memory.error = threads.error = row.error;
  for (const Row& each : {row, memory, threads}) rows->push_back(each);
}

}  // namespace

void AddFrameRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  AddCallRow(runtime, rows);
  AddTransferRows(runtime, rows);
  AddGradientRow(runtime, false, rows);
  AddGradientRow(runtime, true, rows);
  AddWaitingRows(runtime, rows);
}

}  // namespace weir::bench
