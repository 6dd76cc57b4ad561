// `weir run`: feeds, fetches, files, repeated runs and output.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/client/graph/graph_internal.h"
#include "core/client/weir.h"
#include "core/graph/graph_def.h"
#include "core/io/npy.h"
#include "core/ops/declare_all.h"
#include "core/tensor/number.h"
#include "tests/e2e/cli_process.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// y = x + a, and an unrelated z.
std::string SumGraph() {
  return PlaceholderText("x", "DT_FLOAT", {-1, 2}) + ConstText("a", "DT_FLOAT", {2}, "float_val: 10 float_val: 20") +
         TypedText("y", "Add", {"x", "a"}) + TypedText("scope/z", "Identity", {"a"});
}

std::string EchoGraph(const std::string& dtype) {
  return NodeText("x", "Placeholder", {}, {{"dtype", "type: " + dtype}}) + TypedText("y", "Identity", {"x"}, dtype);
}

/// A counter: "init" sets it to 0, "up" adds 1.
std::string CounterGraph() {
  const AttrTexts dtype = {{"dtype", "type: DT_FLOAT"}};
  return NodeText("v", "VarHandleOp", {},
                  {{"dtype", "type: DT_FLOAT"}, {"shape", "shape {}"}, {"shared_name", "s: \"v\""}}) +
         ConstText("zero", "DT_FLOAT", {}, "float_val: 0") + ConstText("one", "DT_FLOAT", {}, "float_val: 1") +
         NodeText("assign", "AssignVariableOp", {"v", "zero"}, dtype) + NodeText("init", "NoOp", {"^assign"}) +
         NodeText("up", "AssignAddVariableOp", {"v", "one"}, dtype) +
         NodeText("read", "ReadVariableOp", {"v", "^up"}, dtype);
}

Tensor ReadTensor(const std::string& file) {
  Result<Tensor> tensor = io::ReadNpy(file);
  EXPECT_TRUE(tensor.ok()) << tensor.status().ToString();
  return tensor.ok() ? *tensor : Tensor();
}

