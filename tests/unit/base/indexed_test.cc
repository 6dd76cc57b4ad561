#include "core/base/indexed.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace weir {
namespace {

using PearId = Id<struct PearTag>;
using PlumId = Id<struct PlumTag>;

static_assert(!std::is_convertible_v<PearId, PlumId> && !std::is_convertible_v<int, PearId>);
static_assert(!std::is_convertible_v<PearId, int>);
template <class Table, class Index>
concept TakesIndex = requires(Table table, Index index) {
  table[index];
};
static_assert(TakesIndex<IndexedVector<PearId, int>, PearId>);
static_assert(!TakesIndex<IndexedVector<PearId, int>, PlumId> && !TakesIndex<IndexedVector<PearId, int>, int>);

TEST(Indexed, NoneIsTheDefaultAndComesFirst) {
  EXPECT_FALSE(PearId().valid());
  EXPECT_TRUE(PearId(0).valid());
  EXPECT_LT(PearId(), PearId(0));
  EXPECT_LT(PearId(1), PearId(2));
  EXPECT_EQ(PearId(size_t{7}).number(), 7);
}

TEST(Indexed, AddGivesTheIndexOfWhatWasAdded) {
  IndexedVector<PearId, std::string> pears;
  EXPECT_EQ(pears.end_index(), PearId(0));
  const PearId first = pears.Add("a"), second = pears.Add("b");
  EXPECT_EQ(pears[first], "a");
  EXPECT_EQ(pears[second], "b");
  pears[first] = "c";
  EXPECT_EQ(pears.elements(), (std::vector<std::string>{"c", "b"}));
  EXPECT_TRUE(pears.Has(second));
  EXPECT_FALSE(pears.Has(pears.end_index()));
  EXPECT_FALSE(pears.Has(PearId()));
}

TEST(Indexed, IndicesComeInOrder) {
  const IndexedVector<PearId, int> none, three{5, 6, 7};
  for (const PearId id : none.indices()) FAIL() << id.number();
  std::vector<int> seen;
  for (const PearId id : three.indices()) seen.push_back(three[id] * 10 + id.number());
  EXPECT_EQ(seen, (std::vector<int>{50, 61, 72}));
}

TEST(Indexed, PlainIntegersAndBitsWorkToo) {
  IndexedVector<int, bool> done(3, false);
  const int node = 1;
  done[node] = true;
  EXPECT_FALSE(done[0]);
  EXPECT_TRUE(done[node]);
  done.resize(5, true);
  EXPECT_TRUE(done[4]);
}

TEST(Indexed, IdsAreKeys) {
  std::unordered_map<PearId, int> count;
  ++count[PearId(3)];
  ++count[PearId(3)];
  EXPECT_EQ(count[PearId(3)], 2);
}

TEST(IdRange, GoesForwardsAndBackwards) {
  std::vector<int> seen;
  const IdRange<PearId> all(3);
  for (const PearId id : all) seen.push_back(id.number());
  for (const PearId id : all.backwards()) seen.push_back(id.number());
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 2, 1, 0}));
  for (const PearId id : IdRange<PearId>(0).backwards()) ADD_FAILURE() << id.number();
}

TEST(IndexedTable, HasAnElementForEachPair) {
  IndexedTable<PearId, int, double> table(2, 3, 0.5);
  table(PearId(1), 2) = 7;
  EXPECT_EQ(table.elements(), (std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.5, 7}));
  EXPECT_EQ(table.Row(PearId(1)).back(), 7);
  table.AddRow(std::vector<double>{1, 2, 3});
  EXPECT_EQ(table(PearId(2), 1), 2);
  table.assign(1, 1);
  EXPECT_EQ(table.elements(), std::vector<double>{0});
}

TEST(IndexedVector, InsertsBeforeAnElement) {
  IndexedVector<PearId, int> things{1, 4};
  const std::vector<int> more = {2, 3};
  things.InsertAt(PearId(1), more.begin(), more.end());
  EXPECT_EQ(things, (IndexedVector<PearId, int>{1, 2, 3, 4}));
  things.emplace_back(5);
  EXPECT_EQ(things.back(), 5);
}

}  // namespace
}  // namespace weir
