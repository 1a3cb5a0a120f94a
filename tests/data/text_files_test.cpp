// Text and CSV files: what is read, in which order, and what is refused.
#include <limits>
#include <set>

#include "tests/data/rows.h"

#include "lamella/data/csv_file.h"
#include "lamella/data/text_file.h"
#include "lamella/data/transforms/types.h"

namespace lamella::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string string_of(const Array& array) {
  EXPECT_TRUE(array.type().is_text);
  EXPECT_EQ(array.rank(), 1);
  return {reinterpret_cast<const char*>(array.data()), array.bytes()};
}

std::vector<std::string> texts(const Ref<Dataset>& dataset, const std::string& column = "text") {
  dataset->reset();
  std::vector<std::string> all;
  auto rows = dataset->iterate({.epochs = 1});
  while (auto row = rows->next()) all.push_back(string_of((*row)[column]));
  return all;
}

class TextFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) {
    write_bytes(folder_ / name, content);
    return folder_ / name;
  }
  Error csv_error(std::string_view content, const CsvOptions& options = {}) {
    const std::string path = file("bad.csv", content);
    return error_of([&] {
      auto rows = make_ref<CsvDataset>(std::vector{path}, options, kInOrder)->iterate();
      while (rows->next()) {
      }
    });
  }
  TemporaryFolder folder_;
};

Ref<Dataset> lines(const std::vector<std::string>& files, const SourceOptions& options = kInOrder,
                   ShuffleScope scope = ShuffleScope::Records) {
  return make_ref<TextFileDataset>(files, options, scope);
}

TEST_F(TextFiles, LinesWithEveryKindOfEnd) {
  const std::vector<std::string> expected = {"first", "zw\u00f6lf", "last"};
  for (const char* content :
       {"first\nzw\u00f6lf\nlast\n", "first\r\nzw\u00f6lf\r\nlast\r\n", "first\nzw\u00f6lf\nlast",
        "\xEF\xBB\xBF"
        "first\n\n\r\nzw\u00f6lf\r\nlast"}) {
    EXPECT_EQ(texts(lines({file("a.txt", content)})), expected);
  }
  EXPECT_EQ(lines({file("a.txt", "")})->size(), 0);
  EXPECT_THAT(texts(lines({file("a.txt", ""), file("b.txt", "x\ny"), file("c.txt", "\n")})),
              ElementsAre("x", "y"));
}

TEST_F(TextFiles, WhatIsNoUtf8IsRefusedWithItsLine) {
  const auto message = [&](std::string_view content) {
    const std::string path = file("a.txt", content);
    const Error error = error_of([&] { lines({path}); });
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_THAT(error.message(), HasSubstr(path));
    return error.message();
  };
  EXPECT_THAT(message("a\nb\xFF\n"), HasSubstr("a.txt:2: byte 0xff is no UTF-8"));
  EXPECT_THAT(message("\xC0\xAF"), HasSubstr(":1:"));           // longer than needed
  EXPECT_THAT(message("\xED\xA0\x80"), HasSubstr("no UTF-8"));  // half of a pair
  EXPECT_THAT(message("\xF4\x90\x80\x80"), HasSubstr("no UTF-8"));
  EXPECT_THAT(message("\xE2\x82"), HasSubstr("no UTF-8"));  // cut off
  EXPECT_THAT(message(std::string_view("\xFF\xFE"
                                       "a\0",
                                       4)),
              HasSubstr("is UTF-16"));
  EXPECT_THAT(message(std::string_view("a\0b", 3)), HasSubstr("a zero byte"));
  EXPECT_EQ(error_of([&] { lines({folder_ / "none.txt"}); }).kind(), ErrorKind::Io);
  EXPECT_EQ(error_of([&] { lines({}); }).kind(), ErrorKind::Value);
}

TEST_F(TextFiles, BatchesOfStringsOfUnequalLength) {
  auto rows = lines({file("a.txt", "a\nlong\nmid\n")})->batch(3)->iterate();
  const Array batch = (*rows->next())["text"];
  EXPECT_EQ(text(batch.type()), "text[3]");
  EXPECT_EQ(batch.sizes(), (Axes{3, 4}));
  EXPECT_EQ(std::memcmp(batch.data(), "a\0\0\0longmid\0", 12), 0);
}

TEST_F(TextFiles, TransformsOfNumbersRefuseText) {
  const auto dataset = lines({file("a.txt", "a\nb")});
  for (const auto& wrong : {dataset->map({make_ref<TypeCast>(DType::Float32)}),
                            dataset->map({make_ref<TypeCast>(DType::Float32)})->batch(2)}) {
    const Error error = error_of([&] { wrong->iterate()->next(); });
    EXPECT_EQ(error.kind(), ErrorKind::Type);
    EXPECT_THAT(error.message(), HasSubstr("[TypeCast] takes numbers, got a column of text"));
  }
}

