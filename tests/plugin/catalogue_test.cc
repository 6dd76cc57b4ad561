// The loader with good, broken, foreign and misplaced files.
#include "core/plugin/catalogue.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/plugin/missing.h"
#include "core/plugin/note.h"
#include "tests/plugin/plugin_folder.h"

namespace weir::plugin {
namespace {

constexpr const char* kToy = "/job:localhost/replica:0/task:0/device:TOY:0";

TEST_F(CatalogueTest, HealthyPluginBringsDeviceAndKernels) {
  const fs::path file = Put(0);
  const auto catalogue = Load();
  ASSERT_EQ(catalogue->files().size(), 1u);
  const FileReport& report = catalogue->files()[0];
  EXPECT_EQ(report.verdict, Verdict::kLoaded) << report.reason;
  EXPECT_EQ(report.file, file.string());
  EXPECT_EQ(report.name, "broken");
  EXPECT_EQ(report.version, "1.0.0");
  EXPECT_EQ(report.reason, "");
  EXPECT_EQ(report.devices, 1);
  EXPECT_EQ(report.kernels, 2);
  EXPECT_EQ(catalogue->kernels().size(), 2u);
  device::Device* device = catalogue->devices().Find(kToy);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->info().plugin, "broken");
  EXPECT_EQ(device->info().platform, "broken/1");
  EXPECT_TRUE(device->Open().ok());
  EXPECT_TRUE(device->allocator().Allocate(100).ok());
}

TEST_F(CatalogueTest, LoadsAgainInTheSameProcess) {
  Put(0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Load()->devices().all().size(), 1u) << "init must not be called twice";
}

TEST_F(CatalogueTest, F314_AMissingLibraryIsNamedAndSoIsAMissingVersion) {
  Copy("vendor/broken.so", "broken.so");
  Expect(Verdict::kRefused, "libweir_test_vendor.so.7: cannot open shared object file: No such file or directory");
  fs::remove(folder_ / "broken.so");
  Copy("vendor_1/libweir_test_vendor.so.7", "libweir_test_vendor.so.7");
  Copy("vendor/broken.so", "broken.so");
  const auto catalogue = Load();
  const auto plugin = std::find_if(catalogue->files().begin(), catalogue->files().end(),
                                   [](const FileReport& file) { return file.file.ends_with("/broken.so"); });
  ASSERT_NE(plugin, catalogue->files().end());
  EXPECT_EQ(plugin->verdict, Verdict::kRefused);
  EXPECT_NE(plugin->reason.find("version `VENDOR_2' not found"), std::string::npos) << plugin->reason;
  EXPECT_NE(plugin->reason.find("libweir_test_vendor.so.7"), std::string::npos) << plugin->reason;
}

TEST_F(CatalogueTest, F314_AllMissingLibrariesAreNamed) {
  Copy("vendors/broken.so", "broken.so");
  Expect(Verdict::kRefused, "; all that is missing: libweir_test_more.so.1, libweir_test_other.so.1");
  fs::remove(folder_ / "broken.so");
  Copy("vendor_more/libweir_test_more.so.1", "libweir_test_more.so.1");
  Copy("vendors/broken.so", "broken.so");
  const auto catalogue = Load();
  const std::string& reason = catalogue->files().front().reason;
  EXPECT_NE(reason.find("; all that is missing: "), std::string::npos) << reason;
  for (const char* name : {"libweir_test_other.so.1", "libweir_test_vendor.so.7"}) {
    EXPECT_NE(reason.find(name, reason.find(';')), std::string::npos) << "a library's own ones: " << reason;
  }
}

TEST(MissingLibraries, ListsAreReadAsFarAsTheyGo) {
  EXPECT_EQ(NotFoundIn("\tlinux-vdso.so.1 (0x1)\n\tliba.so => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n"
                       "\tliba.so => not found\n\t => not found\nlib\x01.so.2 => not found"),
            (std::vector<std::string>{"liba.so", "lib?.so.2"}));
  EXPECT_TRUE(NotFoundIn("").empty());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += std::to_string(i) + " => not found\n";
  EXPECT_EQ(NotFoundIn(many).size(), 64u);
  EXPECT_TRUE(MissingLibraries("/nonexistent.so", std::chrono::seconds(5)).empty());
  EXPECT_TRUE(MissingLibraries("/proc/self/exe", std::chrono::seconds(5)).empty());
}

TEST_F(CatalogueTest, F314_WithTheLibraryBesideItThePluginLoads) {
  Copy("vendor_2/libweir_test_vendor.so.7", "libweir_test_vendor.so.7");
  Copy("vendor/broken.so", "broken.so");
  EXPECT_EQ(Load()->devices().all().size(), 1u);
}

// 1.0 is the first minor version, so fields that the plugin omits stand for fields that a later version will append.
TEST_F(CatalogueTest, F315_TablesOfAnOlderMinorLackTheirLastFields) {
  Copy("older/broken.so", "broken.so");
  const auto catalogue = Load();
  ASSERT_EQ(catalogue->files()[0].verdict, Verdict::kLoaded) << catalogue->files()[0].reason;
  EXPECT_EQ(catalogue->files()[0].kernels, 2);
  device::Device* device = catalogue->devices().Find(kToy);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->info().memory_bytes, 0u) << "the record ends before it";
  EXPECT_TRUE(device->allocator().Allocate(100).ok());
}

