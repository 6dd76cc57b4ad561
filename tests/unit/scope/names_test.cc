// TensorFlow's naming rules, as the feature list states them.
#include "core/scope/names.h"

#include <gtest/gtest.h>

namespace weir::scope {
namespace {

std::string Named(Names& names, std::string_view name) {
  const Result<std::string> path = names.ForOperation(name);
  return path.ok() ? *path : path.status().message();
}

std::string Entered(Names& names, std::string_view name) {
  const Result<std::string> path = names.Enter(name);
  return path.ok() ? *path : path.status().message();
}

TEST(Names, F011_the_first_free_number_per_full_path) {
  Names names;
  EXPECT_EQ(Named(names, "a"), "a");
  EXPECT_EQ(Named(names, "a_1"), "a_1");
  EXPECT_EQ(Named(names, "a"), "a_2");
  EXPECT_EQ(Named(names, "a"), "a_3");
  EXPECT_EQ(Named(names, "a_1"), "a_1_1");
  EXPECT_EQ(Entered(names, "s"), "s/");
  EXPECT_EQ(Named(names, "a"), "s/a");
  names.Leave();
}

TEST(Names, F011_case_is_ignored_and_scopes_count_as_names) {
  Names names;
  EXPECT_EQ(Named(names, "Foo"), "Foo");
  EXPECT_EQ(Named(names, "foo"), "foo_1");
  EXPECT_EQ(Entered(names, "FOO"), "FOO_2/");
  names.Leave();
  EXPECT_EQ(Entered(names, "s"), "s/");
  names.Leave();
  EXPECT_EQ(Named(names, "s"), "s_1");
  EXPECT_EQ(Entered(names, "s"), "s_2/");
}

TEST(Names, F011_re_entering_and_the_root) {
  Names names;
  EXPECT_EQ(Entered(names, "s"), "s/");
  EXPECT_EQ(Entered(names, "t"), "s/t/");
  EXPECT_EQ(Entered(names, "s/"), "s/");
  EXPECT_EQ(Named(names, "x"), "s/x");
  EXPECT_EQ(Entered(names, ""), "");
  EXPECT_EQ(Named(names, "x"), "x");
  EXPECT_EQ(Named(names, "s/t/"), "s/t");
  for (int i = 0; i < 4; ++i) names.Leave();
  EXPECT_EQ(names.current(), "");
  names.Leave();  // an extra Leave is harmless
  EXPECT_EQ(names.current(), "");
}

TEST(Names, F011_bad_names_are_refused) {
  Names names;
  for (const char* bad : {"a b", "", "_x", "-x", "/x", "\xc3\xa4", "a:b", ">x"}) {
    EXPECT_EQ(Named(names, bad), "'" + std::string(bad) + "' is not a valid scope name");
  }
  EXPECT_EQ(Entered(names, "a b"), "'a b' is not a valid scope name");
  EXPECT_EQ(Entered(names, "in"), "in/");
  EXPECT_EQ(Named(names, "_x"), "in/_x");  // allowed below a scope
  EXPECT_EQ(Named(names, "a>b.c-d"), "in/a>b.c-d");
}

TEST(Names, imported_names_are_taken_and_their_scopes_are_not) {
  Names names;
  names.MarkUsed("layer/sub/MatMul");
  EXPECT_EQ(Entered(names, "layer"), "layer/");
  EXPECT_EQ(Named(names, "sub"), "layer/sub");
  names.Leave();
  EXPECT_EQ(Entered(names, "layer"), "layer_1/");
  names.Leave();
  EXPECT_EQ(Named(names, "layer/sub"), "layer/sub_1");
  EXPECT_EQ(Named(names, "layer/sub/matmul"), "layer/sub/matmul_1");
}

}  // namespace
}  // namespace weir::scope