TEST_F(TextFiles, FilesAreMixedWhole) {
  const std::vector<std::string> files = {file("a.txt", "a1\na2\na3"), file("b.txt", "b1\nb2"),
                                          file("c.txt", "c1\nc2\nc3\nc4")};
  const auto mixed = lines(files, {.shuffle = true}, ShuffleScope::Files);
  std::set<std::vector<std::string>> orders;
  auto rows = mixed->iterate({.epochs = 20});
  for (int epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::string> order;
    while (auto row = rows->next()) order.push_back(string_of((*row)["text"]));
    orders.insert(order);
    ASSERT_EQ(order.size(), 9u);
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i][0] == order[i - 1][0]) {
        EXPECT_EQ(order[i][1], order[i - 1][1] + 1);
      }
    }
  }
  EXPECT_GT(orders.size(), 1u);
  EXPECT_LE(orders.size(), 6u);
  std::vector<std::string> shards;
  for (int64_t shard = 0; shard < 3; ++shard) {
    for (const auto& line : texts(lines(
             files, {.shuffle = true, .num_shards = 3, .shard_id = shard}, ShuffleScope::Files))) {
      shards.push_back(line);
    }
  }
  std::sort(shards.begin(), shards.end());
  EXPECT_EQ(shards, texts(lines(files)));
  EXPECT_EQ(texts(lines(files, {.num_samples = 4}, ShuffleScope::Files)).size(), 4u);
}

TEST_F(TextFiles, AShardNeedsBothNumbers) {
  const std::string path = file("a.txt", "a");
  const auto message = [&](const SourceOptions& options) {
    return error_of([&] { lines({path}, options); }).message();
  };
  EXPECT_EQ(message({.num_shards = 2}),
            "[TextFileDataset] num_shards = 2 was given without shard_id: a shard needs both");
  EXPECT_EQ(message({.shard_id = 1}),
            "[TextFileDataset] shard_id = 1 was given without num_shards: a shard needs both");
}

TEST_F(TextFiles, CsvFieldsQuotesAndEnds) {
  for (const char* content :
       {"a,b\nx,\"p, q\"\n\"say \"\"hi\"\"\",\n\"\",\"two\nlines\"\n",
        "\xEF\xBB\xBF"
        "a,b\r\n\r\nx,\"p, q\"\r\n\"say \"\"hi\"\"\",\r\n\n\"\",\"two\nlines\""}) {
    const auto dataset =
        make_ref<CsvDataset>(std::vector{file("a.csv", content)}, CsvOptions{}, kInOrder);
    EXPECT_THAT(dataset->columns(), ElementsAre("a", "b"));
    EXPECT_THAT(texts(dataset, "a"), ElementsAre("x", "say \"hi\"", ""));
    EXPECT_THAT(texts(dataset, "b"), ElementsAre("p, q", "", "two\nlines"));
  }
  const auto tabs =
      make_ref<CsvDataset>(std::vector{file("a.tsv", "1,2\t3\n")},
                           CsvOptions{.delimiter = '\t', .names = {"a", "b"}}, kInOrder);
  EXPECT_THAT(texts(tabs, "a"), ElementsAre("1,2"));
}