TEST_F(CatalogueTest, F315_TablesOfANewerMinorHaveFieldsThatNobodyReads) {
  Copy("newer/broken.so", "broken.so");
  const auto catalogue = Load();
  ASSERT_EQ(catalogue->files()[0].verdict, Verdict::kLoaded) << catalogue->files()[0].reason;
  EXPECT_EQ(catalogue->files()[0].kernels, 2);
  EXPECT_EQ(catalogue->options().at("broken").size(), 1u);
  device::Device* device = catalogue->devices().Find(kToy);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->info().memory_bytes, 1u << 28);
  EXPECT_TRUE(device->allocator().Allocate(100).ok());
}

TEST_F(CatalogueTest, EmptyAndMissingFolders) {
  EXPECT_TRUE(Load()->files().empty());
  options_.folders = {(folder_ / "not_there").string()};
  const auto catalogue = Load();
  EXPECT_TRUE(catalogue->files().empty());
  EXPECT_TRUE(catalogue->devices().all().empty());
  EXPECT_EQ(catalogue->folders(), options_.folders) << "so that an error can name what was searched";
}

TEST_F(CatalogueTest, ForeignFilesAreIgnored) {
  std::ofstream(folder_ / "notes.so") << "just text";
  std::ofstream(folder_ / "empty.so");
  std::ofstream(folder_ / "readme.txt") << "not even looked at";
  Put(1, "plain_library.so");
  for (const char* name : {"notes.so", "empty.so"}) chmod((folder_ / name).c_str(), 0644);
  const auto catalogue = Load();
  ASSERT_EQ(catalogue->files().size(), 3u);
  for (const FileReport& report : catalogue->files()) EXPECT_EQ(report.verdict, Verdict::kNotAPlugin) << report.reason;
}

TEST_F(CatalogueTest, TruncatedFilesAreRefusedOrForeign) {
  const fs::path whole = Put(0);
  std::ifstream file(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const size_t size : {size_t{1}, size_t{20}, size_t{100}, size_t{700}, bytes.size() / 2}) {
    std::ofstream(whole, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(size));
    const FileReport report = LoadOne();
    EXPECT_NE(report.verdict, Verdict::kLoaded) << size;
    EXPECT_FALSE(report.reason.empty());
  }
}

