// Summaries, event files, and the progress bar.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/io/event_file.h"
#include "core/io/summary.h"
#include "core/session/run_metadata.h"
#include "core/session/runtime.h"
#include "tests/unit/client/fresh.h"
#include "weir/proto/graph.pb.h"

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

TEST(Summary, F347_a_large_graph_is_written_with_its_scopes_closed) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {2}, "x");
  Output last = x;
  for (int layer = 0; layer < 3; ++layer) {
    const NameScope scope("layer_" + std::to_string(layer));
    for (int i = 0; i < 10; ++i) last = Negative(last);
  }
  for (const int64_t most : {0, 8, 31}) {
    const TemporaryFolder dir;
    summary::FileWriter writer(dir.path, &f.graph, {.most_graph_nodes = most});
    ASSERT_TRUE(Succeeds(writer.Close()));
    const std::vector<io::Event> events = EventsOf(writer.path());
    ASSERT_EQ(events.size(), 3u);
    tf::GraphDef def;
    ASSERT_TRUE(def.ParseFromString(events[1].graph_def));
    EXPECT_EQ(def.node_size(), most == 8 ? 4 : 31) << most;
    if (most != 8) continue;
    EXPECT_EQ(def.node(3).name(), "layer_2/Neg_nodes");
    EXPECT_EQ(def.node(3).input(0), "layer_1/Neg_nodes");
    Graph meta;
    EXPECT_TRUE(Succeeds(ImportMetaGraph(events[2].meta_graph_def, meta)));
    EXPECT_TRUE(Succeeds(meta.OperationByName("layer_2/Neg_9"))) << "it is whole there";
  }
}

TEST(Summary, F347_a_placed_graph_has_the_devices_of_the_session) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {2}, "x");
  NameScope scope("layer");
  const Output y = Negative(Exp(x));
  Negative(x, "unused");
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(y, {{x, {1, 2}}})));
  const session::Placement placement = session.Placement();
  ASSERT_FALSE(placement.empty());
  for (const int64_t most : {0, 2}) {
    const TemporaryFolder dir;
    summary::FileWriter writer(dir.path, nullptr, {.most_graph_nodes = most});
    ASSERT_TRUE(Succeeds(writer.AddPlacedGraph(f.graph, placement, 3)));
    ASSERT_TRUE(Succeeds(writer.Close()));
    const std::vector<io::Event> events = EventsOf(writer.path());
    ASSERT_EQ(events.size(), 2u) << "the version and the graph";
    EXPECT_EQ(events[1].step, 3);
    tf::GraphDef def;
    ASSERT_TRUE(def.ParseFromString(events[1].graph_def));
    EXPECT_EQ(def.node_size(), most == 0 ? 4 : 2);
    for (const tf::NodeDef& node : def.node()) {
      const bool placed = node.name() == "layer/Exp" || node.name() == "layer/collapsed";
      EXPECT_TRUE(!placed || node.device() == "/job:localhost/replica:0/task:0/device:CPU:0") << node.device();
      EXPECT_TRUE(node.name() != "layer/unused" || node.device().empty()) << "the session did not place it";
    }
  }
}

TEST(Summary, F347_run_metadata_has_a_tag_of_its_own) {
  Fresh f;
  const Output y = Negative(Constant(1.0f), "y");
  Session session(f.graph);
  session::RunReport report;
  ASSERT_TRUE(Succeeds(session.Run(y, {}, {.trace = true}, &report)));
  const Result<std::string> metadata = session.RunMetadata(report);
  ASSERT_TRUE(Succeeds(metadata));
  const TemporaryFolder dir;
  summary::FileWriter writer(dir.path);
  ASSERT_TRUE(Succeeds(writer.AddRunMetadata(*metadata, "step 1", 1)));
  EXPECT_EQ(writer.AddRunMetadata(*metadata, "step 1", 2).message(),
            "The provided tag was already used for this event type");
  ASSERT_TRUE(Succeeds(writer.Close()));
  const std::vector<io::Event> events = EventsOf(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].run_metadata_tag, "step 1");
  session::RunReport read;
  ASSERT_TRUE(Succeeds(session::ReadRunMetadata(events[1].run_metadata, read)));
  EXPECT_FALSE(read.trace.spans.empty());
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

