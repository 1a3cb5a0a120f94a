// The threads of an iterator: errors, early ends, sources in user code.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/data/rows.h"
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/base/host.h"
#include "lamella/data/generator.h"

namespace lamella::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(Iterator, ThrowsWhatAWorkerThrewInTheTurnOfTheRow) {
  const auto dataset = numbers(20)->map({function([](int64_t value, RandomStream&) {
    if (value == 7) throw Failure("row seven");
    return value;
  })});
  for (int workers : {1, 4}) {
    dataset->reset();
    auto rows = dataset->iterate({.workers = workers});
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ((*rows->next())["id"].as<int64_t>()[0], i);
    for (int again = 0; again < 2; ++again) {
      try {
        rows->next();
        FAIL() << "nothing was thrown";
      } catch (const Failure& failure) {
        EXPECT_STREQ(failure.what(), "row seven");
      }
    }
  }
}

TEST(Iterator, LamellasOwnErrorsSayWhichRow) {
  const auto dataset = numbers(20)->map({function([](int64_t value, RandomStream&) -> int64_t {
    if (value == 7) fail(ErrorKind::Index, "[function] bad row");
    return value;
  })});
  auto rows = dataset->batch(2)->iterate();
  for (int i = 0; i < 3; ++i) rows->next();
  const Error error = error_of([&] { rows->next(); });
  EXPECT_EQ(error.kind(), ErrorKind::Index);
  EXPECT_EQ(error.message(), "[function] bad row (loading row 3 of epoch 0)");
}

TEST(Iterator, IsDestroyedAtAnyTime) {
  const auto slow = numbers(1000)->map({function([](int64_t value, RandomStream&) {
    std::this_thread::yield();
    return value;
  })});
  for (int workers : {1, 2, 8}) {
    for (int read : {0, 1, 2, 50}) {
      auto rows = slow->batch(3)->iterate({.workers = workers});
      for (int i = 0; i < read; ++i) EXPECT_TRUE(rows->next());
    }
  }
}

TEST(Iterator, KeepsItsDatasetAlive) {
  auto rows = numbers(10)->batch(2)->iterate();
  EXPECT_EQ(read_epoch(*rows), range(0, 10));
}

TEST(Iterator, StopsAfterItsEpochs) {
  auto rows = numbers(2)->iterate({.epochs = 2});
  EXPECT_EQ(read_epoch(*rows).size(), 2u);
  EXPECT_EQ(read_epoch(*rows).size(), 2u);
  EXPECT_FALSE(rows->next());
  EXPECT_FALSE(rows->next());
}

TEST(Iterator, IsClosedUnderAReader) {
  for (int workers : {1, 4}) {
    auto rows = numbers(10)->repeat()->iterate({.workers = workers});
    rows->next();
    std::atomic<int64_t> read{1};
    std::thread reader([&] {
      const Error error = error_of([&] {
        for (;; ++read) rows->next();
      });
      EXPECT_EQ(error.kind(), ErrorKind::Value);
      EXPECT_THAT(error.message(), HasSubstr("it was closed"));
    });
    rows->close();
    EXPECT_THAT(error_of([&] { rows->next(); }).message(), HasSubstr("it was closed"));
    EXPECT_THAT(error_of([&] { rows->seek({}); }).message(), HasSubstr("it was closed"));
    rows->close();
    reader.join();
    EXPECT_EQ(rows->position().batch, read);
    EXPECT_THAT(rows->columns(), ElementsAre("id"));
  }
}

// What the host calls while a row is waited for may use the iterator.
TEST(Iterator, IsClosedByItsOwnReader) {
  static Iterator* open;
  static std::atomic<bool> closed;
  closed = false;
  auto rows = numbers(10)
                  ->map({function([](int64_t value, RandomStream&) {
                    closed.wait(false);
                    return value;
                  })})
                  ->iterate({.workers = 1});
  open = rows.get();
  set_host({.poll = [] {
    EXPECT_EQ(open->position(), Position{});
    EXPECT_THROW(open->next(), Error);
    open->close();
    closed = true;
    closed.notify_all();
  }});
  EXPECT_THAT(error_of([&] { rows->next(); }).message(), HasSubstr("it was closed"));
  set_host({});
}

// While another thread waits for a row that does not come.
TEST(Iterator, ATurnIsWaitedForNoLongerThanTheUserWants) {
  struct Stop {};
  static std::thread::id impatient;
  impatient = std::this_thread::get_id();
  set_host({.poll = [] {
    if (std::this_thread::get_id() == impatient) throw Stop();
  }});
  std::atomic<bool> begun{false}, comes{false};
  auto rows = numbers(10)
                  ->map({function([&](int64_t value, RandomStream&) {
                    begun = true;
                    begun.notify_all();
                    comes.wait(false);
                    return value;
                  })})
                  ->iterate({.workers = 1});
  std::thread reader([&] {
    try {
      rows->next();
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("it was closed"));
    }
  });
  begun.wait(false);
  EXPECT_THROW(rows->next(), Stop);
  EXPECT_THROW(rows->seek({}), Stop);
  EXPECT_THROW(rows->position(), Stop);
  EXPECT_THROW(rows->close(), Stop);
  comes = true;
  comes.notify_all();
  reader.join();
  set_host({});
  EXPECT_THAT(error_of([&] { rows->next(); }).message(), HasSubstr("it was closed"));
}

