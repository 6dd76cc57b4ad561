// Shared code of the client's tests: a separate graph, and short ways to run it and to check errors.
#ifndef WEIR_TESTS_UNIT_CLIENT_FRESH_H_
#define WEIR_TESTS_UNIT_CLIENT_FRESH_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/extra.h"
#include "core/graph/definition.h"
#include "core/tensor/number.h"

namespace weir::test {

/// A new graph that is the default graph during the lifetime of the object.
struct Fresh {
  Graph graph;
  AsDefault in{graph};
  std::string error() const { return graph.status().ToString(); }
};

/// A folder that is removed by the destructor.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-client-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(std::string_view name) const { return path + "/" + std::string(name); }
  bool Has(std::string_view name) const { return std::filesystem::exists(*this / name); }
  std::string path;
};

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline testing::AssertionResult Fails(const Status& status, Code code, std::string_view text) {
  if (status.code() != code)
    return testing::AssertionFailure() << "wanted " << CodeName(code) << ", got " << status.ToString();
  if (status.message().find(text) == std::string::npos) {
    return testing::AssertionFailure() << "wanted \"" << text << "\" in \"" << status.message() << "\"";
  }
  return testing::AssertionSuccess();
}
template <class T>
testing::AssertionResult Fails(const Result<T>& result, Code code, std::string_view text) {
  return result.ok() ? testing::AssertionFailure() << "wanted an error with \"" << text << "\""
                     : Fails(result.status(), code, text);
}
inline testing::AssertionResult Succeeds(const Status& status) {
  return status.ok() ? testing::AssertionSuccess() : testing::AssertionFailure() << status.ToString();
}
template <class T>
testing::AssertionResult Succeeds(const Result<T>& result) {
  return Succeeds(result.status());
}

/// The elements of a fetch, as double; empty (and a test failure) on error.
inline std::vector<double> Values(Session& session, const Fetch& fetch, const Feeds& feeds = {}) {
  const Result<Fetched> fetched = session.Run(fetch, feeds);
  EXPECT_TRUE(Succeeds(fetched));
  std::vector<double> values;
  if (!fetched.ok()) return values;
  for (int64_t i = 0; i < fetched->tensor().elements(); ++i) values.push_back(ElementAsDouble(fetched->tensor(), i));
  return values;
}
inline double Value(Session& session, const Fetch& fetch, const Feeds& feeds = {}) {
  const std::vector<double> values = Values(session, fetch, feeds);
  EXPECT_EQ(values.size(), 1u);
  return values.size() == 1 ? values[0] : std::numeric_limits<double>::quiet_NaN();
}
inline void Initialize(Session& session) {
  ASSERT_TRUE(Succeeds(session.Run(GlobalVariablesInitializer(session.graph()))));
}

/// The gradient with respect to one value; an absent value (and, on error, a test failure) if there is none.
inline Output GradientOf(const Output& y, const Output& x) {
  const Result<std::vector<Gradient>> gradients = Gradients({y}, {x});
  EXPECT_TRUE(Succeeds(gradients));
  return gradients.ok() ? (*gradients)[0].values : Output();
}

// Operands and branches of control flow.
inline Output Flag(std::string_view name) { return Placeholder(DType::kBool, PartialShape::Of({}), name); }
inline Output Real(std::string_view name) { return Placeholder(DType::kFloat, PartialShape::Of({}), name); }
inline BranchFn Returns(float value) {
  return [value] { return Constant(value); };
}
inline LoopCondFn Below(int limit) {
  return [limit](const LoopVars& v) { return Less(v[0], limit); };
}

inline std::vector<std::string> NodeNames(Graph& graph) {
  std::vector<std::string> names;
  for (const Operation& operation : graph.Operations()) names.push_back(operation.name());
  return names;
}

}  // namespace weir::test

#endif  // WEIR_TESTS_UNIT_CLIENT_FRESH_H_
