// Transforms against their stated formulas, element by element, and their errors.
#include <cmath>
#include <limits>

#include "tests/data/rows.h"

#include "lamella/data/transforms/convert.h"
#include "lamella/data/transforms/types.h"
#include "lamella/data/transforms/vision.h"

namespace lamella::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
Array image(Axes sizes, std::function<T(size_t)> value) {
  Array made(dtype_of<T>(), sizes);
  auto elements = made.writable_as<T>();
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = value(i);
  return made;
}

Array bytes(Axes sizes) {
  return image<uint8_t>(sizes, [](size_t i) { return static_cast<uint8_t>(i * 37 + i / 7); });
}

Array apply(const Transform& transform, const Array& array, uint64_t sample = 0) {
  RandomStream random({.seed = 1, .sample = sample});
  return transform.apply({array}, random).at(0);
}

TEST(Rescale, RoundsProductAndSumInFloat32) {
  const Array in = bytes({5, 4, 3});
  const Array out = apply(Rescale(1.0f / 255.0f, -0.25f), in);
  EXPECT_EQ(text(out.type()), "f32[5,4,3]");
  for (size_t i = 0; i < 60; ++i) {
    const volatile float product = static_cast<float>(in.as<uint8_t>()[i]) * (1.0f / 255.0f);
    EXPECT_EQ(out.as<float>()[i], product + -0.25f);
  }
}

TEST(Normalize, RoundsDifferenceAndQuotientInFloat32) {
  const std::vector<float> mean = {0.1f, 0.2f, 0.3f}, std = {0.7f, 0.8f, 0.9f};
  const Array last = bytes({2, 4, 3}), first = apply(HWC2CHW(), last);
  const Array a = apply(Normalize(mean, std), last);
  const Array b = apply(Normalize(mean, std, ChannelAxis::First), first);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const volatile float centred = static_cast<float>(last.as<uint8_t>()[i * 3 + c]) - mean[c];
      EXPECT_EQ(a.as<float>()[i * 3 + c], centred / std[c]);
      EXPECT_EQ(b.as<float>()[c * 8 + i], centred / std[c]);
    }
  }
}

TEST(Normalize, NeedsAsManyNumbersAsChannels) {
  const Error error = error_of([] { apply(Normalize({0, 0}, {1, 1}), bytes({2, 2, 3})); });
  EXPECT_EQ(error.message(),
            "[Normalize] mean and std have 2 numbers, but the image u8[2,2,3] has 3 channels");
  EXPECT_THROW(Normalize({0}, {0}), Error);
  EXPECT_THROW(Normalize({0}, {1, 1}), Error);
  EXPECT_EQ(apply(Normalize({1}, {2}), bytes({2, 2})).sizes(), (Axes{2, 2}));
}

TEST(HWC2CHW, MovesChannelsToTheFront) {
  const Array in = bytes({2, 3, 4}), out = apply(HWC2CHW(), in);
  EXPECT_EQ(text(out.type()), "u8[4,2,3]");
  for (size_t i = 0; i < 6; ++i) {
    for (size_t c = 0; c < 4; ++c) {
      EXPECT_EQ(out.as<uint8_t>()[c * 6 + i], in.as<uint8_t>()[i * 4 + c]);
    }
  }
  EXPECT_THROW(apply(HWC2CHW(), bytes({2, 3})), Error);
}

TEST(TypeCast, RoundsTowardsZeroAndStaysInRange) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1.9f, -1.9f, 300.0f, -300.0f, inf, -inf, NAN, 3e18f, -0.0f};
  const Array in = Array::of<float>(values, {9});
  EXPECT_THAT(apply(TypeCast(DType::UInt8), in).as<uint8_t>(),
              ElementsAre(1, 0, 255, 0, 255, 0, 0, 255, 0));
  EXPECT_THAT(apply(TypeCast(DType::Int8), in).as<int8_t>(),
              ElementsAre(1, -1, 127, -128, 127, -128, 0, 127, 0));
  const int64_t low = std::numeric_limits<int64_t>::min();
  const int64_t high = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(apply(TypeCast(DType::Int64), in).as<int64_t>(),
              ElementsAre(1, -1, 300, -300, high, low, 0, static_cast<int64_t>(3e18f), 0));
  EXPECT_THAT(apply(TypeCast(DType::Bool), in).as<bool>(),
              ElementsAre(true, true, true, true, true, true, true, true, false));
  const std::vector<int64_t> numbers = {-1, 256, high};
  EXPECT_THAT(apply(TypeCast(DType::UInt8), Array::of<int64_t>(numbers, {3})).as<uint8_t>(),
              ElementsAre(0, 255, 255));
}

