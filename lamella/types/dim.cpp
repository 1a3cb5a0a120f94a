// The table of interned size expressions and arithmetic on them.
#include "lamella/types/dim.h"

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "lamella/base/error.h"

namespace lamella {

namespace {

// A symbol, or floor(numerator / denominator).
struct Atom {
  int symbol = -1;
  Dim numerator, denominator;
  auto key() const { return std::tuple(symbol, numerator.bits(), denominator.bits()); }
  friend bool operator<(const Atom& a, const Atom& b) { return a.key() < b.key(); }
};

using Monomial = std::vector<int>;               // atom indices, sorted; empty is 1
using Polynomial = std::map<Monomial, int64_t>;  // to coefficients, none of them 0

int64_t floor_division(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

constexpr int64_t kLargest = int64_t{1} << 62;

// The result of an operation on integers, or an error if it left the range of sizes.
int64_t checked(bool overflow, int64_t result) {
  if (overflow || result >= kLargest || result <= -kLargest) {
    fail(ErrorKind::Value, "a size beyond 2^62 is not supported");
  }
  return result;
}

}  // namespace

// Entries are never removed: symbols are numbered from 0 in every graph, so the table stays small.
class DimTable {
 public:
  static DimTable& instance() {
    static DimTable& table = *new DimTable;
    return table;
  }

  std::mutex mutex;

  Dim atom(const Atom& atom) {
    const auto [entry, fresh] = atom_index_.try_emplace(atom, static_cast<int>(atoms_.size()));
    if (fresh) atoms_.push_back(atom);
    return intern({{{entry->second}, 1}});
  }
  Dim intern(const Polynomial& polynomial) {
    if (polynomial.empty()) return 0;
    if (polynomial.size() == 1 && polynomial.begin()->first.empty()) {
      return polynomial.begin()->second;
    }
    const auto [entry, fresh] =
        polynomial_index_.try_emplace(polynomial, static_cast<int64_t>(polynomials_.size()));
    if (fresh) polynomials_.push_back(polynomial);
    Dim dim;
    dim.bits_ = INT64_MIN + entry->second;
    return dim;
  }
  Polynomial polynomial(Dim dim) const {
    if (dim.known()) return dim.is(0) ? Polynomial{} : Polynomial{{{}, dim.bits()}};
    return polynomials_[static_cast<size_t>(dim.bits() - INT64_MIN)];
  }
  int64_t evaluate(Dim dim, std::span<const int64_t> bindings) const {
    if (dim.known()) return dim.bits();
    int64_t sum = 0;
    for (const auto& [monomial, coefficient] :
         polynomials_[static_cast<size_t>(dim.bits() - INT64_MIN)]) {
      int64_t product = coefficient;
      for (int index : monomial) product *= evaluate(atoms_[static_cast<size_t>(index)], bindings);
      sum += product;
    }
    return sum;
  }
  std::string text(Dim dim) const {
    if (dim.known()) return std::to_string(dim.bits());
    std::string text;
    for (const auto& [monomial, coefficient] :
         polynomials_[static_cast<size_t>(dim.bits() - INT64_MIN)]) {
      if (!text.empty()) text += "+";
      std::string factors;
      if (coefficient != 1 || monomial.empty()) factors = std::to_string(coefficient);
      for (int index : monomial) {
        if (!factors.empty()) factors += "*";
        factors += this->text(atoms_[static_cast<size_t>(index)]);
      }
      text += factors;
    }
    return text;
  }

 private:
  int64_t evaluate(const Atom& atom, std::span<const int64_t> bindings) const {
    if (atom.symbol < 0) {
      return floor_division(evaluate(atom.numerator, bindings),
                            evaluate(atom.denominator, bindings));
    }
    LAMELLA_CHECK(static_cast<size_t>(atom.symbol) < bindings.size());
    return bindings[static_cast<size_t>(atom.symbol)];
  }
  std::string text(const Atom& atom) const {
    if (atom.symbol >= 0) return fmt::format("s{}", atom.symbol);
    return fmt::format("floor(({})/({}))", text(atom.numerator), text(atom.denominator));
  }

