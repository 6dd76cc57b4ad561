// Lookup tables. Texts and values are those of TensorFlow 2.17.1.
#include <filesystem>
#include <fstream>

#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class Tables : public Calls {
 protected:
  using Outputs = Result<std::vector<Tensor>>;
  static op::AttrList Types(DType key = DType::kString, DType value = DType::kInt64) {
    return {{"key_dtype", key}, {"value_dtype", value}};
  }
  static Tensor Texts(const std::vector<std::string>& texts) { return Tensor::Vector(texts); }
  static Tensor Longs(const std::vector<int64_t>& values) { return Tensor::Vector(values); }
  static op::AttrList Pair(const char* key, const Tensor& k, const char* value, const Tensor& v) {
    return {{key, k.dtype()}, {value, v.dtype()}};
  }
  Outputs Initialize(const Tensor& table, const Tensor& keys, const Tensor& values) {
    return Call("InitializeTableV2", {table, keys, values}, Pair("Tkey", keys, "Tval", values));
  }
  Outputs Insert(const Tensor& table, const Tensor& keys, const Tensor& values) {
    return Call("LookupTableInsertV2", {table, keys, values}, Pair("Tin", keys, "Tout", values));
  }
  Outputs Find(const Tensor& table, const Tensor& keys, const Tensor& fallback) {
    return Call("LookupTableFindV2", {table, keys, fallback}, Pair("Tin", keys, "Tout", fallback));
  }
  int64_t Size(const Tensor& table) { return One("LookupTableSizeV2", {table}).as<int64_t>()[0]; }
  void Fine(const Outputs& got) { EXPECT_TRUE(got.ok()) << got.status().ToString(); }
  void Gives(const Outputs& got, const Tensor& wanted) {
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(wanted)) << (*got)[0].SummarizeValues(-1);
  }
};

TEST_F(Tables, StaticOnesAreFilledOnce) {
  const Tensor table = One("HashTableV2", {}, Types());
  const Tensor none = Tensor::Scalar<int64_t>(-1);
  EXPECT_EQ(Size(table), 0);
  Refused(Find(table, Texts({"a"}), none), Code::kFailedPrecondition, "Table not initialized.");
  Fine(Initialize(table, Texts({"a", "b"}), Longs({1, 2})));
  Fine(Initialize(table, Texts({"a", "b"}), Longs({1, 2})));
  Refused(Initialize(table, Texts({"a"}), Longs({1})), Code::kFailedPrecondition,
          "Table was already initialized with different data.");
  Gives(Find(table, Tensor::Of<std::string>(Shape{2, 1}, {"a", "z"}), none), Tensor::Of<int64_t>(Shape{2, 1}, {1, -1}));
  Refused(Insert(table, Texts({"a"}), Longs({1})), Code::kUnimplemented,
          "Insert not supported by InitializableLookupTable implementations");
  Refused(Call("LookupTableRemoveV2", {table, Texts({"a"})}, {{"Tin", DType::kString}}), Code::kUnimplemented,
          "Remove not supported by InitializableLookupTable implementations");
  Refused(Find(table, Texts({"a"}), Longs({1, 2})), Code::kInvalidArgument,
          "Expected shape [] or [1] for default value, got [2]");
  Refused(Find(table, Longs({1}), none), Code::kInvalidArgument, "Signature mismatch, have: resource, int64, int64");
  EXPECT_TRUE(One("HashTableV2", {}, Types()).SameBits(table)) << "the node's own, made once";
}

TEST_F(Tables, DuplicatesOfAStaticOneAgree) {
  Refused(Initialize(One("HashTableV2", {}, Types()), Texts({"a", "a"}), Longs({1, 2})), Code::kFailedPrecondition,
          "HashTable has different value for same key. Key a has [1] and trying to add value [2]");
  const Tensor table = One("HashTableV2", {}, Types());
  Fine(Initialize(table, Texts({"a", "a"}), Longs({1, 1})));
  EXPECT_EQ(Size(table), 1);
  Refused(Initialize(table, Texts({"a", "b"}), Longs({1})), Code::kInvalidArgument,
          "Keys and values must have the same size 2 vs 1");
}

TEST_F(Tables, MutableOnesInsertRemoveExportAndImport) {
  const Tensor table = One("MutableHashTableV2", {}, Types());
  Fine(Insert(table, Texts({"a", "b"}), Longs({1, 2})));
  Fine(Insert(table, Texts({"a"}), Longs({5})));
  Gives(Find(table, Texts({"a", "z", "y"}), Longs({7, 8, 9})), Longs({5, 8, 9}));
  Fine(Call("LookupTableRemoveV2", {table, Texts({"a", "q"})}, {{"Tin", DType::kString}}));
  const op::AttrList types = {{"Tkeys", DType::kString}, {"Tvalues", DType::kInt64}};
  Refused(Call("LookupTableExportV2", {table}, {{"Tkeys", DType::kInt64}, {"Tvalues", DType::kInt64}}),
          Code::kInvalidArgument, "Signature mismatch, have: resource->int64, int64 expected: resource->string, int64");
  const auto all = Call("LookupTableExportV2", {table}, types);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE((*all)[0].SameBits(Texts({"b"})));
  EXPECT_TRUE((*all)[1].SameBits(Longs({2})));
  Fine(Call("LookupTableImportV2", {table, Texts({"q"}), Longs({9})},
            {{"Tin", DType::kString}, {"Tout", DType::kInt64}}));
  EXPECT_EQ(Size(table), 1);
  Refused(Insert(table, Texts({"a", "b"}), Longs({1})), Code::kInvalidArgument,
          "Expected shape [2] for value, got [1]");
  Refused(Initialize(table, Texts({"a"}), Longs({1})), Code::kInvalidArgument, " is not initializable");
}

