// Lists and sequences of cells.
#include "lamella/nn/container.h"

namespace lamella::nn {

CellList::CellList(std::vector<Ref<Cell>> cells, NamePrefix prefix) : Layer(prefix) {
  for (Ref<Cell>& cell : cells) append(std::move(cell));
}

Ref<Cell> CellList::operator[](int64_t index) const {
  const auto count = static_cast<int64_t>(size());
  const int64_t place = index < 0 ? index + count : index;
  if (place < 0 || place >= count) {
    fail(ErrorKind::Index, "[{}] there is no cell {} among {}", class_name(), index, count);
  }
  return children()[static_cast<size_t>(place)].second;
}

void CellList::append(Ref<Cell> cell) {
  add_cell(std::to_string(size()), std::move(cell));
}

SequentialCell::SequentialCell(std::vector<Ref<Cell>> cells) : CellList(std::move(cells)) {}

SequentialCell::SequentialCell(Named<Ref<Cell>> cells) {
  for (auto& [name, cell] : cells) add_cell(name, std::move(cell));
}

Tensors SequentialCell::construct(const Tensors& inputs) {
  Tensors values = inputs;
  for (const auto& [name, cell] : children()) values = (*cell)(values);
  return values;
}

}  // namespace lamella::nn
