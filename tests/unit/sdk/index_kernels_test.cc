// Kernels led by indices in the data: gathers, stitches, scatters, segments, distinct elements.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

Value Ints(std::vector<int64_t> dims, std::vector<int32_t> elements) { return Of<int32_t>(std::move(dims), elements); }

const std::vector<double> kSix = {0, 1, 2, 3, 4, 5};

/// A gather from `params`, 0, 1, 2, … in that shape.
struct GatherRow {
  std::vector<int64_t> params, indices_shape;
  std::vector<double> indices;
  int64_t axis, batch_dims;
  std::vector<int64_t> dims;
  std::vector<double> wanted;
  const char* error = nullptr;
};

const GatherRow kGathers[] = {
    {{3, 2}, {2}, {2, 0}, 0, 0, {2, 2}, {4, 5, 0, 1}},
    {{3, 2}, {}, {1}, 0, 0, {2}, {2, 3}},
    {{3, 2}, {2, 1}, {1, 1}, 1, 0, {3, 2, 1}, {1, 1, 3, 3, 5, 5}},
    {{2, 3}, {1}, {2}, -1, 0, {2, 1}, {2, 5}},
    {{2, 3}, {2, 2}, {0, 2, 1, 0}, 1, 1, {2, 2}, {0, 2, 4, 3}},
    {{2, 3}, {2, 2}, {0, 2, 1, 0}, -1, -1, {2, 2}, {0, 2, 4, 3}},
    {{2, 2, 2}, {2, 1}, {1, 0}, 2, 1, {2, 2, 1}, {1, 3, 4, 6}},
    {{3}, {0}, {}, 0, 0, {0}, {}},
    {{2, 0}, {1}, {5}, 0, 0, {1, 0}, {}},
    {{3}, {2, 2}, {0, 1, 2, 7}, 0, 0, {2, 2}, {}, "indices[1,1] = 7 is not in [0, 3)"},
    {{3}, {}, {-1}, 0, 0, {}, {}, "indices = -1 is not in [0, 3)"},
    {{0, 3}, {1}, {0}, 0, 0, {1, 3}, {}, "indices[0] = 0 is not in [0, 0)"},
    {{2, 3}, {2, 2}, {0, 2, 1, 5}, 1, 1, {2, 2}, {}, "indices[1,1] = 5 is not in [0, 3)"},
    {{2, 3}, {3, 1}, {0, 0, 0}, 1, 1, {2, 1}, {}, "params.shape[0]: 2 should be equal to indices.shape[0]: 3"},
    {{2, 3}, {2}, {0, 0}, 0, 1, {2}, {}, "batch_dims (1) must be less than or equal to axis (0)."},
    {{2}, {1}, {0}, 1, 0, {1}, {}, "Expected axis in the range [-1, 1), but got 1"},
};