TEST_F(Tables, ValuesMayBeTensors) {
  op::AttrList attrs = Types(DType::kString, DType::kFloat);
  attrs.emplace_back("value_shape", PartialShape{2});
  const Tensor table = One("MutableHashTableOfTensorsV2", {}, attrs);
  Fine(Insert(table, Texts({"a"}), Tensor::Of<float>(Shape{1, 2}, {1, 2})));
  Gives(Find(table, Texts({"a", "b"}), Floats({0, 9})), Tensor::Of<float>(Shape{2, 2}, {1, 2, 0, 9}));
  Refused(Insert(table, Texts({"a"}), Floats({1, 2})), Code::kInvalidArgument,
          "Expected shape [1,2] for value, got [2]");
}

TEST_F(Tables, DenseOnesKeepTwoKeysForThemselves) {
  const Tensor empty = Tensor::Scalar<int64_t>(-1), deleted = Tensor::Scalar<int64_t>(-2);
  const op::AttrList types = Types(DType::kInt64, DType::kFloat);
  const Tensor table = One("MutableDenseHashTableV2", {empty, deleted}, types);
  Fine(Insert(table, Longs({5, 6}), Floats({1, 2})));
  Gives(Find(table, Longs({5, 7}), Tensor::Scalar(0.f)), Floats({1, 0}));
  Refused(Insert(table, Longs({-1}), Floats({1})), Code::kInvalidArgument,
          "Using the empty_key as a table key is not allowed");
  Refused(Find(table, Longs({-2}), Tensor::Scalar(0.f)), Code::kInvalidArgument,
          "Using the deleted_key as a table key is not allowed");
  Refused(Call("MutableDenseHashTableV2", {empty, empty}, types), Code::kInvalidArgument,
          "Empty and deleted keys cannot be equal");
}

class Vocabularies : public Tables {
 protected:
  void SetUp() override {
    Tables::SetUp();
    path_ = (std::filesystem::temp_directory_path() / ("weir-vocabulary-" + std::to_string(getpid()))).string();
    std::ofstream(path_) << "a 1\nb 2\nc 3\n";
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Outputs Read(const Tensor& table, int64_t key, int64_t value, op::AttrList more = {}) {
    more.insert(more.end(), {{"key_index", key}, {"value_index", value}, {"delimiter", std::string(" ")}});
    return Call("InitializeTableFromTextFileV2", {table, Tensor::String(path_)}, more);
  }
  Tensor Make(DType key = DType::kString, DType value = DType::kInt64) {
    scope_.Clear();
    return One("HashTableV2", {}, Types(key, value));
  }
  std::string path_;
};

TEST_F(Vocabularies, LinesColumnsAndNumbersAreKeysAndValues) {
  const Tensor none = Tensor::Scalar<int64_t>(-1);
  Tensor table = Make();
  Fine(Read(table, -2, -1));
  Gives(Find(table, Texts({"b 2"}), none), Longs({1}));
  table = Make();
  Fine(Read(table, 0, 1));
  Gives(Find(table, Texts({"b", "c"}), none), Longs({2, 3}));
  table = Make();
  Fine(Read(table, -2, -1, {{"vocab_size", int64_t{2}}, {"offset", int64_t{10}}}));
  Gives(Find(table, Texts({"b 2", "c 3"}), none), Longs({11, -1}));
  table = Make(DType::kInt64, DType::kString);
  Fine(Read(table, -1, -2));
  Gives(Find(table, Longs({1, 5}), Tensor::String("?")), Texts({"b 2", "?"}));
}

TEST_F(Vocabularies, BadFilesAreRefused) {
  Refused(Read(Make(), -2, -1, {{"vocab_size", int64_t{5}}}), Code::kInvalidArgument,
          "Invalid vocab_size in " + path_ + ": expected 5 but got 3");
  Refused(Read(Make(), 0, 2), Code::kInvalidArgument,
          "Invalid number of columns in " + path_ + " line 0 (a 1) : expected at least 3 got 2");
  Refused(Read(Make(), 1, 0), Code::kInvalidArgument, "Field a in line 0 is not a valid int64.");
  Refused(Read(Make(), -1, 1), Code::kInvalidArgument,
          "Key index for line number requires table key dtype of int64, got string");
  Refused(Call("InitializeTableFromTextFileV2", {Make(), Tensor::String("/nonexistent/vocabulary")},
               {{"key_index", int64_t{-2}}, {"value_index", int64_t{-1}}}),
          Code::kNotFound, "/nonexistent/vocabulary");
}

}  // namespace
}  // namespace weir::builtin