TEST_F(CatalogueTest, AnotherAbiMajor) {
  Put(3);
  Expect(Verdict::kRefused, "ABI major 2");
}
TEST_F(CatalogueTest, AnotherSanitizer) {
  Put(4);
  Expect(Verdict::kRefused, "sanitizer");
}
TEST_F(CatalogueTest, BadMagic) {
  Put(2);
  Expect(Verdict::kRefused, "magic");
}
TEST_F(CatalogueTest, NoEntrySymbol) {
  Put(6);
  Expect(Verdict::kRefused, "does not export weir_plugin_query_v1");
}
TEST_F(CatalogueTest, NameOfTableDiffers) {
  Put(11);
  Expect(Verdict::kRefused, "its note says 'broken', its table 'somebody_else'");
}
TEST_F(CatalogueTest, PromisedDevicesAreMissing) {
  Put(13);
  Expect(Verdict::kRefused, "cannot enumerate");
}
TEST_F(CatalogueTest, ThrowingInit) {
  Put(17);
  Expect(Verdict::kRefused, "the card is on fire");
}
TEST_F(CatalogueTest, FailingInitKeepsItsText) {
  Put(41);
  Expect(Verdict::kRefused, "the driver is too old");
}
TEST_F(CatalogueTest, DeviceWithoutUid) {
  Put(19);
  Expect(Verdict::kNoDevices, "without uid");
}
TEST_F(CatalogueTest, NoHardware) {
  Put(30);
  Expect(Verdict::kNoDevices, "no device found on this machine");
}
TEST_F(CatalogueTest, UnknownMustUnderstandBit) {
  Put(43);
  Expect(Verdict::kRefused, "must-understand");
}
TEST_F(CatalogueTest, NeedsNewerMinor) {
  Put(45);
  Expect(Verdict::kRefused, "needs ABI 1.7");
}

TEST_F(CatalogueTest, HungInitIsListedAndTheRestWorks) {
  Put(29, "a_hangs.so");
  options_.time_limit_ms = 1000;
  Expect(Verdict::kHung, "did not end within 1000 ms");
  const FileReport again = LoadOne();
  EXPECT_EQ(again.verdict, Verdict::kHung) << "it is not called again";
}

TEST_F(CatalogueTest, HungEnumerateIsListed) {
  Put(18);
  options_.time_limit_ms = 1000;
  Expect(Verdict::kHung, "enumerate did not end");
}

TEST_F(CatalogueTest, ThrowingGetInterface) {
  Put(64);
  Expect(Verdict::kRefused, "no interface today");
}

TEST_F(CatalogueTest, HungGetInterfaceIsListed) {
  Put(65);
  options_.time_limit_ms = 1000;
  Expect(Verdict::kHung, "did not end within 1000 ms");
}

TEST_F(CatalogueTest, AnOptionWithADefaultOutOfItsRangeIsRefused) {
  Put(22);
  Expect(Verdict::kRefused, "its option 'level': wanted an integer from 0 to 10, but its default is the integer 11");
}

TEST_F(CatalogueTest, AnOptionThatNoFileCouldNameIsRefused) {
  Put(68);
  Expect(Verdict::kRefused, "its option 'le?vel': a key has letters");
}

TEST_F(CatalogueTest, AnOptionWithoutValuesIsRefused) {
  Put(69);
  Expect(Verdict::kRefused, "its option 'level' has no values: they go from nan to 10");
}

TEST_F(CatalogueTest, ControlCharactersOfAPluginAreRemoved) {
  Put(66);
  const auto catalogue = Load();
  const device::Device* const toy = catalogue->devices().Find(kToy);
  ASSERT_NE(toy, nullptr);
  EXPECT_EQ(toy->info().display_name, "a toy??[31m");
}

TEST_F(CatalogueTest, DevicesBeyondAnyMachineAreLeftOut) {
  Put(67);
  const FileReport report = LoadOne();
  EXPECT_EQ(report.devices, 1024);
  EXPECT_NE(report.reason.find("more than 1024 devices"), std::string::npos) << report.reason;
}

TEST_F(CatalogueTest, RefusedKernelsOfALoadedFileAreReported) {
  Put(40);
  const FileReport report = LoadOne();
  EXPECT_EQ(report.verdict, Verdict::kLoaded);
  EXPECT_EQ(report.kernels, 1);
  EXPECT_NE(report.reason.find("kernel Identity: the core runs this op itself"), std::string::npos) << report.reason;
}

