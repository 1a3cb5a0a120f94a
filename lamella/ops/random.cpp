// Random numbers by counter: each element is computed from the seed, the draw's offset and its own
// number, so any order, thread count and fusion draws the same.
#include "lamella/ops/random.h"

#include <mutex>

#include "lamella/ir/region.h"
#include "lamella/ir/trace.h"
#include "lamella/kernels/permutation.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/ops/zero_gradient.h"

namespace lamella {

namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr DTypeSet kCounter = DTypeSet::of({DType::Int64});

// The low `bits` bits of a word of each element, as a fraction in [0, 1) of a float dtype.
Tensor fraction(const CompositeCall& call, int word, int bits, DType dtype) {
  const Tensor words =
      ops::random_words(call[0], call[1], ops::element_numbers(call.result_type().shape), word);
  const int64_t mask = (int64_t{1} << bits) - 1;
  return ops::cast(ops::bitwise_and(words, mask), dtype) * (1.0 / static_cast<double>(mask + 1));
}

// A uniform float64 from two words, spaced by 2^-48.
Tensor wide_fraction(const CompositeCall& call, int word) {
  return fraction(call, word, 24, DType::Float64) +
         fraction(call, word + 1, 24, DType::Float64) * 0x1p-24;
}

// The result of a draw: attribute 0 the shape, attribute 1 the dtype.
template <bool floats_only>
void infer_draw(InferCall& call) {
  const DType dtype = call.attribute<DType>(1);
  if (!is_computable(dtype) || (floats_only && !is_float(dtype))) {
    fail(ErrorKind::Type, "[{}] dtype {} is not accepted{}", call.op.name(), name(dtype),
         floats_only ? "; float16, bfloat16, float32, float64 are" : "");
  }
  call.results.push_back({dtype, Layout::RowMajor, call.attribute<Shape>(0)});
}

}  // namespace

LAMELLA_OP(random_words, (Operand seed, Operand offset, Operand element, int64_t word),
    .doc = "Word 0 to 3 of Philox4x32-10 with key `seed` at counter (element, offset), as int32.",
    .accepts = kCounter,
    .infer = [](InferCall& call) {
      const int64_t word = call.attribute<int64_t>(0);
      if (word < 0 || word > 3) fail(ErrorKind::Value, "[random_words] word must be 0 to 3, got {}", word);
      TensorType result = call.operand(2);
      result.dtype = DType::Int32;
      call.results.push_back(result);
    },
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o, const Node& node) {
      return b.random(static_cast<int>(node.attribute<int64_t>(0)), o[0], o[1], o[2]);
    }),
    .vjp = not_differentiable("its operands are integers"),
    .batch = batch::elementwise_like<2>,
    .reference = numpy("philox(seed, offset, element, word)", 0), .cost = Cost{60},
    .samples = Samples{"5, 7, np.arange(40), word=0", "-3, 2**40, np.arange(20), word=3"})

LAMELLA_OP(random_uniform, (Operand seed, Operand offset, Shape shape, DType dtype),
    .doc = "Uniform numbers in [0, 1).",
    .accepts = kCounter, .infer = infer_draw<true>,
    .lower = composite([](const CompositeCall& call) {
      const DType dtype = call.result_type().dtype;
      if (dtype == DType::Float64) return std::vector{wide_fraction(call, 0)};
      const int bits = dtype == DType::Float16 ? 11 : dtype == DType::BFloat16 ? 8 : 24;
      return std::vector{fraction(call, 0, bits, DType::Float32)};
    }),
    .vjp = not_differentiable("its operands are integers"),
    .batch = batch::through_composite,
    .reference = numpy("uniform(seed, offset, shape, dtype)", 0), .cost = Cost{60},
    .samples = Samples{"5, 7, shape=(3, 5), dtype='float32'", "5, 7, shape=(33,), dtype='float64'",
                       "5, 7, shape=(4, 4), dtype='float16'", "5, 7, shape=(0, 4), dtype='float32'"})

LAMELLA_OP(random_normal, (Operand seed, Operand offset, Shape shape, DType dtype),
    .doc = "Normal numbers of mean 0 and deviation 1, by the method of Box and Muller.",
    .accepts = kCounter, .infer = infer_draw<true>,
    .lower = composite([](const CompositeCall& call) {
      const bool wide = call.result_type().dtype == DType::Float64;
      const Tensor u = wide ? wide_fraction(call, 0) : fraction(call, 0, 24, DType::Float32);
      const Tensor v = wide ? wide_fraction(call, 2) : fraction(call, 1, 24, DType::Float32);
      return std::vector{ops::sqrt(ops::log(1.0 - u) * -2.0) * ops::cos(v * kTwoPi)};
    }),
    .vjp = not_differentiable("its operands are integers"),
    .batch = batch::through_composite,
    .reference = numpy("normal(seed, offset, shape, dtype)", 64), .cost = Cost{100},
    .samples = Samples{"5, 7, shape=(3, 5), dtype='float32'", "5, 7, shape=(33,), dtype='float64'"})

