// Checkpoints that are damaged, left by killed processes, verified, or written in the background.
#include <sys/stat.h>

#include <sstream>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// A model whose checkpoints m-1, m-2, m-3 of a folder hold 1, 2 and 3.
struct ThreeCheckpoints {
  ThreeCheckpoints() {
    Initialize(session);
    for (const int step : {1, 2, 3}) {
      EXPECT_TRUE(Succeeds(saver.Save(session, dir / "m", {.global_step = step})));
      EXPECT_TRUE(Succeeds(session.Run(bump)));
    }
  }
  /// Calls RestoreLatest; returns the restored value and records its messages.
  double Latest() {
    testing::internal::CaptureStderr();
    const Result<std::string> restored = saver.RestoreLatest(session, dir.path);
    said = testing::internal::GetCapturedStderr();
    status = restored.status();
    EXPECT_TRUE(Succeeds(restored)) << said;
    return restored.ok() ? Value(session, v) : 0;
  }
  /// Succeeds if one line on stderr names both.
  testing::AssertionResult Said(std::string_view what, std::string_view cause) const {
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("weir: ") && line.find(what) != std::string::npos && line.find(cause) != std::string::npos) {
        return testing::AssertionSuccess();
      }
    }
    return testing::AssertionFailure() << "no line names '" << what << "' and '" << cause << "': " << said;
  }

  Fresh f;
  TemporaryFolder dir;
  Variable v{1.0f, {.name = "v"}};
  Output bump = v.AssignAdd(1.0f);
  Saver saver;
  Session session{f.graph};
  std::string said;
  Status status;
};

TEST(Saver, a_checkpoint_that_cannot_be_used_gives_way_to_the_one_before) {
  namespace fs = std::filesystem;
  struct Damage {
    const char* cause;
    void (*damage)(const std::string& prefix);
  };
  const std::vector<Damage> damages = {
      {"exceed the file's 3",
       [](const std::string& p) { std::ofstream(p + ".data-00000-of-00001") << "\x01\x02\x03"; }},
      {"Checksum does not match",
       [](const std::string& p) { std::ofstream(p + ".data-00000-of-00001", std::ios::binary) << "\x01\x02\x03\x04"; }},
      {"No such file", [](const std::string& p) { fs::remove(p + ".data-00000-of-00001"); }},
      {"Failed to find any matching files", [](const std::string& p) { fs::remove(p + ".index"); }},
      {"Is a directory",
       [](const std::string& p) {
         fs::remove(p + ".index");
         fs::create_directory(p + ".index");
       }},
      {"not a regular file",
       [](const std::string& p) {
         fs::remove(p + ".data-00000-of-00001");
         ASSERT_EQ(mkfifo((p + ".data-00000-of-00001").c_str(), 0600), 0);
       }},
      {"m-3.index", [](const std::string& p) { std::ofstream(p + ".index") << "no table"; }},
      {"Too many levels of symbolic links",
       [](const std::string& p) {
         fs::remove(p + ".index");
         fs::create_symlink("m-3.index", p + ".index");
       }},
  };
  for (const Damage& each : damages) {
    ThreeCheckpoints model;
    each.damage(model.dir / "m-3");
    EXPECT_EQ(model.Latest(), 2) << each.cause;
    EXPECT_TRUE(model.Said("checkpoint " + (model.dir / "m-3"), each.cause));
    each.damage(model.dir / "m-2");
    EXPECT_EQ(model.Latest(), 1) << each.cause;
    EXPECT_TRUE(model.Said("checkpoint " + (model.dir / "m-2"), ""));
    each.damage(model.dir / "m-1");
    testing::internal::CaptureStderr();
    EXPECT_FALSE(model.saver.RestoreLatest(model.session, model.dir.path).ok());
    testing::internal::GetCapturedStderr();
  }
}

/// Two variables whose contents are read into their memory, the second in the form for large ones, and a small one.
struct LargeVariables {
  static constexpr int64_t kMiddle = 100003, kLarge = (5 << 20) / 4;

  explicit LargeVariables(bool resource) : resource(resource) {}
  /// New values, which differ from those before.
  void Change() {
    ASSERT_TRUE(Succeeds(session.Run({small.Assign(Constant(++round)), middle.Assign(Numbers(kMiddle, round)),
                                      large.Assign(Numbers(kLarge, round))})));
  }
  static Output Numbers(int64_t n, float from) {
    return Cast(Range(Constant(0), Constant(static_cast<int32_t>(n)), Constant(1)), DType::kFloat) + from;
  }
  std::vector<Tensor> All() {
    const Result<Fetched> fetched = session.Run({small, middle, large});
    EXPECT_TRUE(Succeeds(fetched));
    if (!fetched.ok()) return {};
    return {(*fetched)[0].tensor(), (*fetched)[1].tensor(), (*fetched)[2].tensor()};
  }

