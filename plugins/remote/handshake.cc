#include "plugins/remote/handshake.h"

#include <algorithm>

#include "plugins/remote/fields.h"

namespace weir_remote {
namespace {

constexpr size_t kMostText = 512;

enum : uint32_t {
  kLeast = 1,
  kMost = 2,
  kBuild = 3,
  kJob = 4,
  kTask = 5,
  kIncarnation = 6,
  kCluster = 7,
  kCapabilities = 8,
  kHost = 9,
  kNonce = 10,
  kSession = 11,
  kVersion = 12,
  kProof = 13,
};

std::string VersionText(uint32_t version) {
  return std::to_string(version >> 16) + "." + std::to_string(version & 0xffff);
}

std::string RangeText(const Identity& side) {
  return side.least == side.most ? VersionText(side.most) : VersionText(side.least) + " to " + VersionText(side.most);
}

/// A single text field of a meta; empty if it is missing.
WireError OnlyText(std::string_view meta, uint32_t field, std::string& text) {
  FieldReader reader(meta);
  while (reader.Next()) {
    if (reader.field() == field && reader.is_text()) text = reader.text();
  }
  return reader.bad() || text.size() > kMostText ? Malformed("a frame of the handshake is malformed") : WireError();
}

/// The version that both sides speak, 0 = none.
uint32_t CommonVersion(const Identity& a, const Identity& b) {
  const uint32_t most = std::min(a.most, b.most), least = std::max(a.least, b.least);
  return a.most >> 16 == b.most >> 16 && most >= least ? most : 0;
}

}  // namespace

bool SameSecret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

std::string EncodeHello(const Identity& identity, std::string_view nonce) {
  FieldWriter hello;
  hello.Number(kLeast, identity.least);
  hello.Number(kMost, identity.most);
  hello.Text(kBuild, identity.build);
  hello.Text(kJob, identity.job);
  hello.Number(kTask, identity.task);
  hello.Number(kIncarnation, identity.incarnation);
  hello.Text(kCluster, identity.cluster);
  hello.Number(kCapabilities, identity.capabilities);
  hello.Text(kHost, identity.host);
  hello.Text(kNonce, nonce);
  return hello.bytes();
}

WireError DecodeHello(std::string_view meta, Identity& identity) {
  identity = {};
  identity.least = identity.most = 0;
  FieldReader reader(meta);
  const auto number32 = [&](uint32_t& to) {
    to = static_cast<uint32_t>(reader.number());
    return !reader.is_text() && reader.number() <= UINT32_MAX;
  };
  const auto text = [&](std::string& to) {
    to = reader.text();
    return reader.is_text() && to.size() <= kMostText;
  };
  while (reader.Next()) {
    bool good = true;
    switch (reader.field()) {
      case kLeast:
        good = number32(identity.least);
        break;
      case kMost:
        good = number32(identity.most);
        break;
      case kBuild:
        good = text(identity.build);
        break;
      case kJob:
        good = text(identity.job);
        break;
      case kTask:
        good = number32(identity.task);
        break;
      case kIncarnation:
        identity.incarnation = reader.number();
        good = !reader.is_text();
        break;
      case kCluster:
        good = text(identity.cluster);
        break;
      case kCapabilities:
        good = number32(identity.capabilities);
        break;
      case kHost:
        good = text(identity.host);
        break;
      default:
        break;  // of a later minor
    }
    if (!good) return Malformed("field " + std::to_string(reader.field()) + " of a hello is malformed");
  }
  if (reader.bad()) return Malformed("a hello is malformed");
  if (identity.incarnation == 0) return Malformed("a hello has the incarnation 0");
  if (identity.most < identity.least) return Malformed("a hello has no versions");
  return {};
}

Handshake Handshake::Client(Identity own, std::string token, Mac mac, std::string nonce) {
  return Handshake(false, std::move(own), std::move(token), mac, std::move(nonce));
}

Handshake Handshake::Server(Identity own, std::string token, Mac mac, std::string nonce, uint64_t session) {
  Handshake made(true, std::move(own), std::move(token), mac, std::move(nonce));
  made.session_ = session;
  made.state_ = State::kHello;
  return made;
}

std::vector<Outgoing> Handshake::Begin() {
  if (server_ || state_ != State::kBegin) return {};
  state_ = State::kAnswer;
  hello_ = EncodeHello(own_, nonce_);
  return {{FrameType::kHello, hello_}};
}

WireError Handshake::Take(const FrameHeader& header, std::string_view meta, std::vector<Outgoing>& out) {
  WireError error = Malformed("a frame of type " + std::to_string(header.type) + " came during the handshake");
  if (state_ == State::kHello && header.is(FrameType::kHello)) {
    error = TakeHello(meta, out);
  } else if (state_ == State::kProof && header.is(FrameType::kAuth)) {
    error = TakeProof(meta, out);
  } else if (state_ == State::kAnswer && header.is(FrameType::kAuth) && challenge_.empty()) {
    error = TakeChallenge(meta, out);
  } else if (state_ == State::kAnswer && header.is(FrameType::kHelloAck)) {
    error = TakeAnswer(meta);
  }
  if (!error.ok()) {
    state_ = State::kFailed;
    done_.reset();
    out.clear();
  }
  return error;
}

WireError Handshake::TakeHello(std::string_view meta, std::vector<Outgoing>& out) {
  if (WireError error = DecodeHello(meta, peer_.identity); !error.ok()) return error;
  peer_.version = CommonVersion(own_, peer_.identity);
  if (peer_.version == 0) {
    return {WEIR_FAILED_PRECONDITION, "this side speaks version " + RangeText(own_) + " of the protocol, the peer " +
                                          RangeText(peer_.identity)};
  }
  hello_ = meta;
  if (token_.empty()) return Welcome(out);
  challenge_ = nonce_;
  state_ = State::kProof;
  FieldWriter challenge;
  challenge.Text(kNonce, nonce_);
  out.push_back({FrameType::kAuth, challenge.bytes()});
  return {};
}

WireError Handshake::TakeProof(std::string_view meta, std::vector<Outgoing>& out) {
  std::string proof;
  if (WireError error = OnlyText(meta, weir_remote::kProof, proof); !error.ok()) return error;
  if (!SameSecret(proof, ProofOf("client"))) return {WEIR_UNAUTHENTICATED, "the peer does not know the token"};
  return Welcome(out);
}

WireError Handshake::Welcome(std::vector<Outgoing>& out) {
  if (peer_.identity.cluster != own_.cluster) {
    return {WEIR_PERMISSION_DENIED, "the peer belongs to the cluster '" + peer_.identity.cluster + "', this is '" +
                                        own_.cluster + "'"};
  }
  peer_.capabilities = own_.capabilities & peer_.identity.capabilities;
  peer_.session = session_;
  FieldWriter answer;
  answer.Text(kBuild, own_.build);
  answer.Text(kJob, own_.job);
  answer.Number(kTask, own_.task);
  answer.Number(kLeast, own_.least);
  answer.Number(kMost, own_.most);
  answer.Number(kIncarnation, own_.incarnation);
  answer.Text(kCluster, own_.cluster);
  answer.Number(kCapabilities, peer_.capabilities);
  answer.Text(kHost, own_.host);
  answer.Number(kSession, session_);
  answer.Number(kVersion, peer_.version);
  if (!token_.empty()) answer.Text(weir_remote::kProof, ProofOf("server"));
  out.push_back({FrameType::kHelloAck, answer.bytes()});
  state_ = State::kDone;
  done_ = peer_;
  return {};
}

WireError Handshake::TakeChallenge(std::string_view meta, std::vector<Outgoing>& out) {
  if (token_.empty()) return {WEIR_UNAUTHENTICATED, "the peer asks for a token, and none is configured"};
  if (WireError error = OnlyText(meta, kNonce, challenge_); !error.ok()) return error;
  if (challenge_.size() < kNonceBytes) return Malformed("a challenge is too short");
  FieldWriter proof;
  proof.Text(weir_remote::kProof, ProofOf("client"));
  out.push_back({FrameType::kAuth, proof.bytes()});
  return {};
}

WireError Handshake::TakeAnswer(std::string_view meta) {
  if (WireError error = DecodeHello(meta, peer_.identity); !error.ok()) return error;
  std::string proof;
  uint64_t version = 0;
  FieldReader reader(meta);
  while (reader.Next()) {
    if (reader.field() == kSession) peer_.session = reader.number();
    if (reader.field() == kVersion) version = reader.number();
    if (reader.field() == weir_remote::kProof && reader.is_text()) proof = reader.text();
  }
  if (!token_.empty() && (challenge_.empty() || !SameSecret(proof, ProofOf("server")))) {
    return {WEIR_UNAUTHENTICATED, "the peer does not prove that it knows the token"};
  }
  peer_.version = CommonVersion(own_, peer_.identity);
  if (peer_.version == 0 || version != peer_.version) {
    return {WEIR_FAILED_PRECONDITION, "this side speaks version " + RangeText(own_) + " of the protocol, the peer " +
                                          RangeText(peer_.identity)};
  }
  if (peer_.identity.cluster != own_.cluster) {
    return {WEIR_PERMISSION_DENIED, "the peer belongs to the cluster '" + peer_.identity.cluster + "', this is '" +
                                        own_.cluster + "'"};
  }
  peer_.capabilities = own_.capabilities & peer_.identity.capabilities;
  state_ = State::kDone;
  done_ = peer_;
  return {};
}

std::string Handshake::ProofOf(std::string_view side) const {
  std::string data = "weir ";
  data += side;
  data += '\0';
  data += std::to_string(hello_.size()) + ":" + hello_ + challenge_;
  const MacBytes mac = mac_(token_, data);
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

Incarnations::Verdict Incarnations::Admit(const std::string& job, uint32_t task, uint64_t incarnation) {
  if (incarnation == 0) return {Malformed("the incarnation 0 means none")};
  const auto key = std::make_pair(job, task);
  if (!tasks_.contains(key) && tasks_.size() >= kMostTasks) return {{WEIR_RESOURCE_EXHAUSTED, "too many tasks"}};
  Task& known = tasks_[key];
  if (known.current == incarnation) return {{}, 0, true};
  const std::string name = "/job:" + job + "/task:" + std::to_string(task);
  if (known.fenced.contains(incarnation)) return {{WEIR_ABORTED, name + " was restarted: a newer incarnation exists"}};
  if (known.fenced.size() >= kMostRestarts) {
    return {{WEIR_RESOURCE_EXHAUSTED, name + " was restarted too often"}};
  }
  if (known.current != 0) known.fenced.insert(known.current);
  return {{}, std::exchange(known.current, incarnation), false};
}

}  // namespace weir_remote
