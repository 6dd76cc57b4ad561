#include <fmt/format.h>

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <thread>

#include "core/io/event_file.h"
#include "core/io/summary.h"
#include "core/tensor/tensor_proto.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::io {
namespace {

class Events : public TempDir {
 protected:
  std::unique_ptr<EventWriter> Open(EventWriterOptions options = {}) {
    Result<std::unique_ptr<EventWriter>> writer = EventWriter::Create(dir_, std::move(options));
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  std::vector<Event> Read(const std::string& path) {
    std::vector<Event> events;
    Result<EventReader> reader = EventReader::Open(path);
    EXPECT_TRUE(reader.ok());
    for (;;) {
      Result<std::optional<Event>> event = reader->Next();
      EXPECT_TRUE(event.ok()) << event.status().ToString();
      if (!event.ok() || !event->has_value()) return events;
      events.push_back(std::move(**event));
    }
  }
};

TEST(Summaries, F220_HistogramOfAMatrix) {
  const Tensor values = Tensor::Of<float>(Shape::Of({2, 2}), {1, 2, 3, 4});
  const Result<std::string> bytes = HistogramSummary("h", values, "n");
  ASSERT_TRUE(bytes.ok());
  const Result<std::vector<SummaryValue>> decoded = DecodeSummary(*bytes);
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->size(), 1u);
  EXPECT_EQ((*decoded)[0].tag, "h");
  ASSERT_EQ((*decoded)[0].kind, SummaryKind::kHistogram);
  const Histogram& h = (*decoded)[0].histogram;
  EXPECT_EQ(h.min, 1);
  EXPECT_EQ(h.max, 4);
  EXPECT_EQ(h.num, 4);
  EXPECT_EQ(h.sum, 10);
  EXPECT_EQ(h.sum_squares, 30);
  ASSERT_EQ(h.bucket_limit.size(), h.bucket.size());
  EXPECT_EQ(h.bucket_limit.back(), std::numeric_limits<double>::max());
  EXPECT_EQ(h.bucket.back(), 0);
  double limit = 1e-12;
  std::vector<double> limits;
  for (; limit < 1e20; limit *= 1.1) limits.push_back(limit);
  double count = 0;
  for (size_t i = 0; i < h.bucket.size(); ++i) {
    count += h.bucket[i];
    EXPECT_FALSE(i > 0 && h.bucket[i] == 0 && h.bucket[i - 1] == 0) << "two empty buckets in a row";
    if (h.bucket[i] == 0) continue;
    // Each filled bucket ends at the first limit above its value.
    const auto above = std::upper_bound(limits.begin(), limits.end(), count);
    EXPECT_EQ(h.bucket_limit[i], *above);
  }
  EXPECT_EQ(count, 4);
}

TEST(Summaries, HistogramEdges) {
  const auto histogram = [](std::vector<double> values) {
    HistogramBuilder builder;
    for (const double value : values) builder.Add(value);
    return builder.Finish();
  };
  const double largest = std::numeric_limits<double>::max();
  const Histogram none = histogram({});
  EXPECT_EQ(none.min, largest);
  EXPECT_EQ(none.max, -largest);
  EXPECT_EQ(none.bucket_limit, std::vector<double>{largest});
  EXPECT_EQ(none.bucket, std::vector<double>{0});
  const Histogram zero = histogram({0, 0});
  EXPECT_EQ(zero.bucket_limit, (std::vector<double>{0, 1e-12, largest}));
  EXPECT_EQ(zero.bucket, (std::vector<double>{0, 2, 0}));
  const Histogram ends = histogram({-largest, largest});
  EXPECT_EQ(ends.num, 2);
  double count = 0;
  for (const double each : ends.bucket) count += each;
  EXPECT_EQ(count, 2);
  EXPECT_EQ(ends.bucket.back(), 1);
}

TEST(Summaries, NanAndInfinityAreErrorsWithTheNodesName) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  WEIR_EXPECT_ERROR(HistogramSummary("t", Tensor::Vector<float>({1, nan}), "n").status(), Code::kInvalidArgument,
                    "Nan in summary histogram for: n");
  WEIR_EXPECT_ERROR(HistogramSummary("t", Tensor::Vector<float>({-infinity}), "n").status(), Code::kInvalidArgument,
                    "Infinity in summary histogram for: n");
}

