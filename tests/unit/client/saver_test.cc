// Checkpoints through Saver, and models as files.
#include "core/io/bundle.h"
#include "core/io/inspect.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// v1 = [1 1 1] and v2 = five -1, as in the guide behind the feature rows.
struct TwoVariables {
  Variable v1 = GetVariable("v1", Shape::Of({3}), DType::kFloat, ZerosInitializer());
  Variable v2 = GetVariable("v2", Shape::Of({5}), DType::kFloat, ZerosInitializer());
  Output inc = v1.Assign(v1 + 1), dec = v2.Assign(v2 - 1);

  /// Trains "one step" and saves to `path`.
  void SaveTo(const std::string& path, Saver& saver) const {
    Session session(*v1.graph());
    Initialize(session);
    ASSERT_TRUE(Succeeds(session.Run(Fetch::List{inc.op(), dec.op()})));
    const Result<std::string> saved = saver.Save(session, path);
    ASSERT_TRUE(Succeeds(saved));
    EXPECT_EQ(*saved, path);
  }
};

std::vector<std::string> Keys(const std::string& prefix) {
  std::vector<std::string> keys;
  const Result<io::BundleReader> reader = io::BundleReader::Open(prefix);
  EXPECT_TRUE(Succeeds(reader));
  if (!reader.ok()) return keys;
  for (const io::BundleEntry& entry : reader->entries()) keys.push_back(entry.name);
  return keys;
}

TEST(Saver, F228_saves_all_variables) {
  Fresh f;
  const TwoVariables model;
  Saver saver;
  for (const char* name : {"save/filename", "save/Const", "save/SaveV2", "save/control_dependency", "save/RestoreV2",
                           "save/Assign", "save/Assign_1", "save/restore_all"}) {
    EXPECT_TRUE(Succeeds(f.graph.OperationByName(name)));
  }
  const TemporaryFolder dir;
  model.SaveTo(dir / "model.ckpt", saver);
  for (const char* file : {"model.ckpt.index", "model.ckpt.data-00000-of-00001", "model.ckpt.meta", "checkpoint"}) {
    EXPECT_TRUE(dir.Has(file)) << file;
  }
}

TEST(Saver, F228_nothing_to_save_and_nothing_initialised) {
  {
    Fresh f;
    const Saver saver;
    EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "No variables to save"));
  }
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver saver;
  Session session(f.graph);
  const TemporaryFolder dir;
  EXPECT_TRUE(
      Fails(saver.Save(session, dir / "m"), Code::kFailedPrecondition, "Attempting to use uninitialized value v"));
  EXPECT_FALSE(dir.Has("m.index"));
  EXPECT_FALSE(dir.Has("checkpoint"));
}

TEST(Saver, F228_what_went_wrong_before_is_told) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  const Saver twice(std::vector<Variable>{v, v});
  Saver plain, sharded(SaverOptions{.sharded = true});
  Session session(f.graph);
  for (Saver* saver : {&plain, &sharded}) {
    EXPECT_TRUE(Fails(saver->Save(session, "m"), Code::kInvalidArgument, "At least two variables have the same name"));
    EXPECT_FALSE(saver->SaveInBackground(session, "m").ok());
    EXPECT_FALSE(saver->Restore(session, "m").ok());
    EXPECT_FALSE(saver->RestoreLatest(session, ".").ok());
  }
}

TEST(Saver, F229_restore_needs_no_initialisation) {
  Fresh f;
  const TwoVariables model;
  Saver saver;
  const TemporaryFolder dir;
  model.SaveTo(dir / "model.ckpt", saver);
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(saver.Restore(session, dir / "model.ckpt")));
  EXPECT_EQ(Values(session, model.v1), std::vector<double>(3, 1));
  EXPECT_EQ(Values(session, model.v2), std::vector<double>(5, -1));
}

