// What handing a kernel to a device's queue costs through weir over handing the same work to the queue itself.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/client/ops/ops.h"
#include "plugins/gpu/platform/emulated_queue.h"
#include "sdk/examples/handle_device/handle_platform.h"
#include "tests/bench/open.h"
#include "tests/bench/rows.h"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kLaunches = 2000;
constexpr int kLaunchRounds = 9;

/// A queue as kernels see it, and pieces of empty work in it.
struct RawQueue {
  std::unique_ptr<device::Stream> stream;
  bool handles = false;

  Status Submit() const {
    int32_t code = 0;
    if (handles) {
      const auto* const queue = reinterpret_cast<const weir_handle_queue*>(stream->native());
      weir_handle_work work{};
      work.struct_size = sizeof work;
      work.run = [](void*, void* const*, weir_error*) -> int32_t { return 0; };
      work.drop = [](void*) {};
      code = queue->submit(queue->queue, &work, nullptr);
    } else {
      auto* const queue = reinterpret_cast<weir_emulated_queue*>(stream->native());
      code = queue->enqueue(queue, [](void*) {}, [](void*) {}, nullptr);
    }
    stream->Launched();
    return code == 0 ? Status() : Internal("the queue refuses work: {}", code);
  }
  /// The time of kLaunches pieces from the first to the end of the last one; -1 and an error.
  double RunNs(std::string* error) const {
    Status status;
    const double ns = TimeNs([&] {
      for (int i = 0; i < kLaunches && status.ok(); ++i) status = Submit();
      if (status.ok()) status = stream->Sync();
    });
    if (!status.ok()) *error = status.ToString();
    return status.ok() ? ns : -1;
  }
};

Result<Program> ChainOn(const std::shared_ptr<session::Runtime>& runtime, const std::string& device) {
  Graph graph;
  const AsDefault in(graph);
  const DeviceScope on(device);
  const Output x = weir::Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  Output y = x;
  for (int i = 0; i < kLaunches; ++i) y = Relu(y);
  WEIR_ASSIGN(Program program, Open(runtime, graph, {{x.name()}, {y.name()}, {}}));
  program.feeds = {Tensor::Scalar<float>(1)};
  return program;
}

Result<RawQueue> QueueOf(session::Runtime& runtime, const std::string& device) {
  device::Device* const found = runtime.plugins->devices().Find("/job:localhost/replica:0/task:0/device:" + device);
  if (found == nullptr) return NotFound("no device {}", device);
  WEIR_ASSIGN(device::Streams* const streams, found->streams());
  RawQueue queue;
  queue.handles = device.starts_with("HANDLE");
  WEIR_ASSIGN(queue.stream, streams->Acquire());
  return queue;
}

void AddLaunchRow(const std::shared_ptr<session::Runtime>& runtime, const std::string& device,
                  std::vector<Row>* rows) {
  Row row{"launch", fmt::format("launch on {} over its raw queue", device), "null ops", 0, 0, "null op", 1, 100, {}};
  Result<Program> chain = ChainOn(runtime, device), null = Chain(runtime, "Neg", DType::kInt8, 10000);
  const Result<RawQueue> raw = QueueOf(*runtime, device);
  if (!raw.ok()) row.error = raw.status().ToString();
  for (const Result<Program>* program : {&chain, &null}) {
    if (!program->ok()) row.error = program->status().ToString();
  }
  // The least times: a queue has a thread of its own, which other processes delay. The result may be below 0, because a
  // stretch that was recorded is one piece of work for the host.
  std::vector<double> chains, raws, nulls;
  for (int round = 0; round < kLaunchRounds && !row.failed(); ++round) {
    nulls.push_back(null->RunNs(20, &row.error) / 10000);
    chains.push_back(chain->RunNs(5, &row.error));
    raws.push_back(raw->RunNs(&row.error));
  }
  const auto least = [](const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); };
  if (!row.failed()) row.measured = row.fastest = (least(chains) - least(raws)) / kLaunches / least(nulls);
  rows->push_back(std::move(row));
}

}  // namespace

void AddLaunchRows(std::vector<Row>* rows) {
  std::error_code problem;
  const fs::path plugins = fs::read_symlink("/proc/self/exe", problem).parent_path().parent_path() / "lib/weir";
  plugin::LoadOptions load;
  for (const char* folder : {"plugins", "bench", "gpu_emulated", "handle"}) {
    if (fs::exists(plugins / folder)) load.folders.push_back((plugins / folder).string());
  }
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(load);
  for (const char* device : {"GPU:0", "HANDLE:0"}) {
    if (runtime.ok()) {
      AddLaunchRow(*runtime, device, rows);
    } else {
      rows->push_back({"launch", device, "null ops", 0, 0, "null op", 1, 100, runtime.status().ToString()});
    }
  }
}

}  // namespace weir::bench
