// Collections, and their form in MetaGraphDefs. Numbers are rows of the feature list.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Names = std::vector<std::string>;

Names NamesIn(Graph& graph, const std::string& key, CollectionScope scope = {}) {
  Names names;
  for (const CollectionEntry& entry : graph.GetCollection(key, scope)) names.push_back(entry.name());
  return names;
}

TEST(Collection, F073_F082_default_collections_in_creation_order) {
  Fresh f;
  const Variable b(1.0f, {.name = "b"}), a(1.0f, {.name = "a"});
  EXPECT_EQ(NamesIn(f.graph, "variables"), (Names{"b:0", "a:0"}));
  EXPECT_EQ(NamesIn(f.graph, "trainable_variables"), (Names{"b:0", "a:0"}));
  EXPECT_EQ(f.graph.CollectionKeys(), (Names{"variables", "trainable_variables"}));
  EXPECT_EQ(GlobalVariables()[1].name(), "a:0");
  EXPECT_EQ(VariablesIn(keys::kTrainableVariables, "a").size(), 1u);
  const Names wanted = {"variables",
                        "trainable_variables",
                        "local_variables",
                        "summaries",
                        "global_step",
                        "losses",
                        "queue_runners",
                        "savers",
                        "init_op",
                        "local_init_op",
                        "summary_op",
                        "train_op",
                        "table_initializer",
                        "model_variables",
                        "metric_variables",
                        "update_ops",
                        "activations",
                        "biases",
                        "weights",
                        "cond_context",
                        "while_context",
                        "ready_op",
                        "resources",
                        "asset_filepaths",
                        "eval_step",
                        "regularization_losses",
                        "moving_average_variables",
                        "ready_for_local_init_op"};
  const Names ours = {keys::kGlobalVariables,
                      keys::kTrainableVariables,
                      keys::kLocalVariables,
                      keys::kSummaries,
                      keys::kGlobalStep,
                      keys::kLosses,
                      keys::kQueueRunners,
                      keys::kSavers,
                      keys::kInitOp,
                      keys::kLocalInitOp,
                      keys::kSummaryOp,
                      keys::kTrainOp,
                      keys::kTableInitializers,
                      keys::kModelVariables,
                      keys::kMetricVariables,
                      keys::kUpdateOps,
                      keys::kActivations,
                      keys::kBiases,
                      keys::kWeights,
                      keys::kCondContext,
                      keys::kWhileContext,
                      keys::kReadyOp,
                      keys::kResources,
                      keys::kAssetFilepaths,
                      keys::kEvalStep,
                      keys::kRegularizationLosses,
                      keys::kMovingAverageVariables,
                      keys::kReadyForLocalInitOp};
  EXPECT_EQ(ours, wanted);
}

TEST(Collection, F074_local_variables) {
  Fresh f;
  const Variable local(1.0f, {.name = "my_local", .collections = {keys::kLocalVariables}});
  EXPECT_EQ(NamesIn(f.graph, "local_variables"), Names{"my_local:0"});
  EXPECT_TRUE(NamesIn(f.graph, "variables").empty());
  EXPECT_EQ(NamesIn(f.graph, "trainable_variables"), Names{"my_local:0"});
  EXPECT_TRUE(GlobalVariablesInitializer().control_inputs().empty());
  const Variable nowhere(1.0f, {.name = "nowhere", .trainable = false, .collections = {}});
  EXPECT_EQ(f.graph.CollectionKeys(), (Names{"local_variables", "trainable_variables"}));
}

TEST(Collection, F075_not_trainable_stays_global) {
  Fresh f;
  const Variable v(1.0f, {.name = "v", .trainable = false});
  EXPECT_EQ(NamesIn(f.graph, "variables"), Names{"v:0"});
  EXPECT_TRUE(NamesIn(f.graph, "local_variables").empty());
  EXPECT_TRUE(NamesIn(f.graph, "trainable_variables").empty());
}

TEST(Collection, F076_made_by_adding_and_returned_as_a_copy) {
  Fresh f;
  EXPECT_TRUE(f.graph.GetCollection("never").empty());
  EXPECT_TRUE(f.graph.CollectionKeys().empty());
  f.graph.AddToCollection("mine", "text");
  std::vector<CollectionEntry> copy = f.graph.GetCollection("mine");
  copy.clear();
  EXPECT_EQ(f.graph.GetCollection("mine").size(), 1u);
  f.graph.CollectionRef("live").emplace_back(3);
  EXPECT_EQ(f.graph.GetCollection("live").size(), 1u);
  EXPECT_EQ(f.graph.CollectionKeys(), (Names{"mine", "live"}));
}