TEST(Saver, F230_F235_some_variables_only) {
  Fresh f;
  const TwoVariables model;
  Saver all, by_map({{"v2", model.v2}}), by_list(std::vector<Variable>{model.v2});
  const TemporaryFolder dir;
  model.SaveTo(dir / "model.ckpt", all);
  for (Saver* some : {&by_map, &by_list}) {
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(some->Restore(session, dir / "model.ckpt")));
    EXPECT_FALSE(session.Run(model.v1).ok());
    EXPECT_EQ(Values(session, model.v2), std::vector<double>(5, -1));
    Session initialised(f.graph);  // F235: restoring overwrites only the saver's variables
    Initialize(initialised);
    ASSERT_TRUE(Succeeds(some->Restore(initialised, dir / "model.ckpt")));
    EXPECT_EQ(Values(initialised, model.v1), std::vector<double>(3, 0));
    EXPECT_EQ(Values(initialised, model.v2), std::vector<double>(5, -1));
  }
}

TEST(Saver, F235_restore_after_initialisation_keeps_the_others) {
  Fresh f;
  const TwoVariables model;
  Saver all, some({{"v2", model.v2}});
  const TemporaryFolder dir;
  model.SaveTo(dir / "m", all);
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(some.Restore(session, dir / "m")));
  EXPECT_EQ(Values(session, model.v1), std::vector<double>(3, 0));
  EXPECT_EQ(Values(session, model.v2), std::vector<double>(5, -1));
}

TEST(Saver, F231_F233_keys_of_a_map_are_the_names_in_the_file) {
  Fresh f;
  const Variable v1(1.0f, {.name = "v1"}), v2(2.0f, {.name = "v2"});
  Saver saver({{"variable_1", v1}, {"variable_2", v2}}), swapped({{"variable_1", v2}, {"variable_2", v1}});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  EXPECT_EQ(Keys(dir / "m"), (std::vector<std::string>{"variable_1", "variable_2"}));
  ASSERT_TRUE(Succeeds(swapped.Restore(session, dir / "m")));
  EXPECT_EQ(Value(session, v1), 2);
  EXPECT_EQ(Value(session, v2), 1);
}

TEST(Saver, F233_swapped_names_swap_the_values) {
  Fresh f;
  const Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b"});
  Saver saver, swapped({{"a", b}, {"b", a}});
  const TemporaryFolder dir;
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  Session fresh(f.graph);
  ASSERT_TRUE(Succeeds(swapped.Restore(fresh, dir / "m")));
  EXPECT_EQ(Value(fresh, a), 2);
  EXPECT_EQ(Value(fresh, b), 1);
}

TEST(Saver, F232_a_list_uses_the_names_of_the_operations) {
  Fresh f;
  const Variable v1(1.0f, {.name = "v1"}), v2(2.0f, {.name = "v2"});
  Saver saver(std::vector<Variable>{v1, v2});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  EXPECT_EQ(Keys(dir / "m"), (std::vector<std::string>{"v1", "v2"}));
  const Saver twice(std::vector<Variable>{v1, v1});
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "At least two variables have the same name: v1"));
}

TEST(Saver, F234_several_savers) {
  Fresh f;
  const TwoVariables model;
  Saver one, two({{"other", model.v1}});
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("save_1/restore_all")));
  const TemporaryFolder dir;
  model.SaveTo(dir / "one", one);
  model.SaveTo(dir / "two", two);
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(two.Restore(session, dir / "two")));
  EXPECT_EQ(Values(session, model.v1), std::vector<double>(3, 1));
  EXPECT_TRUE(Succeeds(one.Restore(session, dir / "one")));
}

