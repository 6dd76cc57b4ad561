// Checkpoints under odd paths, of other shapes, and as initial values.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// Saves `w` under the key "v", with the value 1 2 3 4 in rows of two.
std::string SavedSquare(const TemporaryFolder& dir) {
  Fresh f;
  const Variable w(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), {.name = "w"});
  Saver saver({{"v", w}});
  Session session(f.graph);
  Initialize(session);
  const Result<std::string> path = saver.Save(session, dir / "square");
  EXPECT_TRUE(Succeeds(path));
  return path.ok() ? *path : "";
}

TEST(SaverPaths, F376_AStepBehindASlashNamesTheFiles) {
  const TemporaryFolder dir;
  Fresh f;
  const Variable v(5.0f, {.name = "v"});
  Saver saver;
  Session session(f.graph);
  Initialize(session);
  ::testing::internal::CaptureStderr();
  const Result<std::string> path = saver.Save(session, dir / "", {.global_step = 7});
  const Result<std::string> next = saver.Save(session, dir / "", {.global_step = 8});
  const std::string warned = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(Succeeds(path));
  ASSERT_TRUE(Succeeds(next));
  EXPECT_EQ(*path, dir / "-7");
  for (const char* file : {"-7.index", "-7.meta", "-7.data-00000-of-00001", "-8.index"}) {
    EXPECT_TRUE(dir.Has(file)) << file;
  }
  EXPECT_NE(warned.find("ends in a slash: its files have the names '-7.index'"), std::string::npos) << warned;
  EXPECT_EQ(warned.find("ends in a slash"), warned.rfind("ends in a slash")) << "said once";
  EXPECT_NE(ReadText(dir / "checkpoint").find("model_checkpoint_path: \"" + dir.path + "/-8\""), std::string::npos)
      << ReadText(dir / "checkpoint");
  EXPECT_EQ(LatestCheckpoint(dir.path), *next);
  Session restored(f.graph);
  ASSERT_TRUE(Succeeds(saver.Restore(restored, *path)));
  EXPECT_EQ(Value(restored, v), 5);
  EXPECT_EQ(*saver.RestoreLatest(restored, dir.path), *next);
}

TEST(SaverPaths, F376_WithoutAStepTheFilesAreHidden) {
  const TemporaryFolder dir;
  Fresh f;
  const Variable v(5.0f, {.name = "v"});
  Saver saver;
  Session session(f.graph);
  Initialize(session);
  ::testing::internal::CaptureStderr();
  const Result<std::string> path = saver.Save(session, dir / "");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'.index'"), std::string::npos);
  ASSERT_TRUE(Succeeds(path));
  EXPECT_EQ(*path, dir.path + "/");
  for (const char* file : {".index", ".meta", ".data-00000-of-00001"}) EXPECT_TRUE(dir.Has(file)) << file;
  EXPECT_EQ(LatestCheckpoint(dir.path), *path);
  Session restored(f.graph);
  ASSERT_TRUE(Succeeds(saver.Restore(restored, *path)));
  EXPECT_EQ(Value(restored, v), 5);
  EXPECT_TRUE(Fails(saver.Save(session, ""), Code::kInvalidArgument, "is empty"));
}

TEST(SaverPaths, F376_OldOnesAreDeletedAndSavedInTheBackground) {
  const TemporaryFolder dir;
  Fresh f;
  const Variable v(5.0f, {.name = "v"});
  Saver saver({.max_to_keep = 2});
  Session session(f.graph);
  Initialize(session);
  ::testing::internal::CaptureStderr();
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(Succeeds(saver.SaveInBackground(session, dir / "", {.global_step = step})));
  }
  ASSERT_TRUE(Succeeds(saver.Wait()));
  (void)::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(dir.Has("-1.index"));
  EXPECT_TRUE(dir.Has("-2.index"));
  EXPECT_TRUE(dir.Has("-3.data-00000-of-00001"));
  EXPECT_EQ(saver.last_checkpoints(), (std::vector<std::string>{dir / "-2", dir / "-3"}));
}

TEST(SaverReshape, F377_ElementsOfAnotherShapeAreRestored) {
  const TemporaryFolder dir;
  const std::string path = SavedSquare(dir);
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v(Tensor::Of<float>({4}, {0, 0, 0, 0}), {.name = "v", .use_resource = resource});
    Saver strict, reshaping(SaverOptions{.name = "again", .reshape = true});
    EXPECT_TRUE(Succeeds(f.graph.OperationByName("again/Reshape")));
    EXPECT_FALSE(f.graph.OperationByName("save/Reshape").ok());
    Session session(f.graph);
    EXPECT_TRUE(Fails(strict.Restore(session, path), Code::kInvalidArgument,
                      "Assign requires shapes of both tensors to match. lhs shape= [4] rhs shape= [2,2]"));
    ASSERT_TRUE(Succeeds(reshaping.Restore(session, path)));
    EXPECT_EQ(Values(session, v), (std::vector<double>{1, 2, 3, 4})) << resource;
  }
}