TEST(CliRun, FeedsALiteralAndWritesTheFetch) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", SumGraph());
  const std::string out = folder / "new/folder";
  const Ended ended = Weir(
      {"run", graph, "--feed", "x=[[1,2],[3,4]]", "--fetch", "y", "--fetch", "scope/z:0", "--out-dir", out, "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  Json answer = ended.json();
  EXPECT_EQ(answer["schema"], 1);
  ASSERT_EQ(answer["fetches"].size(), 2u);
  EXPECT_EQ(answer["fetches"][0]["name"], "y");
  EXPECT_EQ(answer["fetches"][0]["dtype"], "float");
  EXPECT_EQ(answer["fetches"][0]["shape"], Json({2, 2}));
  EXPECT_EQ(answer["fetches"][0]["file"], out + "/y.npy");
  EXPECT_EQ(answer["fetches"][1]["file"], out + "/scope_z_0.npy");
  EXPECT_GE(answer["run_ms"].get<double>(), 0.0);
  EXPECT_GT(answer["placement"]["/job:localhost/replica:0/task:0/device:CPU:0"].get<int>(), 0);
  EXPECT_TRUE(ReadTensor(out + "/y.npy").SameBits(Tensor::Of<float>(Shape::Of({2, 2}), {11, 22, 13, 24})));
  EXPECT_TRUE(ReadTensor(out + "/scope_z_0.npy").SameBits(Tensor::Vector<float>({10, 20})));
}

TEST(CliRun, PrintsATable) {
  const ScratchFolder folder;
  const Ended ended = Weir({"run", folder.Write("g.pbtxt", SumGraph()), "--feed", "x=[[1,2]]", "--fetch", "y"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("name  dtype  shape  first values\ny     float  [1,2]  [[11 22]]\n"), std::string::npos)
      << ended.out;
}

TEST(CliRun, BinaryGraphAndFeedFromAFile) {
  const ScratchFolder folder;
  const Result<graph::Definition> graph = graph::ParseGraph(SumGraph(), **ops::Catalogue());
  ASSERT_TRUE(graph.ok());
  const std::string file = folder.Write("g.pb", *graph::ExportGraphDef(*graph));
  ASSERT_TRUE(io::WriteNpy(folder / "x.npy", Tensor::Of<float>(Shape::Of({1, 2}), {0.5, -0.5})).ok());
  const Ended ended = Weir({"run", file, "--feed", "x:0=" + (folder / "x.npy"), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.json()["fetches"][0]["first_values"], "[[10.5 19.5]]");
}

TEST(CliRun, WithoutFetchesTheUnreadOutputs) {
  const ScratchFolder folder;
  Json answer = Weir({"run", folder.Write("g.pbtxt", SumGraph()), "--feed", "x=[[1,2]]", "--json"}).json();
  ASSERT_EQ(answer["fetches"].size(), 2u) << answer.dump();
  EXPECT_EQ(answer["fetches"][0]["name"], "y");
  EXPECT_EQ(answer["fetches"][1]["name"], "scope/z");
  EXPECT_EQ(answer["fetches"][0]["file"], nullptr);
  const Ended nothing = Weir({"run", folder.Write("p.pbtxt", PlaceholderText("x", "DT_FLOAT", {}))});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_NE(nothing.first_error_line().find("--fetch"), std::string::npos) << nothing.err;
}

TEST(CliRun, WithoutFetchesTheOutputsThatAreAlwaysLive) {
  const ScratchFolder folder;
  weir::Graph client;
  {
    const AsDefault in(client);
    const Output x = weir::Placeholder(DType::kFloat, PartialShape::Of({}), "x");
    const Output y = Cond(
        Less(x, 1.0f), [&] { return x * 2.0f; },
        [&] {
          return Cond(
                     Less(x, 5.0f), [&] { return x * 3.0f; }, [&] { return x * 5.0f; }) +
                 1.0f;
        });
    WhileLoop([&](const LoopVars& v) { return Less(v[0], 3.0f); },
              [&](const LoopVars& v) {
                Square(v[0]);  // an unread output
                return LoopVars{v[0] + y};
              },
              {y});
  }
  ASSERT_TRUE(client.status().ok()) << client.status().ToString();
  const std::string file = folder.Write("g.pb", *graph::ExportGraphDef(Internals(client).definition));
  const Json answer = Weir({"run", file, "--feed", "x=2", "--json"}).json();
  ASSERT_EQ(answer["fetches"].size(), 1u) << answer.dump();
  EXPECT_EQ(answer["fetches"][0]["name"], "while/Exit");
  EXPECT_EQ(answer["fetches"][0]["first_values"], "[7]");
}

TEST(CliRun, TargetsRunWithoutFetching) {
  const ScratchFolder folder;
  const Ended ended = Weir({"run", folder.Write("g.pbtxt", CounterGraph()), "--target", "init", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.json()["fetches"], Json::array());
}

TEST(CliRun, InitThenExactlyNRunsInOneSession) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", CounterGraph());
  const Ended ended = Weir({"run", graph, "--init", "init", "--fetch", "read", "--runs", "3", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  Json answer = ended.json();
  EXPECT_EQ(answer["fetches"][0]["first_values"], "[3]");
  EXPECT_EQ(answer["runs"]["count"], 3);
  EXPECT_LE(answer["runs"]["min_ms"], answer["runs"]["median_ms"]);
  EXPECT_LE(answer["runs"]["median_ms"], answer["runs"]["p90_ms"]);
  EXPECT_EQ(answer["run_ms"], answer["runs"]["median_ms"]);
  const std::string text = Weir({"run", graph, "--init", "init", "--fetch", "read", "--runs", "3"}).out;
  for (const char* word : {"min ", "median ", "p90 "}) EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(CliRun, InitsRunInOrderWithTheFeeds) {
  const ScratchFolder folder;
  const AttrTexts dtype = {{"dtype", "type: DT_FLOAT"}};
  const std::string graph = folder.Write("g.pbtxt", CounterGraph() + PlaceholderText("p", "DT_FLOAT", {}) +
                                                        NodeText("set", "AssignVariableOp", {"v", "p"}, dtype));
  Json answer =
      Weir({"run", graph, "--init", "init", "--init", "set", "--feed", "p=41", "--fetch", "read", "--json"}).json();
  EXPECT_EQ(answer["fetches"][0]["first_values"], "[42]") << answer.dump();
}

TEST(CliRun, CollidingFilesAreFoundBeforeTheRun) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", SumGraph() + TypedText("scope_z", "Identity", {"a"}));
  const std::string out = folder / "out";
  const Ended ended = Weir({"run", graph, "--fetch", "scope/z", "--fetch", "scope_z", "--out-dir", out});
  EXPECT_EQ(ended.status, 1);
  const std::string line = ended.first_error_line();
  EXPECT_NE(line.find("'scope/z'"), std::string::npos) << line;
  EXPECT_NE(line.find("'scope_z'"), std::string::npos) << line;
  EXPECT_FALSE(fs::exists(out));
}

TEST(CliRun, FolderThatCannotBeMadeIsNamed) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", SumGraph());
  const Ended ended = Weir({"run", graph, "--fetch", "scope/z", "--out-dir", graph + "/out"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.first_error_line().find(graph), std::string::npos) << ended.err;
}

TEST(CliRun, DumpedCommandDoesTheSameElsewhere) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("it's a graph.pbtxt", SumGraph());
  const Ended first = Weir({"run", graph, "--feed", "x=[[1, 2]]", "--dump-command", "--json"});
  ASSERT_EQ(first.status, 0) << first.err;
  std::string command = first.json()["command"];
  const size_t word = command.find("weir run");
  ASSERT_NE(word, std::string::npos) << command;
  command = "cd / && " + command.replace(word, 4, WEIR_COMMAND) + " --json";
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  EXPECT_EQ(Json::parse(out, nullptr, false)["fetches"], first.json()["fetches"]) << out;

  const Ended text = Weir({"run", graph, "--feed", "x=[[1, 2]]", "--dump-command"});
  EXPECT_NE(text.out.find("--fetch y --fetch scope/z\n"), std::string::npos) << text.out;
}

TEST(CliRun, F335_TraceHasChromesFormat) {
  const ScratchFolder folder;
  const Ended ended = Weir({"run", folder.Write("g.pbtxt", SumGraph()), "--feed", "x=[[1, 2]]", "--runs", "2",
                            "--trace", folder / "t.json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  std::ifstream file(folder / "t.json");
  const Json trace = Json::parse(file, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  int ops = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event["ph"].is_string() && event["pid"].is_number() && event["tid"].is_number()) << event.dump();
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_FALSE(event["args"]["name"].get<std::string>().empty());
    ops += event["cat"] == "op" && event["name"] != "fetch" ? 1 : 0;
  }
  EXPECT_EQ(ops, 2) << "one addition in each run: " << trace.dump();
}

TEST(CliRun, MetadataIsWritten) {
  const ScratchFolder folder;
  const Ended ended =
      Weir({"run", folder.Write("g.pbtxt", SumGraph()), "--feed", "x=[[1, 2]]", "--metadata", folder / "run.pb"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  std::ifstream file(folder / "run.pb", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(bytes.find("device:CPU:0"), std::string::npos);
  EXPECT_NE(bytes.find("_arg_x_0_"), std::string::npos);
}

TEST(CliRun, F322_CheckNumericsNamesTheOp) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", SumGraph());
  EXPECT_EQ(Weir({"run", graph, "--feed", "x=[[1, 2]]", "--fetch", "y", "--check-numerics"}).status, 0);
  EXPECT_EQ(Weir({"run", graph, "--feed", "x=[[inf, 2]]", "--fetch", "y"}).status, 0);
  const Ended bad = Weir({"run", graph, "--feed", "x=[[inf, 2]]", "--fetch", "y", "--check-numerics"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.err.find("y:0 : Tensor had Inf values"), std::string::npos) << bad.err;
}

TEST(CliRun, DeviceIsTheDefaultForNodesWithoutOne) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", SumGraph());
  EXPECT_EQ(Weir({"run", graph, "--fetch", "scope/z", "--device", "CPU:0"}).status, 0);
  EXPECT_EQ(Weir({"run", graph, "--fetch", "scope/z", "--device", "/device:CPU:0"}).status, 0);
  const Ended bad = Weir({"run", graph, "--fetch", "scope/z", "--device", "/nonsense:x:y"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.first_error_line().find("/nonsense:x:y"), std::string::npos) << bad.err;
}

TEST(CliRun, OutputThatCannotBeWrittenIsAFailure) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const std::string words : {"ops", "--help", "ops --help", "--version", "--version --json"}) {
    const int status = std::system(("'" WEIR_COMMAND "' " + words + " > /dev/full 2> /dev/null").c_str());
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1) << words;
  }
}

TEST(CliRun, LengthsOfStringsThatEndInNulAreStoredInJson) {
  const ScratchFolder folder;
  const std::string graph = folder.Write(
      "g.pbtxt", ConstText("s", "DT_STRING", {3}, R"(string_val: "ab\000" string_val: "" string_val: "xyz")") +
                     ConstText("t", "DT_STRING", {1}, R"(string_val: "plain")"));
  const Ended ended = Weir({"run", graph, "--out-dir", folder.path()});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(ReadTensor(folder / "s.npy").SameBits(Tensor::Vector<std::string>({"ab", "", "xyz"})));
  EXPECT_EQ(Json::parse(ReadWhole(folder / "s.npy.json"))["lengths"], Json({3, 0, 3}));
  EXPECT_TRUE(ReadTensor(folder / "t.npy").SameBits(Tensor::Vector<std::string>({"plain"})));
  EXPECT_FALSE(fs::exists(folder / "t.npy.json"));
}

TEST(CliRun, Bfloat16GoesThroughFilesAsFloat) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", EchoGraph("DT_BFLOAT16"));
  ASSERT_TRUE(io::WriteNpy(folder / "x.npy", Tensor::Vector<float>({1.5f, -2.0f})).ok());
  const Ended ended = Weir({"run", graph, "--feed", "x=" + (folder / "x.npy"), "--out-dir", folder.path(), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.json()["fetches"][0]["dtype"], "bfloat16");
  EXPECT_TRUE(ReadTensor(folder / "y.npy").SameBits(Tensor::Vector<float>({1.5f, -2.0f})));
}

struct LiteralCase {
  const char* name;
  const char* dtype;
  const char* text;
  std::vector<int64_t> shape;
  std::vector<double> values;
};

class CliLiteral : public ::testing::TestWithParam<LiteralCase> {};

TEST_P(CliLiteral, ArrivesAsTheGraphWantsIt) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", EchoGraph(GetParam().dtype));
  const Ended ended =
      Weir({"run", graph, "--feed", std::string("x=") + GetParam().text, "--out-dir", folder.path(), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(
      "DT_" +
          [](std::string s) {
            for (char& c : s) c = static_cast<char>(std::toupper(c));
            return s;
          }(ended.json()["fetches"][0]["dtype"]),
      GetParam().dtype);
  const Tensor tensor = ReadTensor(folder / "y.npy");
  EXPECT_EQ(tensor.shape(), Shape::Of(GetParam().shape)) << tensor.shape().ToString();
  ASSERT_EQ(static_cast<size_t>(tensor.elements()), GetParam().values.size());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double want = GetParam().values[static_cast<size_t>(i)];
    const double got = ElementAsDouble(tensor, i);
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << "element " << i << " is " << got;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cli, CliLiteral,
    ::testing::ValuesIn(std::vector<LiteralCase>{
        {"Scalar", "DT_FLOAT", "2.5", {}, {2.5}},
        {"Nested", "DT_DOUBLE", "[[[1,2]],[[3,4e0]]]", {2, 1, 2}, {1, 2, 3, 4}},
        {"Blanks", "DT_FLOAT", " [ 1 ,\n2 ] ", {2}, {1, 2}},
        {"Empty", "DT_FLOAT", "[]", {0}, {}},
        {"EmptyRows", "DT_INT32", "[[],[],[]]", {3, 0}, {}},
        {"Specials", "DT_FLOAT", "[nan,inf,-inf,NaN,Infinity]", {5}, {NAN, INFINITY, -INFINITY, NAN, INFINITY}},
        {"TooSmallIsZero", "DT_FLOAT", "1e-300", {}, {0}},
        {"Half", "DT_HALF", "[65504,-0.5]", {2}, {65504, -0.5}},
        {"Bfloat16", "DT_BFLOAT16", "1.5", {}, {1.5}},
        {"Bools", "DT_BOOL", "[true,false]", {2}, {1, 0}},
        {"Int8", "DT_INT8", "[-128,127]", {2}, {-128, 127}},
        {"Uint8", "DT_UINT8", "[0,255]", {2}, {0, 255}},
        {"Int16", "DT_INT16", "-32768", {}, {-32768}},
        {"Uint16", "DT_UINT16", "65535", {}, {65535}},
        {"Int32", "DT_INT32", "[-2147483648,2147483647]", {2}, {-2147483648.0, 2147483647}},
        {"Uint32", "DT_UINT32", "4294967295", {}, {4294967295.0}},
        {"Int64", "DT_INT64", "-9007199254740992", {}, {-9007199254740992.0}},
        {"Uint64", "DT_UINT64", "9007199254740992", {}, {9007199254740992.0}},
        {"ComplexReal", "DT_COMPLEX64", "[3]", {1}, {3}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(CliRun, TextLiterals) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", EchoGraph("DT_STRING"));
  const Ended ended =
      Weir({"run", graph, "--feed", R"(x=["a b","","\u00e9\n\"]","model.npy"])", "--out-dir", folder.path(), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(
      ReadTensor(folder / "y.npy").SameBits(Tensor::Vector<std::string>({"a b", "", "\xc3\xa9\n\"]", "model.npy"})));
}

struct BadLiteral {
  const char* name;
  const char* dtype;
  const char* text;
  const char* said;
};

class CliBadLiteral : public ::testing::TestWithParam<BadLiteral> {};

TEST_P(CliBadLiteral, IsRefusedNamingTheFeed) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", EchoGraph(GetParam().dtype));
  const Ended ended = Weir({"run", graph, "--feed", std::string("x=") + GetParam().text, "--json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.json()["error"]["code"], "INVALID_ARGUMENT") << ended.out;
  EXPECT_EQ(ended.json()["error"]["node"], "x");
  const std::string message = ended.json()["error"]["message"];
  EXPECT_TRUE(message.starts_with("feed 'x': ")) << message;
  EXPECT_NE(message.find(GetParam().said), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, CliBadLiteral,
    ::testing::ValuesIn(std::vector<BadLiteral>{
        {"Nothing", "DT_FLOAT", "", "a value is missing at column 1"},
        {"Unclosed", "DT_FLOAT", "[1,2", "',' or ']' is missing at column 5"},
        {"TrailingComma", "DT_FLOAT", "[1,]", "column 4"},
        {"TextAfter", "DT_FLOAT", "[1] 2", "text after the value at column 5"},
        {"Word", "DT_FLOAT", "[one]", "'one' is no number"},
        {"RaggedRows", "DT_FLOAT", "[[1,2],[3]]", "an array of 1 where those before have 2"},
        {"ValueAmongRows", "DT_FLOAT", "[[1],2]", "where an array is wanted"},
        {"RowAmongValues", "DT_FLOAT", "[1,[2]]", "where a value is wanted"},
        {"TooDeep", "DT_FLOAT",
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
         "more than 254 nested arrays"},
        {"Fraction", "DT_INT32", "1.5", "1.5 is no value of type int32"},
        {"TooLargeForByte", "DT_UINT8", "256", "256 is no value of type uint8"},
        {"NegativeUnsigned", "DT_UINT32", "-1", "-1 is no value of type uint32"},
        {"TooLargeForInt64", "DT_INT64", "9223372036854775808", "is no value of type int64"},
        {"TooLargeForFloat", "DT_FLOAT", "1e39", "1e39 is no value of type float"},
        {"TooLargeForHalf", "DT_HALF", "70000", "70000 is no value of type half"},
        {"NumberAsBool", "DT_BOOL", "1", "1 is no value of type bool"},
        {"BoolAsNumber", "DT_FLOAT", "true", "true is no value of type float"},
        {"NumberAsText", "DT_STRING", "12", "double quotes"},
        {"OpenText", "DT_STRING", "\"abc", "closing quote"},
        {"BadEscape", "DT_STRING", "\"\\q\"", "no JSON string"},
        {"MissingFile", "DT_FLOAT", "missing.npy", "nor is there a file of that name"},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weir::testing
