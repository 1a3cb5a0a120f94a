// Order and augmentation depend on seed, epoch and sample, never on the number of workers or on
// where a pass was interrupted.
#include <map>
#include <set>

#include "tests/data/rows.h"

#include "lamella/data/generator.h"

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

class Counting : public IterableSource {
 public:
  std::unique_ptr<SourcePass> begin(int64_t, RandomStream& random) const override {
    struct Pass : SourcePass {
      bool next(std::vector<Array>& columns, RandomStream& row) override {
        columns = {Array::scalar<int64_t>(first + 1000 * left + row.below(1000))};
        return left-- > 0;
      }
      int64_t left = 9, first = 0;
    };
    auto pass = std::make_unique<Pass>();
    pass->first = random.below(1000) * 100'000;
    return pass;
  }
};

class Drawing : public RandomAccessSource {
 public:
  int64_t size() const override { return 9; }
  std::vector<Array> get(int64_t index, RandomStream& random) const override {
    return {Array::scalar<int64_t>(1000 * index + random.below(1000))};
  }
};

// One pipeline for each source and operation, and one for all; they draw where they can.
std::map<std::string, Ref<Dataset>> pipelines() {
  const auto draw = function(
      [](int64_t value, RandomStream& random) { return value * 1000 + random.below(1000); });
  const auto drawn = numbers(9, {.shuffle = true})->map({draw});
  const auto other = numbers(5, {.shuffle = true})->map({draw})->rename({"id"}, {"other"});
  const auto uneven = make_ref<FunctionTransform>([](std::vector<Array> in, RandomStream& random) {
    const int64_t length = random.below(4);
    Array row(DType::Int64, {length});
    for (int64_t& element : row.writable_as<int64_t>()) element = in[0].as<int64_t>()[0];
    return std::vector<Array>{row};
  });
  const Predicate most = [](std::span<const Array>, RandomStream& random) {
    return random.uniform() < 0.7f;
  };
  const BatchSize any_size = [](BatchInfo, RandomStream& random) { return 1 + random.below(3); };
  const BatchFunction replace = [](std::vector<std::vector<Array>> columns, BatchInfo,
                                   RandomStream& random) {
    for (Array& row : columns[0]) row = Array::scalar<int64_t>(random.below(1 << 30));
    return columns;
  };
  const std::vector<std::string> name = {"id"};
  return {
      {"map", drawn},
      {"shuffle", drawn->shuffle(4)},
      {"repeat", drawn->repeat(2)},
      {"take", drawn->take(5)},
      {"skip", drawn->skip(5)},
      {"filter", drawn->filter(most)},
      {"batch", drawn->batch(2)},
      {"batches of any size", drawn->batch(any_size)},
      {"per batch", drawn->batch(2, {.per_batch = replace})},
      {"padded", drawn->map({uneven})->batch(2, {.pad = PadInfo{}})},
      {"zip", drawn->zip(other)},
      {"concat", drawn->concat(numbers(3)->map({draw}))},
      {"split", drawn->split(std::vector<int64_t>{6, 3})[0]},
      {"iterable", make_ref<IterableDataset>(make_ref<Counting>(), name)},
      {"generator", make_ref<GeneratorDataset>(make_ref<Drawing>(), name)},
      {"generator, many workers",
       make_ref<GeneratorDataset>(make_ref<Drawing>(), name, SourceOptions{.workers = 3})},
      {"all", drawing_pipeline()},
      {"filter of batches of an iterable source",
       make_ref<IterableDataset>(make_ref<Counting>(), name)
           ->shuffle(3)
           ->filter(most)
           ->repeat(2)
           ->batch(any_size, {.per_batch = replace})},
  };
}

// The rows of three epochs, each ended by nothing, and where the iterator stood before each.
struct Reading {
  std::vector<Position> positions;
  std::vector<std::optional<std::vector<int64_t>>> rows;
};

Reading read_with_positions(Iterator& rows, size_t ends) {
  Reading reading;
  while (ends > 0) {
    reading.positions.push_back(rows.position());
    const auto row = rows.next();
    auto& values = reading.rows.emplace_back();
    if (row) {
      const auto ids = (*row)["id"].as<int64_t>();
      values.emplace(ids.begin(), ids.end());
    } else {
      --ends;
    }
  }
  return reading;
}