/// A bar whose time is that of `now`, which writes to `text`.
struct TimedBar {
  std::string text;
  std::chrono::steady_clock::time_point now{};
  ProgressOutput output;
  TimedBar() {
    output.write = [this](std::string_view part) { text += part; };
    output.clock = [this] { return now; };
  }
  void Wait(int64_t ms) { now += std::chrono::milliseconds(ms); }
  auto Count(char c) const { return std::count(text.begin(), text.end(), c); }
};

TEST(Progress, F350_PlainLinesWhereThereIsNoTerminal) {
  TimedBar t;
  {
    ProgressBar bar("Epoch 1/2", 100, t.output);
    for (int i = 1; i <= 100; ++i) {
      t.Wait(30);
      bar.Update(i, {{"loss", 0.5569}, {"rate", 1e-4}});
    }
  }
  EXPECT_EQ(t.text,
            "Epoch 1/2\n"
            " 34/100 [=========>....................] - ETA: 1s - loss: 0.5569 - rate: 1.0000e-04\n"
            " 68/100 [===================>..........] - ETA: 0s - loss: 0.5569 - rate: 1.0000e-04\n"
            "100/100 [==============================] - 3s 30ms/step - loss: 0.5569 - rate: 1.0000e-04\n")
      << "at most one a second but for the last";
}

TEST(Progress, F350_OneLineThatRedrawsOnATerminal) {
  TimedBar t;
  t.output.terminal = true;
  {
    ProgressBar bar("", 4, t.output);
    for (int i = 1; i <= 4; ++i) {
      t.Wait(i == 2 ? 50 : i == 3 ? 150 : 100);
      bar.Update(i, {{"loss", 0.25 * i}});
    }
  }
  EXPECT_EQ(t.text,
            "\r1/4 [======>.......................] - ETA: 0s - loss: 0.2500\x1b[K"
            "\r3/4 [=====================>........] - ETA: 0s - loss: 0.7500\x1b[K"
            "\r4/4 [==============================] - 0s 100ms/step - loss: 1.0000\x1b[K"
            "\r4/4 [==============================] - 0s 100ms/step - loss: 1.0000\x1b[K\n")
      << "not 50 ms after the first";
  TimedBar narrow;
  narrow.output.terminal = true;
  narrow.output.width = 20;
  ProgressBar(" ", 4, narrow.output).Update(1);
  EXPECT_NE(narrow.text.find("\r1/4 [======>.......\x1b[K"), std::string::npos) << narrow.text;
}

TEST(Progress, F350_LevelsOfWords) {
  for (const int verbose : {0, 2}) {
    TimedBar t;
    {
      ProgressBar bar("", 2, t.output, verbose);
      for (int i = 1; i <= 2; ++i) {
        t.Wait(2);
        bar.Update(i, {{"loss", 0.6201}});
      }
    }
    EXPECT_EQ(t.text, verbose == 0 ? "" : "2/2 - 0s - loss: 0.6201 - 4ms/epoch - 2ms/step\n");
  }
}

TEST(Progress, F350_TimesThatAreLeft) {
  for (const auto& [ms, wanted] : std::vector<std::pair<int64_t, std::string>>{
           {3000, "ETA: 9s"}, {30000, "ETA: 1:30"}, {1300000, "ETA: 1:05:00"}, {0, "ETA: 0s"}}) {
    TimedBar t;
    t.output.terminal = true;
    ProgressBar bar("", 4, t.output);
    t.Wait(ms);
    bar.Update(1);
    EXPECT_NE(t.text.find(" - " + wanted + "\x1b"), std::string::npos) << t.text;
  }
}

/// What a bar writes to standard error while that is `file`.
void DrawTo(int file) {
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  ASSERT_GE(dup2(file, STDERR_FILENO), 0);
  {
    ProgressBar bar("Epoch 1/1", 2);
    bar.Update(1);
    bar.Update(2, {{"loss", 0.5}});
  }
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
}