TEST(TypeCast, HalvesRoundOnce) {
  // Just above a tie of float16; rounded to float32 first, it would be the tie.
  const std::vector<double> values = {1.0 + 0x1p-11 + 0x1p-40, 65504.0, 1e6};
  const Array half = convert(Array::of<double>(values, {3}), DType::Float16, "test");
  EXPECT_EQ(std::bit_cast<uint16_t>(std::array{half.data()[0], half.data()[1]}), 0x3C01);
  const Array back = convert(half, DType::Float32, "test");
  EXPECT_THAT(back.as<float>(), ElementsAre(1.0f + 0x1p-10f, 65504.0f, INFINITY));
}

TEST(OneHot, MarksTheLabel) {
  EXPECT_THAT(apply(OneHot(3), Array::scalar<int32_t>(1)).as<int32_t>(), ElementsAre(0, 1, 0));
  const float rest = 0.3f / 3.0f;
  EXPECT_THAT(apply(OneHot(3, 0.3f), Array::scalar<int32_t>(0)).as<float>(),
              ElementsAre(1.0f - 0.3f + rest, rest, rest));
  for (int32_t label : {-10000, -1, 3}) {
    const Error error = error_of([&] { apply(OneHot(3), Array::scalar<int32_t>(label)); });
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_THAT(error.message(), HasSubstr(fmt::format("label {} is out of range", label)));
  }
  EXPECT_THROW(apply(OneHot(3), bytes({2, 2})), Error);
}

TEST(RandomHorizontalFlip, FlipsHalfOfTheImages) {
  const Array in = bytes({2, 3, 2});
  const Array flipped = apply(RandomHorizontalFlip(1.0f), in);
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 3; ++x) {
      for (size_t c = 0; c < 2; ++c) {
        EXPECT_EQ(flipped.as<uint8_t>()[(y * 3 + 2 - x) * 2 + c],
                  in.as<uint8_t>()[(y * 3 + x) * 2 + c]);
      }
    }
  }
  int changed = 0;
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    const Array out = apply(RandomHorizontalFlip(), in, sample);
    if (!std::ranges::equal(out.as<uint8_t>(), in.as<uint8_t>())) ++changed;
  }
  EXPECT_NEAR(changed, 500, 80);
  EXPECT_EQ(apply(RandomHorizontalFlip(0.0f), in).data(), in.data());
}

TEST(RandomHorizontalFlip, TreatsAllColumnsOfARowAlike) {
  const Array in = bytes({2, 3, 2});
  for (uint64_t sample = 0; sample < 20; ++sample) {
    RandomStream random({.seed = 1, .sample = sample});
    const auto out = RandomHorizontalFlip().apply({in, in}, random);
    EXPECT_TRUE(std::ranges::equal(out[0].as<uint8_t>(), out[1].as<uint8_t>()));
  }
}

// The element of a padded image by definition, one at a time.
int64_t mirrored(int64_t place, int64_t size, Border border) {
  while (place < 0 || place >= size) {
    if (border == Border::Edge) return place < 0 ? 0 : size - 1;
    const int64_t repeated = border == Border::Symmetric ? 1 : 0;
    place = place < 0 ? -place - repeated : 2 * size - 2 - place + repeated;
  }
  return place;
}

TEST(RandomCrop, CutsAPartOfThePaddedImage) {
  const int64_t height = 5, width = 4;
  const Array in = bytes({height, width, 3});
  for (Border border : {Border::Constant, Border::Edge, Border::Reflect, Border::Symmetric}) {
    const RandomCrop crop({6, 5}, {.padding = {2, 3, 1, 2}, .fill = {7, 8, 9}, .border = border});
    std::set<std::pair<int64_t, int64_t>> places;
    for (uint64_t sample = 0; sample < 300; ++sample) {
      const Array out = apply(crop, in, sample);
      ASSERT_EQ(text(out.type()), "u8[6,5,3]");
      // Among all places of the part, exactly those of the same content explain the result.
      bool explained = false;
      for (int64_t top = -3; top <= 1; ++top) {
        for (int64_t left = -2; left <= 0; ++left) {
          bool same = true;
          for (int64_t y = 0; y < 6 && same; ++y) {
            for (int64_t x = 0; x < 5 && same; ++x) {
              for (int64_t c = 0; c < 3 && same; ++c) {
                const int64_t row = y + top, column = x + left;
                uint8_t expected;
                if (border == Border::Constant &&
                    (row < 0 || row >= height || column < 0 || column >= width)) {
                  expected = static_cast<uint8_t>(7 + c);
                } else {
                  const int64_t from =
                      mirrored(row, height, border) * width + mirrored(column, width, border);
                  expected = in.as<uint8_t>()[static_cast<size_t>(from * 3 + c)];
                }
                same = out.as<uint8_t>()[static_cast<size_t>((y * 5 + x) * 3 + c)] == expected;
              }
            }
          }
          if (same) places.emplace(top, left);
          explained = explained || same;
        }
      }
      ASSERT_TRUE(explained);
    }
    EXPECT_EQ(places.size(), 15u);  // 5 rows and 3 columns to begin at, each met
  }
}

