// Trains a network of two layers on handwritten digits, saves it, and restores it in a second process.
//
//   digits [--dir DIR]     trains; writes the checkpoint and the event files to DIR
//   digits --restore DIR   evaluates a model that another process saved there
//
// SIGTERM and SIGINT end the training early: the current model is saved, and the exit status is 128 + the signal.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/base/errors.h"
#include "core/client/extra.h"
#include "core/io/files.h"
#include "tools/examples/digits/digits.h"

using namespace weir;

namespace {

constexpr int kHeldBack = 360, kBatch = 32, kEpochs = 30;
constexpr uint32_t kSeed = 20;

volatile sig_atomic_t stop_signal = 0;  // the signal received; 0 = none

void StopAtSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { stop_signal = number; };
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
}

struct Model {
  Output images, labels, loss, accuracy, summaries;
  Variable global_step;
  Operation train;
};

Model BuildModel() {
  SetRandomSeed(kSeed);
  Model m;
  m.images = Placeholder(DType::kFloat, {-1, digits::kPixels}, "images");
  m.labels = Placeholder(DType::kInt64, {-1}, "labels");
  const Output hidden = Dense(m.images, 64, Relu, "hidden");
  const Output logits = Dense(hidden, digits::kClasses, {}, "logits");
  m.loss = ReduceMean(SparseSoftmaxCrossEntropyWithLogits(m.labels, logits), {}, {.name = "loss"});
  m.accuracy = ReduceMean(Cast(Equal(ArgMax(logits, 1), m.labels), DType::kFloat), {}, {.name = "accuracy"});
  summary::Scalar("train/loss", m.loss);
  summary::Histogram("train/logits", logits);
  m.summaries = summary::MergeAll();
  m.global_step = Variable(Tensor::Scalar<int64_t>(0), {.name = "global_step", .trainable = false});
  m.train = AdamOptimizer(0.003).Minimize(m.loss, {.global_step = m.global_step});
  return m;
}

/// `logged` is the first error of writing events; training continues without them.
Status Train(const Model& m, Session& session, digits::Digits& data, summary::FileWriter& events, Status& logged) {
  session::RunReport report;
  ProgressBar progress("training", kEpochs);
  for (int epoch = 0; epoch < kEpochs && stop_signal == 0; ++epoch) {
    data.Shuffle(kSeed + static_cast<uint32_t>(epoch));
    for (int i = 0; i < data.size() && stop_signal == 0; i += kBatch) {
      const digits::Batch batch = data.Slice(i, i + kBatch);
      WEIR_TRY(session.Run(m.train, {{m.images, batch.images}, {m.labels, batch.labels}}, {}, &report).status());
    }
    if (epoch == 0) {
      for (const auto& [device, nodes] : report.placement)
        std::printf("placement: %d nodes on %s\n", nodes, device.c_str());
      std::fflush(stdout);
    }
    const digits::Batch sample = data.Slice(0, 256);
    const Feeds feeds = {{m.images, sample.images}, {m.labels, sample.labels}};
    WEIR_ASSIGN(const Fetched now, session.Run({m.loss, m.summaries}, feeds));
    if (logged.ok()) logged = events.AddSummary(now[1].tensor(), epoch);
    progress.Update(epoch + 1, {{"loss", *now[0].scalar<float>()}});
  }
  const Status closed = events.Close();
  if (logged.ok()) logged = closed;
  return Status();
}

Status Evaluate(const Model& m, Session& session, const digits::Digits& held_back, const char* label) {
  const digits::Batch all = held_back.All();
  WEIR_ASSIGN(const Fetched accuracy, session.Run(m.accuracy, {{m.images, all.images}, {m.labels, all.labels}}));
  std::printf("%s: %.4f (%d held-back digits)\n", label, *accuracy.scalar<float>(), held_back.size());
  std::fflush(stdout);
  return Status();
}

/// Runs this program again, with --restore.
Status RestoreInSecondProcess(const std::string& self, const std::string& dir) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl(self.c_str(), self.c_str(), "--restore", dir.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int result = 0;
  const bool good = child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result) && WEXITSTATUS(result) == 0;
  return good ? Status() : Internal("the second process, which restores the checkpoint, failed");
}

/// A path for display: relative to the working directory, if there is one.
std::string Shown(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  return error ? path.string() : path.lexically_proximate(here).string();
}

Status Run(const std::string& self, const std::string& dir, bool restore) {
  const std::filesystem::path root = std::filesystem::path(self).parent_path().parent_path();
  WEIR_ASSIGN(digits::Digits data, digits::Digits::Load(root / "share/weir/digits/digits.csv"));
  data.Shuffle(kSeed);
  const digits::Digits held_back = data.TakeLast(kHeldBack);
  const Model model = BuildModel();
  Session session;
  Saver saver;
  if (restore) {
    WEIR_TRY(saver.RestoreLatest(session, dir).status());
    return Evaluate(model, session, held_back, "accuracy in a second process, restored");
  }
  WEIR_TRY(io::MakeDirectories(dir));
  StopAtSignals();
  WEIR_TRY(session.Run(GlobalVariablesInitializer()).status());
  summary::FileWriter events(dir + "/events", &Graph::Default());
  Status logged;
  WEIR_TRY(Train(model, session, data, events, logged));
  WEIR_ASSIGN(const std::string saved,
              saver.Save(session, dir + "/model.ckpt", {.global_step = model.global_step, .verify = true}));
  if (stop_signal == 0) WEIR_TRY(Evaluate(model, session, held_back, "accuracy"));
  std::printf("saved: %s\n", saved.c_str());
  WEIR_TRY(logged);
  if (stop_signal != 0) return Status();
  WEIR_TRY(RestoreInSecondProcess(self, dir));
  std::printf(
      "\nnext:\n  %s/bin/weir devices\n  tensorboard --logdir %s/events\n  less tools/examples/digits/main.cc\n",
      Shown(root).c_str(), dir.c_str());
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    std::fprintf(stderr, "digits: /proc/self/exe: %s\n", error.message().c_str());
    return 1;
  }
  const std::string option = argc == 3 ? argv[1] : "";
  if (argc != 1 && option != "--dir" && option != "--restore") {
    std::fprintf(stderr, "usage: digits [--dir DIR | --restore DIR]\n");
    return 2;
  }
  const std::filesystem::path beside = std::filesystem::path(self).parent_path().parent_path() / "digits-run";
  const std::string dir = argc == 3 ? argv[2] : Shown(beside);
  const Status status = Run(self, dir, option == "--restore");
  if (!status.ok()) std::fprintf(stderr, "digits: %s\n", status.ToString().c_str());
  if (!status.ok()) return 1;
  return stop_signal == 0 ? 0 : 128 + stop_signal;
}
