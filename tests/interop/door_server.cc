// A server for TensorFlow's clients, with the flags and the line of `weir serve` that tests of the door need: --grpc
// HOST:PORT, --tls-certificate, --tls-key, --tls-authorities. It serves until its standard input ends.
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "core/door/front_door.h"
#include "core/door/master.h"
#include "core/session/options.h"
#include "core/session/runtime.h"

int main(int argc, char** argv) {
  using namespace weir;
  std::map<std::string, std::string> flags = {{"--grpc", "127.0.0.1:0"}};
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  const auto run = [&]() -> Status {
    WEIR_ASSIGN(const config::Loaded loaded, config::Load(config::Sources::OfProcess()));
    plugin::LoadOptions options = session::LoadOptionsFrom(loaded.config);
    options.job = "local";
    WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Load(options));
    door::MasterOptions master;
    master.task = {"local", 0};
    cluster::Services services;
    services.master = std::make_shared<door::Master>(runtime, master);
    WEIR_ASSIGN(const std::shared_ptr<cluster::Transport> transport, door::FrontDoor(*runtime->plugins, "grpc"));
    cluster::ListenOptions listen;
    listen.address = flags["--grpc"];
    listen.self.security.tls_certificate = flags["--tls-certificate"];
    listen.self.security.tls_key = flags["--tls-key"];
    listen.self.security.tls_authorities = flags["--tls-authorities"];
    WEIR_ASSIGN(const std::unique_ptr<cluster::Listener> listener, transport->Listen(services, listen));
    std::printf("serving TensorFlow's clients at grpc://%s\n", listener->address().c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    listener->Close();
    return Status();
  };
  const Status status = run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