TEST(Collection, F077_order_is_that_of_adding_and_repeats_stay) {
  Fresh f;
  const Output a = Constant(1, DType::kInvalid, "a"), b = Constant(1, DType::kInvalid, "b");
  for (const Output& each : {a, b, a}) f.graph.AddToCollection("order", each);
  EXPECT_EQ(NamesIn(f.graph, "order"), (Names{"a:0", "b:0", "a:0"}));
}

TEST(Collection, F078_a_list_is_one_entry) {
  Fresh f;
  const Output a = Constant(1, DType::kInvalid, "a"), b = Constant(1, DType::kInvalid, "b");
  f.graph.AddToCollection("haha", std::vector<CollectionEntry>{a, b});
  const std::vector<CollectionEntry> got = f.graph.GetCollection("haha");
  ASSERT_EQ(got.size(), 1u);
  ASSERT_NE(got[0].list, nullptr);
  EXPECT_EQ((*got[0].list)[1].output, b);
}

TEST(Collection, F079_several_keys_at_once_and_clearing) {
  Fresh f;
  const Output a = Constant(1, DType::kInvalid, "a");
  Graph::Default().AddToCollections({"x", "y", "x"}, a);
  EXPECT_EQ(NamesIn(f.graph, "x"), Names{"a:0"});
  EXPECT_EQ(NamesIn(f.graph, "y"), Names{"a:0"});
  f.graph.ClearCollection("x");
  EXPECT_TRUE(f.graph.GetCollection("x").empty());
  EXPECT_EQ(f.graph.CollectionKeys(), Names{"y"});
}

TEST(Collection, F080_scopes_filter_by_the_start_of_names) {
  Fresh f;
  {
    const NameScope train("train");
    summary::Scalar("loss", Constant(1.0f));
  }
  {
    const NameScope test("test");
    summary::Scalar("loss", Constant(1.0f));
  }
  EXPECT_EQ(NamesIn(f.graph, keys::kSummaries, "train/"), Names{"train/loss:0"});
  EXPECT_TRUE(NamesIn(f.graph, keys::kSummaries, "rain/").empty());
  EXPECT_EQ(NamesIn(f.graph, keys::kSummaries, "t.*s").size(), 2u);
  EXPECT_EQ(NamesIn(f.graph, keys::kSummaries, "(test|none)/"), Names{"test/loss:0"});
  f.graph.AddToCollection(keys::kSummaries, "no name");
  EXPECT_EQ(f.graph.GetCollection(keys::kSummaries).size(), 3u);
  EXPECT_EQ(f.graph.GetCollection(keys::kSummaries, "").size(), 2u);
  EXPECT_TRUE(f.graph.GetCollection(keys::kSummaries, "(").empty());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "scope '(' is no regular expression"));
}

struct Model {
  int layers = 0;
};

TEST(Collection, F081_any_object) {
  Fresh f;
  f.graph.AddToCollection("train_model", CollectionEntry::Object(Model{3}));
  const std::vector<CollectionEntry> got = f.graph.GetCollection("train_model");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(std::any_cast<Model>(got[0].object).layers, 3);
  EXPECT_EQ(got[0].name(), "");
}

