// Trains a linear model with parameter servers and workers: every process runs this program, with its own task.
//
//   trainer --ps_hosts=ps0:2222,ps1:2222 --worker_hosts=w0:2222,w1:2222 --job_name=ps --task_index=0
//
// By default each worker updates the variables at once (asynchronous training). With --sync, the chief applies the mean
// of as many gradients as there are workers, and then lets all go on.
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/client/extra.h"
#include "tools/examples/cluster/flags.h"

using namespace weir;

namespace {

constexpr int kBatch = 32, kInputs = 4;
constexpr double kRate = 0.5;
constexpr std::chrono::milliseconds kPoll{50};

struct Model {
  Variable global_step;
  Output loss, uninitialized, done;
  Operation init, tell_done;
  Operation train;  // of every worker; with --sync it hands in a gradient and waits for the update
  std::unique_ptr<AdagradOptimizer> optimizer = std::make_unique<AdagradOptimizer>(kRate);
  std::unique_ptr<SyncReplicasOptimizer> in_step;  // only with --sync
};

/// Random inputs, and what the model shall learn of them: the same weights for all workers.
struct Examples {
  Output inputs, labels;
};

Examples MakeExamples(int task) {
  SetRandomSeed(20 + task);
  const Output inputs = RandomUniform({kBatch, kInputs}, -1.0, 1.0);
  const Output weights = Constant({{1.0}, {-2.0}, {3.0}, {0.5}}, DType::kFloat);
  return {inputs, MatMul(inputs, weights) + 0.25f};
}

Result<Model> BuildModel(const trainer::Flags& flags, const ClusterSpec& cluster) {
  Model m;
  const std::string worker = "/job:worker/task:" + std::to_string(flags.task_index);
  std::map<std::string, std::vector<std::string>> jobs;
  for (const std::string job : {"ps", "worker"}) {
    WEIR_ASSIGN(jobs[job], cluster.JobTasks(job));
  }
  {
    WEIR_ASSIGN(const DeviceRequest devices, ReplicaDeviceSetter({.worker_device = worker, .cluster = jobs}));
    const DeviceScope replica(devices);
    m.global_step = CreateGlobalStep();
    const Variable weights(Zeros({kInputs, 1}), {.name = "weights"});
    const Variable bias(Zeros({1}), {.name = "bias"});
    const Examples examples = MakeExamples(flags.task_index);
    m.loss = ReduceMean(Square(MatMul(examples.inputs, weights) + bias - examples.labels));
    if (flags.sync) {
      SyncReplicasOptions replicas;
      replicas.replicas_to_aggregate = static_cast<int>(flags.worker_hosts.size());
      m.in_step = std::make_unique<SyncReplicasOptimizer>(*m.optimizer, replicas);
      m.train = m.in_step->Minimize(m.loss, {.global_step = m.global_step});
    } else {
      m.train = m.optimizer->Minimize(m.loss, {.global_step = m.global_step});
    }
  }
  m.init = GlobalVariablesInitializer();
  m.uninitialized = SizeOf(ReportUninitializedVariables(GlobalVariables()));
  const DeviceScope on("/job:ps/task:0");
  const FIFOQueue done(static_cast<int>(flags.worker_hosts.size()), {DType::kInt32},
                       {.shapes = {PartialShape::Of({})}, .shared_name = "done"});
  m.tell_done = done.Enqueue(flags.task_index);
  if (flags.worker_hosts.size() > 1) m.done = done.DequeueMany(static_cast<int>(flags.worker_hosts.size()) - 1)[0];
  return m;
}

/// The chief initialises; the others wait for it. With --sync each has a variable of its own: the step of its gradient.
Status Initialise(const Model& m, bool chief, Session& session) {
  if (chief) WEIR_TRY(session.Run(m.init).status());
  for (int32_t left = chief ? 0 : 1; left > 0;) {
    WEIR_ASSIGN(const Fetched missing, session.Run(m.uninitialized));
    left = *missing.scalar<int32_t>();
    if (left > 0) std::this_thread::sleep_for(kPoll);
  }
  if (m.in_step == nullptr) return Status();
  return session.Run(chief ? m.in_step->chief_init_op() : m.in_step->local_step_init_op()).status();
}

/// Until all workers together have made the steps.
Status Train(const Model& m, const trainer::Flags& flags, Session& session) {
  const int64_t updates = flags.sync ? flags.steps / static_cast<int64_t>(flags.worker_hosts.size()) : flags.steps;
  int own = 0;
  for (int64_t step = 0; step < updates; ++own) {
    WEIR_TRY(session.Run(m.train).status());
    WEIR_ASSIGN(const Fetched now, session.Run(m.global_step));
    step = *now.scalar<int64_t>();
  }
  WEIR_ASSIGN(const Fetched last, session.Run({m.loss, m.global_step}));
  std::printf("worker %d: %d steps, global step %lld, loss %.6f\n", flags.task_index, own,
              static_cast<long long>(*last[1].scalar<int64_t>()), static_cast<double>(*last[0].scalar<float>()));
  std::fflush(stdout);
  return Status();
}

/// With --sync the chief's queue runner makes the updates, until the chief has trained.
Status TrainAsChief(const Model& m, const trainer::Flags& flags, Session& session) {
  if (m.in_step == nullptr) return Train(m, flags, session);
  WEIR_ASSIGN(const QueueRunner updates, m.in_step->GetChiefQueueRunner());
  const Coordinator coordinator;
  (void)updates.CreateThreads(session, &coordinator);
  const Status trained = Train(m, flags, session);
  coordinator.RequestStop(trained);
  const Status joined = coordinator.Join();
  return trained.ok() ? joined : trained;
}

Status Work(const trainer::Flags& flags, const ClusterSpec& cluster, Server& server) {
  const bool chief = flags.task_index == 0;
  WEIR_ASSIGN(const Model m, BuildModel(flags, cluster));
  // Workers do not wait for one another.
  const std::string own = "/job:worker/task:" + std::to_string(flags.task_index);
  Session session(server.target(), Graph::Default(), {.device_filters = {"/job:ps", own}});
  WEIR_TRY(session.status());
  WEIR_TRY(Initialise(m, chief, session));
  WEIR_TRY(chief ? TrainAsChief(m, flags, session) : Train(m, flags, session));
  if (!chief) {
    WEIR_TRY(session.Run(m.tell_done).status());
    return session.Close();
  }
  if (m.done.exists()) WEIR_TRY(session.Run(m.done).status());
  WEIR_TRY(session.Close());
  (void)server.EndJob();  // workers may have gone
  return Status();
}

Status Run(const std::vector<std::string>& words) {
  WEIR_ASSIGN(const trainer::Flags flags, trainer::ParseFlags(words));
  WEIR_ASSIGN(const ClusterSpec cluster, ClusterSpec::Make(std::map<std::string, std::vector<std::string>>{
                                             {"ps", flags.ps_hosts}, {"worker", flags.worker_hosts}}));
  ConfigProto config;
  config.cluster.exit_when_done = flags.job_name == "ps";
  WEIR_ASSIGN(const auto server, Server::Make(cluster, {flags.job_name, flags.task_index, config}));
  std::printf("%s listens at %s\n", server->task().ToString().c_str(), server->target().c_str());
  std::fflush(stdout);
  if (flags.job_name == "ps") return server->Join();
  return Work(flags, cluster, *server);
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = Run(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "trainer: %s\n", status.ToString().c_str());
  return 1;
}
