// Order and augmentation depend on seed, epoch and sample, never on the number of workers or on
// where a pass was interrupted.
#include <set>

#include "tests/data/rows.h"

namespace lamella::data {
namespace {

using testing::ElementsAre;

// Restores the process's settings.
class Order : public testing::Test {
 protected:
  void SetUp() override { config::set_seed(7); }
  void TearDown() override {
    config::set_seed(5489);
    config::set_prefetch_size(16);
  }
};

// Draws in the source, in two shuffles, in maps below and above a batch.
Ref<Dataset> drawing_pipeline() {
  const auto draw = [](int64_t value, RandomStream& random) {
    return value * 1000 + random.below(1000);
  };
  return numbers(100, {.shuffle = true})
      ->shuffle(10)
      ->map({function(draw)})
      ->repeat(2)
      ->shuffle(7)
      ->batch(8)
      ->map({function(draw)});
}

TEST_F(Order, DoesNotDependOnTheNumberOfWorkers) {
  const auto dataset = drawing_pipeline();
  const auto expected = read(dataset, {.epochs = 3, .workers = 1});
  ASSERT_EQ(expected.size(), 200u);
  for (int workers : {2, 8}) {
    for (int64_t prefetch : {1, 3, 64}) {
      config::set_prefetch_size(prefetch);
      EXPECT_EQ(read(dataset, {.epochs = 3, .workers = workers}), expected);
    }
  }
}

TEST_F(Order, EpochsDifferAndSeedsRepeat) {
  const auto dataset = drawing_pipeline();
  const auto read_two = [&] {
    auto rows = dataset->iterate({.epochs = 2});
    auto first = read_epoch(*rows);
    return std::pair(first, read_epoch(*rows));
  };
  const auto [first, second] = read_two();
  EXPECT_NE(first, second);
  config::set_seed(7);
  EXPECT_EQ(read_two(), std::pair(first, second));
  config::set_seed(8);
  EXPECT_NE(read_two().first, first);
}

TEST_F(Order, ANewIteratorGoesOnWithTheNextEpoch) {
  const auto dataset = drawing_pipeline();
  auto both = dataset->iterate({.epochs = 2});
  const auto first = read_epoch(*both), second = read_epoch(*both);
  dataset->reset();
  EXPECT_EQ(read_epoch(*dataset->iterate({.epochs = 1})), first);
  EXPECT_EQ(read_epoch(*dataset->iterate({.epochs = 1})), second);
}

TEST_F(Order, OperationsOnTopDoNotChangeDraws) {
  const auto base = numbers(50, {.shuffle = true});
  const auto expected = read(base);
  EXPECT_EQ(read(base->batch(7)), expected);
  EXPECT_EQ(read(base->take(50)->rename({"id"}, {"x"})->skip(0), {}, "x"), expected);
}

TEST_F(Order, ResumesInTheMiddleOfAnEpoch) {
  const auto dataset = drawing_pipeline();
  auto whole = dataset->iterate({.epochs = 3});
  std::vector<std::vector<int64_t>> batches;
  std::vector<Position> positions;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (;;) {
      positions.push_back(whole->position());
      auto row = whole->next();
      if (!row) {
        batches.emplace_back();
        break;
      }
      const auto values = (*row)["id"].as<int64_t>();
      batches.emplace_back(values.begin(), values.end());
    }
  }
  ASSERT_EQ(positions.size(), 78u);
  EXPECT_EQ(whole->position(), (Position{3, 0}));
  for (size_t start : {0u, 1u, 24u, 25u, 26u, 51u, 60u, 77u}) {
    dataset->reset();
    auto resumed = dataset->iterate({.epochs = 3});
    resumed->seek(positions[start]);
    for (size_t i = start; i < batches.size(); ++i) {
      ASSERT_EQ(resumed->position(), positions[i]);
      const auto row = resumed->next();
      ASSERT_EQ(row.has_value(), !batches[i].empty());
      if (!row) continue;
      const auto values = (*row)["id"].as<int64_t>();
      ASSERT_TRUE(std::equal(values.begin(), values.end(), batches[i].begin(), batches[i].end()));
    }
    EXPECT_FALSE(resumed->next());
  }
}

TEST_F(Order, SeekingBackGivesTheSameRowsAgain) {
  auto rows = drawing_pipeline()->iterate();
  const auto first = read_epoch(*rows);
  read_epoch(*rows);
  rows->seek({0, 0});
  EXPECT_EQ(read_epoch(*rows), first);
  EXPECT_THROW(rows->seek({0, 26}), Error);
  EXPECT_THROW(rows->seek({-1, 0}), Error);
}

TEST_F(Order, EveryDrawOfASampleAndEpochIsItsOwn) {
  const auto draw = function(
      [](int64_t, RandomStream& random) { return static_cast<int64_t>(random.wide_word() >> 1); });
  std::set<int64_t> draws;
  for (int workers : {1, 2, 8}) {
    auto rows =
        numbers(100)->map({draw, draw})->zip(numbers(100)->map({draw})->rename({"id"}, {"b"}));
    auto pass = rows->iterate({.epochs = 2, .workers = workers});
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (auto row = pass->next()) {
        draws.insert((*row)["id"].as<int64_t>()[0]);
        draws.insert((*row)["b"].as<int64_t>()[0]);
      }
    }
  }
  EXPECT_EQ(draws.size(), 400u);  // 100 samples, 2 epochs, 2 sides; the same for any workers
}

TEST_F(Order, ASampleDrawnTwiceIsAugmentedDifferently) {
  const auto draw = function([](int64_t, RandomStream& random) { return random.below(1 << 30); });
  const auto twice = numbers(3, {.sampler = make_ref<SubsetSampler>(std::vector<int64_t>{1, 1})});
  const auto values = read(twice->map({draw}));
  EXPECT_NE(values.at(0), values.at(1));
}