Value Counted(std::vector<int64_t> dims, uint32_t dtype) {
  std::vector<double> numbers(static_cast<size_t>(Blank(WEIR_UINT8, dims).size()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  return AsType(numbers, std::move(dims), dtype);
}

void Check(const Outcome& outcome, const GatherRow& row, const std::string& what) {
  if (row.error != nullptr) {
    EXPECT_EQ(outcome.code, WEIR_INVALID_ARGUMENT) << what;
    EXPECT_EQ(outcome.message, row.error) << what;
    return;
  }
  ASSERT_EQ(outcome.code, WEIR_OK) << what << ": " << outcome.message;
  EXPECT_EQ(Numbers(outcome.outputs[0]), row.wanted) << what;
}

TEST(Gather, RowsInEverySizeOfElementAndIndex) {
  for (const GatherRow& row : kGathers) {
    for (const uint32_t type : {WEIR_UINT8, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_INT64, WEIR_COMPLEX128}) {
      for (const uint32_t index_type : {WEIR_INT16, WEIR_INT32, WEIR_INT64}) {
        const std::string what = "GatherV2 in type " + std::to_string(type);
        const Attributes attributes = {
            {"Tparams", Type(type)}, {"dtype", Type(type)}, {"batch_dims", Number(row.batch_dims)}};
        const Value params = Counted(row.params, type), indices = AsType(row.indices, row.indices_shape, index_type);
        Check(Kernels().Call("GatherV2", attributes, {params, indices, Scalar(row.axis)}, {Blank(type, row.dims)}), row,
              what);
        if (row.axis == 0 && row.batch_dims == 0) {
          Check(Kernels().Call("Gather", attributes, {params, indices}, {Blank(type, row.dims)}), row, "Gather");
        }
        if (row.axis == row.batch_dims && row.batch_dims >= 0) {
          Check(Kernels().Call("ResourceGather", attributes, {params, indices}, {Blank(type, row.dims)}), row,
                "ResourceGather");
        }
      }
    }
  }
}

Outcome Stitch(const Value& i0, const Value& i1, const Value& d0, const Value& d1, std::vector<int64_t> dims) {
  return Kernels().Call("DynamicStitch", {{"T", Type(d0.dtype)}}, {i0, i1, d0, d1}, {Blank(d0.dtype, std::move(dims))});
}

TEST(DynamicStitch, LastRowStaysAndGapsAreZero) {
  for (const uint32_t type : {WEIR_UINT8, WEIR_FLOAT16, WEIR_INT32, WEIR_FLOAT64, WEIR_COMPLEX128}) {
    const Outcome outcome =
        Stitch(Ints({2}, {0, 2}), Ints({2}, {2, 4}), AsType({1, 2}, {2}, type), AsType({3, 4}, {2}, type), {5});
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    EXPECT_EQ(Numbers(outcome.outputs[0]), (std::vector<double>{1, 0, 3, 0, 4}));
  }
  const Outcome rows =
      Stitch(Ints({}, {1}), Ints({1, 1}, {0}), Of<float>({2}, {1, 2}), Of<float>({1, 1, 2}, {3, 4}), {2, 2});
  ASSERT_EQ(rows.code, WEIR_OK) << rows.message;
  EXPECT_EQ(Numbers(rows.outputs[0]), (std::vector<double>{3, 4, 1, 2}));
  const Outcome none = Stitch(Ints({0}, {}), Ints({0}, {}), Of<float>({0}, {}), Of<float>({0}, {}), {0});
  EXPECT_EQ(none.code, WEIR_OK) << none.message;
}

TEST(DynamicStitch, RefusesWhatDoesNotFit) {
  const Value data = Of<float>({2}, {1, 2});
  EXPECT_EQ(Stitch(Ints({2}, {0, -2}), Ints({2}, {2, 4}), data, data, {5}).message, "indices[1] is out of range");
  EXPECT_EQ(Stitch(Ints({2}, {0, 1}), Ints({2}, {5, 4}), data, data, {5}).message, "indices[0] is out of range");
  EXPECT_EQ(Stitch(Ints({2}, {0, 1}), Ints({2}, {2, 4}), Of<float>({2, 1}, {1, 2}), data, {5}).code,
            WEIR_INVALID_ARGUMENT);
}

TEST(OneHot, PlacesOnValuesAlongTheNewAxis) {
  for (const uint32_t type : {WEIR_UINT8, WEIR_FLOAT16, WEIR_INT32, WEIR_FLOAT64, WEIR_COMPLEX128}) {
    for (const uint32_t index_type : {WEIR_INT8, WEIR_INT32, WEIR_INT64}) {
      const auto call = [&](std::vector<double> indices, std::vector<int64_t> shape, int64_t axis, int32_t depth,
                            std::vector<int64_t> dims) {
        return Kernels().Call("OneHot", {{"T", Type(type)}, {"axis", Number(axis)}},
                              {AsType(indices, std::move(shape), index_type), Scalar(depth), AsType({5}, {}, type),
                               AsType({1}, {}, type)},
                              {Blank(type, std::move(dims))});
      };
      EXPECT_EQ(Numbers(call({0, 2}, {2}, -1, 3, {2, 3}).outputs[0]), (std::vector<double>{5, 1, 1, 1, 1, 5}));
      EXPECT_EQ(Numbers(call({0, 2}, {2}, 0, 3, {3, 2}).outputs[0]), (std::vector<double>{5, 1, 1, 1, 1, 5}));
      EXPECT_EQ(Numbers(call({0, 1, -1, 3}, {2, 2}, 1, 2, {2, 2, 2}).outputs[0]),
                (std::vector<double>{5, 1, 1, 5, 1, 1, 1, 1}));
      EXPECT_EQ(Numbers(call({1}, {}, -1, 2, {2}).outputs[0]), (std::vector<double>{1, 5}));
      EXPECT_EQ(call({1}, {1}, -1, 0, {1, 0}).code, WEIR_OK);
      EXPECT_EQ(call({1}, {1}, -1, -1, {1, 0}).message, "depth must be non-negative, got: -1");
      EXPECT_EQ(call({1}, {1}, 2, 1, {1, 1}).message, "Expected axis to be -1 or between [0, 2).  But received: 2");
    }
  }
}

std::vector<uint32_t> NumberTypes(const std::string& op) {
  std::vector<uint32_t> types = {WEIR_FLOAT32,    WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_COMPLEX64,
                                 WEIR_COMPLEX128, WEIR_INT8,    WEIR_INT16,   WEIR_INT32,    WEIR_INT64,
                                 WEIR_UINT8,      WEIR_UINT16,  WEIR_UINT32,  WEIR_UINT64};
  std::erase_if(types, [&](uint32_t type) {
    return Kernels().Find(op, {{"T", Type(type)}, {"dtype", Type(type)}}) == nullptr;
  });
  return types;
}

TEST(Scatter, RowsAddUp) {
  for (const char* op : {"ScatterAdd", "ScatterSub", "ResourceScatterAdd"}) {
    const std::vector<uint32_t> types = NumberTypes(op);
    ASSERT_GE(types.size(), 4u) << op;
    for (const uint32_t type : types) {
      const bool resource = op[0] == 'R', add = op[7] == 'A' || resource;
      const auto call = [&](const Value& indices, const Value& updates) {
        std::vector<Value> outputs;
        if (!resource) outputs.push_back(Blank(type, {2, 2}));
        return Kernels().Call(op, {{"T", Type(type)}, {"dtype", Type(type)}},
                              {AsType({10, 20, 30, 40}, {2, 2}, type), indices, updates}, outputs);
      };
      const auto expect = [&](const Outcome& outcome, const std::vector<double>& change) {
        ASSERT_EQ(outcome.code, WEIR_OK) << op << ": " << outcome.message;
        std::vector<double> wanted = {10, 20, 30, 40};
        for (size_t i = 0; i < 4; ++i) wanted[i] += add ? change[i] : -change[i];
        EXPECT_EQ(Numbers(outcome.inputs[0]), wanted) << op << " in type " << type;
        if (!resource) {
          EXPECT_EQ(Numbers(outcome.outputs[0]), wanted) << op << " in type " << type;
        }
      };
      expect(call(Ints({2}, {0, 0}), AsType({1, 2, 3, 4}, {2, 2}, type)), {4, 6, 0, 0});
      expect(call(Of<int64_t>({}, {1}), AsType({1, 2}, {2}, type)), {0, 0, 1, 2});
      expect(call(Ints({3}, {0, 1, 0}), AsType({2}, {}, type)), {4, 4, 2, 2});
      expect(call(Ints({0}, {}), AsType({}, {0, 2}, type)), {0, 0, 0, 0});
    }
  }
}

TEST(Scatter, AWrongIndexChangesNothing) {
  const Value variable = Of<float>({2, 2}, {1, 2, 3, 4});
  const auto call = [&](const Value& indices, const Value& updates) {
    return Kernels().Call("ScatterAdd", {}, {variable, indices, updates}, {Blank(WEIR_FLOAT32, {2, 2})});
  };
  const Outcome outcome = call(Ints({2}, {0, 5}), Of<float>({2, 2}, {1, 1, 1, 1}));
  EXPECT_EQ(outcome.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message, "indices[1] = 5 is not in [0, 2)");
  EXPECT_EQ(Elements<float>(outcome.inputs[0]), Elements<float>(variable));
  EXPECT_EQ(call(Ints({2}, {0, -1}), Scalar(1.0f)).message, "indices[1] = -1 is not in [0, 2)");
  EXPECT_EQ(
      call(Ints({2}, {0, 1}), Of<float>({2, 3}, {1, 1, 1, 1, 1, 1})).message,
      "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape [2,3], "
      "indices.shape [2], params.shape [2,2]");
}

TEST(UnsortedSegmentSum, RowsBySegment) {
  const std::vector<uint32_t> types = NumberTypes("UnsortedSegmentSum");
  ASSERT_GE(types.size(), 4u);
  for (const uint32_t type : types) {
    const auto call = [&](const Value& data, const Value& ids, int32_t segments, std::vector<int64_t> dims) {
      return Kernels().Call("UnsortedSegmentSum", {{"T", Type(type)}}, {data, ids, Scalar(segments)},
                            {Blank(type, std::move(dims))});
    };
    const Value six = AsType(kSix, {3, 2}, type);
    EXPECT_EQ(Numbers(call(six, Ints({3}, {1, -1, 1}), 3, {3, 2}).outputs[0]), (std::vector<double>{0, 0, 4, 6, 0, 0}));
    EXPECT_EQ(Numbers(call(six, Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 1}), 2, {2}).outputs[0]),
              (std::vector<double>{3, 12}));
    EXPECT_EQ(Numbers(call(six, Ints({}, {0}), 1, {1, 3, 2}).outputs[0]), kSix);
    EXPECT_EQ(call(AsType({}, {0, 2}, type), Ints({0}, {}), 0, {0, 2}).code, WEIR_OK);
    EXPECT_EQ(call(six, Ints({3}, {0, 1, 7}), 2, {2, 2}).message, "segment_ids[2] = 7 is out of range [0, 2)");
    EXPECT_EQ(call(six, Ints({3}, {0, 1, 0}), -2, {2, 2}).message, "Input num_segments == -2 must not be negative.");
    EXPECT_EQ(call(six, Ints({2}, {0, 1}), 2, {2, 2}).code, WEIR_INVALID_ARGUMENT);
  }
}