TEST(Summaries, ScalarBytesAreTensorFlows) {
  EXPECT_EQ(ToHex(ScalarSummary("loss", 0.5f)), "0a0b0a046c6f7373150000003f");
}

TEST(Summaries, MergeRefusesDuplicates) {
  const std::vector<std::string> good = {ScalarSummary("a", 1), ScalarSummary("b", 2)};
  const Result<std::string> merged = MergeSummaries(good);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(*merged, good[0] + good[1]);
  WEIR_EXPECT_ERROR(MergeSummaries(std::vector<std::string>{good[0], good[0]}).status(), Code::kInvalidArgument,
                    "Duplicate tag a found in summary inputs");
  WEIR_EXPECT_ERROR(MergeSummaries(std::vector<std::string>{"\xff"}).status(), Code::kInvalidArgument,
                    "Could not parse one of the summary inputs");
  WEIR_EXPECT_ERROR(DecodeSummary("\xff").status(), Code::kDataLoss, "Summary");
}

TEST(EventBytes, Golden) {
  EXPECT_EQ(ToHex(FrameRecord(EncodeEvent(1.0, 0, 3, "brain.Event:2"))),
            "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
}

// The encoder omits what a message omits, and the message's parser reads the rest.
TEST(EventBytes, EncodedEventsAreRead) {
  for (const double time : {0.0, -0.0, 1.5, -1e300}) {
    for (const int64_t step : {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{128}, int64_t{-1}, int64_t{1} << 62}) {
      const std::string bytes = EncodeEvent(time, step, 4, std::string(step == 128 ? 300 : 3, 'g'));
      const Result<Event> event = DecodeEvent(bytes);
      ASSERT_TRUE(event.ok()) << event.status().ToString();
      EXPECT_EQ(event->wall_time, time);
      EXPECT_EQ(event->step, step);
      EXPECT_EQ(event->graph_def, std::string(step == 128 ? 300 : 3, 'g'));
    }
  }
  EXPECT_EQ(ToHex(EncodeEvent(0, 0, 4, "")), "2200");
  EXPECT_EQ(ToHex(ScalarSummary("", 0)), "0a051500000000");
  EXPECT_EQ(ToHex(ScalarSummary("a", 1)), "0a080a0161150000803f");
}

TEST_F(Events, ManyBytesAreWrittenBelowTheNumberOfEvents) {
  const std::unique_ptr<EventWriter> writer = Open({.max_queue = 1 << 20, .flush_secs = 3600});
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("a", 1), 1));
  EXPECT_EQ(Read(writer->path()).size(), 1u);
  WEIR_EXPECT_OK(writer->AddGraph(std::string(256 << 10, 'g')));
  for (int wait = 0; wait < 500 && Read(writer->path()).size() < 3; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::vector<Event> events = Read(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].graph_def.size(), size_t{256 << 10});
}

// More than the queue holds: adders wait for the writer.
TEST_F(Events, AFullQueueLosesNothing) {
  const std::unique_ptr<EventWriter> writer = Open({.max_queue = 2});
  const std::string graph(1500000, 'g');
  for (int i = 0; i < 12; ++i) WEIR_EXPECT_OK(writer->AddGraph(graph, i));
  WEIR_EXPECT_OK(writer->Close());
  const std::vector<Event> events = Read(writer->path());
  ASSERT_EQ(events.size(), 13u);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(events[static_cast<size_t>(i) + 1].step, i);
    EXPECT_TRUE(events[static_cast<size_t>(i) + 1].graph_def == graph);
  }
}

