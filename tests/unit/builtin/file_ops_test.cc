// Checkpoints of version 1, and files as strings.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/io/files.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

/// A folder that is removed with everything in it.
struct OwnFolder {
  OwnFolder() {
    path = (std::filesystem::temp_directory_path() / "weir-files-XXXXXX").string();
    EXPECT_NE(mkdtemp(path.data()), nullptr);
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

class FileOps : public Calls {
 protected:
  std::string In(const std::string& name) const { return dir_.path + "/" + name; }
  static Tensor Texts(const std::vector<std::string>& texts) { return Tensor::Vector(texts); }
  static Tensor Text(const std::string& text) { return Tensor::String(text); }
  Result<std::vector<Tensor>> Save(const std::string& file, const std::vector<std::string>& names,
                                   const std::vector<Tensor>& tensors) {
    std::vector<Tensor> inputs = {Text(In(file)), Texts(names)};
    std::vector<DType> types;
    for (const Tensor& tensor : tensors) types.push_back(tensor.dtype());
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
    return Call("Save", std::move(inputs), {{"T", types}});
  }
  Result<std::vector<Tensor>> Restore(const std::string& file, const std::string& name, DType dtype) {
    return Call("Restore", {Text(In(file)), Text(name)}, {{"dt", dtype}});
  }

  OwnFolder dir_;
};

TEST_F(FileOps, F012_SaveWritesTensorFlowsBytes) {
  ASSERT_TRUE(Save("ck", {"a", "b", "c"}, {Floats({1, 2}), Int(5), Texts({"x", "yy"})}).ok());
  const Result<std::string> file = io::ReadFile(In("ck"), 1 << 20);
  ASSERT_TRUE(file.ok());
  // The table of TensorFlow 2.17's op for the same tensors.
  constexpr std::string_view kFirst(
      "\x00\x00\x33\n1\n\x0f\n\x01"
      "a\x12\x04\x12\x02\x08\x02\x18\x01\"\x02\n\x00\n\t\n\x01"
      "b\x12\x00\x18\x03\"\x00\n\x0f\n\x01"
      "c\x12\x04\x12\x02\x08\x02\x18\x07\"\x02\n\x00\x12\x02\x08\x01\x00\x08\x15\x00"
      "a\x00\x01\x01\x01\x80\x7f\x12\x13\n\x01"
      "a\x12\x02\n\x00\x1a\n*\x08\x00\x00\x80?\x00\x00\x00@",
      86);
  EXPECT_EQ(file->substr(0, kFirst.size()), kFirst);
}

TEST_F(FileOps, F012_SaveThenRestoreEveryType) {
  std::vector<Tensor> tensors = {Floats({1.5f, -2}),
                                 Tensor::Vector<double>({0.1}),
                                 Int(-7),
                                 Tensor::Vector<int64_t>({1, int64_t{1} << 40}),
                                 Texts({"x", "", "yy"}),
                                 Tensor::Scalar(true),
                                 Tensor::Vector<uint8_t>({255, 0}),
                                 Tensor::Vector<int8_t>({-128, 127}),
                                 Tensor::Vector<int16_t>({-5}),
                                 Tensor::Vector<uint16_t>({65535})};
  for (const DType type :
       {DType::kHalf, DType::kComplex64, DType::kComplex128, DType::kQint8, DType::kQuint8, DType::kQint32}) {
    Result<Tensor> made = Tensor::Make(type, Shape::Of({2}));
    ASSERT_TRUE(made.ok());
    for (size_t i = 0; i < 2 * SizeOf(type); ++i) made->mutable_raw()[i] = static_cast<std::byte>(i + 1);
    tensors.push_back(*made);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < tensors.size(); ++i) names.push_back("t" + std::to_string(i));
  ASSERT_TRUE(Save("all", names, tensors).ok());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Result<std::vector<Tensor>> got = Restore("all", names[i], tensors[i].dtype());
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    if (tensors[i].dtype() == DType::kString) {
      EXPECT_EQ((*got)[0].as<std::string>()[2], "yy");
    } else {
      EXPECT_TRUE((*got)[0].SameBits(tensors[i])) << Name(tensors[i].dtype());
    }
  }
  Refused(Save("odd", {"a"}, {*Tensor::Make(DType::kBfloat16, Shape::Of({1}))}), Code::kUnimplemented,
          "Saving data type bfloat16 not yet supported");
}

TEST_F(FileOps, F012_SlicesOfATensor) {
  const auto save = [&](const std::string& file, const std::string& spec, const Tensor& part) {
    return Call("SaveSlices", {Text(In(file)), Texts({"w"}), Texts({spec}), part},
                {{"T", std::vector<DType>{part.dtype()}}});
  };
  ASSERT_TRUE(save("w-0", "4 2 0,2:-", Tensor::Of(Shape::Of({2, 2}), std::vector<float>{1, 2, 3, 4})).ok());
  ASSERT_TRUE(save("w-1", "4 2 2,2:-", Tensor::Of(Shape::Of({2, 2}), std::vector<float>{5, 6, 7, 8})).ok());
  const auto slice = [&](const std::string& file, const std::string& spec) {
    return Call("RestoreSlice", {Text(In(file)), Text("w"), Text(spec)}, {{"dt", DType::kFloat}});
  };
  // Both files match the pattern.
  EXPECT_EQ(Values((*Restore("w-?", "w", DType::kFloat))[0]), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(Values((*slice("w-?", "4 2 1,2:1,1"))[0]), (std::vector<float>{4, 6}));
  EXPECT_EQ(Values((*slice("w-0", "4 2 1,1:0,1"))[0]), std::vector<float>{3});
  Refused(slice("w-0", "4 2 2,1:-"), Code::kInvalidArgument, "Error copying slice data");
  Refused(slice("w-0", ""), Code::kInvalidArgument, "Error copying slice data");
  Refused(slice("w-0", "4 3 1,1:-"), Code::kInvalidArgument,
          "Shape in shape_and_slice spec does not match the shape in the save file: [4,3], save file shape: [4,2]");
  Refused(save("w-2", "4 2 0,2:-", Floats({1, 2})), Code::kInvalidArgument,
          "Slice in shape_and_slice specification does not match the shape of the tensor to  save: 4 2 0,2:-");
}

TEST_F(FileOps, F012_RestoreErrorsAreTensorFlowsTexts) {
  ASSERT_TRUE(Save("ck", {"a"}, {Floats({1, 2})}).ok());
  std::ofstream(In("text")) << "1";
  Refused(Restore("ck", "z", DType::kFloat), Code::kNotFound, "Tensor name \"z\" not found in checkpoint files");
  Refused(Restore("ck", "a", DType::kString), Code::kInvalidArgument,
          "Expected to restore a tensor of type string, got a tensor of type float instead: tensor_name = a");
  Refused(Restore("none", "a", DType::kFloat), Code::kNotFound,
          "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for");
  Refused(Restore("text", "a", DType::kFloat), Code::kDataLoss, "Unable to open table file");
  Refused(Call("Save", {Text(In("ck")), Texts({"a"}), Floats({1}), Floats({2})},
               {{"T", std::vector<DType>{DType::kFloat, DType::kFloat}}}),
          Code::kInvalidArgument, "Expected totally 3 inputs as input #1");
}

/// Every byte of a small checkpoint changed or cut off is an error or gives the tensor, and nothing else.
TEST_F(FileOps, DamagedCheckpointsAreErrors) {
  ASSERT_TRUE(Save("ck", {"a"}, {Floats({1, 2})}).ok());
  const std::string whole = *io::ReadFile(In("ck"), 1 << 20);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    ASSERT_TRUE(io::WriteFileAtomically(In("bad"), changed).ok());
    EXPECT_FALSE(Restore("bad", "a", DType::kFloat).ok()) << i;
    ASSERT_TRUE(io::WriteFileAtomically(In("cut"), whole.substr(0, i)).ok());
    EXPECT_FALSE(Restore("cut", "a", DType::kFloat).ok()) << i;
  }
}

TEST_F(FileOps, RestoreV2ReadsVersion1) {
  ASSERT_TRUE(Save("ck", {"a", "b"}, {Floats({1, 2}), Int(5)}).ok());
  const Result<std::vector<Tensor>> got = Call("RestoreV2", {Text(In("ck")), Texts({"b", "a"}), Texts({"", "2 1,1"})},
                                               {{"dtypes", std::vector<DType>{DType::kInt32, DType::kFloat}}});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ((*got)[0].as<int32_t>()[0], 5);
  EXPECT_EQ(Values((*got)[1]), std::vector<float>{2});
}

TEST_F(FileOps, ARealCheckpointOfVersion1) {
  const char* data = std::getenv("WEIR_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
  const std::string pattern = std::string(data) + "/ckpt/v1/tf_half_plus_two/export-*-of-00001";
  for (const auto& [name, value] : {std::pair("a", 0.5f), std::pair("b", 2.0f)}) {
    const Tensor got = One("Restore", {Text(pattern), Text(name)}, {{"dt", DType::kFloat}});
    EXPECT_EQ(Values(got), std::vector<float>{value});
  }
}

TEST_F(FileOps, FilesAsStrings) {
  ASSERT_TRUE(Call("WriteFile", {Text(In("x/y/z.txt")), Text(std::string("a\0b", 3))}).ok());
  EXPECT_EQ(One("ReadFile", {Text(In("x/y/z.txt"))}).as<std::string>()[0], std::string("a\0b", 3));
  Refused(Call("ReadFile", {Text(In("nope"))}), Code::kNotFound, "nope; No such file or directory");
  Refused(Call("ReadFile", {Texts({"a"})}), Code::kInvalidArgument,
          "Input filename tensor must be scalar, but had shape: [1]");
  Refused(Call("WriteFile", {Text(In("q")), Texts({"a"})}), Code::kInvalidArgument,
          "Contents tensor must be scalar, but had shape: [1]");
}

TEST_F(FileOps, FilesByPattern) {
  std::filesystem::create_directory(In("sub"));
  for (const char* name : {"b.txt", "a.txt", "c.bin", "sub/d.txt"}) std::ofstream(In(name)) << name;
  const auto matches = [&](const Tensor& patterns) {
    std::vector<std::string> names;
    const Tensor paths = One("MatchingFiles", {patterns});
    for (const std::string& path : paths.as<std::string>()) {
      names.push_back(path.substr(dir_.path.size() + 1));
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(matches(Text(In("*.txt"))), (Names{"a.txt", "b.txt"}));
  EXPECT_EQ(matches(Text(In("[bc].*"))), (Names{"b.txt", "c.bin"}));
  EXPECT_EQ(matches(Text(In("*/?.txt"))), (Names{"sub/d.txt"}));
  EXPECT_EQ(matches(Text(In("\\a.txt"))), (Names{"a.txt"}));
  EXPECT_EQ(matches(Text(In("a.txt"))), (Names{"a.txt"}));
  EXPECT_EQ(matches(Text(In("none"))), Names{});
  EXPECT_EQ(matches(Texts({In("sub/*"), In("c*")})), (Names{"c.bin", "sub/d.txt"}));
  EXPECT_EQ(matches(Texts({})), Names{});
}

TEST_F(FileOps, MatchesOfAPatternWithoutFolderAreBelowTheCurrentOne) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path);
  std::ofstream("only.txt") << "1";
  const Tensor paths = One("MatchingFiles", {Text("*.txt")});
  std::filesystem::current_path(before);
  ASSERT_EQ(paths.elements(), 1);
  EXPECT_EQ(paths.as<std::string>()[0], "./only.txt");
}

}  // namespace
}  // namespace weir::builtin