Attributes Types(uint32_t type, uint32_t out, uint32_t out1 = WEIR_INT32) {
  return {{"T", Type(type)}, {"out", Type(out)}, {"out1", Type(out1)}, {"out_idx", Type(out1)}};
}

TEST(Where, CoordinatesOfWhatIsNotZero) {
  for (const uint32_t type : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_INT32, WEIR_INT64, WEIR_BOOL}) {
    const Attributes attributes = {{"T", Type(type)}, {"out", Type(WEIR_INT64)}};
    const Outcome outcome = Kernels().CallDynamic("Where", attributes, {AsType({0, 1, 0, 0, 0, 1}, {2, 3}, type)});
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    EXPECT_EQ(outcome.outputs[0].dims, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(Elements<int64_t>(outcome.outputs[0]), (std::vector<int64_t>{0, 1, 1, 2}));
    const Outcome none = Kernels().CallDynamic("Where", attributes, {AsType({}, {0, 2}, type)});
    ASSERT_EQ(none.code, WEIR_OK) << none.message;
    EXPECT_EQ(none.outputs[0].dims, (std::vector<int64_t>{0, 2}));
  }
  const Outcome scalar = Kernels().CallDynamic("Where", {{"T", Type(WEIR_INT32)}, {"out", Type(WEIR_INT64)}},
                                               {AsType({1}, {}, WEIR_INT32)});
  EXPECT_EQ(scalar.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(scalar.message, "WhereOp : Unhandled input dimensions: 0");
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Outcome odd = Kernels().CallDynamic("Where", {{"T", Type(WEIR_FLOAT64)}, {"out", Type(WEIR_INT64)}},
                                            {Of<double>({3}, {kNaN, -0.0, 2})});
  EXPECT_EQ(Elements<int64_t>(odd.outputs[0]), (std::vector<int64_t>{0, 2}));
}

TEST(Unique, FirstAppearanceDecidesTheOrder) {
  for (const uint32_t type : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_INT32, WEIR_INT64}) {
    for (const uint32_t index_type : {WEIR_INT32, WEIR_INT64}) {
      const Outcome outcome =
          Kernels().CallDynamic("Unique", Types(type, type, index_type), {AsType({7, 2, 7, 7, 1, 2}, {6}, type)});
      ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
      EXPECT_EQ(Numbers(outcome.outputs[0]), (std::vector<double>{7, 2, 1}));
      EXPECT_EQ(Numbers(outcome.outputs[1]), (std::vector<double>{0, 1, 0, 0, 2, 1}));
      EXPECT_EQ(Kernels().CallDynamic("Unique", Types(type, type), {AsType({}, {0}, type)}).outputs[0].size(), 0);
    }
  }
  const Outcome refused = Kernels().CallDynamic("Unique", Types(WEIR_INT32, WEIR_INT32), {Ints({1, 1}, {0})});
  EXPECT_EQ(refused.message, "unique expects a 1D vector.");
}

