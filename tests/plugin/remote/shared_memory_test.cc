// Memory between two processes of a host: what is opened, and what a false offer does.
#include "plugins/remote/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "plugins/remote/fields.h"

namespace weir_remote {
namespace {

const std::string kGoodSecret(kSecretBytes, 's');

/// A file in memory that holds the secret, with this size and these seals.
class Offered {
 public:
  Offered(uint64_t bytes, int seals) : file_(::memfd_create("offered", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(::ftruncate(file_, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(::pwrite(file_, kGoodSecret.data(), kGoodSecret.size(), 0), static_cast<ssize_t>(kGoodSecret.size()));
    EXPECT_TRUE(seals == 0 || ::fcntl(file_, F_ADD_SEALS, seals) == 0);
  }
  ~Offered() { ::close(file_); }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;
  SharedOffer offer(const std::string& secret = kGoodSecret) const {
    return {static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(file_), kSharedBytes, secret};
  }

 private:
  const int file_;
};

std::string Refusal(const SharedOffer& offer) {
  std::unique_ptr<SharedView> view;
  const WireError error = SharedView::Open(offer, view);
  EXPECT_EQ(view == nullptr, !error.ok());
  return error.text;
}

TEST(SharedMemory, F249_BytesCrossInSlots) {
  std::unique_ptr<SharedSource> source;
  ASSERT_TRUE(SharedSource::Make(source).ok());
  std::unique_ptr<SharedView> view;
  const WireError opened = SharedView::Open(source->offer(), view);
  ASSERT_TRUE(opened.ok()) << opened.text;
  source->Opened();
  uint32_t released = 0;
  for (uint32_t i = 0; i < 3 * kSlots; ++i) {
    const std::vector<std::byte> sent(i % 2 == 0 ? kSlotBytes : i, static_cast<std::byte>(i));
    ASSERT_GT(source->free(), 0u);
    const SharedChunk chunk = source->Put(sent);
    SharedChunk came;
    ASSERT_TRUE(DecodeChunk(EncodeChunk(chunk), came).ok());
    std::vector<std::byte> got(came.bytes);
    view->Take(came, got, came.bytes);
    EXPECT_EQ(got, sent);
    const uint32_t now = view->TakeReleased();
    released += now;
    EXPECT_TRUE(source->Release(now).ok());
  }
  EXPECT_EQ(released, 3 * kSlots);
  EXPECT_EQ(source->free(), kSlots);
  EXPECT_FALSE(source->Release(1).ok());
}

TEST(SharedMemory, F249_APeerOfAnotherProcessReadsIt) {
  std::unique_ptr<SharedSource> source;
  ASSERT_TRUE(SharedSource::Make(source).ok());
  const std::vector<std::byte> sent(1000, std::byte{42});
  const SharedChunk chunk = source->Put(sent);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::unique_ptr<SharedView> view;
    std::vector<std::byte> got(chunk.bytes);
    if (!SharedView::Open(source->offer(), view).ok()) _exit(1);
    view->Take(chunk, got, chunk.bytes);
    _exit(got == sent ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemory, F249_PartsOfLargeBodiesArriveWhereverTheyLie) {
  std::unique_ptr<SharedSource> source;
  ASSERT_TRUE(SharedSource::Make(source).ok());
  std::unique_ptr<SharedView> view;
  ASSERT_TRUE(SharedView::Open(source->offer(), view).ok());
  std::vector<std::byte> memory(kSlotBytes + 256);
  for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}, size_t{kSlotBytes}}) {
    std::vector<std::byte> sent(size);
    for (size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 7 + size);
    for (size_t at = 0; at < 80; at += 9) {
      std::ranges::fill(memory, std::byte{255});
      const SharedChunk chunk = source->Put(sent);
      view->Take(chunk, std::span(memory).subspan(at, size), kPastCaches);
      EXPECT_TRUE(std::ranges::equal(std::span(memory).subspan(at, size), sent)) << size << " at " << at;
      const auto is_same = [](std::byte byte) { return byte == std::byte{255}; };
      EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + static_cast<ptrdiff_t>(at), is_same));
      EXPECT_TRUE(std::all_of(memory.begin() + static_cast<ptrdiff_t>(at + size), memory.end(), is_same));
      EXPECT_TRUE(source->Release(1).ok());
    }
  }
}

TEST(SharedMemory, F249_OnlySealedMemoryOfThisUserIsOpened) {
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(Refusal(Offered(kSharedBytes, kSealed).offer()), "");
  // A file that may be cut off later would end this process when it reads.
  EXPECT_NE(Refusal(Offered(kSharedBytes, 0).offer()).find("not sealed"), std::string::npos);
  EXPECT_NE(Refusal(Offered(kSharedBytes, F_SEAL_GROW).offer()).find("not sealed"), std::string::npos);
  EXPECT_NE(Refusal(Offered(kSharedBytes - 1, kSealed).offer()).find("no memory of this user and size"),
            std::string::npos);
  EXPECT_NE(Refusal(Offered(kSharedBytes, kSealed).offer(std::string(kSecretBytes, 'x'))).find("not that of the peer"),
            std::string::npos);
  const auto named = [](int file) {
    return Refusal({static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(file), kSharedBytes, kGoodSecret});
  };
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const int disk = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_NE(named(pipe_ends[0]).find("no memory of this user"), std::string::npos);
  EXPECT_NE(named(disk).find("no memory of this user"), std::string::npos);
  ::close(disk);
  EXPECT_NE(named(disk).find("cannot be opened"), std::string::npos);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST(SharedMemory, F249_MalformedFramesAreRefused) {
  SharedOffer offer;
  const SharedOffer good{7, 8, kSharedBytes, kGoodSecret};
  EXPECT_TRUE(DecodeOffer(EncodeOffer(good), offer).ok());
  for (const SharedOffer& bad :
       {SharedOffer{0, 8, kSharedBytes, kGoodSecret}, SharedOffer{7, 8, kSharedBytes + 1, kGoodSecret},
        SharedOffer{7, 8, UINT64_MAX, kGoodSecret}, SharedOffer{7, 8, kSharedBytes, "short"},
        SharedOffer{UINT32_MAX, 8, kSharedBytes, kGoodSecret}}) {
    EXPECT_EQ(DecodeOffer(EncodeOffer(bad), offer).code, WEIR_INVALID_ARGUMENT);
  }
  SharedAnswer answer;
  EXPECT_TRUE(IsAnswer(EncodeAnswer({""})) && DecodeAnswer(EncodeAnswer({"why"}), answer).ok());
  EXPECT_EQ(answer.reason, "why");
  EXPECT_FALSE(IsAnswer(EncodeOffer(good)));
  SharedChunk chunk;
  EXPECT_TRUE(DecodeChunk(EncodeChunk({kSlots - 1, kSlotBytes}), chunk).ok());
  for (const SharedChunk& bad : {SharedChunk{kSlots, 1}, SharedChunk{0, 0}, SharedChunk{0, kSlotBytes + 1},
                                 SharedChunk{UINT32_MAX, UINT64_MAX}}) {
    EXPECT_EQ(DecodeChunk(EncodeChunk(bad), chunk).code, WEIR_INVALID_ARGUMENT);
  }
  EXPECT_FALSE(DecodeChunk("", chunk).ok());
}

TEST(SharedMemory, F249_TheHostIsTheSameForAProcessAndItsChild) {
  EXPECT_EQ(HostId().size(), 16u);
  EXPECT_EQ(HostId(), HostId());
}

}  // namespace
}  // namespace weir_remote