TEST_F(Events, F215_FileNameAndOrder) {
  const double before = std::floor(static_cast<double>(std::time(nullptr)));
  const std::unique_ptr<EventWriter> writer = Open();
  WEIR_EXPECT_OK(writer->AddGraph("graph bytes"));
  WEIR_EXPECT_OK(writer->AddMetaGraph("meta bytes"));
  WEIR_EXPECT_OK(writer->AddSessionLog(SessionStatus::kStart, "", "", 7));
  WEIR_EXPECT_OK(writer->AddRunMetadata("run bytes", "step_7", 7));
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("loss", 0.25f), 8));
  WEIR_EXPECT_OK(writer->Close());
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  const std::string name = BaseName(writer->path());
  const std::string start = "events.out.tfevents.";
  ASSERT_TRUE(name.starts_with(start)) << name;
  EXPECT_GE(std::stod(name.substr(start.size(), 10)), before);
  EXPECT_EQ(name.substr(start.size() + 10), "." + std::string(host));
  const std::vector<Event> events = Read(writer->path());
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_GE(events[0].wall_time, before);
  EXPECT_EQ(events[1].graph_def, "graph bytes");
  EXPECT_EQ(events[2].meta_graph_def, "meta bytes");
  EXPECT_EQ(events[3].session_status, SessionStatus::kStart);
  EXPECT_EQ(events[3].step, 7);
  EXPECT_EQ(events[4].run_metadata, "run bytes");
  EXPECT_EQ(events[4].run_metadata_tag, "step_7");
  EXPECT_EQ(events[5].step, 8);
  ASSERT_EQ(events[5].summary.size(), 1u);
  EXPECT_EQ(events[5].summary[0].tag, "loss");
  EXPECT_EQ(events[5].summary[0].scalar, 0.25f);
  WEIR_EXPECT_ERROR(writer->AddSummary("", 1), Code::kFailedPrecondition, "closed");
  WEIR_EXPECT_OK(writer->Close());
}

TEST_F(Events, F222_TheVersionEventIsThereAtOnceTheRestWaits) {
  const std::unique_ptr<EventWriter> writer = Open({.max_queue = 4, .flush_secs = 3600});
  EXPECT_EQ(Read(writer->path()).size(), 1u);
  for (int i = 0; i < 3; ++i) WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("a", 1), i));
  EXPECT_EQ(Read(writer->path()).size(), 1u);
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("a", 1), 3));
  // The queue is full, so the thread writes now.
  for (int wait = 0; wait < 500 && Read(writer->path()).size() < 5; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(Read(writer->path()).size(), 5u);
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("a", 1), 4));
  EXPECT_EQ(Read(writer->path()).size(), 5u);
  WEIR_EXPECT_OK(writer->Flush());
  EXPECT_EQ(Read(writer->path()).size(), 6u);
}

TEST_F(Events, F222_EventsDoNotWaitLongerThanFlushSecs) {
  const std::unique_ptr<EventWriter> writer = Open({.max_queue = 100, .flush_secs = 0.05});
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("a", 1), 1));
  for (int wait = 0; wait < 500 && Read(writer->path()).size() < 2; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(Read(writer->path()).size(), 2u);
}

