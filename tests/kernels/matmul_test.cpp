// Matrix products against plain loops in double.
#include "lamella/kernels/matmul.h"

#include "tests/kernels/array.h"
#include <gmock/gmock.h>

namespace lamella::kernels {
namespace {

using testing::HasSubstr;

std::vector<double> expected_product(const Array& a, const Array& b, const Array* bias,
                                     const Array& out) {
  const Axes& sizes = out.sizes();
  const uint32_t rank = sizes.size();
  const int64_t m = sizes[rank - 2], n = sizes[rank - 1], k = a.sizes().back();
  // The first element of the matrix that batch point `point` of out reads in `operand`.
  const auto matrix_at = [&](const Array& operand, int64_t point, int64_t matrix_size) {
    int64_t flat = 0, scale = 1;
    for (uint32_t back = 3; back <= rank; ++back) {
      const int64_t at = point % sizes[rank - back];
      point /= sizes[rank - back];
      if (back > operand.sizes().size()) continue;
      const int64_t size = operand.sizes()[operand.sizes().size() - back];
      flat += (size == 1 ? 0 : at) * scale;
      scale *= size;
    }
    return flat * matrix_size;
  };
  const auto a_values = a.values(), b_values = b.values();
  std::vector<double> result;
  const int64_t points = m * n == 0 ? 0 : out.count() / (m * n);
  for (int64_t point = 0; point < points; ++point) {
    const int64_t first_a = matrix_at(a, point, m * k), first_b = matrix_at(b, point, k * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias != nullptr ? bias->flat(j) : 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += a_values[static_cast<size_t>(first_a + i * k + l)] *
                 b_values[static_cast<size_t>(first_b + l * n + j)];
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

void check_product(DType dtype, const Array& a, const Array& b, const Array* bias, const Array& out,
                   const std::string& what) {
  const TensorView* bias_view = bias != nullptr ? &bias->view() : nullptr;
  matmul(a, b, bias_view, out);
  const double k = static_cast<double>(a.sizes().back());
  const auto expected = expected_product(a, b, bias, out);
  expect_near(out, expected, k, what + fmt::format(" {}", name(dtype)));
  // With lent scratch memory of just the size asked for.
  const int64_t bytes = matmul_scratch_bytes(a, b, bias_view, out);
  Ref<Allocation> scratch = guarded_pool().allocate((bytes + 63) / 64 * 64);
  matmul(a, b, bias_view, out, {scratch->data(), bytes});
  expect_near(out, expected, k, what + fmt::format(" {} lent scratch", name(dtype)));
}

struct Shapes {
  Axes a, b, out;
};

const Shapes kShapes[] = {
    {{3, 5}, {5, 4}, {3, 4}},
    {{1, 1}, {1, 1}, {1, 1}},
    {{1, 7}, {7, 9}, {1, 9}},
    {{7, 9}, {9, 1}, {7, 1}},
    {{1, 9}, {9, 1}, {1, 1}},
    {{9, 1}, {1, 7}, {9, 7}},
    {{65, 33}, {33, 70}, {65, 70}},
    {{17, 300}, {300, 19}, {17, 19}},
    {{1, 600}, {600, 520}, {1, 520}},
    {{3, 40}, {40, 700}, {3, 700}},
    {{700, 37}, {37, 4}, {700, 4}},
    {{2, 9000}, {9000, 3}, {2, 3}},
    {{4, 5}, {5, 2100}, {4, 2100}},
    {{0, 3}, {3, 4}, {0, 4}},
    {{3, 0}, {0, 4}, {3, 4}},
    {{3, 4}, {4, 0}, {3, 0}},
    {{2, 3, 5}, {2, 5, 4}, {2, 3, 4}},
    {{6, 3, 5}, {5, 4}, {6, 3, 4}},
    {{3, 5}, {6, 5, 4}, {6, 3, 4}},
    {{2, 1, 3, 5}, {1, 4, 5, 2}, {2, 4, 3, 2}},
    {{1, 4, 3, 5}, {2, 1, 5, 2}, {2, 4, 3, 2}},
    {{2, 3, 1, 3, 5}, {4, 5, 2}, {2, 3, 4, 3, 2}},
    {{2, 0, 3, 5}, {5, 2}, {2, 0, 3, 2}},
};

TEST(Matmul, MultipliesEveryShapeDtypeAndOrder) {
  for (DType dtype : kComputeDTypes) {
    const bool floating = is_float(dtype);
    if (dtype == DType::Bool) continue;
    for (const Shapes& shapes : kShapes) {
      for (int orders = 0; orders < 8; ++orders) {
        // The last two axes swapped in memory where the bit is set.
        const auto order = [&](const Axes& sizes, int bit) {
          Axes axes;
          for (uint32_t i = 0; i < sizes.size(); ++i) axes.push_back(i);
          if ((orders >> bit & 1) != 0) {
            std::swap(axes[sizes.size() - 1], axes[sizes.size() - 2]);
          }
          return axes;
        };
        Array a = Array::ordered(dtype, shapes.a, order(shapes.a, 0));
        Array b = Array::ordered(dtype, shapes.b, order(shapes.b, 1));
        Array out = Array::ordered(dtype, shapes.out, order(shapes.out, 2));
        Array bias(dtype, {shapes.out.back()});
        a.randomize(1, floating ? -1 : 0, floating ? 1 : 2);
        b.randomize(2, floating ? -1 : 0, floating ? 1 : 2);
        bias.randomize(3, floating ? -1 : 0, floating ? 1 : 3);
        const std::string what =
            text(a.view()) + " " + text(b.view()) + " order " + std::to_string(orders);
        if (size_of(dtype) == 1 && shapes.a.back() > 30) continue;  // leaves the range
        check_product(dtype, a, b, nullptr, out, what);
        check_product(dtype, a, b, &bias, out, what + " with bias");
      }
    }
  }
}

TEST(Matmul, TakesAnyStrides) {
  for (DType dtype : kFloats) {
    // Batch axis innermost, every second column, a reversed axis, a repeated one.
    Array a = Array::ordered(dtype, {4, 6, 5}, {1, 2, 0});
    Array b = Array::ordered(dtype, {4, 5, 7}, {2, 1, 0});
    Array out = Array::ordered(dtype, {4, 6, 7}, {1, 0, 2});
    a.randomize(1), b.randomize(2);
    check_product(dtype, a, b, nullptr, out, "batch innermost");

    Array wide(dtype, {6, 10});
    wide.randomize(3);
    TensorView every_second = wide;
    every_second.sizes = {6, 5};
    every_second.strides = {10, 2};
    TensorView reversed = moved(wide, 9);
    reversed.sizes = {10, 6};
    reversed.strides = {-1, 10};
    TensorView repeated = wide;
    repeated.sizes = {5, 6};
    repeated.strides = {0, 1};
    Array square(dtype, {6, 6}), tall(dtype, {10, 5});
    matmul(every_second, repeated, nullptr, square);
    std::vector<double> expected;
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 6; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 5; ++k) sum += wide.at({i, 2 * k}) * wide.at({0, j});
        expected.push_back(sum);
      }
    }
    expect_near(square, expected, 5, "stride 2 times repeated");
    matmul(reversed, every_second, nullptr, tall);
    expected.clear();
    for (int64_t i = 0; i < 10; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 6; ++k) sum += wide.at({k, 9 - i}) * wide.at({k, 2 * j});
        expected.push_back(sum);
      }
    }
    expect_near(tall, expected, 6, "reversed times stride 2");
  }
}