  const bool resource;
  Fresh f;
  TemporaryFolder dir;
  Variable small{0.0f, {.name = "a", .use_resource = resource}};
  Variable middle{Zeros(Shape{kMiddle}), {.name = "b", .use_resource = resource}};
  Variable large{Zeros(Shape{kLarge}), {.name = "c", .use_resource = resource}};
  Saver saver;
  Session session{f.graph};
  float round = 0;
};

TEST(Saver, large_variables_get_the_bits_of_the_file) {
  for (const bool resource : {false, true}) {
    LargeVariables model(resource);
    Initialize(model.session);
    model.Change();
    const std::vector<Tensor> saved = model.All();
    ASSERT_EQ(saved.size(), 3u);
    ASSERT_TRUE(Succeeds(model.saver.Save(model.session, model.dir / "m")));
    model.Change();
    const std::vector<Tensor> later = model.All();  // shares no memory with what is overwritten
    ASSERT_TRUE(Succeeds(model.saver.Restore(model.session, model.dir / "m")));
    Session fresh(model.f.graph);  // its variables have no memory yet
    ASSERT_TRUE(Succeeds(model.saver.Restore(fresh, model.dir / "m")));
    const Result<Fetched> again = fresh.Run({model.small, model.middle, model.large});
    ASSERT_TRUE(Succeeds(again));
    const std::vector<Tensor> restored = model.All();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(restored[i].SameBits(saved[i])) << i;
      EXPECT_TRUE((*again)[i].tensor().SameBits(saved[i])) << i;
      EXPECT_FALSE(later[i].SameBits(saved[i])) << i;
    }
    // What is fetched, and not only assigned, is read too.
    const Result<Output> read = model.f.graph.TensorByName("save/RestoreV2:2");
    ASSERT_TRUE(Succeeds(read));
    const Result<Output> file = model.f.graph.TensorByName("save/Const:0");
    ASSERT_TRUE(Succeeds(file));
    const Result<Fetched> fetched = model.session.Run(*read, {{*file, Literal(Tensor::String(model.dir / "m"))}});
    ASSERT_TRUE(Succeeds(fetched));
    EXPECT_TRUE(fetched->tensor().SameBits(saved[2]));
  }
}

TEST(Saver, a_damaged_large_variable_keeps_its_value) {
  for (const bool resource : {false, true}) {
    LargeVariables model(resource);
    Initialize(model.session);
    model.Change();
    ASSERT_TRUE(Succeeds(model.saver.Save(model.session, model.dir / "m")));
    const std::string data = model.dir / "m.data-00000-of-00001";
    const std::string sound = ReadText(data);
    const size_t end_of_middle = 4 + 4 * LargeVariables::kMiddle;
    for (const size_t at : {end_of_middle - 5, end_of_middle + 5, sound.size() - 1}) {
      std::string damaged = sound;
      damaged[at] ^= 1;
      std::ofstream(data, std::ios::binary) << damaged;
      const bool in_large = at >= end_of_middle;
      model.Change();  // the variable that is not damaged may be restored
      const std::vector<Tensor> before = model.All();
      ASSERT_EQ(before.size(), 3u);
      const Status status = model.saver.Restore(model.session, model.dir / "m");
      EXPECT_TRUE(Fails(status, Code::kDataLoss, in_large ? "tensor 'c'" : "tensor 'b'"));
      EXPECT_TRUE(Fails(status, Code::kDataLoss, "Checksum does not match"));
      const std::vector<Tensor> after = model.All();
      ASSERT_EQ(after.size(), 3u);
      EXPECT_TRUE(after[in_large ? 2 : 1].SameBits(before[in_large ? 2 : 1])) << at;
    }
    // A file that is too short is found before anything is assigned.
    ASSERT_TRUE(Succeeds(model.saver.Save(model.session, model.dir / "m")));
    model.Change();
    const std::vector<Tensor> untouched = model.All();
    std::filesystem::resize_file(data, sound.size() - 1);
    EXPECT_TRUE(Fails(model.saver.Restore(model.session, model.dir / "m"), Code::kDataLoss, "exceed the file's"));
    const std::vector<Tensor> after = model.All();
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(after[i].SameBits(untouched[i])) << i;
  }
}