  std::deque<Atom> atoms_;
  std::map<Atom, int> atom_index_;
  std::deque<Polynomial> polynomials_;
  std::map<Polynomial, int64_t> polynomial_index_;
};

namespace {

void add_term(Polynomial& polynomial, const Monomial& monomial, int64_t coefficient) {
  const auto [entry, fresh] = polynomial.try_emplace(monomial, coefficient);
  if (!fresh && (entry->second += coefficient) == 0) polynomial.erase(entry);
}

Dim sum(Dim a, Dim b, int64_t sign) {
  DimTable& table = DimTable::instance();
  std::lock_guard lock(table.mutex);
  Polynomial result = table.polynomial(a);
  for (const auto& [monomial, coefficient] : table.polynomial(b)) {
    add_term(result, monomial, sign * coefficient);
  }
  return table.intern(result);
}

}  // namespace

Dim Dim::symbol(int index) {
  DimTable& table = DimTable::instance();
  std::lock_guard lock(table.mutex);
  return table.atom({.symbol = index});
}

int64_t Dim::evaluate(std::span<const int64_t> bindings) const {
  if (known()) return bits_;
  DimTable& table = DimTable::instance();
  std::lock_guard lock(table.mutex);
  return table.evaluate(*this, bindings);
}

Dim operator+(Dim a, Dim b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    const bool overflow = __builtin_add_overflow(a.bits_, b.bits_, &result);
    return checked(overflow, result);
  }
  return sum(a, b, 1);
}

Dim operator-(Dim a, Dim b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    const bool overflow = __builtin_sub_overflow(a.bits_, b.bits_, &result);
    return checked(overflow, result);
  }
  return sum(a, b, -1);
}

Dim operator*(Dim a, Dim b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    const bool overflow = __builtin_mul_overflow(a.bits_, b.bits_, &result);
    return checked(overflow, result);
  }
  DimTable& table = DimTable::instance();
  std::lock_guard lock(table.mutex);
  Polynomial result;
  for (const auto& [left, left_coefficient] : table.polynomial(a)) {
    for (const auto& [right, right_coefficient] : table.polynomial(b)) {
      Monomial product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::sort(product.begin(), product.end());
      add_term(result, product, left_coefficient * right_coefficient);
    }
  }
  return table.intern(result);
}

Dim floor_div(Dim a, Dim b) {
  if (b.is(0)) fail(ErrorKind::Value, "division of a size by zero");
  if (a.known() && b.known()) return floor_division(a.bits_, b.bits_);
  if (b.is(1)) return a;
  if (a == b) return 1;
  DimTable& table = DimTable::instance();
  std::lock_guard lock(table.mutex);
  // Terms that divide exactly leave the floor: floor((k*b*x + r) / b) = k*x + floor(r / b).
  Polynomial exact, rest;
  const Polynomial divisor = table.polynomial(b);
  const auto& [divisor_monomial, divisor_coefficient] = *divisor.begin();
  for (const auto& [monomial, coefficient] : table.polynomial(a)) {
    const bool divides = divisor.size() == 1 && coefficient % divisor_coefficient == 0 &&
                         std::includes(monomial.begin(), monomial.end(), divisor_monomial.begin(),
                                       divisor_monomial.end());
    if (!divides) {
      rest[monomial] = coefficient;
      continue;
    }
    Monomial quotient;
    std::set_difference(monomial.begin(), monomial.end(), divisor_monomial.begin(),
                        divisor_monomial.end(), std::back_inserter(quotient));
    add_term(exact, quotient, coefficient / divisor_coefficient);
  }
  if (!rest.empty()) {
    const Dim remainder = table.intern(rest);
    const Dim floored = remainder.known() && b.known()
                            ? Dim(floor_division(remainder.bits(), b.bits()))
                            : table.atom({.numerator = remainder, .denominator = b});
    for (const auto& [monomial, coefficient] : table.polynomial(floored)) {
      add_term(exact, monomial, coefficient);
    }
  }
  return table.intern(exact);
}

std::string Dim::text() const {
  if (known()) return std::to_string(bits_);
  DimTable& table = DimTable::instance();
  std::lock_guard lock(table.mutex);
  return table.text(*this);
}

void Dim::throw_unknown() const {
  fail(ErrorKind::Internal, "the size {} has no known value here", text());
}

}  // namespace lamella