// Its constructor aborts, so its description was read without running it.
TEST_F(CatalogueTest, DescribedWithoutRunning) {
  const Result<PluginNote> note = ReadNoteFile(Put(8).string());
  ASSERT_TRUE(note.ok()) << note.status().ToString();
  EXPECT_EQ(note->name, "broken");
  EXPECT_EQ(note->version, "1.0.0");
  EXPECT_EQ(note->kinds, uint32_t{WEIR_KIND_DEVICE | WEIR_KIND_KERNELS});
  EXPECT_EQ(note->targets, std::vector<std::string>{"broken/1"});
}

// The kernel set would abort if it were loaded.
TEST_F(CatalogueTest, KernelSetWithoutItsPlatformIsNotLoaded) {
  Put(47);
  Expect(Verdict::kNoDevices, "no device of platform broken/1");
  EXPECT_TRUE(LoadOne().foreign);
}

TEST_F(CatalogueTest, DeniedIsNotLoaded) {
  Put(8);
  options_.deny = {"broken"};
  Expect(Verdict::kRefused, "denies");
}

TEST_F(CatalogueTest, TwoOfOneName) {
  Put(0, "a.so");
  Put(0, "b.so");
  const auto catalogue = Load();
  ASSERT_EQ(catalogue->files().size(), 2u);
  EXPECT_EQ(catalogue->files()[0].verdict, Verdict::kLoaded);
  EXPECT_EQ(catalogue->files()[1].verdict, Verdict::kRefused);
  EXPECT_NE(
      catalogue->files()[1].reason.find("a second plugin named 'broken'; the first is " + (folder_ / "a.so").string()),
      std::string::npos)
      << catalogue->files()[1].reason;
  EXPECT_EQ(catalogue->devices().all().size(), 1u);
}

TEST_F(CatalogueTest, SubfoldersHoldPluginsWithTheirDependencies) {
  fs::create_directory(folder_ / "toy");
  chmod((folder_ / "toy").c_str(), 0755);
  Put(0, "toy/broken.so");
  EXPECT_EQ(Load()->devices().all().size(), 1u);
}

TEST_F(CatalogueTest, FilesThatExplainNoFailedRequestAreNotNamed) {
  Put(0);
  Copy("flawed/flawed.so", "flawed.so");
  Copy("choosy/choosy.so", "choosy.so");  // kernels for a device that is not here
  options_.deny = {"flawed", "choosy"};
  const auto catalogue = Load();
  const std::vector<std::string> absent = catalogue->Absent();
  ASSERT_EQ(absent.size(), 1u) << absent.back();
  EXPECT_EQ(absent[0], "flawed: the configuration denies it");
}

TEST_F(CatalogueTest, FaultyWorkOfAKernelIsListed) {
  Put(72);
  const auto catalogue = Load();
  const FileReport& report = catalogue->files().front();
  EXPECT_EQ(report.verdict, Verdict::kLoaded);
  EXPECT_EQ(report.kernels, 2);
  EXPECT_EQ(report.reason,
            "kernel Square: flops_per_element is -3, wanted 1e-06 to 1e+12, or 0 for unknown; it counts as unknown");
}

TEST_F(CatalogueTest, WritableByOthersIsRefused) {
  const fs::path file = Put(8);
  chmod(file.c_str(), 0775);
  Expect(Verdict::kRefused, "may be written by its group or by others (mode 0775)");
  chmod(file.c_str(), 04755);
  Expect(Verdict::kRefused, "set-id");
  chmod(file.c_str(), 0755);
  chmod(folder_.c_str(), 0777);
  Expect(Verdict::kRefused, "may be written");
}

