// Summaries, event files, and the progress bar.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/io/event_file.h"
#include "core/io/summary.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

std::vector<io::SummaryValue> Decoded(Session& session, const Output& summary, const Feeds& feeds = {}) {
  const Result<Fetched> bytes = session.Run(summary, feeds);
  EXPECT_TRUE(Succeeds(bytes));
  if (!bytes.ok()) return {};
  const Result<std::vector<io::SummaryValue>> values = io::DecodeSummary(*bytes->tensor().scalar<std::string>());
  EXPECT_TRUE(Succeeds(values));
  return values.ok() ? *values : std::vector<io::SummaryValue>();
}

std::vector<io::Event> EventsOf(const std::string& path) {
  std::vector<io::Event> events;
  Result<io::EventReader> reader = io::EventReader::Open(path);
  EXPECT_TRUE(Succeeds(reader));
  if (!reader.ok()) return events;
  for (;;) {
    Result<std::optional<io::Event>> event = reader->Next();
    EXPECT_TRUE(Succeeds(event));
    if (!event.ok() || !event->has_value()) return events;
    events.push_back(std::move(**event));
  }
}

TEST(Summary, F214_a_summary_is_an_op) {
  Fresh f;
  const Output loss = summary::Scalar("loss", Constant(0.5f));
  EXPECT_EQ(loss.op().ToString(), "<tf.Operation 'loss' type=ScalarSummary>");
  Session session(f.graph);
  const std::vector<io::SummaryValue> values = Decoded(session, loss);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].tag, "loss");
  EXPECT_EQ(values[0].scalar, 0.5f);
}

TEST(Summary, F215_event_file_begins_with_version_graph_and_meta_graph) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  const TemporaryFolder dir;
  summary::FileWriter writer(dir.path, &f.graph);
  ASSERT_TRUE(Succeeds(writer.Close()));
  const std::string file = std::filesystem::path(writer.path()).filename();
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  ASSERT_TRUE(file.starts_with("events.out.tfevents.")) << file;
  EXPECT_EQ(file.find_first_not_of("0123456789", 20), 30u) << file;
  EXPECT_EQ(file.substr(31, std::string(host).size()), host);
  const std::vector<io::Event> events = EventsOf(writer.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  Graph again;
  EXPECT_TRUE(Succeeds(again.Import(events[1].graph_def, "")));
  EXPECT_TRUE(Succeeds(again.OperationByName("v/Assign")));
  Graph meta;
  EXPECT_TRUE(Succeeds(ImportMetaGraph(events[2].meta_graph_def, meta)));
  EXPECT_EQ(GlobalVariables(meta).size(), 1u);
}

TEST(Summary, F217_tags_are_names_with_their_scopes) {
  Fresh f;
  Output first, second, odd;
  {
    const NameScope train("train");
    first = summary::Scalar("loss", Constant(1.0f));
    second = summary::Scalar("loss", Constant(2.0f));
  }
  odd = summary::Scalar("a b/c:0", Constant(3.0f));
  Session session(f.graph);
  EXPECT_EQ(Decoded(session, first)[0].tag, "train/loss");
  EXPECT_EQ(Decoded(session, second)[0].tag, "train/loss_1");
  EXPECT_EQ(Decoded(session, odd)[0].tag, "a_b/c_0");
  EXPECT_FALSE(summary::Scalar("v", Constant({1.0f, 2.0f})).exists());
  EXPECT_TRUE(
      Fails(f.graph.status(), Code::kInvalidArgument, "tags and values are not the same shape: [] != [2] (tag 'v')"));
}

TEST(Summary, F217_shapes_that_only_a_run_knows) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat);
  const Output v = summary::Scalar("v", x);
  Session session(f.graph);
  EXPECT_EQ(Decoded(session, v, {{x, 1.0f}}).size(), 1u);
  EXPECT_TRUE(
      Fails(session.Run(v, {{x, {1.0f, 2.0f}}}), Code::kInvalidArgument, "the same shape: [] != [2] (tag 'v')"));
}

