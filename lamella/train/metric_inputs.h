// What metrics are given: outputs and labels.
#pragma once

#include <string_view>
#include <vector>

#include "lamella/ir/tensor.h"

namespace lamella::train {

// Throws Value, in the name of the metric, unless there are two.
void require_two(std::string_view metric, const std::vector<Tensor>& inputs);
// Labels [N, ...] for outputs [N, C, ...] as they are, one-hot labels as class numbers. Throws
// Value where they do not fit.
Tensor class_numbers(const Tensor& outputs, const Tensor& labels, std::string_view metric);

}  // namespace lamella::train