TEST(Iterator, GivesThreadsThatShareItEachRowOnce) {
  auto rows = numbers(200)->iterate({.epochs = 1});
  std::vector<std::vector<int64_t>> read(3);
  std::vector<std::thread> readers;
  for (auto& part : read) readers.emplace_back([&] { part = read_epoch(*rows); });
  for (std::thread& reader : readers) reader.join();
  std::vector<int64_t> all;
  for (const auto& part : read) all.insert(all.end(), part.begin(), part.end());
  EXPECT_EQ(sorted(all), range(0, 200));
}

TEST(Iterator, ReadsEmptyDatasets) {
  auto rows = numbers(3)->skip(3)->batch(2)->iterate({.epochs = 2});
  EXPECT_FALSE(rows->next());
  EXPECT_FALSE(rows->next());
  EXPECT_THAT(read(numbers(3)->skip(3)->repeat()), ElementsAre());
}

TEST(Iterator, LoadsNoSecondEpochForAReaderOfOne) {
  std::atomic<int> calls{0};
  const auto dataset = numbers(4)->map({function([&](int64_t value, RandomStream&) {
    ++calls;
    return value;
  })});
  auto rows = dataset->iterate();
  read_epoch(*rows);
  EXPECT_EQ(calls, 4);
  read_epoch(*rows);
  EXPECT_GE(calls, 8);
}

TEST(Iterator, OneWorkerCallsFunctionsInTheOrderOfRows) {
  std::vector<int64_t> order;
  const auto dataset = numbers(50, {.shuffle = true, .workers = 4})
                           ->map({function([&](int64_t value, RandomStream&) {
                                   order.push_back(value);
                                   return value;
                                 })},
                                 {.workers = 1})
                           ->batch(4);
  EXPECT_EQ(read(dataset, {.epochs = 1, .workers = 4}), order);
}

class Squares : public RandomAccessSource {
 public:
  int64_t size() const override { return 10; }
  std::vector<Array> get(int64_t index, RandomStream&) const override {
    ++calls;
    return {Array::scalar<int64_t>(index), Array::scalar<int64_t>(index * index)};
  }
  mutable std::atomic<int> calls{0};
};

TEST(Generator, RandomAccess) {
  const auto source = make_ref<Squares>();
  const auto dataset = make_ref<GeneratorDataset>(source, std::vector<std::string>{"id", "square"},
                                                  SourceOptions{.shuffle = false, .workers = 1});
  EXPECT_EQ(read(dataset->batch(3)), range(0, 10));
  EXPECT_THAT(read(dataset->take(4), {}, "square"), ElementsAre(0, 1, 4, 9));
  EXPECT_EQ(dataset->size(), 10);
}

TEST(Generator, SeekingLoadsNothing) {
  const auto source = make_ref<Squares>();
  const auto dataset = make_ref<GeneratorDataset>(source, std::vector<std::string>{"id", "square"},
                                                  SourceOptions{.shuffle = true, .workers = 1});
  auto rows = dataset->shuffle(5)->iterate({.epochs = 1});
  rows->seek({0, 8});
  while (rows->next()) {
  }
  EXPECT_EQ(source->calls, 2);
}

TEST(Generator, TellsOfAWrongNumberOfColumns) {
  const auto dataset =
      make_ref<GeneratorDataset>(make_ref<Squares>(), std::vector<std::string>{"id"});
  auto rows = dataset->iterate();
  EXPECT_THAT(error_of([&] { rows->next(); }).message(),
              HasSubstr("the source gave 2 columns, but 1 names were given"));
}

class Countdown : public IterableSource {
 public:
  explicit Countdown(int64_t from) : from_(from) {}
  std::unique_ptr<SourcePass> begin(int64_t, RandomStream&) const override {
    struct Pass : SourcePass {
      explicit Pass(int64_t start) : left(start) {}
      bool next(std::vector<Array>& columns, RandomStream&) override {
        if (left == 0) return false;
        columns = {Array::scalar<int64_t>(left--)};
        return true;
      }
      int64_t left;
    };
    return std::make_unique<Pass>(from_);
  }

 private:
  int64_t from_;
};

TEST(Generator, Iterable) {
  const auto make = [](const SourceOptions& options) {
    return make_ref<IterableDataset>(make_ref<Countdown>(5), std::vector<std::string>{"id"},
                                     options);
  };
  const auto dataset = make({});
  EXPECT_THAT(read(dataset), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(read(dataset->repeat(2)->batch(3)), ElementsAre(5, 4, 3, 2, 1, 5, 4, 3, 2, 1));
  EXPECT_EQ(dataset->batch(2)->size(), 3);
  EXPECT_THAT(read(make({.num_samples = 2})), ElementsAre(5, 4));
  EXPECT_THAT(read(make({.num_shards = 2, .shard_id = 1})), ElementsAre(4, 2));
  EXPECT_EQ(sorted(read(dataset->shuffle(3))), range(1, 6));
  EXPECT_THROW(make({.shuffle = true}), Error);
  auto rows = dataset->iterate();
  rows->seek({0, 3});
  EXPECT_EQ(read_epoch(*rows), (std::vector<int64_t>{2, 1}));
}

TEST(Iterator, InAForkedChildIsAnErrorNotAHang) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no threads in a forked child";
#endif
  auto rows = numbers(100)->batch(2)->iterate({.workers = 2});
  rows->next();
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      rows->next();
    } catch (const Error& error) {
      status = error.kind() == ErrorKind::Value ? 0 : 2;
    }
    rows.reset();
    auto fresh = numbers(10)->batch(2)->iterate({.workers = 2});
    if (read_epoch(*fresh) != range(0, 10)) status = 3;
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_epoch(*rows).size(), 98u);
}

}  // namespace
}  // namespace lamella::data