LAMELLA_OP(random_bernoulli, (Operand seed, Operand offset, Operand p, Shape shape, DType dtype),
    .doc = "1 with probability p (which broadcasts to the shape), else 0.",
    .accepts = kCounter, .accepts_each = {kCounter, kCounter, kFloats}, .infer = infer_draw<false>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor u = fraction(call, 0, 24, DType::Float32);
      return std::vector{ops::cast(ops::less(u, call[2]), call.result_type().dtype)};
    }),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::through_composite,
    .reference = numpy("uniform(seed, offset, shape, 'float32') < np.float32(p)", 0), .cost = Cost{60},
    .samples = Samples{"5, 7, 0.3, shape=(3, 5), dtype='float32'", "5, 7, 0.5, shape=(33,), dtype='bool'"})

LAMELLA_OP(random_integers, (Operand seed, Operand offset, Operand low, Operand high, Shape shape, DType dtype),
    .doc = "Whole numbers in [low, high), evenly for ranges far below 2^48.",
    .accepts = kCounter, .infer = infer_draw<false>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor low = ops::cast(call[2], DType::Float64);
      const Tensor range = ops::cast(call[3], DType::Float64) - low;
      return std::vector{ops::cast(low + ops::floor(wide_fraction(call, 0) * range),
                                   call.result_type().dtype)};
    }),
    .vjp = not_differentiable("its operands are integers"),
    .batch = batch::through_composite,
    .reference = numpy("low + np.floor(uniform(seed, offset, shape, 'float64') * (high - low))", 0),
    .cost = Cost{70},
    .samples = Samples{"5, 7, 0, 10, shape=(3, 5), dtype='int64'", "5, 7, -4, 4, shape=(33,), dtype='int32'"})

LAMELLA_OP(random_dropout, (Operand x, Operand p, Operand seed, Operand offset),
    .doc = "x with the elements whose uniform number is below p set to 0, the others times "
           "1 / (1 - p); all 0 for p = 1.",
    .accepts = kFloats, .accepts_each = {kFloats, kFloats, kCounter, kCounter}, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0], p = ops::cast(call[1], x.dtype());
      const Tensor words = ops::random_words(call[2], call[3], ops::element_numbers(x.shape()), 0);
      const Tensor u = ops::cast(ops::bitwise_and(words, 0xFFFFFF), DType::Float32) * 0x1p-24;
      const Tensor kept = ops::greater_equal(u, call[1]);
      return std::vector{ops::where(kept, x * (1.0 / (1.0 - p)), 0.0)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::random_dropout(call.cotangent(), call.operand(1), call.operand(2), call.operand(3)));
    }),
    .batch = batch::through_composite,
    .reference = numpy("np.where(uniform(seed, offset, x.shape, 'float32') < np.float32(p), 0, x / (1 - np.float64(np.float32(p))))", 3),
    .cost = Cost{64},
    .samples = Samples{"randn(3, 5), 0.3, 5, 7", "randn(2, 0), 0.5, 5, 7"})

LAMELLA_OP(random_permutation, (Operand seed, Operand offset, Shape size, DType dtype),
    .doc = "0 ... n-1 in random order, for a shape of the one size n.",
    .accepts = kCounter,
    .infer = [](InferCall& call) {
      const DType dtype = call.attribute<DType>(1);
      if (call.attribute<Shape>(0).size() != 1 || !kIndices.has(dtype)) {
        fail(ErrorKind::Value, "[random_permutation] takes one size and int32 or int64, got {} and {}",
             text(call.attribute<Shape>(0)), name(dtype));
      }
      call.results.push_back({dtype, Layout::RowMajor, call.attribute<Shape>(0)});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
      kernels::permutation(static_cast<uint64_t>(call.number<int64_t>(0)),
                           static_cast<uint64_t>(call.number<int64_t>(1)), call.results[0]);
    }}),
    .vjp = not_differentiable("its operands are integers"),
    .batch = batch::one_by_one,
    .reference = numpy("permutation(seed, offset, size)", 0), .cost = Cost{80},
    .samples = Samples{"5, 7, size=(10,), dtype='int64'", "5, 7, size=(0,), dtype='int32'"})