/// Reads until the text ends so: a terminal gives what was written in pieces.
std::string ReadUpTo(const std::string& end, int file) {
  std::string text;
  char buffer[4096];
  while (!text.ends_with(end)) {
    const ssize_t size = read(file, buffer, sizeof(buffer));
    if (size <= 0) break;
    text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

TEST(Progress, F350_StandardErrorIsATerminalAPipeOrAFile) {
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal) + unlockpt(terminal), 0);
  const int line = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(line, 0);
  DrawTo(line);
  const std::string drawn = ReadUpTo(" - loss: 0.5000\x1b[K\r\n", terminal);
  EXPECT_TRUE(
      drawn.starts_with("Epoch 1/1\r\n\r1/2 [" + std::string(14, '=') + ">" + std::string(15, '.') + "] - ETA: "))
      << drawn;
  EXPECT_NE(drawn.find(" - loss: 0.5000\x1b[K\r\n"), std::string::npos) << drawn;
  close(line);
  close(terminal);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  DrawTo(ends[1]);
  const TemporaryFolder dir;
  const int file = open((dir / "log").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(file, 0);
  DrawTo(file);
  for (const std::string& text : {ReadUpTo("loss: 0.5000\n", ends[0]), ReadText(dir / "log")}) {
    EXPECT_TRUE(text.starts_with("Epoch 1/1\n2/2 [==============================] - 0s ")) << text;
    EXPECT_TRUE(text.ends_with("/step - loss: 0.5000\n")) << text;
    EXPECT_EQ(text.find_first_of("\r\b\x1b"), std::string::npos) << text;
  }
  for (const int end : {ends[0], ends[1], file}) close(end);
}

TEST(Summary, F218_names_of_merged_summaries) {
  Fresh f;
  const Output s = summary::Scalar("s", Constant(1.0f));
  EXPECT_EQ(summary::Merge({s}).op().name(), "Merge/MergeSummary");
  EXPECT_EQ(summary::Merge({s}, "all").op().name(), "all/all");
  EXPECT_EQ(summary::Merge({s}, "/a b").op().name(), "a_b/a_b");
}

TEST(Graph, F348_ExportedNodesHaveShapesAndDevicesInFunctionsToo) {
  constexpr std::string_view kCalls = R"(
    node { name: "x" op: "Placeholder" device: "/device:CPU:0"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
    node { name: "y" op: "PartitionedCall" input: "x"
      attr { key: "Tin" value { list { type: DT_FLOAT } } }
      attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "Scaled" } } } }
    library { function {
      signature { name: "Scaled" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }
      node_def { name: "two" op: "Const" device: "/device:CPU:1"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 2 } } } }
      node_def { name: "scaled" op: "Mul" input: "a" input: "two:output:0"
        attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "b" value: "scaled:z:0" } } })";
  Fresh f;
  ASSERT_TRUE(Succeeds(f.graph.Import(kCalls, "")));
  const Result<std::string> plain = f.graph.Export(graph::GraphFormat::kBinary);
  const Result<std::string> shaped = f.graph.Export(graph::GraphFormat::kBinary, true);
  ASSERT_TRUE(Succeeds(plain));
  ASSERT_TRUE(Succeeds(shaped));
  EXPECT_EQ(plain->find("_output_shapes"), std::string::npos);
  tf::GraphDef def;
  ASSERT_TRUE(def.ParseFromString(*shaped));
  EXPECT_EQ(def.node(0).device(), "/device:CPU:0");
  const auto shape_of = [](const tf::NodeDef& node) {
    return node.attr().at("_output_shapes").list().shape(0).ShortDebugString();
  };
  EXPECT_EQ(shape_of(def.node(0)), "dim { size: 2 } dim { size: 3 }");
  EXPECT_EQ(shape_of(def.node(1)), "unknown_rank: true");
  ASSERT_EQ(def.library().function_size(), 1) << "a viewer opens the call";
  const tf::FunctionDef& function = def.library().function(0);
  EXPECT_EQ(function.node_def(0).device(), "/device:CPU:1");
  EXPECT_EQ(shape_of(function.node_def(0)), "dim { size: 3 }");
  EXPECT_EQ(shape_of(function.node_def(1)), "unknown_rank: true");
  Fresh again;
  EXPECT_TRUE(Succeeds(again.graph.Import(*shaped, ""))) << "shapes do not hinder a reader";
  Session session(again.graph);
  EXPECT_EQ(Values(session, "y:0", {{"x:0", {{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}}}),
            (std::vector<double>{2, 4, 6, 8, 10, 12}));
}

using Samples = std::vector<double>;

/// The pixels of a PNG file.
Samples PixelsOf(const std::string& file) {
  Fresh f;
  const Output image = BuildOp("DecodePng", {Constant(Tensor::String(file))}).output(0);
  Session session(f.graph);
  return Values(session, image);
}

/// False if the build has no plugin for image files: the libraries that it needs are optional.
bool HasImages() {
  const auto runtime = session::Runtime::Default();
  return runtime.ok() && !(*runtime)->plugins->kernels().ForOp("DecodePng").empty();
}