TEST(Saver, F236_what_does_not_fit) {
  const TemporaryFolder dir;
  {
    Fresh f;
    const Variable v1({1.0f, 2.0f, 3.0f}, {.name = "v1"}), r({1.0f, 2.0f, 3.0f}, {.name = "r", .use_resource = true});
    Saver saver;
    Session session(f.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  }
  const auto restore = [&](const Variable& v, const std::string& file) {
    Saver saver(std::vector<Variable>{v});
    Session session(*v.graph());
    return saver.Restore(session, dir / file);
  };
  Fresh f;
  const Status missing = restore(Variable(1.0f, {.name = "v11"}), "m");
  EXPECT_TRUE(Fails(missing, Code::kNotFound, "Key v11 not found in checkpoint"));
  EXPECT_TRUE(Fails(missing, Code::kNotFound,
                    "Restoring from checkpoint failed. This is most likely due to a Variable name or "
                    "other graph key that is missing from the checkpoint."));
  EXPECT_TRUE(Fails(missing, Code::kNotFound, "v1"));  // near names
  const Status shape = restore(Variable({1.f, 2.f, 3.f, 4.f}, {.name = "v1"}), "m");
  EXPECT_TRUE(Fails(shape, Code::kInvalidArgument,
                    "Assign requires shapes of both tensors to match. lhs shape= [4] rhs shape= [3]"));
  EXPECT_TRUE(Fails(shape, Code::kInvalidArgument,
                    "due to a mismatch between the current graph and the graph from the checkpoint."));
  EXPECT_TRUE(Fails(restore(Variable({1.f, 2.f}, {.name = "r", .use_resource = true}), "m"), Code::kInvalidArgument,
                    "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]"));
  Graph other;
  const AsDefault in(other);
  const Status type = restore(Variable({1, 2, 3}, {.name = "v1"}), "m");
  EXPECT_TRUE(Fails(type, Code::kInvalidArgument,
                    "tensor_name = v1; expected dtype int32 does not equal original dtype float"));
  EXPECT_TRUE(Fails(type, Code::kInvalidArgument,
                    "due to a mismatch between the current graph and the graph from the checkpoint."));
  EXPECT_TRUE(Fails(restore(Variable(1.0f, {.name = "y"}), "nothing"), Code::kNotFound,
                    "The passed save_path is not a valid checkpoint: " + (dir / "nothing")));
  EXPECT_TRUE(
      Fails(restore(Variable(1.0f, {.name = "x"}), "nothing"), Code::kNotFound,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + (dir / "nothing")));
}

TEST(Saver, F237_inspect_checkpoint) {
  Fresh f;
  const TwoVariables model;
  Saver saver;
  const TemporaryFolder dir;
  model.SaveTo(dir / "m", saver);
  const Result<std::string> all = InspectCheckpoint(dir / "m", "", true);
  ASSERT_TRUE(Succeeds(all));
  EXPECT_NE(all->find("tensor_name:  v1\n[1. 1. 1.]\n"), std::string::npos) << *all;
  EXPECT_NE(all->find("tensor_name:  v2\n[-1. -1. -1. -1. -1.]\n"), std::string::npos) << *all;
  const Result<std::string> one = InspectCheckpoint(dir / "m", "v1");
  ASSERT_TRUE(Succeeds(one));
  EXPECT_NE(one->find("[1. 1. 1.]"), std::string::npos);
  EXPECT_EQ(one->find("v2"), std::string::npos);
}

TEST(Saver, F378_a_checkpoint_is_read_in_code) {
  Fresh f;
  const Variable v({{1.0f, 2.0f}, {3.0f, 4.0f}}, {.name = "v"});
  const Variable h(Tensor::Vector<int64_t>({5, 6}), {.name = "h"});
  VariableArgs args;
  args.shape = Shape{4};
  args.initializer = OnesInitializer();
  args.partitioner = FixedSizePartitioner(2);
  GetVariable("w", args);
  const TemporaryFolder dir;
  Session session(f.graph);
  Initialize(session);
  const Result<std::string> path = Saver().Save(session, dir / "m", {.global_step = 3});
  ASSERT_TRUE(Succeeds(path));
  using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
  const Shapes wanted = {{"h", {2}}, {"v", {2, 2}}, {"w", {4}}};
  for (const std::string& at : {dir.path, *path}) {
    const Result<Shapes> listed = ListVariables(at);
    ASSERT_TRUE(Succeeds(listed));
    EXPECT_EQ(*listed, wanted);
    const Result<CheckpointReader> reader = CheckpointReader::Open(at);
    ASSERT_TRUE(Succeeds(reader));
    EXPECT_EQ(reader->VariableToShapeMap(),
              (std::map<std::string, std::vector<int64_t>>(wanted.begin(), wanted.end())));
    EXPECT_EQ(reader->VariableToDtypeMap(),
              (std::map<std::string, DType>{{"h", DType::kInt64}, {"v", DType::kFloat}, {"w", DType::kFloat}}));
    EXPECT_TRUE(reader->HasTensor("v"));
    EXPECT_FALSE(reader->HasTensor("x"));
    EXPECT_EQ(reader->DebugString(), "h (DT_INT64) [2]\nv (DT_FLOAT) [2,2]\nw (DT_FLOAT) [4]\n");
    const Result<Tensor> whole = reader->GetTensor("w"), numbers = LoadVariable(at, "h");
    ASSERT_TRUE(Succeeds(whole));
    ASSERT_TRUE(Succeeds(numbers));
    EXPECT_EQ(whole->SummarizeValues(9), "[1 1 1 1]");
    EXPECT_EQ(numbers->SummarizeValues(9), "[5 6]");
    EXPECT_TRUE(Fails(reader->GetTensor("x"), Code::kNotFound, "Key x not found in checkpoint"));
    EXPECT_TRUE(Fails(LoadVariable(at, "x"), Code::kNotFound, "Key x not found in checkpoint"));
  }
  const TemporaryFolder empty;
  EXPECT_TRUE(Fails(ListVariables(empty.path), Code::kInvalidArgument,
                    "Couldn't find 'checkpoint' file or checkpoints in given directory " + empty.path));
  EXPECT_TRUE(
      Fails(CheckpointReader::Open(empty / "a"), Code::kNotFound,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + (empty / "a")));
}

TEST(Saver, F238_one_missing_folder_is_made) {
  Fresh f;
  const TwoVariables model;
  Saver saver;
  const TemporaryFolder dir;
  model.SaveTo(dir / "test-ckpt/model-2", saver);
  EXPECT_TRUE(dir.Has("test-ckpt/model-2.index"));
  Session session(f.graph);
  Initialize(session);
  const std::string far = dir / "a/b/model";
  EXPECT_TRUE(Fails(saver.Save(session, far), Code::kInvalidArgument,
                    "Parent directory of " + far + " doesn't exist, can't save."));
}

TEST(Saver, F239_F375_step_in_the_name_and_the_newest_are_kept) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"}), step(Tensor::Scalar<int64_t>(3), {.name = "step", .trainable = false});
  Saver saver(SaverOptions{.max_to_keep = 2});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  for (const int64_t at : {1, 2}) {
    const Result<std::string> saved = saver.Save(session, dir / "m", {.global_step = at});
    ASSERT_TRUE(Succeeds(saved));
    EXPECT_EQ(*saved, dir / "m-" + std::to_string(at));
  }
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m", {.global_step = step})));
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m", {.global_step = 3})));  // listed once
  for (const char* suffix : {".index", ".data-00000-of-00001", ".meta"}) {
    EXPECT_FALSE(dir.Has(std::string("m-1") + suffix));
    EXPECT_TRUE(dir.Has(std::string("m-2") + suffix));
    EXPECT_TRUE(dir.Has(std::string("m-3") + suffix));
  }
  EXPECT_EQ(ReadText(dir / "checkpoint"), "model_checkpoint_path: \"" + (dir / "m-3") +
                                              "\"\nall_model_checkpoint_paths: \"" + (dir / "m-2") +
                                              "\"\nall_model_checkpoint_paths: \"" + (dir / "m-3") + "\"\n");
  EXPECT_EQ(saver.last_checkpoints(), (std::vector<std::string>{dir / "m-2", dir / "m-3"}));
  EXPECT_EQ(LatestCheckpoint(dir.path), dir / "m-3");
}