TEST(Matmul, BoolIsOrOfAnds) {
  Array a(DType::Bool, {2, 3}, {1., 0, 1, 0, 0, 1}), b(DType::Bool, {3, 2}, {0., 1, 1, 1, 0, 0}),
      out(DType::Bool, {2, 2});
  matmul(a, b, nullptr, out);
  EXPECT_EQ(out.values(), (std::vector<double>{0, 1, 0, 0}));
}

TEST(Matmul, IntegersWrap) {
  Array a(DType::Int8, {1, 2}, {100., 100}), b(DType::Int8, {2, 1}, {2., 1}),
      out(DType::Int8, {1, 1});
  matmul(a, b, nullptr, out);
  EXPECT_EQ(out.flat(0), 300 - 256);
}

TEST(Matmul, PropagatesNanAndInfinity) {
  for (DType dtype : kFloats) {
    Array a(dtype, {2, 2}, {NAN, 1, INFINITY, 1}), b(dtype, {2, 2}, {0., 1, 1, 1}),
        out(dtype, {2, 2});
    matmul(a, b, nullptr, out);
    EXPECT_TRUE(std::isnan(out.flat(0)));
    EXPECT_TRUE(std::isnan(out.flat(1)));
    EXPECT_TRUE(std::isnan(out.flat(2)));  // infinity times 0
    EXPECT_EQ(out.flat(3), INFINITY);
  }
}