namespace {

struct Generator {
  std::mutex mutex;
  RandomState state;
};

Generator& generator() {
  static Generator& only = *new Generator;  // never destroyed: threads may draw while exiting
  return only;
}

// Seed and offset as operands that come from the caller's line.
struct Draw {
  Operand seed, offset;

  explicit Draw(const SourceLocation& location) {
    const std::vector<Ref<Value>> drawn = draw();
    if (Tracer* tracer = Tracer::current()) {
      tracer->called([](std::span<const Ref<Value>>) { return draw(); }, {}, drawn);
    }
    seed = Operand(Tensor(drawn[0])).at(location);
    offset = Operand(Tensor(drawn[1])).at(location);
    // In loops' bodies: far apart for every turn of each, by odd factors that wrap around.
    uint64_t factor = 0x9E3779B97F4A7C15;
    for (const Tensor& turn : current_turns()) {
      const auto signed_factor = static_cast<int64_t>(factor);
      offset = Operand(ops::add(ops::mul(turn, signed_factor), offset)).at(location);
      factor = factor * 0xD1342543DE82EF95 + 2;
    }
  }

 private:
  static std::vector<Ref<Value>> draw() {
    const RandomState state = next_draw();
    return {Value::scalar_of(DType::Int64, static_cast<int64_t>(state.seed)),
            Value::scalar_of(DType::Int64, static_cast<int64_t>(state.offset))};
  }
};

bool is_number(const Operand& operand, double number) {
  return operand.is_number() && operand.number() == number;
}

// factor * standard + shift in the dtype of the draw, also where tensors among the others are
// wider.
Tensor scaled(const Tensor& standard, const Operand& factor, const Operand& shift) {
  const Tensor made = ops::add(ops::mul(standard, factor), shift);
  return made.dtype() == standard.dtype() ? made : ops::cast(made, standard.dtype());
}

}  // namespace

void set_seed(uint64_t seed) {
  set_random_state({.seed = seed, .offset = 0});
}

RandomState random_state() {
  Tracer::cannot_repeat("it reads the state of the random generator");
  const std::lock_guard lock(generator().mutex);
  return generator().state;
}

void set_random_state(RandomState state) {
  Tracer::cannot_repeat("it sets the state of the random generator");
  const std::lock_guard lock(generator().mutex);
  generator().state = state;
}

RandomState next_draw() {
  const std::lock_guard lock(generator().mutex);
  const RandomState draw = generator().state;
  ++generator().state.offset;
  return draw;
}

namespace ops {

Tensor uniform(const Shape& shape, const Operand& low, const Operand& high, DType dtype) {
  const Draw draw(low.location());
  Tensor fraction = random_uniform(draw.seed, draw.offset, shape, dtype);
  if (is_number(low, 0) && is_number(high, 1)) return fraction;
  if (low.is_number() && high.is_number()) {  // their difference as a number has no dtype
    return scaled(fraction, Operand(high.number() - low.number()).at(low.location()), low);
  }
  return scaled(fraction, sub(high, low), low);
}

Tensor normal(const Shape& shape, const Operand& mean, const Operand& sigma, DType dtype) {
  const Draw draw(mean.location());
  Tensor standard = random_normal(draw.seed, draw.offset, shape, dtype);
  if (is_number(mean, 0) && is_number(sigma, 1)) return standard;
  return scaled(standard, sigma, mean);
}

Tensor bernoulli(const Shape& shape, const Operand& p, DType dtype) {
  const Draw draw(p.location());
  return random_bernoulli(draw.seed, draw.offset, p, shape, dtype);
}

Tensor integers(const Shape& shape, const Operand& low, const Operand& high, DType dtype) {
  const Draw draw(low.location());
  return random_integers(draw.seed, draw.offset, low, high, shape, dtype);
}

Tensor dropout(const Operand& x, const Operand& p) {
  if (p.is_number() && !(p.number() >= 0 && p.number() <= 1)) {
    throw Error(ErrorKind::Value, fmt::format("[dropout] p must be in [0, 1], got {}", p.number()),
                p.location());
  }
  const Draw draw(x.location());
  return random_dropout(x, p, draw.seed, draw.offset);
}

Tensor permutation(int64_t n, DType dtype) {
  const Draw draw({});
  return random_permutation(draw.seed, draw.offset, Shape{n}, dtype);
}

}  // namespace ops

}  // namespace lamella