TEST_F(CatalogueTest, LinksOutOfTheFolderAreRefused) {
  const fs::path elsewhere = fs::path(WEIR_MUTANTS) / "broken_8" / "broken.so";
  fs::create_symlink(elsewhere, folder_ / "link.so");
  Expect(Verdict::kRefused, "leads out of");
  fs::remove(folder_ / "link.so");
  const fs::path real = Put(0, "real.so");
  fs::create_symlink("real.so", folder_ / "link.so");
  const auto catalogue = Load();
  EXPECT_EQ(catalogue->devices().all().size(), 1u) << "a link inside is the same plugin twice";
}

TEST_F(CatalogueTest, RelativeFoldersAreRefused) {
  options_.folders = {"plugins"};
  Expect(Verdict::kRefused, "no absolute path");
}

TEST_F(CatalogueTest, MemoryLimitsGoByDeviceName) {
  Put(0);
  options_.config.device["TOY:0"].memory_limit_mb = 4096.0 / (1 << 20);
  const auto catalogue = Load();
  const auto buffer = catalogue->devices().Find(kToy)->allocator().Allocate(8192);
  EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
  EXPECT_NE(buffer.status().message().find("4096"), std::string::npos);
}

TEST_F(CatalogueTest, BuffersOutliveTheCatalogue) {
  Put(0);
  std::shared_ptr<Buffer> buffer;
  {
    const auto catalogue = Load();
    buffer = *catalogue->devices().Find(kToy)->allocator().Allocate(100);
  }
  buffer->host()[99] = std::byte{1};
}

// A file for wider vectors beside one that runs, and alone. The key caps the instruction set, so the result does not
// depend on the CPU.
TEST_F(CatalogueTest, FormsForOtherInstructionsArePassedOver) {
  options_.config.plugins.isa = "x86-64";
  options_.config.plugins.strict = true;
  Rewrite(Put(0, "broken@v2.so"), [](weir_note_desc& note) { note.isa = WEIR_ISA_X86_64_V2; });
  Expect(Verdict::kRefused, "needs x86-64-v2, plugins.isa allows plain x86-64");
  EXPECT_EQ(Load()->config_faults().size(), 1u) << "no form of the plugin can run";
  EXPECT_EQ(Load()->Absent(), std::vector<std::string>{"broken: needs x86-64-v2, plugins.isa allows plain x86-64"});
  Rewrite(Put(0), [](weir_note_desc& note) { note.isa = 0; });
  const auto both = Load();
  ASSERT_EQ(both->files().size(), 2u);
  EXPECT_EQ(both->files()[0].verdict, Verdict::kLoaded) << both->files()[0].reason;
  EXPECT_EQ(Name(both->files()[1].verdict), "passed-over");
  EXPECT_EQ(both->files()[1].reason, "needs x86-64-v2, plugins.isa allows plain x86-64");
  EXPECT_TRUE(both->config_faults().empty()) << both->config_faults().front().message();
  EXPECT_EQ(both->Absent(), std::vector<std::string>());
}

// Neither a second file of a loaded plugin nor kernels for an absent platform count as missing.
TEST_F(CatalogueTest, F302_OnlyWhatIsNotThereCanBeTheCause) {
  Put(0, "a.so");
  Put(0, "b.so");
  EXPECT_EQ(Load()->Absent(), std::vector<std::string>());
  fs::remove(folder_ / "a.so");
  fs::remove(folder_ / "b.so");
  Put(41);
  ASSERT_EQ(Load()->Absent().size(), 1u);
  EXPECT_NE(Load()->Absent()[0].find("broken: init failed: "), std::string::npos) << Load()->Absent()[0];
}

TEST(SearchPath, EnvironmentNamesFolders) {
  setenv("WEIR_PLUGIN_PATH", "/a/b::/c", 1);
  EXPECT_EQ(SearchPath(), (std::vector<std::string>{"/a/b", "/c"}));
  unsetenv("WEIR_PLUGIN_PATH");
  ASSERT_EQ(SearchPath().size(), 1u);
  EXPECT_EQ(SearchPath()[0].front(), '/');
  EXPECT_TRUE(SearchPath()[0].ends_with("weir/plugins")) << SearchPath()[0];
}

}  // namespace
}  // namespace weir::plugin