TEST(Collection, F023_meta_graphs_carry_all_kinds) {
  TemporaryFolder dir;
  {
    Fresh f;
    const VariableScope s("s", {.partitioner = FixedSizePartitioner(2)});
    GetVariable("w", Shape::Of({4, 2}));
    const Variable v(Literal({1.0f, 2.0f}), {.name = "v"});
    CreateGlobalStep();
    f.graph.AddToCollection("texts", "abc");
    f.graph.AddToCollection("ints", 3);
    f.graph.AddToCollection("floats", 1.5);
    f.graph.AddToCollection("my_variables", v);
    f.graph.AddToCollection("nodes", v.op());
    f.graph.AddToCollection("nodes", v.value());
    f.graph.AddToCollection("mixed", "abc");
    f.graph.AddToCollection("mixed", 3);
    f.graph.AddToCollection("object", CollectionEntry::Object(3));
    Saver saver({v});
    Session session(f.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, dir / "model.ckpt")));
  }
  Fresh f;
  Result<std::optional<Saver>> saver =
      ImportMetaGraphWithSaver(dir / "model.ckpt.meta", f.graph, {.import_scope = "imp"});
  ASSERT_TRUE(Succeeds(saver));
  ASSERT_TRUE(saver->has_value());
  EXPECT_EQ(f.graph.GetCollection("texts")[0].text, "abc");
  EXPECT_EQ(std::get<int64_t>(f.graph.GetCollection("ints")[0].number), 3);
  EXPECT_EQ(std::get<double>(f.graph.GetCollection("floats")[0].number), 1.5);
  EXPECT_EQ(NamesIn(f.graph, "nodes"), (Names{"imp/s/v", "imp/s/v/read:0"}));
  EXPECT_EQ(NamesIn(f.graph, "my_variables"), Names{"imp/s/v:0"});
  EXPECT_TRUE(f.graph.GetCollection("mixed").empty());
  EXPECT_TRUE(f.graph.GetCollection("object").empty());
  const std::vector<Variable> all = GlobalVariables();
  ASSERT_GE(all.size(), 3u);
  EXPECT_EQ(all[0].name(), "imp/s/w/part_0:0");
  ASSERT_TRUE(all[1].slice());
  EXPECT_EQ(all[1].slice()->spec(), "4 2 2,2:0,2");
  EXPECT_EQ(all[1].slice()->full_name, "imp/s/w");
  EXPECT_EQ(f.graph.GetCollection("variables")[0].variable, f.graph.GetCollection("trainable_variables")[0].variable);
  EXPECT_EQ(GetGlobalStep().op().type(), "VariableV2");
  EXPECT_EQ(GetVariable("v", Shape::Of({2})).name(), "v:0");  // imported ones are not GetVariable's
  Session session(f.graph);
  ASSERT_TRUE(Succeeds((*saver)->Restore(session, dir / "model.ckpt")));
  EXPECT_EQ(Values(session, "imp/s/v/read:0"), (std::vector<double>{1, 2}));
  EXPECT_TRUE(Succeeds((*saver)->Save(session, dir / "again.ckpt")));
}

TEST(Collection, imports_can_forget_devices) {
  std::string bytes;
  {
    Fresh f;
    const DeviceScope gpu("/gpu:3");
    Constant(1.0f, DType::kInvalid, "c");
    const Result<std::string> exported = ExportMetaGraph(f.graph);
    ASSERT_TRUE(Succeeds(exported));
    bytes = *exported;
  }
  Fresh f;
  const NameScope o("o");
  ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes)));
  ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes, f.graph, {.import_scope = "p", .clear_devices = true})));
  EXPECT_EQ(f.graph.OperationByName("o/c")->device(), "/device:GPU:3");
  EXPECT_EQ(f.graph.OperationByName("o/p/c")->device(), "");
}

TEST(Graph, WriteGraphAndImportAgree) {
  Fresh f;
  const Output y = Square(Constant({1.0f, 2.0f}, DType::kInvalid, "c"), "y");
  const TemporaryFolder folder;
  const Result<std::string> text = WriteGraph(f.graph, folder / "new", "g.pbtxt");
  ASSERT_TRUE(Succeeds(text));
  EXPECT_EQ(*text, folder / "new/g.pbtxt");
  EXPECT_NE(ReadText(*text).find("name: \"y\""), std::string::npos);
  const Result<std::string> binary = WriteGraph(f.graph, folder.path, "g.pb", graph::GraphFormat::kBinary);
  ASSERT_TRUE(Succeeds(binary));
  EXPECT_EQ(ReadText(*binary), *f.graph.Export());
  for (const std::string& path : {*text, *binary}) {
    Fresh read;
    ASSERT_TRUE(Succeeds(read.graph.Import(ReadText(path), "")));
    Session session;
    EXPECT_EQ(Values(session, "y:0"), (std::vector<double>{1, 4}));
  }
  EXPECT_FALSE(WriteGraph(f.graph, *text, "below a file").ok());
  MatMul(y, y);
  EXPECT_TRUE(Fails(f.graph.Export(), Code::kInvalidArgument, "")) << "the first error of building";
}

}  // namespace
}  // namespace weir::test