TEST(Saver, without_a_state_file_the_checkpoints_that_lie_there_are_restored) {
  for (const char* contents : {"", "garbage {", "all_model_checkpoint_paths: \"m-1\"", "\xff\xfe"}) {
    ThreeCheckpoints model;
    std::ofstream(model.dir / "checkpoint", std::ios::binary) << contents;
    EXPECT_EQ(model.Latest(), 3) << contents;
    EXPECT_TRUE(model.Said(model.dir / "checkpoint", "newest first"));
  }
  ThreeCheckpoints model;
  std::filesystem::remove(model.dir / "checkpoint");
  // Steps decide among names that differ only in the step, regardless of times changed by a copy.
  std::filesystem::last_write_time(model.dir / "m-2.index", std::filesystem::file_time_type::clock::now());
  std::filesystem::remove(model.dir / "m-3.data-00000-of-00001");
  EXPECT_EQ(model.Latest(), 2);
  EXPECT_TRUE(model.Said(model.dir / "checkpoint", "No such file"));
  EXPECT_TRUE(model.Said(model.dir / "m-3", "No such file"));
  // A newer checkpoint of another model is in the folder too.
  {
    Fresh other;
    const Variable u(5.0f, {.name = "u"});
    Saver saver;
    Session session(other.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, model.dir / "other", {.write_state = false})));
  }
  EXPECT_EQ(model.Latest(), 2);
  EXPECT_TRUE(model.Said(model.dir / "other", "Key v not found in checkpoint"));
  const TemporaryFolder empty;
  EXPECT_TRUE(Fails(model.saver.RestoreLatest(model.session, empty.path), Code::kNotFound, "checkpoint"));
}

TEST(Saver, a_checkpoint_of_another_model_in_the_state_file_is_an_error) {
  ThreeCheckpoints model;
  Fresh other;
  const Variable u(0.0f, {.name = "u"});
  Saver saver;
  Session session(other.graph);
  EXPECT_TRUE(Fails(saver.RestoreLatest(session, model.dir.path), Code::kNotFound, "Key u not found in checkpoint"));
}

TEST(Saver, a_restarted_process_keeps_the_list_and_sweeps) {
  ThreeCheckpoints model;
  std::ofstream(model.dir / "m-4.data-00000-of-00001.tempstate-weir-0123456789abcdef") << "half";
  std::ofstream(model.dir / "m-4.index.tempstate-weir-0123456789abcdef") << "";
  std::ofstream(model.dir / "m-4.data-00000-of-00001") << "data without an index";
  std::ofstream(model.dir / "checkpoint.tempstate-weir-0123456789abcdef") << "model_checkpoint_path: ";
  ASSERT_TRUE(Succeeds(model.saver.Save(model.session, model.dir / "other")));
  std::ofstream(model.dir / "checkpoint")  // as left by the process before
      << "model_checkpoint_path: \"m-3\"\nall_model_checkpoint_paths: \"gone-1\"\nall_model_checkpoint_paths: \"m-1\"\n"
      << "all_model_checkpoint_paths: \"m-2\"\nall_model_checkpoint_paths: \"other\"\nall_model_checkpoint_paths: "
         "\"m-3\"";
  Saver restarted(SaverOptions{.max_to_keep = 2, .name = "again"});
  ASSERT_TRUE(Succeeds(restarted.Save(model.session, model.dir / "m", {.global_step = 5})));
  EXPECT_EQ(restarted.last_checkpoints(), (std::vector<std::string>{model.dir / "m-3", model.dir / "m-5"}));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(model.dir.path)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".meta")) left.push_back(name);
  }
  std::ranges::sort(left);
  EXPECT_EQ(left,
            (std::vector<std::string>{"checkpoint", "m-3.data-00000-of-00001", "m-3.index", "m-5.data-00000-of-00001",
                                      "m-5.index", "other.data-00000-of-00001", "other.index"}));
  EXPECT_EQ(ReadText(model.dir / "checkpoint").find("m-2"), std::string::npos);
  restarted.RecoverLastCheckpoints({model.dir / "gone", model.dir / "other"});
  EXPECT_EQ(restarted.last_checkpoints(),
            (std::vector<std::string>{model.dir / "other", model.dir / "m-3", model.dir / "m-5"}));
}

TEST(Saver, saving_over_a_checkpoint_leaves_three_files_and_the_new_values) {
  ThreeCheckpoints model;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Succeeds(model.saver.Save(model.session, model.dir / "same", {.verify = true})));
    ASSERT_TRUE(Succeeds(model.session.Run(model.bump)));
  }
  ASSERT_TRUE(Succeeds(model.saver.Restore(model.session, model.dir / "same")));
  EXPECT_EQ(Value(model.session, model.v), 6);
  EXPECT_TRUE(model.dir.Has("same.data-00000-of-00001"));
  EXPECT_FALSE(model.dir.Has("same.data-00000-of-00002"));
  EXPECT_EQ(model.saver.counts().saved, 6);
  EXPECT_EQ(model.saver.counts().verified, 3);
}