TEST(Saver, F375_keeping_all_and_sparing_some) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver all(SaverOptions{.max_to_keep = 0}),
      sparing(SaverOptions{.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1e-12});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  for (const int step : {1, 2, 3}) {
    ASSERT_TRUE(Succeeds(all.Save(session, dir / "all", {.global_step = step})));
    ASSERT_TRUE(Succeeds(sparing.Save(session, dir / "some", {.global_step = step, .latest_filename = "ck2"})));
  }
  for (const char* file :
       {"all-1.index", "all-2.index", "all-3.index", "some-1.index", "some-2.index", "some-3.index"}) {
    EXPECT_TRUE(dir.Has(file)) << file;
  }
  EXPECT_TRUE(all.last_checkpoints().empty());
  EXPECT_EQ(ReadText(dir / "checkpoint"), "model_checkpoint_path: \"" + (dir / "all-3") +
                                              "\"\nall_model_checkpoint_paths: \"" + (dir / "all-3") + "\"\n");
  EXPECT_EQ(sparing.last_checkpoints(), std::vector<std::string>{dir / "some-3"});
  EXPECT_EQ(LatestCheckpoint(dir.path, "ck2"), dir / "some-3");
}

TEST(Saver, F375_latest_checkpoint_and_what_may_be_left_out) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver saver;
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  EXPECT_EQ(LatestCheckpoint(dir.path), "");
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "bare", {.write_meta_graph = false, .write_state = false})));
  EXPECT_TRUE(dir.Has("bare.index"));
  EXPECT_FALSE(dir.Has("bare.meta"));
  EXPECT_FALSE(dir.Has("checkpoint"));
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  EXPECT_EQ(LatestCheckpoint(dir.path), dir / "m");
  std::filesystem::remove(dir / "m.index");
  EXPECT_EQ(LatestCheckpoint(dir.path), "");
  std::ofstream(dir / "checkpoint") << "garbage";
  EXPECT_EQ(LatestCheckpoint(dir.path), "");
  EXPECT_TRUE(Fails(saver.Save(session, dir / "m", {.latest_filename = "x/y"}), Code::kInvalidArgument,
                    "'latest_filename' must not contain path components"));
  EXPECT_TRUE(Fails(saver.Save(session, dir / "a", {.latest_filename = "a"}), Code::kInvalidArgument,
                    "'latest_filename' collides with 'save_path': 'a' and '" + (dir / "a") + "'"));
}

