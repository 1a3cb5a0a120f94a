// NumPy's indexing: x[1, :, 2:0:-1, None, ...], with tensors of integers and bools among the
// indices.
#pragma once

#include <optional>
#include <vector>

#include "lamella/ops/function_types.h"

namespace lamella {

// start:stop:step along one axis; what is left out as in Python.
struct Slice {
  std::optional<int64_t> start, stop, step;
};

// One index of a list.
class LAMELLA_API Index {
 public:
  enum class Kind : uint8_t { Integer, Range, NewAxis, Ellipsis, Positions };

  Index(int64_t integer)
      : kind_(Kind::Integer), integer_(integer) {}                  // NOLINT: meant to be implicit
  Index(int integer) : Index(static_cast<int64_t>(integer)) {}      // NOLINT
  Index(const Slice& slice) : kind_(Kind::Range), slice_(slice) {}  // NOLINT
  // Integers of any shape, negative ones counted from the end; or a mask over as many axes as it
  // has.
  Index(const Tensor& positions) : kind_(Kind::Positions), positions_(positions) {}  // NOLINT
  static Index new_axis() { return Index(Kind::NewAxis); }
  static Index ellipsis() { return Index(Kind::Ellipsis); }

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  const Slice& slice() const { return slice_; }
  const Tensor& positions() const { return positions_; }

 private:
  explicit Index(Kind kind) : kind_(kind) {}

  Kind kind_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor positions_;
};

namespace ops {

// x[indices]. Integers and starts of slices may change from call to call without a new graph; a
// mask is read to know how many elements it picks. Throws Index for an integer outside its axis
// (tensors of integers: when it runs), Value for too many indices and for masks that do not fit.
LAMELLA_API Tensor index(const Operand& x, const std::vector<Index>& indices);

// How index_update combines: x[indices] = value, or each of the elements added up (repeated indices
// count each time), multiplied, or kept if smaller or larger.
enum class Update : uint8_t { Set, Add, Multiply, Minimum, Maximum };

// x with the elements that index would read combined with value, which broadcasts and takes x's
// dtype. Of several values set to one place the last stays.
LAMELLA_API Tensor index_update(const Operand& x, const std::vector<Index>& indices,
                                const Operand& value, Update update = Update::Set);

}  // namespace ops

}  // namespace lamella