TEST(Saver, the_newest_that_was_verified_is_never_deleted) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver one(SaverOptions{.max_to_keep = 1}), two(SaverOptions{.max_to_keep = 2});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  for (const int step : {1, 2, 3, 4, 5}) {
    const bool verify = step == 2 || step == 4;
    ASSERT_TRUE(
        Succeeds(one.Save(session, dir / "one", {.global_step = step, .latest_filename = "1", .verify = verify})));
    ASSERT_TRUE(Succeeds(two.Save(session, dir / "two", {.global_step = step, .verify = step == 1})));
  }
  EXPECT_EQ(one.last_checkpoints(), (std::vector<std::string>{dir / "one-4", dir / "one-5"}));
  EXPECT_EQ(two.last_checkpoints(), (std::vector<std::string>{dir / "two-1", dir / "two-5"}));
  EXPECT_TRUE(dir.Has("one-4.index") && dir.Has("two-1.index"));
  EXPECT_FALSE(dir.Has("one-2.index") || dir.Has("two-4.index"));
}

TEST(Saver, background_saves_hold_the_values_of_the_call) {
  Fresh f;
  const Variable v(Tensor::Vector<float>(std::vector<float>(1 << 20, 1.0f)), {.name = "v"});
  const Variable r(2.0f, {.name = "r", .use_resource = true});
  const Operation bump = Group({v.AssignAdd(Fill({1 << 20}, 1.0f)).op(), r.AssignAdd(1.0f).op()});
  Saver saver(SaverOptions{.max_to_keep = 2, .verify = true});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  for (const int step : {1, 2, 3}) {
    const Result<std::string> saved = saver.SaveInBackground(session, dir / "m", {.global_step = step});
    ASSERT_TRUE(Succeeds(saved));
    EXPECT_EQ(*saved, dir / "m-" + std::to_string(step));
    ASSERT_TRUE(Succeeds(session.Run(bump)));  // during the save
  }
  EXPECT_TRUE(Succeeds(saver.Wait()));
  EXPECT_EQ(saver.last_checkpoints(), (std::vector<std::string>{dir / "m-2", dir / "m-3"}));
  EXPECT_EQ(saver.counts().saved, 3);
  EXPECT_EQ(saver.counts().verified, 3);
  ASSERT_TRUE(Succeeds(saver.RestoreLatest(session, dir.path)));
  EXPECT_EQ(Values(session, v)[77], 3);
  EXPECT_EQ(Value(session, r), 4);
}

TEST(Saver, errors_in_the_background_are_told_at_the_next_call_and_counted) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver saver;
  Session session(f.graph);
  const TemporaryFolder dir;
  EXPECT_TRUE(Fails(saver.SaveInBackground(session, dir / "m"), Code::kFailedPrecondition,
                    "Attempting to use uninitialized value v"));
  Initialize(session);
  std::filesystem::create_directory(dir / "m.index");
  ASSERT_TRUE(Succeeds(saver.SaveInBackground(session, dir / "m")));
  EXPECT_TRUE(Fails(saver.SaveInBackground(session, dir / "n"), Code::kFailedPrecondition,
                    "the save of " + (dir / "m") + " in the background failed: "));
  EXPECT_TRUE(Succeeds(saver.Wait()));
  EXPECT_TRUE(dir.Has("n.index"));
  EXPECT_EQ(saver.counts().failed, 2);
  EXPECT_EQ(saver.counts().saved, 1);
  EXPECT_EQ(LatestCheckpoint(dir.path), dir / "n");
  ASSERT_TRUE(Succeeds(saver.SaveInBackground(session, dir / "m")));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Fails(saver.Save(session, dir / "no/such/folder/m"), Code::kInvalidArgument, "Parent directory"));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the save of " + (dir / "m") + " in the background failed: "),
            std::string::npos);
}

TEST(Saver, a_save_is_left_out_while_another_one_is_in_flight) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  Saver saver(SaverOptions{.skip_when_busy = true});
  Session session(f.graph);
  Initialize(session);
  const TemporaryFolder dir;
  // Writing to a pipe blocks until it is read.
  ASSERT_EQ(mkfifo((dir / "m-1.meta").c_str(), 0600), 0);
  ASSERT_TRUE(Succeeds(saver.SaveInBackground(session, dir / "m", {.global_step = 1})));
  for (const int step : {2, 3}) {
    const Result<std::string> saved = saver.SaveInBackground(session, dir / "m", {.global_step = step});
    ASSERT_TRUE(Succeeds(saved));
    EXPECT_EQ(*saved, "");
  }
  EXPECT_GT(ReadText(dir / "m-1.meta").size(), 100u);
  EXPECT_TRUE(Succeeds(saver.Wait()));
  ASSERT_TRUE(Succeeds(saver.SaveInBackground(session, dir / "m", {.global_step = 4})));
  EXPECT_TRUE(Succeeds(saver.Wait()));
  EXPECT_EQ(saver.counts().skipped, 2);
  EXPECT_EQ(saver.counts().saved, 2);
  EXPECT_EQ(saver.last_checkpoints(), (std::vector<std::string>{dir / "m-1", dir / "m-4"}));
}

}  // namespace
}  // namespace weir::test