TEST(Summary, F218_merging) {
  Fresh f;
  EXPECT_FALSE(summary::MergeAll().exists());
  {
    const NameScope scope("somewhere");
    summary::Scalar("loss", Constant(1.0f));
  }
  const Output h = summary::Histogram("h", Constant({1.0f, 2.0f}));
  const Output all = summary::MergeAll();
  EXPECT_EQ(all.op().name(), "Merge/MergeSummary");
  Session session(f.graph);
  std::vector<std::string> tags;
  for (const io::SummaryValue& value : Decoded(session, all)) tags.push_back(value.tag);
  EXPECT_EQ(tags, (std::vector<std::string>{"somewhere/loss", "h"}));
  EXPECT_TRUE(
      Fails(session.Run(summary::Merge({h, h})), Code::kInvalidArgument, "Duplicate tag h found in summary inputs"));
  EXPECT_FALSE(summary::Merge({}).exists());
  EXPECT_EQ(f.graph.status().code(), Code::kInvalidArgument);
}

TEST(Summary, F220_histogram) {
  Fresh f;
  const Output h = summary::Histogram("h", Constant({{1.0f, 2.0f}, {3.0f, 4.0f}}));
  const Output x = Placeholder(DType::kFloat);
  const Output n = summary::Histogram("n", x);
  Session session(f.graph);
  const std::vector<io::SummaryValue> values = Decoded(session, h);
  ASSERT_EQ(values.size(), 1u);
  const io::Histogram& histogram = values[0].histogram;
  EXPECT_EQ(histogram.min, 1);
  EXPECT_EQ(histogram.max, 4);
  EXPECT_EQ(histogram.num, 4);
  EXPECT_EQ(histogram.sum, 10);
  EXPECT_EQ(histogram.sum_squares, 30);
  EXPECT_EQ(histogram.bucket.size(), histogram.bucket_limit.size());
  double counted = 0;
  for (const double count : histogram.bucket) counted += count;
  EXPECT_EQ(counted, 4);
  EXPECT_EQ(Decoded(session, n, {{x, Tensor::Scalar<float>(2)}})[0].histogram.num, 1);
  EXPECT_TRUE(Fails(session.Run(n, {{x, std::numeric_limits<float>::quiet_NaN()}}), Code::kInvalidArgument,
                    "Nan in summary histogram for: n"));
}

TEST(Summary, F222_events_wait_until_there_are_enough) {
  Fresh f;
  const Output loss = summary::Scalar("loss", Constant(0.5f));
  Session session(f.graph);
  const Result<Fetched> bytes = session.Run(loss);
  ASSERT_TRUE(Succeeds(bytes));
  const TemporaryFolder dir;
  summary::FileWriter writer(dir.path, nullptr, {.max_queue = 100, .flush_secs = 1000});
  const auto size = [&] { return std::filesystem::file_size(writer.path()); };
  const auto before = size();
  ASSERT_TRUE(Succeeds(writer.AddSummary(bytes->tensor(), 1)));
  EXPECT_EQ(size(), before);
  ASSERT_TRUE(Succeeds(writer.Flush()));
  EXPECT_GT(size(), before);
  ASSERT_TRUE(Succeeds(writer.AddSummary(bytes->tensor(), 2)));
  ASSERT_TRUE(Succeeds(writer.Close()));
  EXPECT_EQ(EventsOf(writer.path()).size(), 3u);
  EXPECT_FALSE(writer.AddSummary(bytes->tensor(), 3).ok());
}