TEST(Summary, F219_images) {
  if (!HasImages()) GTEST_SKIP() << "there is no plugin for image files";
  Fresh f;
  const Output batch = Placeholder(DType::kFloat, {-1, -1, -1, -1});
  const Output some = summary::Image("img", batch), one = summary::Image("one", batch, 1);
  EXPECT_EQ(some.op().type(), "ImageSummary");
  EXPECT_EQ(f.graph.GetCollection("summaries").size(), 2u);
  Session session(f.graph);
  const Tensor images = Tensor::Of(Shape::Of({4, 1, 2, 1}), std::vector<float>{0, 0.5, 1, 2, 3, 3, 4, 4});
  const std::vector<io::SummaryValue> values = Decoded(session, some, {{batch, images}});
  ASSERT_EQ(values.size(), 3u) << "at most max_outputs";
  EXPECT_EQ(values[0].tag, "img/image/0");
  EXPECT_EQ(values[2].tag, "img/image/2");
  EXPECT_EQ(values[0].kind, io::SummaryKind::kImage);
  EXPECT_EQ(PixelsOf(values[0].encoded), (Samples{0, 255}));
  EXPECT_EQ(PixelsOf(values[1].encoded), (Samples{127, 255}));
  const std::vector<io::SummaryValue> only = Decoded(session, one, {{batch, images}});
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only[0].tag, "one/image");
}

TEST(Summary, F219_pixels_of_negative_and_bad_numbers) {
  if (!HasImages()) GTEST_SKIP() << "there is no plugin for image files";
  Fresh f;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor colours = Tensor::Of(Shape::Of({1, 1, 3, 3}), std::vector<float>{-1, 0, 0.5, kNan, 1, 1, 0.25, 0, 0});
  const Tensor bytes = Tensor::Of(Shape::Of({1, 1, 1, 4}), std::vector<uint8_t>{1, 2, 3, 200});
  const Output signs = summary::Image("signs", Constant(colours), 1), raw = summary::Image("raw", Constant(bytes), 1);
  const Output flat = Placeholder(DType::kFloat), bad = summary::Image("bad", flat);
  Session session(f.graph);
  EXPECT_EQ(PixelsOf(Decoded(session, signs).at(0).encoded), (Samples{1, 128, 191, 255, 0, 0, 159, 128, 128}));
  EXPECT_EQ(PixelsOf(Decoded(session, raw).at(0).encoded), (Samples{1, 2, 3, 200}));
  EXPECT_TRUE(Fails(session.Run(bad, {{flat, Tensor::Of(Shape::Of({2, 2, 1}), std::vector<float>(4))}}),
                    Code::kInvalidArgument, "Tensor must be 4-D with last dim 1, 3, or 4, not [2,2,1]"));
}

TEST(Summary, F221_sounds) {
  Fresh f;
  const Output sounds = Placeholder(DType::kFloat);
  const Output some = summary::Audio("au", sounds, 8000.0f), one = summary::Audio("one", sounds, 8000.0f, 1);
  EXPECT_EQ(some.op().type(), "AudioSummaryV2");
  EXPECT_EQ(f.graph.GetCollection("summaries").size(), 2u);
  Session session(f.graph);
  const Tensor batch = Tensor::Of(Shape::Of({4, 2, 1}), std::vector<float>{0.5, -1, 0, 0, 0, 0, 0, 0});
  const std::vector<io::SummaryValue> values = Decoded(session, some, {{sounds, batch}});
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].tag, "au/audio/0");
  EXPECT_EQ(values[2].tag, "au/audio/2");
  EXPECT_EQ(values[0].kind, io::SummaryKind::kAudio);
  EXPECT_TRUE(values[0].encoded.starts_with("RIFF"));
  const Output wave = BuildOp("DecodeWav", {Constant(Tensor::String(values[0].encoded))}).output(0);
  EXPECT_EQ(Values(session, wave), (Samples{0.5, -1}));
  const std::vector<io::SummaryValue> only =
      Decoded(session, one, {{sounds, Tensor::Of(Shape::Of({1, 3}), std::vector<float>(3))}});
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only[0].tag, "one/audio");
  EXPECT_TRUE(Fails(session.Run(some, {{sounds, {0.5f, 1.0f}}}), Code::kInvalidArgument, "Tensor must be 3-D or 2-D"));
}

}  // namespace
}  // namespace weir::test
