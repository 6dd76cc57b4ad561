#include "tests/support/fault_proxy.h"

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <set>
#include <thread>
#include <utility>

namespace weir::testing {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Error = boost::system::error_code;
using ProxyClock = std::chrono::steady_clock;

constexpr size_t kMostPiece = 1500;
constexpr std::chrono::milliseconds kRetransmission{200};  // Linux's least
constexpr uint64_t kMostLosses = 5;                        // of one piece
constexpr size_t kMostWaiting = 256u << 10;  // bytes of a direction that the proxy holds before it stops reading

/// A number that follows from others (splitmix64).
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Of "host:port", where the host is an IPv4 address or "localhost".
Tcp::endpoint EndpointOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  Error unknown;
  asio::ip::address_v4 host = asio::ip::make_address_v4(address.substr(0, colon), unknown);
  if (unknown) host = asio::ip::address_v4::loopback();
  return {host, static_cast<uint16_t>(std::stoul(address.substr(colon + 1)))};
}

void CloseWithReset(Tcp::socket& socket) {
  Error ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

/// What the seed decides about one piece of a stream.
struct Piece {
  enum class Fault : uint8_t { kNone, kDrop, kRepeat, kSwap, kCorrupt };
  size_t size = 0;
  Fault fault = Fault::kNone;
  uint64_t random = 0;
  std::chrono::milliseconds late{0};  // by losses

  static Piece Of(uint64_t stream, uint64_t number, const Faults& faults, int met) {
    Piece piece;
    piece.random = Mix(stream, number);
    piece.size = 1 + piece.random % kMostPiece;
    if (met >= faults.most) return piece;
    for (uint64_t k = 0; k < kMostLosses && Mix(piece.random, 5 + k) % 1000 < static_cast<uint64_t>(faults.lose); ++k) {
      piece.late += kRetransmission * (1 << k);
    }
    int dice = static_cast<int>(Mix(piece.random, 1) % 1000);
    const std::pair<int, Fault> chances[] = {{faults.drop, Fault::kDrop},
                                             {faults.repeat, Fault::kRepeat},
                                             {faults.swap, Fault::kSwap},
                                             {faults.corrupt, Fault::kCorrupt}};
    for (const auto& [chance, fault] : chances) {
      if (dice >= 0 && dice < chance) piece.fault = fault;
      dice -= chance;
    }
    return piece;
  }
};

}  // namespace

class FaultProxy::Core {
 public:
  Core(const std::string& to, uint64_t seed);
  ~Core();
  class Link;

  /// Runs `fn` on the thread and waits for it.
  void Do(const std::function<void()>& fn) {
    std::promise<void> done;
    asio::post(context, [&] {
      fn();
      done.set_value();
    });
    done.get_future().wait();
  }
  void Accept();
  void SetFaults(Way way, const Faults& faults);

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  Tcp::acceptor acceptor{context};
  std::string address;
  // On the thread.
  const uint64_t seed;
  Tcp::endpoint server;
  bool accepting = false, paused = false;
  std::array<Faults, 2> faults;
  std::set<std::shared_ptr<Link>> links;
  Counts counts;
  std::thread thread;
};

