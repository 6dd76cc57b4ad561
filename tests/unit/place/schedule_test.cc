// Properties of list schedules, simulation and portfolio on small problems.
#include <gtest/gtest.h>

#include <random>

#include "core/place/list_schedule.h"
#include "core/place/portfolio.h"
#include "core/place/simulate.h"
#include "tests/unit/place/exact.h"
#include "tests/unit/place/random_problem.h"

namespace weir::place {
namespace {

/// A host device and `accelerators` devices with separate memory, and one byte per ns between each of them and the
/// host.
Problem Machine(int accelerators, bool direct = false, int64_t capacity = kUnlimited) {
  std::vector<DeviceCost> devices = {{.space = 0, .device_class = 0, .priority = 70}};
  for (int d = 1; d <= accelerators; ++d) {
    devices.push_back({.space = d, .device_class = 1, .priority = 210, .capacity_bytes = capacity});
  }
  const int spaces = accelerators + 1;
  std::vector<LinkCost> links(static_cast<size_t>(spaces * spaces), {.ns_per_byte = 1, .direct = direct});
  return Problem(devices, spaces, links);
}

TEST(SimulateTest, TransfersOverOneLinkQueueUp) {
  Problem problem = Machine(1);
  const int64_t on_host[] = {10, kImpossible};
  const int64_t on_device[] = {kImpossible, 5};
  for (int t = 0; t < 2; ++t) problem.AddTask(on_host, t);
  const int a = problem.AddValue({.task = 0, .bytes = 100});
  const int b = problem.AddValue({.task = 1, .bytes = 100});
  problem.AddTask(on_device, 2);
  problem.AddUse({a});
  problem.AddTask(on_device, 3);
  problem.AddUse({b});
  problem.Seal();
  const Simulation run = Simulate(problem, {0, 0, 1, 1}, UpwardRanks(problem));
  EXPECT_EQ(run.finish_ns, (std::vector<int64_t>{10, 20, 115, 215}));  // the second waits from 20 to 110
  EXPECT_EQ(run.link_wait_ns, (std::vector<int64_t>{0, 0, 0, 90}));
  EXPECT_EQ(run.transfers, 2);
  EXPECT_EQ(run.transferred_bytes, 200);
}

TEST(SimulateTest, F307_AValueCrossesOncePerSpaceAndTwoLinksWithoutADirectOne) {
  Problem problem = Machine(2);
  const int64_t times[] = {10, 10, 10};
  problem.AddTask(times, 0);
  const int value = problem.AddValue({.task = 0, .bytes = 100});
  for (int t = 1; t <= 3; ++t) {
    problem.AddTask(times, t);
    problem.AddUse({value});
  }
  problem.Seal();
  const Simulation run = Simulate(problem, {1, 2, 2, 0}, UpwardRanks(problem));
  EXPECT_EQ(run.transfers, 2);  // to device 2 and to the host
  EXPECT_EQ(run.finish_ns[3], 10 + 200 + 10 - 100);
  EXPECT_EQ(run.finish_ns[1], 220 + 100);  // after the other transfer to the host
}

TEST(SimulateTest, MemoryIsFreedAfterTheLastUse) {
  Problem problem = Machine(1, true, 250);
  const int64_t times[] = {100, 1};
  int value = -1;
  for (int t = 0; t < 5; ++t) {
    problem.AddTask(times, t, t == 0 ? 50 : 0);
    if (value >= 0) problem.AddUse({value});
    value = problem.AddValue({.task = t, .bytes = 100, .held_bytes = 100});
  }
  problem.Seal();
  const Simulation run = Simulate(problem, {1, 1, 1, 1, 1}, UpwardRanks(problem));
  EXPECT_EQ(run.peak_bytes[1], 250);  // the state, an input and an output
  EXPECT_TRUE(run.fits);
}

TEST(SimulateTest, F317_WhatADeviceReceivesTakesItsMemoryUntilTheLastUseThere) {
  // Devices 1 and 2 share a card. Task 0 reads a feed and a constant, tasks 1 and 2 read its output; 3 requires the
  // feed in host memory.
  const std::vector<DeviceCost> devices = {
      {.space = 0}, {.space = 1, .device_class = 1, .capacity_bytes = 160}, {.space = 1, .device_class = 1}};
  Problem problem(devices, 2, std::vector<LinkCost>(4, {.ns_per_byte = 1}));
  const int fed = problem.AddValue({.bytes = 100, .copied_bytes = 100});
  const int constant = problem.AddValue({.bytes = 8, .copied_bytes = 8, .constant = true});
  const int64_t times[] = {10, 10, 10};
  problem.AddTask(times, 0);
  problem.AddUse({fed});
  problem.AddUse({fed});
  problem.AddUse({constant});
  const int made = problem.AddValue({.task = 0, .bytes = 50, .held_bytes = 50, .copied_bytes = 50});
  for (int t = 1; t < 3; ++t) {
    problem.AddTask(times, t);
    problem.AddUse({made});
  }
  problem.AddTask(times, 3);
  problem.AddUse({fed, true});
  problem.AddUse({made});
  problem.Seal();
  const auto peaks = [&](std::vector<int> device_of) {
    return Simulate(problem, device_of, UpwardRanks(problem)).peak_bytes;
  };
  EXPECT_EQ(peaks({0, 0, 0, 0}), (std::vector<int64_t>{50, 0, 0}));     // all in host memory
  EXPECT_EQ(peaks({1, 1, 1, 1}), (std::vector<int64_t>{0, 158, 0}));    // feed, constant and the value
  EXPECT_EQ(peaks({1, 2, 2, 2}), (std::vector<int64_t>{0, 158, 50}));   // a copy, though there is no transfer
  EXPECT_EQ(peaks({0, 1, 2, 0}), (std::vector<int64_t>{50, 50, 50}));   // one copy each
  EXPECT_EQ(peaks({2, 0, 1, 1}), (std::vector<int64_t>{50, 50, 158}));  // one copy for two tasks
  EXPECT_TRUE(Simulate(problem, {1, 1, 1, 1}, UpwardRanks(problem)).fits);
}

TEST(SimulateTest, AnOriginalIsFreedWhenItsCopiesHaveArrived) {
  Problem problem = Machine(1);
  const int64_t times[] = {1000, 10};
  problem.AddTask(times, 0);
  const int first = problem.AddValue({.task = 0, .bytes = 100, .held_bytes = 100, .copied_bytes = 100});
  problem.AddTask(times, 1);  // on the host, until 1110
  problem.AddUse({first});
  problem.AddTask(times, 2);
  const int second = problem.AddValue({.task = 2, .bytes = 100, .held_bytes = 100, .copied_bytes = 100});
  problem.AddTask(times, 3);
  problem.AddUse({second});
  problem.AddValue({.task = 3, .bytes = 100, .held_bytes = 100});
  problem.Seal();
  const Simulation run = Simulate(problem, {1, 0, 1, 1}, UpwardRanks(problem));
  EXPECT_EQ(run.finish_ns, (std::vector<int64_t>{10, 1110, 20, 30}));
  EXPECT_EQ(run.peak_bytes[1], 300);  // the transfer of `first` ends at 110
  EXPECT_EQ(run.peak_bytes[0], 100);
}

TEST(SimulateTest, F103_AStepEndsWhenWhatIsFetchedIsThere) {
  Problem problem = Machine(2);
  const int64_t times[] = {1000, 10, 10};
  problem.AddTask(times, 0);
  const int value = problem.AddValue({.task = 0, .bytes = 500});
  problem.Fetch(value);
  problem.AddTask(times, 1);
  problem.AddUse({value, true});
  problem.Seal();
  const std::vector<int64_t> ranks = UpwardRanks(problem);
  const Simulation run = Simulate(problem, {1, 2}, ranks);
  EXPECT_EQ(run.transfers, 1);  // one transfer for the fetch and the use in host memory
  EXPECT_EQ(run.makespan_ns, 10 + 500 + 10);
  Problem slow = Machine(2);
  slow.AddTask(times, 0);
  slow.Fetch(slow.AddValue({.task = 0, .bytes = 5000}));
  slow.Seal();
  const std::vector<int64_t> slow_ranks = UpwardRanks(slow);
  EXPECT_EQ(Simulate(slow, {1}, slow_ranks).makespan_ns, 5010);
  const Schedule schedule = ListSchedule(slow, {}, slow_ranks);
  EXPECT_EQ(schedule.device_of, (std::vector<int>{0}));
  EXPECT_EQ(schedule.makespan_ns, 1000);
  EXPECT_EQ(ChoosePlan(slow, Algorithm::kWhitePaper, {}).plan.device_of, (std::vector<int>{0}));
}

TEST(ListScheduleTest, GeneratorsGoWithTheirConsumer) {
  Problem problem = Machine(1);
  const int64_t nothing[] = {0, 0};
  const int64_t work[] = {1000, 10};
  problem.AddTask(nothing, 0, 0, true);
  const int weights = problem.AddValue({.task = 0, .bytes = 500});
  problem.AddTask(nothing, 0, 0, true);  // the read of the variable, in the same group
  problem.AddUse({weights});
  const int read = problem.AddValue({.task = 1, .bytes = 500});
  problem.AddTask(work, 1);
  problem.AddUse({read});
  problem.Seal();
  const std::vector<int64_t> ranks = UpwardRanks(problem);
  EXPECT_EQ(ListSchedule(problem, {}, ranks).device_of, (std::vector<int>{1, 1, 1}));
  ListOptions literal;
  literal.deferral = ListOptions::Deferral::kNone;
  const Schedule greedy = ListSchedule(problem, literal, ranks);
  EXPECT_EQ(greedy.device_of, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(greedy.makespan_ns, 510);
}

TEST(ListScheduleTest, TheTimeOfADeferredTaskCountsToItsConsumersRank) {
  Problem problem({{.space = 0}}, 1, {});
  const int64_t times[] = {60, 40, 5, 10, 50};
  problem.AddTask({times, 1}, 0, 0, true);
  const int first = problem.AddValue({.task = 0});
  problem.AddTask({times + 1, 1}, 1, 0, true);  // updates the variable
  problem.AddUse({first});
  const int generated = problem.AddValue({.task = 1});
  problem.AddTask({times + 2, 1}, 2);
  const int other = problem.AddValue({.task = 2});
  problem.AddTask({times + 3, 1}, 3);
  problem.AddUse({generated});
  problem.AddUse({other});
  problem.AddTask({times + 4, 1}, 4);  // rank 50, more than the 15 and 10 of the two before it
  problem.Seal();
  const Schedule schedule = ListSchedule(problem, {}, UpwardRanks(problem));
  EXPECT_EQ(schedule.start_ns, (std::vector<int64_t>{5, 65, 0, 105, 115}));
}

TEST(ListScheduleTest, ADeviceWithoutRoomIsPassedOver) {
  Problem problem = Machine(1, true, 100);
  const int64_t times[] = {1000, 10};
  for (int t = 0; t < 3; ++t) problem.AddTask(times, t, 60);
  problem.Seal();
  const Choice choice = ChoosePlan(problem, Algorithm::kCostSim, {});
  EXPECT_TRUE(choice.plan.simulation.fits);
  EXPECT_EQ(std::count(choice.plan.device_of.begin(), choice.plan.device_of.end(), 1), 1);
  Problem received = Machine(1, true, 100);
  const int fed[] = {received.AddValue({.bytes = 60, .copied_bytes = 60}),
                     received.AddValue({.bytes = 60, .copied_bytes = 60})};
  received.AddTask(times, 0);
  for (const int v : fed) received.AddUse({v});
  received.Seal();
  EXPECT_EQ(ListSchedule(received, {}, UpwardRanks(received)).device_of, (std::vector<int>{0}));
  const bool single_overflows = std::any_of(choice.tried.begin(), choice.tried.end(),
                                            [](const Tried& t) { return t.name == "single:1" && !t.fits; });
  EXPECT_TRUE(single_overflows);
}

/// Two devices of one class, with memory spaces apart from the host's, and a chain of two tasks that hold 100 bytes
/// each.
Choice OnUnlikeDevices(Algorithm algorithm, const DeviceCost& first, const DeviceCost& second, double first_way = 1) {
  std::vector<LinkCost> links(9, {.ns_per_byte = 1});
  links[0 * 3 + 1].ns_per_byte = first_way;
  Problem problem({{.space = 0, .device_class = 0, .priority = 70}, first, second}, 3, links);
  const int fed = problem.AddValue({.bytes = 100});
  const int64_t times[] = {kImpossible, 10, 10};
  problem.AddTask(times, 0);
  problem.AddUse({fed});
  const int value = problem.AddValue({.task = 0, .bytes = 100, .held_bytes = 100});
  problem.AddTask(times, 1);
  problem.AddUse({value});
  problem.AddValue({.task = 1, .bytes = 100, .held_bytes = 100});
  problem.Seal();
  return ChoosePlan(problem, algorithm, {});
}

TEST(PortfolioTest, DevicesOfOneClassWithOtherMemoryOrLinksAreBaselinesOfTheirOwn) {
  const DeviceCost small = {.space = 1, .device_class = 1, .priority = 210, .capacity_bytes = 150};
  const DeviceCost large = {.space = 2, .device_class = 1, .priority = 210, .capacity_bytes = 1000};
  for (const Algorithm algorithm : {Algorithm::kSingle, Algorithm::kCostSim}) {
    const Choice by_memory = OnUnlikeDevices(algorithm, small, large);
    EXPECT_TRUE(by_memory.plan.simulation.fits);
    EXPECT_EQ(by_memory.plan.device_of, (std::vector<int>{2, 2}));
    EXPECT_EQ(by_memory.best_single_ns, 120);
  }
  DeviceCost twin = large;
  twin.space = 1;
  const Choice by_link = OnUnlikeDevices(Algorithm::kSingle, twin, large, 1000);
  EXPECT_EQ(by_link.plan.device_of, (std::vector<int>{2, 2}));
  const Choice alike = OnUnlikeDevices(Algorithm::kSingle, twin, large);
  EXPECT_EQ(alike.tried.size(), 2u);  // the host, and one device for both
  DeviceCost tiny = small;
  tiny.space = 2;
  EXPECT_EQ(OnUnlikeDevices(Algorithm::kSingle, small, tiny).best_single_ns, 0) << "of plans that fit only";
}

TEST(PortfolioTest, F099_TheWhitePapersWalkByHand) {
  // A CPU (device 0) and an accelerator, a byte a nanosecond between them, parallel transfers. Tasks in the
  // order in which the algorithm visits them:
  //   a  CPU 0-10   | accelerator would end at 20                                       -> CPU, 10
  //   b  CPU 10-20  | accelerator 0-4                                                   -> accelerator, 4
  //   d  CPU: b's 10 bytes are there at 14, 14-22 | the accelerator lacks the op        -> CPU, 22
  //   c  CPU 22-52  | accelerator: a's 20 bytes are there at 30, 30-35                  -> accelerator, 35
  //   e  CPU: c's 6 bytes at 41, 41-61 | accelerator: d's 10 bytes at 32, c at 35, 35-39 -> accelerator, 39
  //   f  CPU: e's 8 bytes at 47, 47-52 | accelerator 39-44, a is there since 30         -> accelerator, 44
  const std::vector<DeviceCost> devices = {{.space = 0}, {.space = 1, .device_class = 1}};
  Problem problem(devices, 2, std::vector<LinkCost>(4, {.ns_per_byte = 1, .queues = false}));
  enum { kA, kB, kC, kD, kE, kF };
  const int64_t times[6][2] = {{10, 20}, {10, 4}, {30, 5}, {8, kImpossible}, {20, 4}, {5, 5}};
  const int64_t bytes[6] = {20, 10, 6, 10, 8, 0};
  const std::vector<std::vector<int>> inputs = {{}, {}, {kA}, {kB}, {kC, kD}, {kA, kE}};
  for (int t = kA; t <= kF; ++t) {
    problem.AddTask(times[t], t);
    for (const int input : inputs[static_cast<size_t>(t)]) problem.AddUse({input});
    ASSERT_EQ(problem.AddValue({.task = t, .bytes = bytes[t]}), t);
  }
  problem.Seal();
  const Choice choice = ChoosePlan(problem, Algorithm::kWhitePaper, {});
  EXPECT_EQ(choice.plan.device_of, (std::vector<int>{0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(choice.plan.simulation.finish_ns, (std::vector<int64_t>{10, 4, 35, 22, 39, 44}));
  EXPECT_EQ(choice.plan.simulation.makespan_ns, 44);
}

TEST(PortfolioTest, F292_NeverWorseThanTheBaselinesOnRandomGraphs) {
  for (uint32_t seed = 0; seed < (WEIR_SANITIZER_KIND == 0 ? 60 : 9); ++seed) {
    const Problem problem = Random(seed, 80, 3, seed % 3 == 0 ? 10 : seed % 3 == 1 ? 100 : 1000, true);
    const Choice choice = ChoosePlan(problem, Algorithm::kCostSim, {});
    for (int d = 0; d < problem.device_count(); ++d) {
      EXPECT_LE(choice.plan.simulation.makespan_ns,
                Simulate(problem, SingleDevicePlan(problem, d), choice.ranks).makespan_ns)
          << "seed " << seed;
    }
    EXPECT_GE(choice.plan.simulation.makespan_ns, PathBoundNs(problem)) << "seed " << seed;
  }
}

TEST(PortfolioTest, F293_GapToTheExactOptimumOfSmallGraphs) {
  double sum = 0;
  int exact = 0;
  constexpr int kGraphs = 40;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Problem problem = Random(seed, 7, 2, 60, false);
    const auto optimum = static_cast<double>(OptimumNs(problem));
    const auto found = static_cast<double>(ChoosePlan(problem, Algorithm::kCostSim, {}).plan.simulation.makespan_ns);
    EXPECT_GE(found, optimum) << "seed " << seed;
    sum += found / optimum;
    exact += found == optimum ? 1 : 0;
  }
  EXPECT_LE(sum / kGraphs, 1.08);
  EXPECT_GE(exact, kGraphs / 3);
}

TEST(PortfolioTest, ReservingLinksHelpsWhereTheyAreBusy) {
  int64_t with = 0;
  int64_t without = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Problem problem = Random(seed, 300, 3, 2000, true);
    const std::vector<int64_t> ranks = UpwardRanks(problem);
    ListOptions options;
    with += Simulate(problem, ListSchedule(problem, options, ranks).device_of, ranks).makespan_ns;
    options.reserve_links = false;
    without += Simulate(problem, ListSchedule(problem, options, ranks).device_of, ranks).makespan_ns;
  }
  EXPECT_LT(with, without);
}

TEST(PortfolioTest, TheSamePlanTenTimes) {
  const Problem problem = Random(7, WEIR_SANITIZER_KIND == 0 ? 2000 : 400, 3, 300, true);
  const Choice first = ChoosePlan(problem, Algorithm::kCostSim, {});
  for (int k = 0; k < 9; ++k) {
    const Choice again = ChoosePlan(problem, Algorithm::kCostSim, {});
    ASSERT_EQ(again.plan.device_of, first.plan.device_of);
    ASSERT_EQ(again.plan.simulation.finish_ns, first.plan.simulation.finish_ns);
  }
}

TEST(PortfolioTest, UserPlanIsABaselineToo) {
  const Problem problem = Random(11, 40, 2, 500, true);
  const Choice free = ChoosePlan(problem, Algorithm::kCostSim, {});
  std::vector<Plan> given;
  given.push_back({"file", free.plan.device_of, {}});
  const Choice choice = ChoosePlan(problem, Algorithm::kCostSim, std::move(given));
  EXPECT_LE(choice.plan.simulation.makespan_ns, free.plan.simulation.makespan_ns);
  EXPECT_EQ(choice.plan.name, "file");
}

}  // namespace
}  // namespace weir::place
