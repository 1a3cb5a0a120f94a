// The size of an axis: an integer, or an expression over symbols whose value is known at launch.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lamella/base/api.h"

namespace lamella {

// One word. Expressions are interned in canonical form (a polynomial with integer coefficients over
// symbols and floor divisions), so equal expressions are equal words. Symbols stand for sizes of at
// least 2: sizes 0 and 1 change which rules apply and are always known.
class LAMELLA_API Dim {
 public:
  // Integers below -2^62 become the smallest: no rule accepts either.
  constexpr Dim(int64_t size = 0)  // NOLINT: an integer is a Dim
      : bits_(size > kExpressionLimit ? size : kExpressionLimit + 1) {}

  // The symbol printed as s<index>.
  static Dim symbol(int index);

  constexpr bool known() const { return bits_ > kExpressionLimit; }
  // The integer; throws Internal if the size is an expression.
  int64_t value() const {
    if (!known()) [[unlikely]]
      throw_unknown();
    return bits_;
  }
  // The integer it takes when symbol i is bindings[i].
  int64_t evaluate(std::span<const int64_t> bindings) const;

  // Equality of value for every binding; two different expressions may still meet for some.
  friend constexpr bool operator==(Dim a, Dim b) { return a.bits_ == b.bits_; }

  // Throw Value if the result is an integer beyond 2^62.
  friend LAMELLA_API Dim operator+(Dim a, Dim b);
  friend LAMELLA_API Dim operator-(Dim a, Dim b);
  friend LAMELLA_API Dim operator*(Dim a, Dim b);
  // Rounds towards minus infinity; b must not be the integer 0.
  friend LAMELLA_API Dim floor_div(Dim a, Dim b);

  // Whether the size is certainly below `bound`: false for an expression that could reach it.
  bool certainly_below(int64_t bound) const { return known() && bits_ < bound; }
  // Whether the size is the integer `size`.
  constexpr bool is(int64_t size) const { return bits_ == size; }

  std::string text() const;
  // The word itself, for hashing.
  constexpr int64_t bits() const { return bits_; }

 private:
  static constexpr int64_t kExpressionLimit = INT64_MIN / 2;
  friend class DimTable;

  [[noreturn]] void throw_unknown() const;

  int64_t bits_;  // above kExpressionLimit: the integer; else INT64_MIN + index into the table
};

}  // namespace lamella