TEST(SaverReshape, F377_AnotherNumberOfElementsIsAnError) {
  const TemporaryFolder dir;
  const std::string path = SavedSquare(dir);
  Fresh f;
  const Variable v(Tensor::Of<float>({5}, {0, 0, 0, 0, 0}), {.name = "v"});
  Saver saver(SaverOptions{.reshape = true});
  Session session(f.graph);
  EXPECT_TRUE(Fails(saver.Restore(session, path), Code::kInvalidArgument,
                    "Input to reshape is a tensor with 4 values, but the requested shape has 5"));
}

TEST(InitFromCheckpoint, F377_InitializersReadTheCheckpoint) {
  const TemporaryFolder dir;
  const std::string path = SavedSquare(dir);
  for (const bool resource : {false, true}) {
    Fresh f;
    const VariableScope kind("", {.use_resource = resource});
    const Variable w = GetVariable("w2", Shape::Of({2, 2}), DType::kFloat, ZerosInitializer());
    const Variable other = GetVariable("other", Shape::Of({}), DType::kFloat, OnesInitializer());
    ASSERT_TRUE(Succeeds(InitFromCheckpoint(path, {{"v", "w2"}})));
    EXPECT_EQ(w.initial_value().name(), "checkpoint_initializer:0");
    EXPECT_EQ(GlobalVariables()[0].initializer().name(), w.initializer().name()) << "of all copies";
    Session session(f.graph);
    Initialize(session);
    EXPECT_EQ(Values(session, w), (std::vector<double>{1, 2, 3, 4})) << resource;
    EXPECT_EQ(Value(session, other), 1);
  }
}

TEST(InitFromCheckpoint, F377_ByVariableByScopeAndFromTheNewestOfAFolder) {
  const TemporaryFolder dir;
  {
    Fresh f;
    const VariableScope old("old");
    const Variable a = GetVariable("a", Shape::Of({2}), DType::kFloat, OnesInitializer());
    const Variable b = GetVariable("b", Shape::Of({2}), DType::kFloat, OnesInitializer());
    Saver saver;
    Session session(f.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, dir / "m")));
  }
  Fresh f;
  Variable a, b;
  {
    const VariableScope now("now");
    a = GetVariable("a", Shape::Of({2}), DType::kFloat, ZerosInitializer());
    b = GetVariable("b", Shape::Of({2}), DType::kFloat, ZerosInitializer());
  }
  const Variable own(Tensor::Of<float>({2}, {7, 7}), {.name = "own"});
  ASSERT_TRUE(Succeeds(InitFromCheckpoint(dir.path, {{"old/", "now/"}, {"old/a", own}})));
  Session session(f.graph);
  Initialize(session);
  for (const Variable& v : {a, b, own}) EXPECT_EQ(Values(session, v), (std::vector<double>{1, 1})) << v.name();
}

TEST(InitFromCheckpoint, F377_AWholeFillsTheSlicesOfAPartitionedVariable) {
  const TemporaryFolder dir;
  const std::string path = SavedSquare(dir);
  Fresh f;
  const VariableScope halves("", {.partitioner = FixedSizePartitioner(2)});
  const Variable w = GetVariable("w", Shape::Of({2, 2}), DType::kFloat, ZerosInitializer());
  ASSERT_TRUE(w.is_partitioned());
  ASSERT_TRUE(Succeeds(InitFromCheckpoint(path, {{"v", w}})));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, w.value()), (std::vector<double>{1, 2, 3, 4}));
}

TEST(InitFromCheckpoint, F377_ErrorsHaveTensorFlowsTextsAndChangeNothing) {
  const TemporaryFolder dir;
  const std::string path = SavedSquare(dir);
  Fresh f;
  const Variable w = GetVariable("w", Shape::Of({2, 2}), DType::kFloat, ZerosInitializer());
  const Variable q = GetVariable("q", Shape::Of({3}), DType::kFloat, ZerosInitializer());
  EXPECT_TRUE(Fails(InitFromCheckpoint(path, {{"v", w}, {"zz", "w"}}), Code::kInvalidArgument,
                    "Tensor zz is not found in " + path + " checkpoint {'v': [2, 2]}"));
  EXPECT_TRUE(Fails(InitFromCheckpoint(path, {{"v", "q"}}), Code::kInvalidArgument,
                    "Shape of variable q:0 ((3,)) doesn't match with shape of tensor v ([2, 2]) from checkpoint "
                    "reader."));
  EXPECT_TRUE(Fails(InitFromCheckpoint(path, {{"v", "other_scope/"}}), Code::kInvalidArgument,
                    "Assignment map with scope only name other_scope should map to scope only v. Should be 'scope/': "
                    "'other_scope/'."));
  EXPECT_TRUE(Fails(InitFromCheckpoint(path, {{"/", "/"}}), Code::kInvalidArgument,
                    "Tensor q (q in /) is not found in " + path + " checkpoint"));
  EXPECT_FALSE(InitFromCheckpoint(dir / "missing", {{"v", "w"}}).ok());
  EXPECT_TRUE(Fails(InitFromCheckpoint(path, {{"v", Variable()}}), Code::kInvalidArgument, "does not exist"));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, w), (std::vector<double>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace weir::test