TEST_F(Order, EveryOperationDrawsByRowAndEpoch) {
  for (const auto& [kind, dataset] : pipelines()) {
    SCOPED_TRACE(kind);
    const auto read_by = [&dataset = dataset](int workers) {
      config::set_seed(7);
      return read_with_positions(*dataset->iterate({.epochs = 3, .workers = workers}), 3).rows;
    };
    const auto rows = read_by(1);
    EXPECT_EQ(read_by(2), rows);
    EXPECT_EQ(read_by(8), rows);
    const auto first_end = std::find(rows.begin(), rows.end(), std::nullopt);
    EXPECT_FALSE(std::equal(rows.begin(), first_end, first_end + 1, rows.end()));
  }
}

TEST_F(Order, EveryOperationResumesInTheMiddleOfAnEpoch) {
  for (const auto& [kind, dataset] : pipelines()) {
    SCOPED_TRACE(kind);
    dataset->reset();
    const Reading whole = read_with_positions(*dataset->iterate({.epochs = 3}), 3);
    EXPECT_EQ(whole.positions.front(), (Position{0, 0}));
    size_t ends = 3;
    for (size_t start = 0; start < whole.rows.size(); ++start) {
      dataset->reset();
      auto resumed = dataset->iterate({.epochs = 3});
      resumed->seek(whole.positions[start]);
      const Reading rest = read_with_positions(*resumed, ends);
      ASSERT_TRUE(std::equal(rest.rows.begin(), rest.rows.end(),
                             whole.rows.begin() + static_cast<ptrdiff_t>(start), whole.rows.end()));
      ASSERT_TRUE(std::equal(rest.positions.begin(), rest.positions.end(),
                             whole.positions.begin() + static_cast<ptrdiff_t>(start),
                             whole.positions.end()));
      EXPECT_FALSE(resumed->next());
      ends -= whole.rows[start] ? 0 : 1;
    }
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
  // Each turn of a repeat is augmented by itself, also below a zip.
  const auto twice = numbers(4)->map({draw})->repeat(2)->zip(numbers(8)->rename({"id"}, {"other"}));
  const auto part = twice->split(std::vector<int64_t>{7, 1}, data::Order::AsGiven)[0];
  auto rows = part->iterate();
  std::set<int64_t> drawn;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int64_t value : read_epoch(*rows)) EXPECT_TRUE(drawn.insert(value).second) << value;
  }
  const auto straight = numbers(10)->split(std::vector<int64_t>{6, 4}, data::Order::AsGiven);
  EXPECT_EQ(read(straight[1]), range(6, 10));
  EXPECT_THROW(numbers(10)->split(std::vector<int64_t>{6, 3}), Error);
  EXPECT_THROW(numbers(10)->split(std::vector<double>{0.5, 0.4}), Error);
  EXPECT_THROW(numbers(10)->repeat()->split(std::vector<int64_t>{6, 4}), Error);
}

TEST_F(Order, FractionsAreRoundedToRows) {
  const auto sizes = [](int64_t rows, const std::vector<double>& fractions) {
    std::vector<int64_t> counts;
    for (const auto& part : numbers(rows)->split(fractions)) counts.push_back(part->size());
    return counts;
  };
  EXPECT_THAT(sizes(10, {0.7, 0.3}), ElementsAre(7, 3));
  EXPECT_THAT(sizes(5, {0.7, 0.3}), ElementsAre(3, 2));
  EXPECT_THAT(sizes(5, {0.5, 0.5}), ElementsAre(3, 2));
  EXPECT_THAT(sizes(10, {0.34, 0.33, 0.33}), ElementsAre(4, 3, 3));
  EXPECT_THAT(sizes(5, {0.15, 0.15, 0.35, 0.35}), ElementsAre(1, 1, 1, 2));
  EXPECT_THROW(sizes(5, {0.95, 0.05}), Error);
  EXPECT_THAT(error_of([&] { sizes(10, std::vector<double>(16, 1.0 / 16)); }).message(),
              testing::HasSubstr("10 rows are too few for the fractions"));
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
