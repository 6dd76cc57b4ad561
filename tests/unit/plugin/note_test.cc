#include "core/plugin/note.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/plugin/elf_image.h"

namespace weir::plugin {
namespace {

Result<PluginNote> Read(const std::string& image) { return ReadNote(MemorySource(AsBytes(image))); }

std::string Describe(const weir_note_desc& desc) { return NoteRecord(kOwner, WEIR_NOTE_DESCRIPTION, DescBytes(desc)); }

void Refused(const std::string& image, Code code, std::string_view part) {
  const Status status = Read(image).status();
  EXPECT_EQ(status.code(), code) << part << ": " << status.ToString();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(Note, ReadsTheFilesNote) {
  const auto note = Read(ElfImage({{Describe(GoodDesc())}}));
  ASSERT_TRUE(note.ok()) << note.status().ToString();
  EXPECT_EQ(note->name, "toy");
  EXPECT_EQ(note->version, "1.2.3");
  EXPECT_EQ(note->vendor, "Example Ltd");
  EXPECT_EQ(note->targets, (std::vector<std::string>{"cuda/12", "cuda/13"}));
  EXPECT_EQ(note->abi_major, WEIR_ABI_MAJOR);
  EXPECT_EQ(note->built_minor, 3);
  EXPECT_EQ(note->needs_minor, 1);
  EXPECT_EQ(note->kinds, uint32_t{WEIR_KIND_KERNELS});
}

TEST(Note, FindsItAmongOthers) {
  const std::string others = NoteRecord(std::string_view("GNU\0", 4), 3, "build id of 20 bytes") +
                             NoteRecord(kOwner, 99, "a type of later days") +
                             NoteRecord(std::string_view("weird\0", 6), 1, "x");
  const auto note = Read(ElfImage({{NoteRecord(std::string_view("GNU\0", 4), 5, "12345678", 8), PT_NOTE, 8},
                                   {"code", PT_LOAD, 4096},
                                   {others + Describe(GoodDesc())},
                                   {UseRecord(2) + UseRecord(5) + UseRecord(4)}}));
  ASSERT_TRUE(note.ok()) << note.status().ToString();
  EXPECT_EQ(note->name, "toy");
  EXPECT_EQ(note->needs_minor, 5) << "the most that any record asks for";
}

TEST(Note, PaddingOfEight) {
  const std::string record = NoteRecord(kOwner, WEIR_NOTE_DESCRIPTION, DescBytes(GoodDesc()), 8);
  EXPECT_TRUE(Read(ElfImage({{record + NoteRecord(std::string_view("GNU\0", 4), 1, "abc", 8), PT_NOTE, 8}})).ok());
}

TEST(Note, LongerDescriptionsAreOfLaterDays) {
  EXPECT_TRUE(Read(ElfImage({{NoteRecord(kOwner, 1, DescBytes(GoodDesc()) + "and more fields")}})).ok());
  Refused(ElfImage({{NoteRecord(kOwner, 1, DescBytes(GoodDesc()).substr(0, 100))}}), Code::kInvalidArgument,
          "a description of 100 bytes");
}

TEST(Note, NoPlugin) {
  Refused("", Code::kNotFound, "no ELF file");
  Refused("#!/bin/sh\necho no", Code::kNotFound, "no ELF file");
  Refused(ElfImage({}), Code::kNotFound, "no note of weir");
  Refused(ElfImage({{NoteRecord(std::string_view("GNU\0", 4), 3, "id")}}), Code::kNotFound, "no note of weir");
}

TEST(Note, BadContents) {
  const auto with = [](auto change) {
    weir_note_desc desc = GoodDesc();
    change(desc);
    return ElfImage({{Describe(desc)}});
  };
  Refused(with([](auto& d) { d.magic[7] = '1'; }), Code::kInvalidArgument, "magic");
  Refused(with([](auto& d) { d.name[0] = '\0'; }), Code::kInvalidArgument, "name ''");
  Refused(with([](auto& d) { std::strcpy(d.name, "a/b"); }), Code::kInvalidArgument, "name 'a/b'");
  Refused(with([](auto& d) { std::memset(d.name, 'n', sizeof(d.name)); }), Code::kInvalidArgument,
          "name is not terminated");
  Refused(with([](auto& d) { std::memset(d.targets, 't', sizeof(d.targets)); }), Code::kInvalidArgument,
          "targets is not terminated");
  Refused(with([](auto& d) { d.vendor[1] = '\n'; }), Code::kInvalidArgument, "vendor holds the byte 0x0a");
  Refused(with([](auto& d) { d.machine = WEIR_MACHINE_AARCH64; }), Code::kInvalidArgument, "the note says machine 183");
  Refused(ElfImage({{Describe(GoodDesc()) + Describe(GoodDesc())}}), Code::kInvalidArgument, "2 descriptions");
  Refused(ElfImage({{Describe(GoodDesc())}, {Describe(GoodDesc())}}), Code::kInvalidArgument, "2 descriptions");
  Refused(ElfImage({{Describe(GoodDesc()) + NoteRecord(kOwner, WEIR_NOTE_USES_MINOR, "x")}}), Code::kInvalidArgument,
          "a use record of 1");
}

template <class T>
std::string Patch(std::string image, size_t at, T value) {
  std::memcpy(image.data() + at, &value, sizeof(value));
  return image;
}

TEST(Note, OtherKindsOfElf) {
  const std::string image = ElfImage({{Describe(GoodDesc())}});
  Refused(Patch(image, EI_CLASS, uint8_t{ELFCLASS32}), Code::kInvalidArgument, "ELF class 1");
  Refused(Patch(image, EI_DATA, uint8_t{ELFDATA2MSB}), Code::kInvalidArgument, "byte order 2");
  Refused(Patch(image, offsetof(Elf64_Ehdr, e_type), uint16_t{ET_EXEC}), Code::kInvalidArgument, "ELF type 2");
  Refused(Patch(image, offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_386}), Code::kInvalidArgument, "the ELF header 3");
  Refused(Patch(image, offsetof(Elf64_Ehdr, e_phentsize), uint16_t{8}), Code::kInvalidArgument,
          "program headers of 8 bytes");
  Refused(Patch(image, offsetof(Elf64_Ehdr, e_phnum), uint16_t{0xffff}), Code::kInvalidArgument,
          "65535 program headers");
  Refused(Patch(image, offsetof(Elf64_Ehdr, e_phoff), ~uint64_t{0}), Code::kInvalidArgument, "lie outside");
  const size_t program = sizeof(Elf64_Ehdr);
  Refused(Patch(image, program + offsetof(Elf64_Phdr, p_offset), ~uint64_t{0}), Code::kInvalidArgument, "outside");
  Refused(Patch(image, program + offsetof(Elf64_Phdr, p_filesz), ~uint64_t{0}), Code::kInvalidArgument, "outside");
}

TEST(Note, HugeSegmentsAreNotRead) {
  Refused(ElfImage({{std::string(65 * 1024, '\0')}}), Code::kInvalidArgument, "at most 65536 are read");
}

TEST(Note, RecordsThatOverrunEndTheWalk) {
  const std::string good = Describe(GoodDesc());
  for (const uint32_t size : {uint32_t{1000}, ~uint32_t{0}, ~uint32_t{0} - 3}) {
    std::string cut = NoteRecord(kOwner, 99, "data");
    EXPECT_TRUE(Read(ElfImage({{good + Patch(cut, 0, size)}})).ok()) << "what came before counts";
    EXPECT_TRUE(Read(ElfImage({{good + Patch(cut, 4, size)}})).ok());
    Refused(ElfImage({{Patch(cut, 0, size) + good}}), Code::kNotFound, "no note of weir");
  }
}

TEST(Note, EveryPrefixIsAnError) {
  const std::string image = ElfImage({{Describe(GoodDesc())}});
  for (size_t size = 0; size < image.size(); ++size) EXPECT_FALSE(Read(image.substr(0, size)).ok()) << size;
  EXPECT_TRUE(Read(image).ok());
}

// Any bytes give a result, never a crash. Sanitizers check it.
TEST(Note, EveryFlippedByteHasAnAnswer) {
  const std::string image = ElfImage({{Describe(GoodDesc()) + UseRecord(1)}, {"code", PT_LOAD, 4096}});
  int accepted = 0;
  for (size_t at = 0; at < image.size(); ++at) {
    for (const uint8_t bits : {0x01, 0x80, 0xff}) {
      std::string changed = image;
      changed[at] = static_cast<char>(changed[at] ^ bits);
      accepted += Read(changed).ok() ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 0) << "bytes of padding and vendor texts change nothing";
}

TEST(Note, GarbageHasAnAnswer) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 600, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(Read(bytes).ok());
    NoteRecords records;
    if (ParseNoteSegment(AsBytes(bytes), round % 2 == 0 ? 4 : 8, records).ok()) {
      EXPECT_TRUE(records.descriptions.empty());
    }
    if (bytes.size() > sizeof(Elf64_Ehdr)) {
      const std::string image = ElfImage({});
      EXPECT_FALSE(Read(image.substr(0, 32) + bytes.substr(32)).ok());
    }
  }
}

TEST(Note, FilesOtherThanPlugins) {
  std::string pattern = (std::filesystem::temp_directory_path() / "weir_note_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path folder = pattern;
  std::ofstream(folder / "text.so") << "no library";
  EXPECT_EQ(ReadNoteFile(folder / "text.so").status().code(), Code::kNotFound);
  EXPECT_EQ(ReadNoteFile(folder / "missing.so").status().code(), Code::kUnavailable);
  EXPECT_EQ(ReadNoteFile(folder).status().code(), Code::kInvalidArgument) << "a folder";
  ASSERT_EQ(mkfifo((folder / "pipe.so").c_str(), 0600), 0);
  EXPECT_EQ(ReadNoteFile(folder / "pipe.so").status().code(), Code::kInvalidArgument) << "and it does not wait";
  std::filesystem::create_symlink(folder / "text.so", folder / "link.so");
  EXPECT_EQ(ReadNoteFile(folder / "link.so").status().code(), Code::kUnavailable) << "links are resolved before";
  EXPECT_EQ(FileSource::Of(-1).status().code(), Code::kUnavailable);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir::plugin