TEST(Summary, F222_a_full_queue_and_patience_write_without_being_asked) {
  Fresh f;
  const Output loss = summary::Scalar("loss", Constant(0.5f));
  Session session(f.graph);
  const Result<Fetched> bytes = session.Run(loss);
  ASSERT_TRUE(Succeeds(bytes));
  for (const bool full : {false, true}) {
    const TemporaryFolder dir;
    const summary::FileWriterOptions options = full ? summary::FileWriterOptions{.max_queue = 3, .flush_secs = 1000}
                                                    : summary::FileWriterOptions{.max_queue = 100, .flush_secs = 0.05};
    summary::FileWriter writer(dir.path, nullptr, options);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(Succeeds(writer.AddSummary(bytes->tensor(), step)));
    for (int wait = 0; wait < 2000 && EventsOf(writer.path()).size() < 4; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(EventsOf(writer.path()).size(), 4u) << (full ? "queue" : "patience");
  }
}

TEST(Summary, F222_a_folder_that_cannot_be_made_is_said) {
  summary::FileWriter writer("/proc/nothing/here");
  EXPECT_FALSE(writer.status().ok());
  EXPECT_FALSE(writer.AddSummary(Tensor::String("")).ok());
}

TEST(Summary, F223_a_step_left_out_is_zero) {
  Fresh f;
  const Output loss = summary::Scalar("loss", Constant(0.5f));
  Session session(f.graph);
  const Result<Fetched> bytes = session.Run(loss);
  ASSERT_TRUE(Succeeds(bytes));
  const TemporaryFolder dir;
  summary::FileWriter writer(dir.path);
  ASSERT_TRUE(Succeeds(writer.AddSummary(bytes->tensor())));
  ASSERT_TRUE(Succeeds(writer.AddSummary(bytes->tensor(), 7)));
  ASSERT_TRUE(Succeeds(writer.Close()));
  const std::vector<io::Event> events = EventsOf(writer.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(events[2].step, 7);
  EXPECT_EQ(events[2].summary[0].tag, "loss");
}

TEST(Summary, F224_all_summaries_want_the_feeds_of_both_models) {
  Fresh f;
  Feeds of_test;
  for (const char* name : {"train", "test"}) {
    const NameScope scope(name), var1("var1");
    const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 1}));
    summary::Scalar("loss", ReduceSum(x));
    of_test = {{x, {{1.0f}, {2.0f}}}};
  }
  const Output all = summary::MergeAll();
  std::vector<Operand> own;
  for (const CollectionEntry& entry : f.graph.GetCollection(keys::kSummaries, "test/")) own.emplace_back(entry.output);
  const Output merged = summary::Merge(own);
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(all, of_test), Code::kInvalidArgument,
                    "You must feed a value for placeholder tensor 'train/var1/Placeholder' with dtype float and shape "
                    "[?,1]"));
  const std::vector<io::SummaryValue> values = Decoded(session, merged, of_test);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].tag, "test/var1/loss");
  EXPECT_EQ(values[0].scalar, 3);
}

TEST(Summary, F226_writers_for_training_and_test) {
  Fresh f;
  const Output x = Real("x"), loss = summary::Scalar("loss", x);
  Session session(f.graph);
  const TemporaryFolder dir;
  summary::FileWriter train(dir / "summaries/train", &f.graph), test(dir / "summaries/test");
  const auto add = [&](summary::FileWriter& writer, float value, int64_t step) {
    const Result<Fetched> bytes = session.Run(loss, {{x, value}});
    ASSERT_TRUE(Succeeds(bytes));
    ASSERT_TRUE(Succeeds(writer.AddSummary(bytes->tensor(), step)));
  };
  add(train, 0.5f, 1);
  add(test, 0.75f, 1);
  add(train, 0.25f, 2);
  ASSERT_TRUE(Succeeds(train.Close()));
  ASSERT_TRUE(Succeeds(test.Close()));
  const std::vector<io::Event> trained = EventsOf(train.path()), tested = EventsOf(test.path());
  ASSERT_EQ(trained.size(), 5u) << "version, graph and MetaGraph, and two losses";
  ASSERT_EQ(tested.size(), 2u);
  EXPECT_EQ(trained.back().summary[0].scalar, 0.25f);
  EXPECT_EQ(tested.back().summary[0].scalar, 0.75f);
}

TEST(Progress, plain_lines_where_there_is_no_terminal) {
  std::string text;
  ProgressOutput output;
  output.write = [&](std::string_view part) { text += part; };
  {
    ProgressBar bar("training", 100, output);
    for (int i = 1; i <= 100; ++i) bar.Update(i, "loss 0.5");
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("training 100 %  100/100"), std::string::npos) << text;
}

TEST(Progress, one_line_that_redraws_on_a_terminal) {
  std::string text;
  ProgressOutput output;
  output.write = [&](std::string_view part) { text += part; };
  output.terminal = true;
  output.width = 60;
  {
    ProgressBar bar("training", 100, output);
    for (int i = 1; i <= 100; ++i) bar.Update(i);
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_TRUE(text.starts_with('\r'));
  EXPECT_TRUE(text.ends_with("\x1b[K\n"));
  EXPECT_EQ(text.find("\x1b[32m"), std::string::npos);
  EXPECT_NE(text.find("100/100"), std::string::npos);
}

TEST(Summary, F218_names_of_merged_summaries) {
  Fresh f;
  const Output s = summary::Scalar("s", Constant(1.0f));
  EXPECT_EQ(summary::Merge({s}).op().name(), "Merge/MergeSummary");
  EXPECT_EQ(summary::Merge({s}, "all").op().name(), "all/all");
  EXPECT_EQ(summary::Merge({s}, "/a b").op().name(), "a_b/a_b");
}

}  // namespace
}  // namespace weir::test
