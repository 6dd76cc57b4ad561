// config/weir.toml and the list of keys.
#include "core/config/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/config/schema.h"
#include "core/config/toml.h"
#include "core/io/files.h"

namespace weir::config {
namespace {

TEST(Document, F351_TheFileInTheTreeIsTheSchema) {
  const std::string path = std::string(std::getenv("WEIR_SOURCE_DIR")) + "/config/weir.toml";
  const Result<std::string> text = io::ReadFile(path, kMaxFileBytes);
  ASSERT_TRUE(text.ok()) << text.status().message();
  if (*text == Document()) return;
  const std::string wanted = ::testing::TempDir() + "weir.toml";
  std::ofstream(wanted) << Document();
  FAIL() << "config/weir.toml is not what the schema says; that text is in " << wanted;
}

TEST(Document, EveryKeyIsThereWithItsDefault) {
  std::string live;
  std::string text = Document();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.size() > 1 && line[0] == '#' && line[1] != ' ') live += line.substr(1) + "\n";
    EXPECT_LE(line.size(), 120u) << line;
    begin = end + 1;
  }
  Settings settings;
  const Status read = ReadToml(live, "weir.toml", settings);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(settings.all().size(), Schema().size());
  for (const auto& [path, setting] : settings.all()) {
    if (path.front() == "device_count" || path[1 % path.size()] == "pin" || path[1 % path.size()] == "alias")
      continue;  // entries have no default
    Config fresh;
    EXPECT_EQ(ToToml(Load(FindKey(path)->field(fresh, path))), ToToml(setting.given.value)) << ToString(path);
  }
}

TEST(Document, DocsAreSentences) {
  for (const Key& key : Schema()) {
    EXPECT_FALSE(key.doc.empty()) << key.path;
    EXPECT_FALSE(Wanted(key).empty()) << key.path;
  }
}

TEST(List, F352_ShowsWhatHoldsAndWhereItCameFrom) {
  Settings settings;
  ASSERT_TRUE(ReadToml("[gpu_options]\nallow_growth = true\nallocator_type = \"BFC\"\n[device.TOY]\nmem_gbps = 3\n",
                       "weir.toml", settings)
                  .ok());
  const Result<Config> config = settings.Build();
  ASSERT_TRUE(config.ok());
  const std::vector<Shown> set = List(*config, Show::kSet);
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set[0].key, "gpu_options.allow_growth");
  EXPECT_EQ(ToToml(set[0].value), "true");
  EXPECT_EQ(set[0].source, "weir.toml:2");
  EXPECT_EQ(set[0].effect, Effect::kHonoured);
  EXPECT_EQ(set[1].effect, Effect::kHint);
  EXPECT_EQ(set[2].key, "device.TOY.mem_gbps");
  const std::vector<Shown> all = List(*config, Show::kAll);
  size_t without_star = 0;
  for (const Key& key : Schema()) without_star += key.path.find('*') == std::string_view::npos ? 1 : 0;
  EXPECT_EQ(all.size(), without_star + 1);
  const auto soft =
      std::find_if(all.begin(), all.end(), [](const Shown& s) { return s.key == "allow_soft_placement"; });
  ASSERT_NE(soft, all.end());
  EXPECT_EQ(soft->source, "default");
}

}  // namespace
}  // namespace weir::config