/// A connection: two sockets and two directions.
class FaultProxy::Core::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Core& core, Tcp::socket client, uint64_t number)
      : core_(core),
        client_(std::move(client)),
        server_(core.context),
        ways_{Stream(core.context, client_, server_, Way::kToServer, Mix(core.seed, 2 * number)),
              Stream(core.context, server_, client_, Way::kToClient, Mix(core.seed, 2 * number + 1))} {}

  void Start() {
    server_.async_connect(core_.server, [self = shared_from_this()](const Error& error) {
      if (error) return self->Close(true);
      self->connected_ = true;
      for (Stream& stream : self->ways_) {
        Error ignored;
        stream.from.set_option(Tcp::no_delay(true), ignored);
        self->Read(stream);
      }
    });
  }
  /// The faults of a direction have changed.
  void Changed(Way way) {
    Stream& stream = ways_[static_cast<size_t>(way)];
    stream.passed = 0;
    stream.met = 0;
    Read(stream);
    Write(stream);
  }
  void Close(bool reset) {
    const std::shared_ptr<Link> self = shared_from_this();
    Error ignored;
    for (Tcp::socket* const socket : {&client_, &server_}) {
      reset ? CloseWithReset(*socket) : static_cast<void>(socket->close(ignored));
    }
    for (Stream& stream : ways_) stream.timer.cancel();
    core_.links.erase(self);
  }
  void HalfOpen() {
    CloseWithReset(server_);
    deaf_ = true;
  }

 private:
  struct Waiting {
    std::string bytes;
    ProxyClock::time_point due;
  };
  struct Stream {
    Stream(asio::io_context& context, Tcp::socket& from_socket, Tcp::socket& to_socket, Way of, uint64_t number)
        : from(from_socket), to(to_socket), way(of), seed(number), timer(context) {}
    Tcp::socket& from;
    Tcp::socket& to;
    const Way way;
    const uint64_t seed;
    asio::steady_timer timer;
    std::array<char, 65536> buffer;
    bool reading = false, writing = false, waits = false, ended = false;
    std::deque<Waiting> out;
    size_t held = 0;  // bytes in out
    Piece piece;
    size_t in_piece = 0;   // bytes of the piece that have come
    uint64_t pieces = 0;   // that have begun
    std::string kept, swapped;  // the bytes of a piece that is repeated or swapped; of the one that waits for the next
    bool swaps = false;
    uint64_t passed = 0;  // bytes since the faults were set
    int met = 0;
  };

  const Faults& FaultsOf(const Stream& stream) const { return core_.faults[static_cast<size_t>(stream.way)]; }

  void Read(Stream& stream) {
    if (!connected_ || stream.reading || stream.ended || !stream.from.is_open()) return;
    if (FaultsOf(stream).hold || stream.held > kMostWaiting) return;
    size_t most = stream.buffer.size();
    if (const uint64_t rate = FaultsOf(stream).bytes_per_second; rate > 0) most = std::min<size_t>(most, rate / 8 + 1);
    stream.reading = true;
    stream.from.async_read_some(asio::buffer(stream.buffer.data(), most),
                                [self = shared_from_this(), &stream](const Error& error, size_t count) {
                                  stream.reading = false;
                                  if (self->deaf_) return self->ReadOn(stream, static_cast<bool>(error));
                                  if (error) return self->Ended(stream, error);
                                  self->Take(stream, {stream.buffer.data(), count});
                                  self->Write(stream);
                                  self->Read(stream);
                                });
  }

  /// Reads on after the server's side is gone, until the client leaves.
  void ReadOn(Stream& stream, bool left) {
    if (stream.way == Way::kToServer) left ? Close(false) : Read(stream);
  }

  void Ended(Stream& stream, const Error& error) {
    if (error == asio::error::operation_aborted) return;
    if (error != asio::error::eof) return Close(true);
    stream.ended = true;
    Write(stream);
  }

  /// Bytes that arrived, piece by piece.
  void Take(Stream& stream, std::string_view bytes) {
    const Faults& faults = FaultsOf(stream);
    if (faults.swallow) return;
    while (!bytes.empty() && stream.from.is_open()) {
      if (stream.in_piece == 0) {
        stream.piece = Piece::Of(stream.seed, stream.pieces++, faults, stream.met);
        if (stream.piece.fault != Piece::Fault::kNone || stream.piece.late.count() > 0) {
          ++stream.met;
          ++core_.counts.met;
        }
      }
      const size_t count = std::min(bytes.size(), stream.piece.size - stream.in_piece);
      TakePart(stream, std::string(bytes.substr(0, count)));
      bytes.remove_prefix(count);
      if (stream.in_piece == stream.piece.size) EndPiece(stream);
    }
  }

  void TakePart(Stream& stream, std::string part) {
    const size_t begin = stream.in_piece;
    stream.in_piece += part.size();
    switch (stream.piece.fault) {
      case Piece::Fault::kDrop:
        return;
      case Piece::Fault::kSwap:
        stream.kept += part;
        return;
      case Piece::Fault::kRepeat:
        stream.kept += part;
        break;
      case Piece::Fault::kCorrupt: {
        const size_t at = Mix(stream.piece.random, 2) % stream.piece.size;
        const auto bit = static_cast<char>(1 << Mix(stream.piece.random, 3) % 8);
        if (at >= begin && at < stream.in_piece) part[at - begin] = static_cast<char>(part[at - begin] ^ bit);
        break;
      }
      case Piece::Fault::kNone:
        break;
    }
    Queue(stream, std::move(part));
  }

  void EndPiece(Stream& stream) {
    stream.in_piece = 0;
    std::string before = std::exchange(stream.swapped, {});
    std::string kept = std::exchange(stream.kept, {});
    if (stream.piece.fault == Piece::Fault::kRepeat) Queue(stream, std::move(kept));
    if (stream.piece.fault == Piece::Fault::kSwap) stream.swapped = std::move(kept);
    if (!before.empty()) Queue(stream, std::move(before));
  }

  void Queue(Stream& stream, std::string bytes) {
    const Faults& faults = FaultsOf(stream);
    const uint64_t cut = std::min(faults.reset_after, faults.end_after);
    const bool cuts = stream.passed + bytes.size() >= cut;
    if (cuts) bytes.resize(static_cast<size_t>(cut - std::min(cut, stream.passed)));
    stream.passed += bytes.size();
    ProxyClock::time_point due = ProxyClock::now() + faults.delay + stream.piece.late;
    if (faults.jitter.count() > 0) {
      due += std::chrono::milliseconds(Mix(stream.piece.random, 4) % static_cast<uint64_t>(faults.jitter.count()));
    }
    if (!stream.out.empty()) due = std::max(due, stream.out.back().due);  // a stream keeps its order
    stream.held += bytes.size();
    if (!bytes.empty()) stream.out.push_back({std::move(bytes), due});
    if (!cuts) return;
    ++core_.counts.met;
    if (faults.end_after <= faults.reset_after) {
      stream.ended = true;
    } else {
      Write(stream);
      Close(true);
    }
  }

  void Write(Stream& stream) {
    if (!connected_ || stream.writing || stream.waits || !stream.to.is_open()) return;
    if (FaultsOf(stream).hold) return;
    if (stream.out.empty()) {
      Error ignored;
      if (!stream.ended) return;
      stream.to.shutdown(Tcp::socket::shutdown_send, ignored);
      if (ways_[0].ended && ways_[1].ended && ways_[0].out.empty() && ways_[1].out.empty()) Close(false);
      return;
    }
    const ProxyClock::time_point due = stream.out.front().due;
    if (due > ProxyClock::now()) return WaitUntil(stream, due);
    stream.writing = true;
    asio::async_write(stream.to, asio::buffer(stream.out.front().bytes),
                      [self = shared_from_this(), &stream](const Error& error, size_t count) {
                        stream.writing = false;
                        if (error) return error == asio::error::operation_aborted ? void() : self->Close(true);
                        self->Written(stream, count);
                      });
  }

  void Written(Stream& stream, size_t count) {
    stream.held -= stream.out.front().bytes.size();
    stream.out.pop_front();
    (stream.way == Way::kToServer ? core_.counts.to_server : core_.counts.to_client) += count;
    const uint64_t rate = FaultsOf(stream).bytes_per_second;
    if (rate > 0) {
      WaitUntil(stream, ProxyClock::now() + std::chrono::microseconds(count * 1000000 / rate));
    } else {
      Write(stream);
    }
    Read(stream);
  }

  void WaitUntil(Stream& stream, ProxyClock::time_point due) {
    stream.waits = true;
    stream.timer.expires_at(due);
    stream.timer.async_wait([self = shared_from_this(), &stream](const Error& error) {
      stream.waits = false;
      if (!error) self->Write(stream);
    });
  }

  Core& core_;
  Tcp::socket client_, server_;
  bool connected_ = false;
  bool deaf_ = false;  // half open: what the client says is lost
  std::array<Stream, 2> ways_;
};