TEST(Saver, F375_relative_paths_stay_relative) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver saver;
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path);
  const Result<std::string> saved = saver.Save(session, "./r", {.global_step = 4});
  std::filesystem::current_path(before);
  ASSERT_TRUE(Succeeds(saved));
  EXPECT_EQ(ReadText(dir / "checkpoint"), "model_checkpoint_path: \"r-4\"\nall_model_checkpoint_paths: \"r-4\"\n");
}

TEST(Saver, F240_keys_of_an_adam_model) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"}), step(0, {.name = "global_step", .trainable = false});
  const Operation train = AdamOptimizer(0.1).Minimize(Square(w), {.global_step = step});
  Saver saver;
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  const TemporaryFolder dir;
  ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  EXPECT_EQ(Keys(dir / "m"),
            (std::vector<std::string>{"beta1_power", "beta2_power", "global_step", "w", "w/Adam", "w/Adam_1"}));
}

TEST(Saver, F328_restore_what_matches_and_report_the_rest) {
  const TemporaryFolder dir;
  {
    Fresh f;
    const Variable same(1.0f, {.name = "same"}), shape({1.0f, 2.0f}, {.name = "shape"}),
        extra(3.0f, {.name = "layer/kernel"});
    Saver saver;
    Session session(f.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  }
  Fresh f;
  const Variable same(9.0f, {.name = "same"}), shape({9.0f, 9.0f, 9.0f}, {.name = "shape"});
  const Variable missing(9.0f, {.name = "layer/kernl"});
  Saver saver;
  Session session(f.graph);
  Initialize(session);
  const Result<io::RestoreReport> report = saver.RestorePartial(session, dir / "m");
  ASSERT_TRUE(Succeeds(report));
  EXPECT_EQ(report->matched, std::vector<std::string>{"same"});
  EXPECT_EQ(report->missing, std::vector<std::string>{"layer/kernl"});
  EXPECT_EQ(report->extra, std::vector<std::string>{"layer/kernel"});
  ASSERT_EQ(report->mismatched.size(), 1u);
  EXPECT_EQ(report->mismatched[0].name, "shape");
  EXPECT_NE(report->ToString().find("layer/kernel"), std::string::npos);
  EXPECT_EQ(Value(session, same), 1);
  EXPECT_EQ(Value(session, missing), 9);
  EXPECT_EQ(Values(session, shape), std::vector<double>(3, 9));
}

TEST(Saver, F241_sharded_saves_by_device) {
  const TemporaryFolder dir;
  {
    Fresh f;
    const Variable a(1.0f, {.name = "a"});
    const DeviceScope cpu("/cpu:0");
    const Variable b(2.0f, {.name = "b", .use_resource = true}), c(3.0f, {.name = "c"});
    const Operation bump = Group({a.AssignAdd(10.0f).op(), b.AssignAdd(10.0f).op(), c.AssignAdd(10.0f).op()});
    Saver sharded(SaverOptions{.sharded = true}), plain(SaverOptions{.name = "plain"});
    for (const char* name :
         {"save/Const", "save/Const_1", "save/StringJoin", "save/num_shards", "save/ShardedFilename/shard",
          "save/ShardedFilename_1", "save/SaveV2_1/tensor_names", "save/control_dependency_1",
          "save/MergeV2Checkpoints/checkpoint_prefixes", "save/MergeV2Checkpoints", "save/Identity", "save/RestoreV2_1",
          "save/restore_shard", "save/restore_shard_1", "save/restore_all"}) {
      EXPECT_TRUE(Succeeds(f.graph.OperationByName(name)));
    }
    EXPECT_EQ(sharded.nodes().save_tensor, "save/Identity:0");
    EXPECT_TRUE(sharded.nodes().sharded);
    const Result<Operation> second = f.graph.OperationByName("save/ShardedFilename_1");
    EXPECT_EQ(second->device(), "/device:CPU:0");
    Session session(f.graph);
    Initialize(session);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Succeeds(sharded.Save(session, dir / "m", {.verify = true})));
    ASSERT_TRUE(Succeeds(plain.Save(session, dir / "plain")));
    ASSERT_TRUE(Succeeds(sharded.SaveInBackground(session, dir / "behind")));
    ASSERT_TRUE(Succeeds(sharded.Wait()));
    for (const char* prefix : {"m", "plain", "behind"}) {
      EXPECT_EQ(Keys(dir / prefix), (std::vector<std::string>{"a", "b", "c"}));
      for (Saver* saver : {&sharded, &plain}) {
        ASSERT_TRUE(Succeeds(session.Run(bump)));
        ASSERT_TRUE(Succeeds(saver->Restore(session, dir / prefix)));
        EXPECT_EQ(Value(session, a) + Value(session, b) + Value(session, c), 6) << prefix;
      }
    }
    const Result<io::RestoreReport> report = sharded.RestorePartial(session, dir / "m");
    ASSERT_TRUE(Succeeds(report));
    EXPECT_EQ(report->matched.size(), 3u);
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names,
            (std::vector<std::string>{"behind.data-00000-of-00002", "behind.data-00001-of-00002", "behind.index",
                                      "behind.meta", "checkpoint", "m.data-00000-of-00002", "m.data-00001-of-00002",
                                      "m.index", "m.meta", "plain.data-00000-of-00001", "plain.index", "plain.meta"}));
  Fresh f;
  Result<std::optional<Saver>> imported = ImportMetaGraphWithSaver(dir / "m.meta");
  ASSERT_TRUE(Succeeds(imported));
  ASSERT_TRUE(imported->has_value());
  Session session(f.graph);
  ASSERT_TRUE(Succeeds((*imported)->Restore(session, dir / "m")));
  ASSERT_TRUE(Succeeds((*imported)->Save(session, dir / "again")));
  EXPECT_TRUE(dir.Has("again.data-00001-of-00002"));
}

