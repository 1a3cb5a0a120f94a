// Each operation of a dataset: which rows come, in which order, under which names.
#include "tests/data/rows.h"

namespace lamella::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Operations, TakeSkipAndRepeat) {
  EXPECT_THAT(read(numbers(5)->take(2)), ElementsAre(0, 1));
  EXPECT_THAT(read(numbers(3)->take(9)), ElementsAre(0, 1, 2));
  EXPECT_THAT(read(numbers(3)->take(-1)), ElementsAre(0, 1, 2));
  EXPECT_THAT(read(numbers(5)->skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(read(numbers(2)->skip(7)), ElementsAre());
  EXPECT_THAT(read(numbers(2)->repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(read(numbers(2)->repeat()->take(5)), ElementsAre(0, 1, 0, 1, 0));
}

TEST(Operations, SizesNeedNoPass) {
  EXPECT_EQ(numbers(10)->size(), 10);
  EXPECT_EQ(numbers(10)->batch(4)->size(), 3);
  EXPECT_EQ(numbers(10)->batch(4, {.remainder = Remainder::Drop})->size(), 2);
  EXPECT_EQ(numbers(10)->repeat(3)->batch(4)->size(), 8);
  EXPECT_EQ(numbers(10)->repeat()->size(), 10);
  EXPECT_EQ(numbers(10)->repeat()->take(7)->size(), 7);
  EXPECT_EQ(numbers(10)->skip(4)->take(3)->size(), 3);
  EXPECT_EQ(numbers(3)->concat(numbers(4))->size(), 7);
  EXPECT_EQ(numbers(10)->batch(4)->batch_size(), 4);
  EXPECT_EQ(numbers(10)->repeat(2)->repeat(3)->repeat_count(), 6);
}

TEST(Operations, BatchStacksRows) {
  auto rows = numbers(5)->batch(2)->iterate();
  EXPECT_THAT((*rows->next())["id"].sizes(), ElementsAre(2));
  rows->next();
  const auto last = rows->next();
  EXPECT_THAT((*last)["id"].as<int64_t>(), ElementsAre(4));
  EXPECT_FALSE(rows->next());
  EXPECT_THAT(read(numbers(5)->batch(2, {.remainder = Remainder::Drop})), ElementsAre(0, 1, 2, 3));
}

TEST(Operations, BatchOfBatches) {
  auto row = numbers(8)->batch(2)->batch(3)->iterate()->next();
  EXPECT_THAT((*row)["id"].sizes(), ElementsAre(3, 2));
}

TEST(Operations, BatchSizeMayDependOnTheBatch) {
  const auto growing =
      numbers(6)->batch([](BatchInfo info, RandomStream&) { return info.batch + 1; });
  auto rows = growing->iterate();
  EXPECT_THAT((*rows->next())["id"].as<int64_t>(), ElementsAre(0));
  EXPECT_THAT((*rows->next())["id"].as<int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT((*rows->next())["id"].as<int64_t>(), ElementsAre(3, 4, 5));
  EXPECT_EQ(growing->size(), 3);
}

TEST(Operations, PerBatchFunctionSeesTheRowsOfAColumn) {
  std::vector<int64_t> batches;
  const auto reversed = numbers(4)->batch(
      2, {.per_batch =
              [&](std::vector<std::vector<Array>> columns, BatchInfo info, RandomStream&) {
                batches.push_back(info.batch);
                std::reverse(columns.at(0).begin(), columns.at(0).end());
                return columns;
              },
          .columns = {.workers = 1}});
  EXPECT_THAT(read(reversed, {.epochs = 1, .workers = 1}), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(batches, ElementsAre(0, 1));
}

// Column "id" of [n, 2] floats n for n = 1, 2, 3.
Ref<Dataset> triangles() {
  const auto grow = make_ref<FunctionTransform>([](std::vector<Array> in, RandomStream&) {
    const int64_t count = in[0].as<int64_t>()[0] + 1;
    Array row(DType::Float32, {count, 2});
    for (float& element : row.writable_as<float>()) element = static_cast<float>(count);
    return std::vector<Array>{row};
  });
  return numbers(3)->map({grow});
}

TEST(Operations, PadsToTheLongestRowOfABatch) {
  auto rows = triangles()->batch(2, {.pad = PadInfo{}})->iterate();
  const Array first = (*rows->next())["id"];
  EXPECT_EQ(first.sizes(), (Axes{2, 2, 2}));
  EXPECT_THAT(first.as<float>(), ElementsAre(1, 1, 0, 0, 2, 2, 2, 2));
  EXPECT_EQ((*rows->next())["id"].sizes(), (Axes{1, 3, 2}));
}

TEST(Operations, PadsToGivenSizesWithAValue) {
  const PadInfo info = {{"id", {.sizes = {{std::nullopt, 3}}, .value = -1.5}}};
  const Array batch = (*triangles()->batch(2, {.pad = info})->iterate()->next())["id"];
  EXPECT_EQ(batch.sizes(), (Axes{2, 2, 3}));
  EXPECT_THAT(batch.as<float>(), ElementsAre(1, 1, -1.5, -1.5, -1.5, -1.5, 2, 2, -1.5, 2, 2, -1.5));
}

TEST(Operations, PaddingThatCannotBeIsTold) {
  const auto message = [](const PadInfo& info) {
    return error_of([&] { triangles()->batch(3, {.pad = info})->iterate()->next(); }).message();
  };
  EXPECT_THAT(message({{"x", {}}}), HasSubstr("there is no column 'x'"));
  EXPECT_THAT(message({{"id", {.sizes = {{-1, 2}}}}}), HasSubstr("negative size"));
  EXPECT_THAT(message({{"id", {.sizes = {{3}}}}}),
              HasSubstr("1 sizes for column 'id', whose rows"));
  EXPECT_THAT(message({{"id", {.sizes = {{2, 2}}}}}),
              HasSubstr("has 3 elements along axis 0, more than the 2"));
  const PadInfo half = {{"id", {.value = 0.5}}};
  EXPECT_THAT(error_of([&] { numbers(2)->batch(2, {.pad = half})->iterate()->next(); }).message(),
              HasSubstr("holds int64, which cannot be padded with 0.5"));
}

TEST(Operations, RowsThatDifferInSizeAreNotStacked) {
  const auto ragged = make_ref<FunctionTransform>([](std::vector<Array> in, RandomStream&) {
    return std::vector<Array>{Array(DType::Float32, {in[0].as<int64_t>()[0] + 1, 2})};
  });
  auto rows = numbers(4)->map({ragged})->batch(4)->iterate();
  const Error error = error_of([&] { rows->next(); });
  EXPECT_EQ(error.kind(), ErrorKind::Value);
  EXPECT_THAT(error.message(), HasSubstr("column 'id'"));
  EXPECT_THAT(error.message(), HasSubstr("row 0 is f32[1,2], row 1 is f32[2,2]"));
}

TEST(Operations, MapPutsOutputsInThePlaceOfInputsIfTheyAreAsMany) {
  const auto pair = numbers(2)->zip(numbers(2)->rename({"id"}, {"other"}));
  const auto twice = make_ref<FunctionTransform>(
      [](std::vector<Array> in, RandomStream&) { return std::vector<Array>{in[0], in[0]}; });
  EXPECT_THAT(pair->map({twice}, {.inputs = {"other"}, .outputs = {"a", "b"}})->columns(),
              ElementsAre("a", "b", "id"));
  const auto same =
      make_ref<FunctionTransform>([](std::vector<Array> in, RandomStream&) { return in; });
  EXPECT_THAT(pair->map({same}, {.inputs = {"other"}, .outputs = {"c"}})->columns(),
              ElementsAre("id", "c"));
  auto rows = pair->map({twice}, {.inputs = {"other"}})->iterate();
  EXPECT_THAT(error_of([&] { rows->next(); }).message(),
              HasSubstr("gave 2 columns where 1 were expected"));
}

TEST(Operations, ZipEndsWithTheShorter) {
  const auto letters = numbers(3)->rename({"id"}, {"letter"});
  EXPECT_THAT(read(numbers(5)->zip(letters)), ElementsAre(0, 1, 2));
  EXPECT_THAT(read(letters->repeat()->zip(numbers(5)), {}, "letter"), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_EQ(letters->repeat()->zip(numbers(5))->size(), 5);
  EXPECT_THAT(error_of([] { numbers(1)->zip(numbers(1)); }).message(), HasSubstr("column 'id'"));
}

TEST(Operations, ConcatGivesOneAfterTheOther) {
  const auto all = numbers(2)->concat(numbers(3))->concat(numbers(1));
  EXPECT_THAT(read(all), ElementsAre(0, 1, 0, 1, 2, 0));
  EXPECT_THAT(read(all->batch(4)), ElementsAre(0, 1, 0, 1, 2, 0));
}

TEST(Operations, TwoDatasetsHaveTheBatchesAndRepeatsOfTheFirst) {
  const auto first = numbers(8)->batch(4)->repeat(2);
  const auto second = numbers(8)->rename({"id"}, {"other"})->batch(2);
  for (const auto& both : {first->zip(second), first->concat(numbers(3))}) {
    EXPECT_EQ(both->batch_size(), 4);
    EXPECT_EQ(both->repeat_count(), 2);
  }
}

TEST(Operations, ProjectAndRename) {
  const auto wide = numbers(2)->zip(numbers(2)->rename({"id"}, {"b"}));
  EXPECT_THAT(wide->project({"b", "id"})->columns(), ElementsAre("b", "id"));
  EXPECT_THAT(read(wide->project({"b"})->batch(2), {}, "b"), ElementsAre(0, 1));
  const Error error = error_of([&] { wide->project({"c"}); });
  EXPECT_EQ(error.kind(), ErrorKind::Value);
  EXPECT_THAT(error.message(), HasSubstr("no column 'c'; the columns are: id, b"));
  EXPECT_THAT(error_of([&] { wide->rename({"id"}, {"b"}); }).message(), HasSubstr("twice"));
}

TEST(Operations, FilterKeepsWhatThePredicateAccepts) {
  const auto even = numbers(7)->filter(
      [](std::span<const Array> in, RandomStream&) { return in[0].as<int64_t>()[0] % 2 == 0; });
  EXPECT_THAT(read(even), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(read(even->batch(3)), ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(even->size(), 4);
}

TEST(Operations, TypesAreThoseOfTheFirstRow) {
  const auto types = numbers(5)->batch(2)->types();
  EXPECT_EQ(text(types.at(0)), "i64[2]");
  EXPECT_THROW(numbers(3)->skip(3)->types(), Error);
}

TEST(Operations, IteratorsGiveTheColumnsAskedFor) {
  auto wide = numbers(2)->zip(numbers(2)->rename({"id"}, {"b"}));
  const auto row = wide->iterate({.columns = {"b", "id"}})->next();
  EXPECT_THAT(row->names(), ElementsAre("b", "id"));
  EXPECT_THROW(wide->iterate({.columns = {"c"}}), Error);
}

TEST(Operations, BadArgumentsNameTheOperation) {
  const auto rows = numbers(3);
  EXPECT_THAT(error_of([&] { rows->batch(0); }).message(), HasSubstr("[batch]"));
  EXPECT_THAT(error_of([&] { rows->shuffle(1); }).message(), HasSubstr("[shuffle]"));
  EXPECT_THAT(error_of([&] { rows->repeat(0); }).message(), HasSubstr("[repeat]"));
  EXPECT_THAT(error_of([&] { rows->take(-2); }).message(), HasSubstr("[take]"));
  EXPECT_THAT(error_of([&] { rows->skip(-1); }).message(), HasSubstr("[skip]"));
  EXPECT_THAT(error_of([&] { rows->map({}); }).message(), HasSubstr("[map]"));
  EXPECT_THAT(error_of([&] { rows->iterate({.epochs = 0}); }).message(), HasSubstr("[Iterator]"));
  EXPECT_THAT(error_of([&] { rows->map({nullptr}); }).message(), HasSubstr("[map]"));
  EXPECT_THAT(error_of([&] { numbers(3, {.shuffle = false, .num_shards = 2}); }).message(),
              HasSubstr("num_shards = 2 was given without shard_id"));
  EXPECT_THAT(error_of([&] {
                numbers(3, {.shuffle = false, .sampler = make_ref<SequentialSampler>()});
              }).message(),
              HasSubstr("a sampler decides"));
}

}  // namespace
}  // namespace lamella::data
