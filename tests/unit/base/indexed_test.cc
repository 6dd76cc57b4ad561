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

}  // namespace
}  // namespace weir