TEST(MetaGraph, the_file_beside_a_checkpoint_rebuilds_the_model) {
  const TemporaryFolder dir;
  {
    Fresh f;
    const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 2}), "x");
    const Output y = Dense(x, 1, {}, "y", {.kernel_initializer = OnesInitializer()});
    CollectionEntry entry;
    entry.output = y;
    f.graph.AddToCollection("answers", entry);
    Saver saver;
    Session session(f.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  }
  Fresh f;
  const Result<graph::MetaInfo> info = ImportMetaGraphFile(dir / "m.meta");
  ASSERT_TRUE(Succeeds(info));
  ASSERT_TRUE(info->saver.has_value());
  EXPECT_EQ(info->saver->restore_op, "save/restore_all");
  const std::vector<Variable> variables = GlobalVariables();
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].name(), "y/kernel:0");
  EXPECT_TRUE(variables[0].trainable());
  EXPECT_EQ(TrainableVariables().size(), 2u);
  ASSERT_EQ(f.graph.GetCollection("answers").size(), 1u);
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(info->saver->restore_op, {{info->saver->filename_tensor, dir / "m"}})));
  EXPECT_EQ(Value(session, f.graph.GetCollection("answers")[0].output, {{"x:0", {{2.0f, 3.0f}}}}), 5);
}

