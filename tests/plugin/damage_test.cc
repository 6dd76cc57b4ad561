// The loader with files that would crash the process: damaged files, and crashing plugins, with plugins.probe.
#include <dlfcn.h>
#include <elf.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/plugin/loadable.h"
#include "tests/plugin/plugin_folder.h"

namespace weir::plugin {
namespace {

/// Offsets of the program headers, the dynamic section, and the tables between the notes and the code.
std::pair<uint64_t, uint64_t> Part(const std::string& bytes, int which) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t after = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  if (which == 0) return {header.e_phoff, after};
  for (uint64_t at = header.e_phoff; at < after; at += sizeof(Elf64_Phdr)) {
    Elf64_Phdr program;
    std::memcpy(&program, bytes.data() + at, sizeof(program));
    if (which == 1 && program.p_type == PT_DYNAMIC) return {program.p_offset, program.p_offset + program.p_filesz};
    if (which == 2 && program.p_type == PT_LOAD) return {after + 512, program.p_filesz};
  }
  return {0, sizeof(header)};
}

TEST_F(CatalogueTest, DamagedTablesNeverReachTheDynamicLinker) {
  const std::string good = Bytes(Put(0));
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof(header));
  uint64_t dynamic = 0;
  std::vector<Elf64_Phdr> programs(header.e_phnum);
  std::memcpy(programs.data(), good.data() + header.e_phoff, programs.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr& program : programs) {
    if (program.p_type == PT_DYNAMIC) dynamic = program.p_offset;
  }
  const auto with_tag = [&](int64_t tag, uint64_t value) {
    std::string bytes = good;
    for (uint64_t at = dynamic;; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, bytes.data() + at, sizeof(entry));
      if (entry.d_tag == DT_NULL) return std::string();
      if (entry.d_tag != tag) continue;
      entry.d_un.d_val = value;
      std::memcpy(bytes.data() + at, &entry, sizeof(entry));
      return bytes;
    }
  };
  constexpr int64_t kPacked = 36, kPackedSize = 35, kPackedEntry = 37;  // DT_RELR and its kin, which older elf.h lack
  const uint64_t outside = uint64_t{1} << 62;
  const std::pair<int64_t, uint64_t> rows[] = {
      {DT_SYMTAB, outside}, {DT_STRTAB, 0xffff000},      {DT_STRSZ, ~uint64_t{0}}, {DT_SYMENT, 25},
      {DT_GNU_HASH, 8},     {DT_RELA, outside},          {DT_RELASZ, 25},          {DT_RELASZ, 24},
      {DT_RELACOUNT, 9999}, {DT_JMPREL, outside},        {DT_PLTREL, DT_REL},      {DT_INIT, 0x40},
      {DT_INIT_ARRAYSZ, 9}, {DT_INIT_ARRAYSZ, 1u << 20}, {DT_FINI_ARRAY, outside}, {DT_VERNEED, 0x40},
      {DT_VERSYM, outside}, {DT_NEEDED, ~uint64_t{0}},   {kPacked, outside},       {kPackedSize, 0},
      {kPackedEntry, 4}};
  const bool packed = !with_tag(kPacked, 0).empty();  // then the relocations of functions to call
  for (const auto& [tag, value] : rows) {
    const std::string bytes = with_tag(tag, value);
    if (bytes.empty()) continue;  // the linker wrote no such table
    if (packed && tag == DT_RELASZ && value == 24) continue;
    Rewrite(folder_ / "broken.so", bytes);
    const FileReport report = LoadOne();
    EXPECT_EQ(report.verdict, Verdict::kRefused) << tag;
    EXPECT_TRUE(report.reason.starts_with("damaged ELF file: ")) << tag << ": " << report.reason;
  }
  Rewrite(folder_ / "good.so", good);
  const auto beside = Load();
  ASSERT_EQ(beside->files().size(), 2u);
  EXPECT_EQ(beside->files()[0].verdict, Verdict::kRefused) << "and does not take the name";
  EXPECT_EQ(beside->files()[1].verdict, Verdict::kLoaded) << beside->files()[1].reason;
}

// Linkers fill fields that the dynamic linker ignores: GNU ld in one way, mold and lld in another.
TEST_F(CatalogueTest, FieldsThatTheDynamicLinkerIgnoresRefuseNothing) {
  const std::string good = Bytes(Put(0));
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof(header));
  int changed = 0;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr program;
    std::memcpy(&program, good.data() + at, sizeof(program));
    const bool only_zeros = program.p_type == PT_TLS && program.p_filesz == 0;
    if (program.p_type != PT_GNU_RELRO && !only_zeros) continue;
    program.p_offset = 0;
    if (program.p_type == PT_GNU_RELRO) program.p_filesz = program.p_align = 1;
    std::string bytes = good;
    std::memcpy(bytes.data() + at, &program, sizeof(program));
    Rewrite(folder_ / "broken.so", bytes);
    EXPECT_EQ(LoadOne().verdict, Verdict::kLoaded) << LoadOne().reason;
    ++changed;
  }
  EXPECT_GE(changed, 1) << "every linker writes a read-only part";
}

