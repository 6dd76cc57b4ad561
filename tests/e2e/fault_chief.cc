// A chief that saves a checkpoint of two parameter servers and dies at the k-th rename of a file.
//   fault_chief PS0,PS1 WORKER FOLDER NUMBER K        K = 0: it does not die
// Exit status: 0 saved, 1 an error, 9 dead.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/client/extra.h"

namespace {

std::atomic<int> renames_left = 0;  // until the process dies; 0 = never

}  // namespace

// Replaces the C library's.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (renames_left > 0 && --renames_left == 0) _exit(9);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace weir {
namespace {

Variable OnTask(int task, const std::string& name) {
  const DeviceScope ps("/job:ps/task:" + std::to_string(task));
  return Variable(Zeros({1000}), {.name = name});
}

Status SaveAsChief(const std::vector<std::string>& words) {
  const size_t comma = words[1].find(',');
  const std::vector<std::string> ps = {words[1].substr(0, comma), words[1].substr(comma + 1)};
  WEIR_ASSIGN(const ClusterSpec cluster, ClusterSpec::Make(std::map<std::string, std::vector<std::string>>{
                                             {"ps", ps}, {"worker", {words[2]}}}));
  WEIR_ASSIGN(const auto server, Server::Make(cluster, {"worker", 0, {}}));
  Graph graph;
  const AsDefault here(graph);
  const float number = std::strtof(words[4].c_str(), nullptr);
  const Variable v = OnTask(0, "v"), w = OnTask(1, "w");
  const Operation assign = Group({v.Assign(Fill({1000}, number)).op(), w.Assign(Fill({1000}, number)).op()});
  Saver saver({.max_to_keep = 3, .sharded = true});
  Session session(server->target(), graph);
  WEIR_TRY(session.Run(assign).status());
  renames_left = std::atoi(words[5].c_str());
  const Status saved = saver.Save(session, words[3] + "/m", {.global_step = std::atoi(words[4].c_str())}).status();
  renames_left = 0;
  return saved;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const weir::Status status = weir::SaveAsChief(std::vector<std::string>(argv, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "fault_chief: %s\n", status.ToString().c_str());
  return 1;
}
