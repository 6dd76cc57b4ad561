// A plugin folder with copies of built plugins, for tests of the loader.
#ifndef WEIR_TESTS_PLUGIN_PLUGIN_FOLDER_H_
#define WEIR_TESTS_PLUGIN_PLUGIN_FOLDER_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>

#include "core/ops/declare_all.h"
#include "core/plugin/catalogue.h"
#include "sdk/abi/plugin.h"

namespace weir::plugin {

namespace fs = std::filesystem;

// A test with a separate plugin folder.
class CatalogueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "weir_catalogue_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = fs::canonical(pattern);
    chmod(folder_.c_str(), 0755);
    options_.folders = {folder_.string()};
    options_.time_limit_ms = 20000;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path Put(int mutant, const std::string& name = "broken.so") {
    return Copy("broken_" + std::to_string(mutant) + "/broken.so", name);
  }
  fs::path Copy(const std::string& built, const std::string& name) {
    const fs::path to = folder_ / name;
    fs::copy_file(fs::path(WEIR_MUTANTS) / built, to, fs::copy_options::overwrite_existing);
    chmod(to.c_str(), 0755);
    return to;
  }
  std::unique_ptr<Catalogue> Load() { return Catalogue::Load(**ops::Catalogue(), options_); }
  /// The report of the only file.
  FileReport LoadOne() {
    const auto catalogue = Load();
    EXPECT_EQ(catalogue->files().size(), 1u);
    return catalogue->files().empty() ? FileReport() : catalogue->files()[0];
  }
  static std::string Bytes(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  /// Replaces the file by a new one, since mapped files must not change.
  static void Rewrite(const fs::path& path, const std::string& bytes) {
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), 0755);
  }
  static void Rewrite(const fs::path& path, const std::function<void(weir_note_desc&)>& change) {
    std::string bytes = Bytes(path);
    const size_t at = bytes.find(std::string(WEIR_NOTE_MAGIC, sizeof(WEIR_NOTE_MAGIC)));
    ASSERT_NE(at, std::string::npos);
    weir_note_desc note;
    std::memcpy(&note, bytes.data() + at, sizeof(note));
    change(note);
    std::memcpy(bytes.data() + at, &note, sizeof(note));
    Rewrite(path, bytes);
  }
  void Expect(Verdict verdict, std::string_view reason) {
    const FileReport report = LoadOne();
    EXPECT_EQ(Name(report.verdict), Name(verdict)) << report.reason;
    EXPECT_NE(report.reason.find(reason), std::string::npos) << report.reason;
  }

  fs::path folder_;
  LoadOptions options_;
};

}  // namespace weir::plugin

#endif  // WEIR_TESTS_PLUGIN_PLUGIN_FOLDER_H_