TEST(Unique, ZerosAreOneAndNaNsAreMany) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Outcome outcome = Kernels().CallDynamic("Unique", Types(WEIR_FLOAT64, WEIR_FLOAT64),
                                                {Of<double>({6}, {1, kNaN, kNaN, -0.0, 0.0, 1})});
  ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
  ASSERT_EQ(outcome.outputs[0].size(), 4);
  EXPECT_TRUE(std::isnan(Elements<double>(outcome.outputs[0])[2]));
  EXPECT_TRUE(std::signbit(Elements<double>(outcome.outputs[0])[3]));
  EXPECT_EQ(Elements<int32_t>(outcome.outputs[1]), (std::vector<int32_t>{0, 1, 2, 3, 3, 0}));
}

TEST(ListDiff, WhatIsNotInTheOther) {
  const Outcome outcome = Kernels().CallDynamic("ListDiff", Types(WEIR_INT32, WEIR_INT32, WEIR_INT64),
                                                {Ints({4}, {1, 2, 3, 2}), Ints({2}, {2, 9})});
  ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
  EXPECT_EQ(Elements<int32_t>(outcome.outputs[0]), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(Elements<int64_t>(outcome.outputs[1]), (std::vector<int64_t>{0, 2}));
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Outcome odd = Kernels().CallDynamic("ListDiff", Types(WEIR_FLOAT32, WEIR_FLOAT32),
                                            {Of<float>({3}, {1, kNaN, -0.0f}), Of<float>({2}, {0, kNaN})});
  EXPECT_EQ(Elements<int32_t>(odd.outputs[1]), (std::vector<int32_t>{0, 1}));
  const Outcome refused =
      Kernels().CallDynamic("ListDiff", Types(WEIR_INT32, WEIR_INT32), {Ints({1}, {1}), Ints({}, {2})});
  EXPECT_EQ(refused.message, "y should be a 1D vector.");
}

}  // namespace
}  // namespace weir::sdk::test