TEST(RandomCrop, SaysIfTheImageIsTooSmall) {
  EXPECT_THAT(error_of([] { apply(RandomCrop({9, 9}), bytes({5, 4, 3})); }).message(),
              HasSubstr("5 x 4 with its padding, smaller than the part of 9 x 9"));
  const Array padded = apply(RandomCrop({9, 9}, {.pad_if_needed = true}), bytes({5, 4, 3}));
  EXPECT_EQ(padded.sizes(), (Axes{9, 9, 3}));
  EXPECT_THROW(
      apply(RandomCrop({2, 2}, {.padding = {1, 1, 1, 1}, .fill = {1, 2}}), bytes({4, 4, 3})),
      Error);
}

TEST(Resize, BilinearFollowsItsFormula) {
  const Array in =
      image<float>({4, 3, 2}, [](size_t i) { return std::sin(static_cast<float>(i)); });
  for (CropSize size : {CropSize{8, 6}, CropSize{3, 5}, CropSize{1, 1}, CropSize{7, 2}}) {
    const Array out = apply(Resize(size), in);
    ASSERT_EQ(out.sizes(), (Axes{size.height, size.width, 2}));
    const auto at = [&](int64_t y, int64_t x, int64_t c) {
      return static_cast<double>(in.as<float>()[static_cast<size_t>((y * 3 + x) * 2 + c)]);
    };
    for (int64_t y = 0; y < size.height; ++y) {
      for (int64_t x = 0; x < size.width; ++x) {
        const double row = std::clamp((double(y) + 0.5) * 4 / double(size.height) - 0.5, 0.0, 3.0);
        const double column =
            std::clamp((double(x) + 0.5) * 3 / double(size.width) - 0.5, 0.0, 2.0);
        const auto top = static_cast<int64_t>(row), left = static_cast<int64_t>(column);
        const int64_t bottom = std::min<int64_t>(top + 1, 3),
                      right = std::min<int64_t>(left + 1, 2);
        const double v = row - double(top), u = column - double(left);
        for (int64_t c = 0; c < 2; ++c) {
          const double expected = (1 - v) * ((1 - u) * at(top, left, c) + u * at(top, right, c)) +
                                  v * ((1 - u) * at(bottom, left, c) + u * at(bottom, right, c));
          const auto place = static_cast<size_t>((y * size.width + x) * 2 + c);
          EXPECT_NEAR(out.as<float>()[place], expected, 1e-6);
        }
      }
    }
  }
}

TEST(Resize, BytesRoundToNearest) {
  const std::vector<uint8_t> values = {0, 255};
  const Array out = apply(Resize({1, 4}), Array::of<uint8_t>(values, {1, 2, 1}));
  EXPECT_THAT(out.as<uint8_t>(), ElementsAre(0, 64, 191, 255));  // 63.75 and 191.25
}

TEST(Resize, NearestAndShorterSide) {
  const std::vector<int32_t> values = {1, 2, 3, 4, 5};
  const Array line = Array::of<int32_t>(values, {1, 5});
  EXPECT_THAT(apply(Resize({1, 2}, Interpolation::Nearest), line).as<int32_t>(), ElementsAre(2, 4));
  EXPECT_EQ(apply(Resize(10), bytes({20, 45, 3})).sizes(), (Axes{10, 22, 3}));
  EXPECT_EQ(apply(Resize(10), bytes({45, 20, 3})).sizes(), (Axes{22, 10, 3}));
  EXPECT_THROW(apply(Resize({2, 2}), line), Error);
}

