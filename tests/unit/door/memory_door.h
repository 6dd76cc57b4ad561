// A front door within the process: its clients find a server by address, and every call has a thread of its own.
#ifndef WEIR_TESTS_UNIT_DOOR_MEMORY_DOOR_H_
#define WEIR_TESTS_UNIT_DOOR_MEMORY_DOOR_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/kernel/front_door_entry.h"

namespace weir::door {

class MemoryDoor {
 public:
  static kernel::FrontDoorEntry Entry() { return {&Api(), "memory", nullptr}; }
  /// The certificates that servers took over, of one thread.
  static std::vector<std::string>& Renewed() {
    static std::vector<std::string> renewed;
    return renewed;
  }

 private:
  using Done = void (*)(void* arg, int32_t code, weir_str message, weir_str body);
  struct Server;
  struct Open {
    Server* server = nullptr;
    uint64_t number = 0;  // the server's
    Done done = nullptr;
    void* arg = nullptr;
  };
  struct Server {
    weir_door_handler handler{};
    std::string address;
    bool refusing = false;
    uint64_t last = 0;
    int inside = 0;  // functions of the core that run
    std::map<uint64_t, Open> open;
  };
  struct Client {
    std::string address;
    std::map<uint64_t, std::pair<Server*, uint64_t>> calls;  // by the caller's number
    std::vector<std::thread> threads;
  };

  // Protects all servers and clients. Functions of the core are called without it.
  inline static std::mutex mutex;
  inline static std::condition_variable outside;
  inline static std::map<std::string, Server*> servers;

  static void Leave(Server* server) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--server->inside == 0) outside.notify_all();
  }
  static std::string Copy(weir_str text) { return text.size == 0 ? "" : std::string(text.data, text.size); }
  static weir_str View(const std::string& text) { return {text.data(), text.size()}; }

  static int32_t Serve(const weir_door_options*, const weir_door_handler* handler, weir_door_server** server,
                       weir_error*) {
    auto* const made = new Server;
    made->handler = *handler;
    const std::lock_guard<std::mutex> lock(mutex);
    static int next = 1;
    made->address = "memory:" + std::to_string(next++);
    servers[made->address] = made;
    *server = reinterpret_cast<weir_door_server*>(made);
    return WEIR_OK;
  }
  static void Address(weir_door_server* server, void (*emit)(void* ctx, weir_str text), void* ctx) {
    emit(ctx, View(reinterpret_cast<Server*>(server)->address));
  }
  static void Answer(weir_door_server* server, uint64_t call, int32_t code, weir_str message, weir_str body) {
    Open ended;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      auto& open = reinterpret_cast<Server*>(server)->open;
      const auto found = open.find(call);
      if (found == open.end()) return;
      ended = found->second;
      open.erase(found);
    }
    ended.done(ended.arg, code, message, body);
  }
  static void Refuse(weir_door_server* server) {
    const std::lock_guard<std::mutex> lock(mutex);
    reinterpret_cast<Server*>(server)->refusing = true;
  }
  static void Stop(weir_door_server* server) {
    const std::unique_ptr<Server> own(reinterpret_cast<Server*>(server));
    std::unique_lock<std::mutex> lock(mutex);
    servers.erase(own->address);
    outside.wait(lock, [&] { return own->inside == 0; });
  }

  static int32_t Connect(const weir_door_options* options, weir_door_client** client, weir_error*) {
    auto* const made = new Client;
    made->address = Copy(options->address);
    *client = reinterpret_cast<weir_door_client*>(made);
    return WEIR_OK;
  }
  static int32_t Call(weir_door_client* client, uint64_t call, const weir_door_request* request, Done done, void* arg,
                      weir_error*) {
    auto* const from = reinterpret_cast<Client*>(client);
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = servers.find(from->address);
    if (found == servers.end() || found->second->refusing) return WEIR_UNAVAILABLE;
    Server* const server = found->second;
    const uint64_t number = ++server->last;
    server->open[number] = {server, number, done, arg};
    from->calls[call] = {server, number};
    from->threads.emplace_back([server, number, method = Copy(request->method), body = Copy(request->body),
                                left = request->time_left_ns] {
      const std::string peer = "memory";
      weir_door_request shown{};
      shown.struct_size = sizeof shown;
      shown.method = View(method);
      shown.body = View(body);
      shown.peer = View(peer);
      shown.time_left_ns = left;
      server->handler.call(server->handler.arg, number, &shown);
      Leave(server);
    });
    ++server->inside;
    return WEIR_OK;
  }
  static void Cancel(weir_door_client* client, uint64_t call) {
    Server* server = nullptr;
    uint64_t number = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      const auto& calls = reinterpret_cast<Client*>(client)->calls;
      const auto found = calls.find(call);
      if (found == calls.end()) return;
      std::tie(server, number) = found->second;
      if (!server->open.contains(number)) return;
      ++server->inside;
    }
    server->handler.cancelled(server->handler.arg, number);
    Leave(server);
  }
  static void Disconnect(weir_door_client* client) {
    const std::unique_ptr<Client> own(reinterpret_cast<Client*>(client));
    for (std::thread& thread : own->threads) thread.join();
  }

  static int32_t Renew(weir_door_server*, const weir_door_options* options, weir_error*) noexcept {
    const std::string path(options->tls_certificate.data, options->tls_certificate.size);
    if (path == "none.pem") return WEIR_INVALID_ARGUMENT;
    Renewed().push_back(path);
    return WEIR_OK;
  }

  static const weir_front_door_api& Api() {
    static const weir_front_door_api api = {sizeof(weir_front_door_api),
                                            0,
                                            {"memory", 6},
                                            &Serve,
                                            &Address,
                                            &Answer,
                                            &Refuse,
                                            &Stop,
                                            &Connect,
                                            &Call,
                                            &Cancel,
                                            &Disconnect,
                                            &Renew};
    return api;
  }
};

}  // namespace weir::door

#endif  // WEIR_TESTS_UNIT_DOOR_MEMORY_DOOR_H_
