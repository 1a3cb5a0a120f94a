// Precision by cell, on to_float.
#include "lamella/amp/mixed_precision.h"

#include <algorithm>

namespace lamella::amp {

namespace {

void check(DType dtype) {
  if (dtype != DType::Float16 && dtype != DType::BFloat16) {
    fail(ErrorKind::Type, "[amp] dtype must be float16 or bfloat16, got {}", name(dtype));
  }
}

CellTest needing(nn::PrecisionNeed need) {
  return [need](nn::Cell& cell) { return cell.precision_need() == need; };
}

}  // namespace

void convert_cells(nn::Cell& network, DType dtype, const CellTest& chosen) {
  check(dtype);
  std::vector<nn::Cell*> inside;  // of cells that were converted as a whole
  for (const auto& [path, cell] : network.cells_and_names()) {
    const bool converted = std::find(inside.begin(), inside.end(), cell) != inside.end();
    if (converted || !chosen(*cell)) continue;
    cell->to_float(dtype);
    cell->give_float32();
    for (const auto& [below, part] : cell->cells_and_names()) inside.push_back(part);
  }
}

void convert_all_cells(nn::Cell& network, DType dtype, const CellTest& kept) {
  check(dtype);
  network.to_float(dtype);
  for (const auto& [path, cell] : network.cells_and_names()) {
    if (kept(*cell)) cell->to_float(DType::Float32);
  }
  network.give_float32();
}

void auto_mixed_precision(nn::Cell& network, Level level, DType dtype) {
  check(dtype);
  const auto none = [](nn::Cell&) { return false; };
  switch (level) {
    case Level::O0:
      return;
    case Level::O1:
      return convert_cells(network, dtype, needing(nn::PrecisionNeed::Gains));
    case Level::O2:
      return convert_all_cells(network, dtype, needing(nn::PrecisionNeed::Float32));
    case Level::O3:
      return convert_all_cells(network, dtype, none);
  }
}

}  // namespace lamella::amp