FaultProxy::Core::Core(const std::string& to, uint64_t given) : seed(given), server(EndpointOf(to)) {
  acceptor.open(Tcp::v4());
  acceptor.bind({asio::ip::address_v4::loopback(), 0});
  acceptor.listen();
  address = "localhost:" + std::to_string(acceptor.local_endpoint().port());
  thread = std::thread([this] { context.run(); });
  Do([this] { Accept(); });
}

FaultProxy::Core::~Core() {
  Do([this] {
    Error ignored;
    acceptor.close(ignored);
    while (!links.empty()) (*links.begin())->Close(true);
    work.reset();
  });
  thread.join();
}

void FaultProxy::Core::Accept() {
  if (accepting || paused || !acceptor.is_open()) return;
  accepting = true;
  acceptor.async_accept([this](const Error& error, Tcp::socket socket) {
    accepting = false;
    if (!error) {
      const auto link = std::make_shared<Link>(*this, std::move(socket), counts.accepted++);
      links.insert(link);
      link->Start();
    }
    Accept();
  });
}

void FaultProxy::Core::SetFaults(Way way, const Faults& given) {
  faults[static_cast<size_t>(way)] = given;
  const std::set<std::shared_ptr<Link>> all = links;
  for (const std::shared_ptr<Link>& link : all) link->Changed(way);
}

FaultProxy::FaultProxy(const std::string& server, uint64_t seed) : core_(std::make_unique<Core>(server, seed)) {}
FaultProxy::~FaultProxy() = default;

const std::string& FaultProxy::address() const { return core_->address; }

void FaultProxy::Serve(const std::string& server) {
  core_->Do([&] { core_->server = EndpointOf(server); });
}

void FaultProxy::Set(Way way, const Faults& faults) {
  core_->Do([&] { core_->SetFaults(way, faults); });
}

void FaultProxy::SetAll(const Faults& faults) {
  core_->Do([&] {
    for (const Way way : {Way::kToServer, Way::kToClient}) core_->SetFaults(way, faults);
  });
}

void FaultProxy::PauseAccept() {
  core_->Do([this] {
    core_->paused = true;
    core_->acceptor.cancel();
  });
}

void FaultProxy::ResumeAccept() {
  core_->Do([this] {
    core_->paused = false;
    core_->Accept();
  });
}

void FaultProxy::Reset() {
  core_->Do([this] {
    while (!core_->links.empty()) (*core_->links.begin())->Close(true);
  });
}

void FaultProxy::End() {
  core_->Do([this] {
    while (!core_->links.empty()) (*core_->links.begin())->Close(false);
  });
}

void FaultProxy::HalfOpen() {
  core_->Do([this] {
    for (const std::shared_ptr<Core::Link>& link : core_->links) link->HalfOpen();
  });
}

FaultProxy::Counts FaultProxy::counts() const {
  Counts counts;
  core_->Do([&] {
    counts = core_->counts;
    counts.open = core_->links.size();
  });
  return counts;
}

}  // namespace weir::testing