TEST_F(Order, AShuffleGivesEveryRowOnce) {
  EXPECT_EQ(sorted(read(numbers(1000)->shuffle(32))), range(0, 1000));
  EXPECT_EQ(sorted(read(numbers(1000, {.shuffle = true}))), range(0, 1000));
  EXPECT_NE(read(numbers(1000)->shuffle(32)), range(0, 1000));
}

TEST_F(Order, AFullBufferGivesEveryOrderEquallyOften) {
  // 6000 epochs of 3 rows: each of the 6 orders 1000 times, give or take 5 standard deviations.
  std::map<std::vector<int64_t>, int> counts;
  auto rows = numbers(3)->shuffle(3)->iterate({.workers = 1});
  for (int epoch = 0; epoch < 6000; ++epoch) ++counts[read_epoch(*rows)];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 145);
}

TEST_F(Order, ShardsPartitionEveryEpoch) {
  for (int64_t shards : {1, 2, 3, 7}) {
    std::vector<std::vector<int64_t>> all(2);
    for (int64_t shard = 0; shard < shards; ++shard) {
      auto dataset = numbers(42, {.shuffle = true, .num_shards = shards, .shard_id = shard});
      EXPECT_EQ(dataset->size(), 42 / shards);
      auto rows = dataset->iterate({.epochs = 2});
      for (auto& epoch : all) {
        const auto part = read_epoch(*rows);
        epoch.insert(epoch.end(), part.begin(), part.end());
      }
    }
    EXPECT_NE(all[0], all[1]);
    EXPECT_EQ(sorted(all[0]), range(0, 42));
    EXPECT_EQ(sorted(all[1]), range(0, 42));
  }
}

TEST_F(Order, ShardsOfARestAreEquallyLong) {
  std::vector<int64_t> all;
  for (int64_t shard = 0; shard < 4; ++shard) {
    const auto part = read(numbers(10, {.shuffle = false, .num_shards = 4, .shard_id = shard}));
    EXPECT_EQ(part.size(), 3u);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(sorted(all), (std::vector<int64_t>{0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(Order, PartsOfASplitAreDisjointInEveryEpoch) {
  const auto draw = function(
      [](int64_t value, RandomStream& random) { return value * 1000 + random.below(1000); });
  for (bool shuffle : {false, true}) {
    const auto whole = numbers(10, {.shuffle = shuffle})->map({draw});
    const auto parts = whole->split(std::vector<double>{0.7, 0.3});
    EXPECT_EQ(parts[0]->size(), 7);
    EXPECT_EQ(parts[1]->size(), 3);
    auto train = parts[0]->iterate(), test = parts[1]->iterate();
    std::vector<std::vector<int64_t>> drawn;
    std::set<std::vector<int64_t>> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
      auto all = read_epoch(*train);
      const auto rest = read_epoch(*test);
      all.insert(all.end(), rest.begin(), rest.end());
      drawn.push_back(all);
      for (int64_t& value : all) value /= 1000;
      orders.insert(all);
      EXPECT_EQ(sorted(all), range(0, 10));
    }
    EXPECT_EQ(orders.size(), 1u);
    EXPECT_NE(drawn[0], drawn[1]);
  }
  const auto straight = numbers(10)->split(std::vector<int64_t>{6, 4}, data::Order::AsGiven);
  EXPECT_EQ(read(straight[1]), range(6, 10));
  EXPECT_THROW(numbers(10)->split(std::vector<int64_t>{6, 3}), Error);
  EXPECT_THROW(numbers(10)->split(std::vector<double>{0.5, 0.4}), Error);
  EXPECT_THROW(numbers(10)->repeat()->split(std::vector<int64_t>{6, 4}), Error);
}

TEST_F(Order, SamplersDecideTheSamples) {
  const auto with = [](Ref<Sampler> sampler) { return numbers(10, {.sampler = sampler}); };
  EXPECT_THAT(read(with(make_ref<SequentialSampler>(7))), ElementsAre(7, 8, 9));
  EXPECT_THAT(read(with(make_ref<SequentialSampler>(2, 3))), ElementsAre(2, 3, 4));
  EXPECT_THAT(read(with(make_ref<SubsetSampler>(std::vector<int64_t>{5, 0, 9}))),
              ElementsAre(5, 0, 9));
  const auto some = read(with(make_ref<RandomSampler>(Replacement::Without, 4)));
  EXPECT_EQ(some.size(), 4u);
  EXPECT_EQ(std::set(some.begin(), some.end()).size(), 4u);
  EXPECT_EQ(read(with(make_ref<RandomSampler>(Replacement::With, 50))).size(), 50u);
  const std::vector<double> weights = {0, 0, 1, 0, 0, 0, 0, 0, 3, 0};
  const auto drawn = read(with(make_ref<WeightedRandomSampler>(weights, 4000)));
  EXPECT_EQ(drawn.size(), 4000u);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 8)), 3000, 140);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 2) + std::count(drawn.begin(), drawn.end(), 8),
            4000);
  EXPECT_EQ(sorted(read(with(
                make_ref<WeightedRandomSampler>(weights, std::nullopt, Replacement::Without)))),
            (std::vector<int64_t>{2, 8}));
  const Error error =
      error_of([&] { read(with(make_ref<SubsetSampler>(std::vector<int64_t>{3, 10}))); });
  EXPECT_EQ(error.kind(), ErrorKind::Index);
  EXPECT_EQ(error.message().find("[SubsetSampler] index 10 is out of range for 10 samples"), 0u);
}

}  // namespace
}  // namespace lamella::data