TEST(Matmul, GivesTheSameBitsForAnyThreadCount) {
  using Sizes = std::array<int64_t, 3>;
  for (const auto& [m, k, n] : {Sizes{1, 3000, 1500}, {1000, 2000, 3}, {37, 333, 129}}) {
    for (const DType dtype : kFloats) {
      for (const bool transposed : {false, true}) {
        const Axes order = transposed ? Axes{1, 0} : Axes{0, 1};
        Array a = Array::ordered(dtype, {m, k}, order);
        Array b = Array::ordered(dtype, {k, n}, order);
        Array out(dtype, {m, n});
        a.randomize(1), b.randomize(2);
        expect_same_bits_for_any_thread_count(out, [&] { matmul(a, b, nullptr, out); });
      }
    }
  }
}

// A view that is read in place in one window is a dense copy in another.
TEST(Matmul, GivesTheSameBitsForAnyStrides) {
  for (const DType dtype : kFloats) {
    for (const int64_t m : {1, 2, 5, 17}) {
      for (const int64_t n : {1, 3, 16, 33}) {
        const int64_t k = 131;
        Array dense_a(dtype, {m, k}), dense_b(dtype, {k, n}), expected(dtype, {m, n});
        dense_a.randomize(1), dense_b.randomize(2);
        matmul(dense_a, dense_b, nullptr, expected);
        for (int orders = 1; orders < 8; ++orders) {
          const auto order = [&](int bit) {
            return (orders >> bit & 1) != 0 ? Axes{1, 0} : Axes{0, 1};
          };
          Array a = Array::ordered(dtype, {m, k}, order(0));
          Array b = Array::ordered(dtype, {k, n}, order(1));
          Array out = Array::ordered(dtype, {m, n}, order(2));
          a.randomize(1), b.randomize(2);
          matmul(a, b, nullptr, out);
          EXPECT_EQ(out.values(), expected.values()) << m << " " << n << " " << orders;
        }
      }
    }
  }
}

TEST(Matmul, ARowIsTheSameInEveryBatch) {
  const int64_t k = 300, n = 65, rows = 64;
  Array many(DType::Float32, {rows, k}), b(DType::Float32, {k, n}), bias(DType::Float32, {n});
  Array all(DType::Float32, {rows, n});
  many.randomize(1), b.randomize(2), bias.randomize(3);
  matmul(many, b, &bias.view(), all);
  for (const int64_t row : {int64_t{0}, int64_t{13}, rows - 1}) {
    TensorView one = many.view();
    one.data = one.as<float>() + row * k;
    one.sizes[0] = 1;
    Array result(DType::Float32, {1, n});
    matmul(one, b, &bias.view(), result);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(result.flat(i), all.flat(row * n + i));
  }
}

TEST(Matmul, RepeatsItsBits) {
  Array a(DType::Float32, {129, 257}), b(DType::Float32, {257, 65}), out(DType::Float32, {129, 65});
  a.randomize(1), b.randomize(2);
  matmul(a, b, nullptr, out);
  const auto first = out.bytes();
  for (int i = 0; i < 10; ++i) {
    matmul(a, b, nullptr, out);
    EXPECT_EQ(out.bytes(), first);
  }
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  const auto refusal = [](ErrorKind kind, DType b_dtype, const Axes& a, const Axes& b,
                          const Axes& out) {
    Array left(DType::Float32, a), right(b_dtype, b), result(DType::Float32, out);
    return message_of(kind, [&] { matmul(left, right, nullptr, result); });
  };
  EXPECT_THAT(refusal(ErrorKind::Value, DType::Float32, {2, 3}, {4, 5}, {2, 5}),
              HasSubstr("[matmul] a's last axis must be as long as b's last but one (a: f32[2,3], "
                        "b: f32[4,5], out: f32[2,5])"));
  refusal(ErrorKind::Value, DType::Float32, {2, 3}, {3, 5}, {2, 4});
  refusal(ErrorKind::Value, DType::Float32, {2, 2, 3}, {3, 3, 5}, {2, 2, 5});
  refusal(ErrorKind::Value, DType::Float32, {3}, {3, 5}, {5});
  refusal(ErrorKind::Type, DType::Float64, {2, 3}, {3, 5}, {2, 5});
  Array a(DType::Float32, {2, 3}), b(DType::Float32, {3, 5}), out(DType::Float32, {2, 5}),
      bias(DType::Float32, {4});
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { matmul(a, b, &bias.view(), out); }),
              HasSubstr("bias must have shape [5], got f32[4]"));
}

}  // namespace
}  // namespace lamella::kernels