TEST_F(TextFiles, DefaultsGiveDtypesAndEmptyFields) {
  const CsvOptions options{.defaults = {int32_t{-1}, 2.5f, std::string("none"), int64_t{7}, 0.5},
                           .names = {"i", "f", "s", "l", "d"}};
  const auto dataset = make_ref<CsvDataset>(
      std::vector{file("a.csv", "3, 1e-3 ,x,9000000000,-1.5\n,,,,\n+4,inf,\"\",-2,1e300\n")},
      options, kInOrder);
  auto rows = dataset->iterate();
  auto row = *rows->next();
  EXPECT_EQ(row["i"].as<int32_t>()[0], 3);
  EXPECT_EQ(row["f"].as<float>()[0], 1e-3f);
  EXPECT_EQ(row["l"].as<int64_t>()[0], 9000000000);
  EXPECT_EQ(row["d"].as<double>()[0], -1.5);
  row = *rows->next();
  EXPECT_EQ(row["i"].as<int32_t>()[0], -1);
  EXPECT_EQ(row["f"].as<float>()[0], 2.5f);
  EXPECT_EQ(string_of(row["s"]), "none");
  EXPECT_EQ(row["l"].as<int64_t>()[0], 7);
  EXPECT_EQ(row["d"].as<double>()[0], 0.5);
  row = *rows->next();
  EXPECT_EQ(row["i"].as<int32_t>()[0], 4);
  EXPECT_EQ(row["f"].as<float>()[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(row["d"].as<double>()[0], 1e300);
  EXPECT_EQ(dataset->types()[1].dtype, DType::Float32);
}

TEST_F(TextFiles, CsvErrorsNameFileAndLine) {
  EXPECT_THAT(csv_error("a,b\n1,2\n3\n").message(),
              HasSubstr("bad.csv:3: 1 fields, where there are 2 columns: a, b"));
  EXPECT_THAT(csv_error("a,b\n\"1\n\n\",2\n3,4,5\n").message(),
              HasSubstr("bad.csv:5: 3 fields, where there are 2 columns"));
  EXPECT_THAT(csv_error("a,b\n1,\"x\n").message(), HasSubstr("bad.csv:2: the quote that opens"));
  EXPECT_THAT(csv_error("a,b\n\"1\"2,3\n").message(), HasSubstr("bad.csv:2: '2' follows"));
  EXPECT_THAT(csv_error("").message(), HasSubstr("bad.csv:1: there is no line with the names"));
  EXPECT_THAT(csv_error("a,a\n").message(), HasSubstr("'a' would occur twice"));
  EXPECT_THAT(csv_error("a,\n").message(), HasSubstr("empty name"));
  EXPECT_THAT(csv_error("a\n\xFF\n").message(), HasSubstr("bad.csv:2: byte 0xff"));
  EXPECT_THAT(csv_error("a\n1\n", {.defaults = {1, 2}}).message(),
              HasSubstr("column_defaults has 2 values for 1 columns"));
  EXPECT_EQ(csv_error("a\n", {.delimiter = '"'}).kind(), ErrorKind::Value);
  const CsvOptions number{.defaults = {int32_t{0}}};
  for (const char* field : {"x", "1.5", "1 2", "+-1", "0x10", "1e3"}) {
    const Error error = csv_error(fmt::format("a\n1\n{}\n", field), number);
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_THAT(error.message(),
                HasSubstr(fmt::format("bad.csv:3: column 'a': '{}' is no whole number", field)));
  }
  EXPECT_THAT(csv_error("a\n3000000000\n", number).message(),
              HasSubstr("'3000000000' is out of the range of int32"));
  EXPECT_THAT(csv_error("a\n1e39\n", {.defaults = {0.0f}}).message(),
              HasSubstr("out of the range of float32"));
  const std::string other = file("other.csv", "b\n1\n");
  EXPECT_THAT(error_of([&] {
                make_ref<CsvDataset>(std::vector{file("a.csv", "a\n1\n"), other});
              }).message(),
              HasSubstr("other.csv:1: the columns are b"));
}

TEST_F(TextFiles, EmptyCsvFilesHaveNoRows) {
  const CsvOptions named{.names = {"a"}};
  EXPECT_EQ(make_ref<CsvDataset>(std::vector{file("a.csv", "")}, named)->size(), 0);
  EXPECT_EQ(make_ref<CsvDataset>(std::vector{file("a.csv", "a\n")})->size(), 0);
}

// Seeks to every position of two epochs and compares what follows.
TEST_F(TextFiles, ResumesInTheMiddleOfAnEpoch) {
  std::string content, csv = "text\n";
  for (int i = 0; i < 10; ++i) {
    content += fmt::format("{}\n", i);
    csv += fmt::format("{}\n", i);
  }
  const std::vector<std::string> files = {file("a.txt", content), file("b.txt", "x\ny\n")};
  for (const auto& dataset :
       {lines(files, {.shuffle = true}), lines(files, {.shuffle = true}, ShuffleScope::Files),
        Ref<Dataset>(make_ref<CsvDataset>(std::vector{file("a.csv", csv)}))}) {
    std::vector<std::pair<Position, std::string>> all;
    auto rows = dataset->iterate({.epochs = 2});
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (;;) {
        const Position position = rows->position();
        auto row = rows->next();
        all.emplace_back(position, row ? string_of((*row)["text"]) : "end");
        if (!row) break;
      }
    }
    for (size_t start = 0; start < all.size(); ++start) {
      dataset->reset();
      auto resumed = dataset->iterate({.epochs = 2});
      resumed->seek(all[start].first);
      for (size_t i = start; i < all.size(); ++i) {
        ASSERT_EQ(resumed->position(), all[i].first);
        auto row = resumed->next();
        ASSERT_EQ(row ? string_of((*row)["text"]) : "end", all[i].second);
      }
    }
  }
}

}  // namespace
}  // namespace lamella::data