TEST(Compose, AppliesItsTransformsInTurn) {
  const auto composed = make_ref<Compose>(std::vector<Ref<Transform>>{
      make_ref<Rescale>(2.0f, 1.0f),
      make_ref<Compose>(std::vector<Ref<Transform>>{make_ref<TypeCast>(DType::Int32),
                                                    make_ref<TypeCast>(DType::Int64)})});
  EXPECT_EQ(composed->parts().size(), 3u);
  EXPECT_THAT(read(numbers(3)->map({composed})), ElementsAre(1, 3, 5));
  EXPECT_THROW(Compose({}), Error);
}

// ---- Batches assembled at once have the bits of rows made one by one. ----

std::vector<float> read_floats(const Ref<Dataset>& dataset) {
  dataset->reset();
  auto rows = dataset->iterate({.epochs = 1});
  std::vector<float> values;
  while (auto row = rows->next()) {
    const Array array = convert((*row)[0], DType::Float32, "test");
    values.insert(values.end(), array.as<float>().begin(), array.as<float>().end());
  }
  return values;
}

TEST(Batches, HaveTheBitsOfSingleRows) {
  const std::vector<std::vector<Ref<Transform>>> chains = {
      {make_ref<Rescale>(1.0f / 255.0f, 0.0f)},
      {make_ref<HWC2CHW>(), make_ref<TypeCast>(DType::Int16)},
      {make_ref<Rescale>(1.0f / 255.0f, 0.1f),
       make_ref<Normalize>(std::vector<float>{0.1f, 0.2f, 0.3f},
                           std::vector<float>{0.7f, 0.8f, 0.9f}),
       make_ref<HWC2CHW>(), make_ref<TypeCast>(DType::Float16)},
      {make_ref<HWC2CHW>(),
       make_ref<Normalize>(std::vector<float>{0.1f, 0.2f, 0.3f},
                           std::vector<float>{0.7f, 0.8f, 0.9f}, ChannelAxis::First),
       make_ref<TypeCast>(DType::Float64)},
      {make_ref<TypeCast>(DType::Float32), make_ref<HWC2CHW>(), make_ref<Rescale>(0.5f, 0.0f)},
      {make_ref<RandomHorizontalFlip>(), make_ref<Rescale>(0.5f, 0.0f),
       make_ref<RandomCrop>(CropSize{4, 4}), make_ref<TypeCast>(DType::UInt8),
       make_ref<Rescale>(0.1f, 0.2f), make_ref<HWC2CHW>()},
  };
  for (const auto& chain : chains) {
    for (DType dtype : {DType::UInt8, DType::Float32}) {
      const auto source = make_ref<NumpySlicesDataset>(
          std::vector<Array>{convert(bytes({23, 6, 5, 3}), dtype, "test")},
          std::vector<std::string>{"image"});
      const auto mapped = source->map(chain);
      EXPECT_EQ(read_floats(mapped->batch(4)), read_floats(mapped));
    }
  }
}

TEST(Batches, OfMapsThatGiveFurtherColumns) {
  const auto twice = make_ref<FunctionTransform>([](std::vector<Array> in, RandomStream&) {
    return std::vector<Array>{in[0], apply(Rescale(2.0f, 0.0f), in[0])};
  });
  const auto mapped = numbers(5)
                          ->zip(numbers(5)->rename({"id"}, {"other"}))
                          ->map({twice, make_ref<Rescale>(1.0f, 1.0f)},
                                {.inputs = {"other"}, .outputs = {"a", "b"}});
  const auto row = mapped->batch(5)->iterate()->next();
  EXPECT_THAT(row->names(), ElementsAre("a", "b", "id"));
  EXPECT_THAT((*row)["a"].as<float>(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT((*row)["b"].as<float>(), ElementsAre(1, 3, 5, 7, 9));
  EXPECT_THAT((*row)["id"].as<int64_t>(), ElementsAre(0, 1, 2, 3, 4));
}

TEST(Batches, RefuseWhatSingleRowsRefuse) {
  const auto source = make_ref<NumpySlicesDataset>(std::vector<Array>{bytes({8, 256, 1, 3})},
                                                   std::vector<std::string>{"image"});
  const auto wrong = source->map({make_ref<Normalize>(
      std::vector<float>{0, 0, 0}, std::vector<float>{1, 1, 1}, ChannelAxis::First)});
  auto rows = wrong->batch(4)->iterate();
  EXPECT_THAT(error_of([&] { rows->next(); }).message(),
              HasSubstr("the image u8[256,1,3] has 256 channels"));
}

}  // namespace
}  // namespace lamella::data