TEST_F(Events, ConcurrentAddersLoseNothing) {
  const std::unique_ptr<EventWriter> writer = Open({.max_queue = 3});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&writer, t] {
      for (int i = 0; i < 250; ++i) {
        EXPECT_TRUE(writer->AddSummary(ScalarSummary(fmt::format("t{}", t), 1), i).ok());
        EXPECT_TRUE(i % 50 != 0 || writer->Flush().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  WEIR_EXPECT_OK(writer->Flush());
  std::map<std::string, int64_t> next;
  for (const Event& event : Read(writer->path())) {
    if (event.summary.empty()) continue;
    EXPECT_EQ(event.step, next[event.summary[0].tag]++) << "events of one thread keep their order";
  }
  EXPECT_EQ(next, (std::map<std::string, int64_t>{{"t0", 250}, {"t1", 250}, {"t2", 250}, {"t3", 250}}));
}

TEST_F(Events, WritersInOneFolderGetFilesOfTheirOwn) {
  std::vector<std::unique_ptr<EventWriter>> writers;
  for (int i = 0; i < 5; ++i) writers.push_back(Open());
  for (int i = 0; i < 5; ++i) {
    WEIR_EXPECT_OK(writers[static_cast<size_t>(i)]->AddSummary(ScalarSummary("w", 1), i));
    WEIR_EXPECT_OK(writers[static_cast<size_t>(i)]->Close());
  }
  EXPECT_EQ(Names().size(), 5u);
  std::vector<int64_t> steps;
  for (const std::string& name : Names()) steps.push_back(Read(Path(name)).back().step);
  std::sort(steps.begin(), steps.end());
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST_F(Events, AFullDiskIsReportedOnceAndTheFileStaysReadable) {
  const std::unique_ptr<EventWriter> writer = Open({.max_queue = 1000});
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("kept", 1), 1));
  WEIR_EXPECT_OK(writer->Flush());
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{2048, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  WEIR_EXPECT_OK(writer->AddGraph(std::string(100000, 'g')));
  const Status full = writer->Flush();
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  WEIR_EXPECT_ERROR(full, Code::kResourceExhausted, writer->path());
  WEIR_EXPECT_OK(writer->AddSummary(ScalarSummary("after", 1), 2));
  WEIR_EXPECT_OK(writer->Close());
  const std::vector<Event> events = Read(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].summary[0].tag, "kept");
  EXPECT_EQ(events[2].summary[0].tag, "after");
}

TEST_F(Events, CreateReportsTheObstacle) {
  Write(Path("file"), "");
  WEIR_EXPECT_ERROR(EventWriter::Create(Path("file")).status(), Code::kFailedPrecondition, Path("file"));
  WEIR_EXPECT_ERROR(EventWriter::Create(Path("file/sub")).status(), Code::kFailedPrecondition, Path("file"));
  const Result<std::unique_ptr<EventWriter>> deep = EventWriter::Create(Path("a/b/c"));
  EXPECT_TRUE(deep.ok()) << deep.status().ToString();
}

TEST_F(Events, DamagedEventsAreSkippedAndCounted) {
  std::string file = FrameRecord(EncodeEvent(1, 0, 3, "brain.Event:2"));
  std::string damaged = FrameRecord(EncodeEvent(2, 1, 5, ScalarSummary("a", 1)));
  damaged[20] ^= 1;
  file += damaged + FrameRecord("not an event") + FrameRecord(EncodeEvent(3, 2, 5, ScalarSummary("b", 1)));
  Write(Path("events"), file);
  Result<EventReader> reader = EventReader::Open(Path("events"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->Next()->value().file_version, "brain.Event:2");
  EXPECT_EQ(reader->Next()->value().step, 2);
  EXPECT_EQ(reader->damaged(), 2);
  EXPECT_FALSE(reader->Next()->has_value());
}

TEST_F(Events, NoDamageCrashesTheReader) {
  const std::string good =
      FrameRecord(EncodeEvent(1, 0, 3, "brain.Event:2")) + FrameRecord(EncodeEvent(2, 1, 5, ScalarSummary("loss", 1)));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    Write(Path("bad"), bad);
    Result<EventReader> reader = EventReader::Open(Path("bad"));
    ASSERT_TRUE(reader.ok());
    int events = 0;
    Status status;
    for (;;) {
      const Result<std::optional<Event>> event = reader->Next();
      status = event.status();
      if (!event.ok() || !event->has_value()) break;
      ++events;
    }
    EXPECT_TRUE(status.code() == Code::kDataLoss || (status.ok() && reader->damaged() == 1)) << bit;
    EXPECT_LT(events, 2) << bit;
    // Damaged payload bytes are harmless too: the decoder gets them without the checksum.
    static_cast<void>(DecodeEvent(std::string_view(bad).substr(12, 24)));
  }
}

}  // namespace
}  // namespace weir::io