// False if loading the file crashes the process.
bool LoadsOrFails(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    close(STDERR_FILENO);
    static_cast<void>(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status == 0;
}

// Files that pass are loaded by the dynamic linker, in a process that may crash. Without the check one in ten crashes;
// only damaged code, and a bit that turns one valid address into another, may remain.
TEST_F(CatalogueTest, FilesThatPassForLoadableAreSurvived) {
  const std::string good = Bytes(Put(0));
  const fs::path path = folder_ / "broken.so";
  std::mt19937_64 random(7);
  int tried = 0, died = 0;
  for (int round = 0; round < 800; ++round) {
    std::string bytes = good;
    const auto [from, to] = Part(good, round % 3);
    for (uint64_t changes = random() % 3 + 1; changes > 0; --changes) {
      char& byte = bytes[from + random() % (to - from)];
      byte = static_cast<char>(random() % 2 == 0 ? byte ^ (1 << random() % 8) : random());
    }
    if (!CheckLoadable(MemorySource(std::as_bytes(std::span(bytes)))).ok()) continue;
    Rewrite(path, bytes);
    ++tried;
    died += LoadsOrFails(path.string()) ? 0 : 1;
  }
  EXPECT_GT(tried, 100);
  // Files built for a sanitizer have more addresses that can be confused.
  EXPECT_LE(died, WEIR_SANITIZER_KIND == 0 ? 3 : 8) << "of " << tried;
}

class ProbeTest : public CatalogueTest {
 protected:
  void SetUp() override {
    CatalogueTest::SetUp();
    options_.config.plugins.probe = true;
    options_.probe_program = WEIR_PROBE;
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    CatalogueTest::TearDown();
  }
  size_t Marks() const {
    const fs::path marks = folder_ / "cache" / "weir" / "probed";
    return fs::exists(marks) ? static_cast<size_t>(std::distance(fs::directory_iterator(marks), {})) : 0;
  }
};

TEST_F(ProbeTest, AHealthyFileIsTriedOnceAndLoaded) {
  Put(0);
  EXPECT_EQ(LoadOne().verdict, Verdict::kLoaded);
  EXPECT_EQ(Marks(), 1u);
  EXPECT_EQ(LoadOne().verdict, Verdict::kLoaded);
  EXPECT_EQ(Marks(), 1u);
  options_.config.plugin["broken"]["level"] = {{std::string("4"), true}, {}};
  EXPECT_TRUE(Load()->devices().all().empty())
      << "other options are another trial, after which the loader refuses them";
  EXPECT_EQ(Marks(), 2u);
}

TEST_F(ProbeTest, CrashesAreReportedAndTheRestWorks) {
  struct Row {
    int mutant;
    std::string_view reason;
  };
  // Sanitizers report a segfault themselves and exit with a status.
  constexpr std::string_view kSegfault =
      WEIR_SANITIZER_KIND == 0 ? "ended by signal 11 (Segmentation fault)" : "ended the process in which it was tried";
  for (const auto& [mutant, reason] : {Row{8, "ended by signal 6 (Aborted)"},  // in a constructor
                                       Row{70, kSegfault},                     // in enumerate
                                       Row{71, "with status 1"}}) {
    Put(mutant);
    const auto catalogue = Load();
    ASSERT_EQ(catalogue->files().size(), 1u);
    EXPECT_EQ(Name(catalogue->files()[0].verdict), "crashed") << mutant;
    EXPECT_NE(catalogue->files()[0].reason.find(reason), std::string::npos) << catalogue->files()[0].reason;
    EXPECT_EQ(Marks(), 0u) << "such a file may get well";
  }
}

TEST_F(ProbeTest, HangingPluginsAreNotLoaded) {
  options_.time_limit_ms = 500;
  for (const int mutant : {18, 29}) {
    Put(mutant);
    Expect(Verdict::kHung, "a trial in a process of its own did not end");
  }
}

TEST_F(ProbeTest, ErrorsAreThePluginsOwn) {
  Put(41);
  Expect(Verdict::kRefused, "the driver is too old");
}

TEST_F(ProbeTest, WithoutTheProgramNothingIsLoaded) {
  Put(0);
  options_.probe_program = (folder_ / "no-such-program").string();
  const auto catalogue = Load();
  EXPECT_TRUE(catalogue->devices().all().empty());
  ASSERT_EQ(catalogue->config_faults().size(), 1u);
  EXPECT_NE(catalogue->config_faults()[0].message().find("plugins.probe: "), std::string::npos);
}

}  // namespace
}  // namespace weir::plugin