TEST(Saver, F228_restoring_is_done_by_the_host) {
  Fresh f;
  const Variable near(1.0f, {.name = "a"});
  const DeviceScope away("/job:ps/task:1/cpu:1");
  const Variable far(1.0f, {.name = "b", .use_resource = true});
  const Saver saver;
  const auto device = [&](const char* name) {
    const Result<Operation> operation = f.graph.OperationByName(name);
    return operation.ok() ? operation->device() : operation.status().ToString();
  };
  EXPECT_EQ(device("save/RestoreV2"), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(device("save/RestoreV2/tensor_names"), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(device("save/SaveV2"), "/job:ps/task:1/device:CPU:1");
  EXPECT_EQ(device("save/AssignVariableOp"), "/job:ps/task:1/device:CPU:1");
  const Result<Operation> all = f.graph.OperationByName("save/restore_all");
  ASSERT_TRUE(Succeeds(all));
  ASSERT_EQ(all->control_inputs().size(), 2u) << "one for each device";
  EXPECT_EQ(all->control_inputs()[0].name(), "save/restore_all/NoOp");
}

TEST(MetaGraph, a_saver_is_made_for_variables_of_the_scope) {
  const TemporaryFolder dir;
  {
    Fresh f;
    Constant(1.0f, DType::kInvalid, "c");
    const Result<std::string> bytes = ExportMetaGraph(f.graph);
    ASSERT_TRUE(Succeeds(bytes));
    std::ofstream(dir / "m.meta", std::ios::binary) << *bytes;
  }
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  const Result<std::optional<Saver>> below = ImportMetaGraphWithSaver(dir / "m.meta", f.graph, {.import_scope = "in"});
  ASSERT_TRUE(Succeeds(below));
  EXPECT_FALSE(below->has_value());
  const Result<std::optional<Saver>> beside = ImportMetaGraphWithSaver(dir / "m.meta", f.graph);
  ASSERT_TRUE(Succeeds(beside));
  EXPECT_TRUE(beside->has_value());
}

}  // namespace
}  // namespace weir::test
