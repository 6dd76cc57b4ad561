#include "tools/weir/status_page.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/cluster_spec.h"

namespace weir::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds kRequestTime{5};
constexpr std::chrono::milliseconds kAcceptPause{50};
constexpr uint32_t kMostRequestBytes = 16384;

using MakePage = std::function<Page(const std::string& path)>;

/// One request and its page.
class PageCall : public std::enable_shared_from_this<PageCall> {
 public:
  PageCall(tcp::socket socket, const MakePage& page) : stream_(std::move(socket)), page_(page) {}

  void Begin() {
    parser_.header_limit(kMostRequestBytes);
    parser_.body_limit(kMostRequestBytes);
    stream_.expires_after(kRequestTime);
    http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](beast::error_code error, size_t) {
      if (!error) self->Answer();
    });
  }

 private:
  void Answer() {
    const auto& request = parser_.get();
    const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
    const std::string target(request.target());
    Page made = reads ? page_(target.substr(0, target.find('?'))) : Page{405, "text/plain", "only GET and HEAD\n"};
    response_.version(request.version());
    response_.result(static_cast<http::status>(made.status));
    response_.set(http::field::content_type, made.type);
    response_.set(http::field::cache_control, "no-store");
    response_.keep_alive(false);
    response_.body() = std::move(made.body);
    response_.prepare_payload();
    if (request.method() == http::verb::head) response_.body().clear();
    stream_.expires_after(kRequestTime);
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, size_t) {
      beast::error_code ignored;  // the peer may have gone
      self->stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    });
  }

  beast::tcp_stream stream_;
  const MakePage& page_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
};

class BeastPage final : public StatusPage {
 public:
  explicit BeastPage(MakePage page) : page_(std::move(page)), acceptor_(io_) {}
  ~BeastPage() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status Open(const std::string& address) {
    WEIR_ASSIGN(const cluster::Address parsed, cluster::ParseAddress(address));
    beast::error_code error;
    const std::string host = parsed.host == "localhost" ? "127.0.0.1" : parsed.host;
    const asio::ip::address ip = asio::ip::make_address(host, error);
    if (error || !ip.is_loopback()) {
      return InvalidArgument("the status page listens on this machine only, at 127.0.0.1 or [::1], not at {}", address);
    }
    const tcp::endpoint end(ip, parsed.port);
    acceptor_.open(end.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(end, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return FailedPrecondition("the status page cannot listen at {}: {}", address, error.message());
    address_ = fmt::format("{}:{}", ip.is_v6() ? "[::1]" : host, acceptor_.local_endpoint(error).port());
    Accept();
    thread_ = std::thread([this] { io_.run(); });
    return Status();
  }
  std::string address() const override { return address_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return AcceptLater();
      std::make_shared<PageCall>(std::move(socket), page_)->Begin();
      Accept();
    });
  }

  /// After an error such as too many open files, which leaves the connection in the queue.
  void AcceptLater() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](beast::error_code error) {
      if (!error) Accept();
    });
  }

  const MakePage page_;
  asio::io_context io_{1};
  asio::steady_timer pause_{io_};
  tcp::acceptor acceptor_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<StatusPage>> StatusPage::Listen(const std::string& address, MakePage page) {
  auto made = std::make_unique<BeastPage>(std::move(page));
  WEIR_TRY(made->Open(address));
  return std::unique_ptr<StatusPage>(std::move(made));
}

}  // namespace weir::cli
