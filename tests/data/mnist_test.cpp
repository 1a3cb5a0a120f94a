// The MNIST format: what is read, and that nothing damaged is.
#include "lamella/data/mnist.h"

#include "tests/data/rows.h"
#include <zlib.h>

#include "lamella/data/idx.h"

namespace lamella::data {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

std::string idx(const std::vector<uint32_t>& sizes, const std::string& elements) {
  std::string content = {0, 0, 8, static_cast<char>(sizes.size())};
  for (uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) content += static_cast<char>(size >> shift);
  }
  return content + elements;
}

std::vector<std::byte> as_bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

void write_gzip(const std::string& path, const std::string& content) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

// Three training and two test images of 2 x 2.
void write_dataset(const TemporaryFolder& folder) {
  write_bytes(folder / "train-images-idx3-ubyte", idx({3, 2, 2}, "abcdefghijkl"));
  write_gzip(folder / "train-labels-idx1-ubyte.gz", idx({3}, {1, 2, 3}));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", idx({2, 2, 2}, "mnopqrst"));
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx({2}, {4, 9}));
}

std::vector<int32_t> labels_of(const Ref<Dataset>& dataset) {
  std::vector<int32_t> labels;
  auto rows = dataset->iterate({.epochs = 1});
  while (auto row = rows->next()) labels.push_back((*row)["label"].as<int32_t>()[0]);
  return labels;
}

TEST(Mnist, ReadsPlainAndGzippedFiles) {
  const TemporaryFolder folder;
  write_dataset(folder);
  const auto labels = [&](Usage usage) {
    return labels_of(make_ref<MnistDataset>(folder.path(), usage, kInOrder));
  };
  EXPECT_THAT(labels(Usage::Train), ElementsAre(1, 2, 3));
  EXPECT_THAT(labels(Usage::Test), ElementsAre(4, 9));
  EXPECT_THAT(labels(Usage::All), ElementsAre(1, 2, 3, 4, 9));
  auto row = make_ref<MnistDataset>(folder.path(), Usage::Test, kInOrder)->iterate()->next();
  EXPECT_EQ(text((*row)["image"].type()), "u8[2,2,1]");
  EXPECT_THAT((*row)["image"].as<uint8_t>(), ElementsAre('m', 'n', 'o', 'p'));
}

TEST(Mnist, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  const Error error = error_of([&] { MnistDataset dataset(folder.path(), Usage::Train); });
  EXPECT_EQ(error.kind(), ErrorKind::Io);
  EXPECT_THAT(error.message(), HasSubstr(folder.path()));
  EXPECT_THAT(error.message(), HasSubstr("train-images-idx3-ubyte or"));
  EXPECT_THROW(usage_from_name("validation", "MnistDataset"), Error);
}

TEST(Mnist, ImagesAndLabelsMustBelongTogether) {
  const TemporaryFolder folder;
  write_dataset(folder);
  write_bytes(folder / "train-labels-idx1-ubyte", idx({2}, {1, 2}));
  EXPECT_THAT(error_of([&] { MnistDataset dataset(folder.path(), Usage::Train); }).message(),
              HasSubstr("has 3 images, but"));
  write_bytes(folder / "train-labels-idx1-ubyte", idx({3}, {1, 2, 10}));
  EXPECT_THAT(error_of([&] { MnistDataset dataset(folder.path(), Usage::Train); }).message(),
              HasSubstr("label 10"));
  write_bytes(folder / "train-labels-idx1-ubyte", idx({3, 1, 1}, {1, 2, 3}));
  EXPECT_THAT(error_of([&] { MnistDataset dataset(folder.path(), Usage::Train); }).message(),
              HasSubstr("not one label each"));
}

TEST(Idx, EveryTruncationIsAnError) {
  const std::string whole = idx({3, 2, 2}, "abcdefghijkl");
  EXPECT_EQ(text(parse_idx(as_bytes(whole), "file").type()), "u8[3,2,2]");
  for (size_t length = 0; length < whole.size(); ++length) {
    const Error error =
        error_of([&] { parse_idx(as_bytes(whole.substr(0, length)), "some/file"); });
    EXPECT_EQ(error.kind(), ErrorKind::Io) << length;
    EXPECT_THAT(error.message(), HasSubstr("some/file"));
  }
  EXPECT_THROW(parse_idx(as_bytes(whole + "x"), "file"), Error);
}

TEST(Idx, EveryFlippedBitOfTheHeaderIsAnError) {
  const std::string whole = idx({3, 2, 2}, "abcdefghijkl");
  for (size_t bit = 0; bit < 16 * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(error_of([&] { parse_idx(as_bytes(damaged), "file"); }).kind(),
                AnyOf(ErrorKind::Io, ErrorKind::Unsupported))
        << bit;
  }
  EXPECT_THROW(parse_idx(as_bytes(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")), "file"), Error);
  EXPECT_EQ(parse_idx(as_bytes(idx({0xFFFFFFFF, 0xFFFFFF01, 0}, "")), "file").count(), 0);
}

TEST(Idx, DamagedGzipFilesAreErrors) {
  const TemporaryFolder folder;
  const std::string path = folder / "file.gz";
  const std::string whole = idx({3, 2, 2}, "abcdefghijkl");
  write_gzip(path, whole);
  const std::string packed = read_bytes(path);
  for (size_t length = 0; length < packed.size(); ++length) {
    write_bytes(path, packed.substr(0, length));
    EXPECT_THROW(parse_idx(read_file(path), path), Error) << length;
  }
  for (size_t at = 10; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    write_bytes(path, damaged);
    // A bit may pad the packed data and mean nothing; never is other content read.
    try {
      EXPECT_EQ(read_file(path), as_bytes(whole)) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Io);
    }
  }
  EXPECT_THAT(error_of([&] { read_file(folder / "none"); }).message(),
              HasSubstr("No such file or directory"));
  EXPECT_THROW(read_file(folder.path()), Error);
}

TEST(FashionMnist, HasItsKnownContent) {
  if (!std::filesystem::exists(kFashionMnist)) {
    GTEST_SKIP() << "there is no " << kFashionMnist;
  }
  const auto train = make_ref<FashionMnistDataset>(kFashionMnist, Usage::Train, kInOrder);
  const auto test = make_ref<FashionMnistDataset>(kFashionMnist, Usage::Test, kInOrder);
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(test->size(), 10000);
  for (const auto& [dataset, each] : {std::pair(train, 6000), std::pair(test, 1000)}) {
    std::vector<int> counts(10);
    double sum = 0;
    auto rows = dataset->batch(1000)->iterate({.epochs = 1});
    while (auto row = rows->next()) {
      EXPECT_EQ(text((*row)["image"].type()), "u8[1000,28,28,1]");
      EXPECT_EQ(text((*row)["label"].type()), "i32[1000]");
      for (int32_t label : (*row)["label"].as<int32_t>()) ++counts.at(static_cast<size_t>(label));
      for (uint8_t value : (*row)["image"].as<uint8_t>()) sum += value;
    }
    EXPECT_EQ(counts, std::vector<int>(10, each));
    // The published mean of the training images is 0.2860 of 255.
    if (each == 6000) {
      EXPECT_NEAR(sum / 60000 / 784 / 255, 0.2860, 5e-5);
    }
  }
}

}  // namespace
}  // namespace lamella::data
