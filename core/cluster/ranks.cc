#include "core/cluster/ranks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <future>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/launch_internal.h"

namespace weir::cluster {
namespace {

constexpr size_t kMostAddressBytes = 300;
constexpr int kBacklog = 128;

std::string Joined(const std::vector<std::string>& addresses) {
  std::string text;
  for (const std::string& address : addresses) text += address + "\n";
  return text;
}

Result<std::vector<std::string>> Split(std::string_view text, int size) {
  std::vector<std::string> addresses;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    WEIR_ASSIGN(const Address address, ParseAddress(line));
    addresses.push_back(address.ToString());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  if (static_cast<int>(addresses.size()) == size) return addresses;
  return Internal("the registry knows {} addresses, wanted those of {} ranks", addresses.size(), size);
}

/// The address of this machine on the way to a host. Nothing is sent.
Result<sockaddr_storage> OwnAddressTowards(const std::string& registry, socklen_t& size) {
  WEIR_ASSIGN(const Address address, ParseAddress(registry));
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) return Unavailable("the host '{}' of the registry cannot be resolved: {}", address.host,
                                    gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  sockaddr_storage own{};
  size = sizeof own;
  const int probe = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = probe >= 0 && connect(probe, found->ai_addr, found->ai_addrlen) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  if (probe >= 0) close(probe);
  if (!known) return Unavailable("there is no way to the registry at {}: {}", registry, std::strerror(error));
  return own;
}

/// A listening descriptor on a port that the system chooses; sets `address` to "host:port".
Result<int> ListenTowards(const std::string& registry, std::string& address) {
  socklen_t size = 0;
  WEIR_ASSIGN(sockaddr_storage own, OwnAddressTowards(registry, size));
  auto* const at = reinterpret_cast<sockaddr*>(&own);
  const bool six = own.ss_family == AF_INET6;
  (six ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port : reinterpret_cast<sockaddr_in*>(&own)->sin_port) = 0;
  const int made = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0 || bind(made, at, size) != 0 || listen(made, kBacklog) != 0 || getsockname(made, at, &size) != 0) {
    const int error = errno;
    if (made >= 0) close(made);
    return Unavailable("no socket on the way to the registry at {}: {}", registry, std::strerror(error));
  }
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  getnameinfo(at, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  address = six ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
  return made;
}

/// Tells the registry of rank 0 an address, and waits for those of all.
Result<std::string> AskRegistry(Transport& transport, const Launch& launch, const LocalEnd& self,
                                const std::string& address, Clock::time_point deadline) {
  WEIR_ASSIGN(const std::shared_ptr<MasterService> registry, transport.ConnectMaster(launch.registry, self));
  const auto answered = std::make_shared<std::promise<Result<std::string>>>();
  registry->Call({std::string(kRegisterRank), fmt::format("{} {}", launch.rank, address), deadline, "", nullptr},
                 MasterDone([answered](Result<std::string> came) { answered->set_value(std::move(came)); }));
  return answered->get_future().get();
}

}  // namespace

void RankRegistry::Call(MasterCall call, MasterDone done) {
  if (call.method != kRegisterRank) return done(Unimplemented("this is the registry of ranks, not a server"));
  const std::string_view text = call.request;
  const size_t space = text.find(' ');
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + std::min(space, text.size()), rank);
  const bool number = space != std::string_view::npos && error == std::errc() && end == text.data() + space;
  const std::string_view told = number ? text.substr(space + 1) : std::string_view();
  const Result<Address> address = ParseAddress(told);
  if (!number || rank < 0 || static_cast<size_t>(rank) >= addresses_.size() || told.size() > kMostAddressBytes ||
      !address.ok()) {
    return done(InvalidArgument("a process registers no rank of 0 to {} with an address", addresses_.size() - 1));
  }
  Register(rank, address->ToString(), std::move(done));
}

void RankRegistry::Register(int rank, const std::string& address, MasterDone done) {
  std::vector<MasterDone> ready;
  std::string all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string& own = addresses_[static_cast<size_t>(rank)];
    const bool complete = known_ == addresses_.size();
    if (!complete || own == address) {
      known_ += own.empty() ? 1 : 0;
      own = address;
      waiting_.push_back(std::move(done));
      if (known_ < addresses_.size()) return;
      ready.swap(waiting_);
      all = Joined(addresses_);
      changed_.notify_all();
    }
  }
  if (ready.empty()) return done(Aborted("rank {} was restarted: restart the whole job", rank));
  for (MasterDone& each : ready) each(all);
}

Result<std::vector<std::string>> RankRegistry::Wait(Clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (changed_.wait_until(lock, deadline, [this] { return known_ == addresses_.size(); })) return addresses_;
  std::vector<size_t> missing;
  for (size_t rank = 0; rank < addresses_.size(); ++rank) {
    if (addresses_[rank].empty()) missing.push_back(rank);
  }
  return DeadlineExceeded("{} of {} ranks have not registered: {}", missing.size(), addresses_.size(),
                          fmt::join(missing, ", "));
}

Result<Ranks> MeetRanks(Transport& transport, const Launch& launch, const Roles& roles, const LocalEnd& self,
                        Clock::time_point deadline) {
  Ranks ranks;
  std::string address;
  WEIR_ASSIGN(ranks.socket, ListenTowards(launch.registry, address));
  const auto meet = [&]() -> Result<std::vector<std::string>> {
    if (launch.rank > 0) {
      WEIR_ASSIGN(const std::string all, AskRegistry(transport, launch, self, address, deadline));
      return Split(all, launch.size);
    }
    const auto registry = std::make_shared<RankRegistry>(launch.size);
    ListenOptions options;
    options.address = launch.registry;
    options.self = self;
    WEIR_ASSIGN(ranks.registry, transport.Listen({nullptr, registry}, options));
    registry->Register(0, address, MasterDone([](const Result<std::string>&) {}));
    return registry->Wait(deadline);
  };
  const auto finish = [&]() -> Status {
    Result<std::vector<std::string>> met = meet();
    if (!met.ok()) return met.status().Prepend(fmt::format("the registry of ranks at {}: ", launch.registry));
    WEIR_ASSIGN(const std::vector<TaskName> tasks, roles.TasksOf(launch.size));
    WEIR_ASSIGN(ranks.cluster, SpecOf(tasks, *met));
    return Status();
  };
  const Status status = finish();
  if (status.ok()) return ranks;
  close(ranks.socket);
  return status;
}

}  // namespace weir::cluster
