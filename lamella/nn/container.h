// Cells that hold cells by number.
#pragma once

#include "lamella/nn/cell.h"

namespace lamella::nn {

// Cells under the names "0", "1", …; not computed as a whole.
class LAMELLA_API CellList : public Layer {
 public:
  explicit CellList(std::vector<Ref<Cell>> cells = {}, NamePrefix prefix = NamePrefix::Child);
  std::string class_name() const override { return "CellList"; }

  size_t size() const { return children().size(); }
  // Counted from the end if negative; throws Index.
  Ref<Cell> operator[](int64_t index) const;
  void append(Ref<Cell> cell);
};

// Cells called one after the other, each with the outputs of the one before.
class LAMELLA_API SequentialCell : public CellList {
 public:
  explicit SequentialCell(std::vector<Ref<Cell>> cells = {});
  // Under names of their own.
  explicit SequentialCell(Named<Ref<Cell>> cells);
  std::string class_name() const override { return "SequentialCell"; }

  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;
};

}  // namespace lamella::nn
