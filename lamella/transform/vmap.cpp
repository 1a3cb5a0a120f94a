// Calling a function with placeholders for one example, and recording it for all.
#include "lamella/transform/vmap.h"

#include "lamella/ir/call_site.h"
#include "lamella/ops/functions.h"
#include "lamella/transform/batcher.h"

namespace lamella {

namespace {

// The axis for number `index` of `count`, from a list of one for each or one for all.
BatchAxis axis_for(const std::vector<BatchAxis>& axes, size_t index, size_t count,
                   const char* name) {
  if (axes.size() != 1 && axes.size() != count) {
    fail(ErrorKind::Value,
         "[vmap] {} has {} axes for {} tensors: one for each is needed, or one "
         "for all",
         name, axes.size(), count);
  }
  return axes.size() == 1 ? axes[0] : axes[index];
}

int64_t checked(int64_t axis, int rank, const char* name, size_t index, const TensorType& type) {
  if (axis < -rank || axis >= rank) {
    fail(ErrorKind::Value, "[vmap] {} of tensor {} is {}, which is not one of the {} axes of {}",
         name, index, axis, rank, text(type));
  }
  return axis < 0 ? axis + rank : axis;
}

// Arguments with their batch as axis 0.
struct Arguments {
  std::vector<Batched> values;
  int64_t size = 0;
};

Arguments arranged(const std::vector<Tensor>& given, const std::vector<BatchAxis>& in_axes) {
  Arguments arguments;
  std::optional<size_t> first;
  for (size_t i = 0; i < given.size(); ++i) {
    const BatchAxis axis = axis_for(in_axes, i, given.size(), "in_axes");
    if (!axis) {
      arguments.values.push_back({given[i], false});
      continue;
    }
    const TensorType& type = given[i].type();
    const int64_t from = checked(*axis, given[i].rank(), "in_axes", i, type);
    const int64_t size = type.shape[static_cast<size_t>(from)].value();
    if (first && size != arguments.size) {
      fail(ErrorKind::Value,
           "[vmap] tensor {} has {} examples along its axis {} ({}), but tensor {} has {} ({})", i,
           size, *axis, text(type), *first, arguments.size, text(given[*first].type()));
    }
    if (!first) first = i;
    arguments.size = size;
    const Tensor rows = in_rows(given[i]);
    arguments.values.push_back({from == 0 ? rows : ops::moveaxis(rows, from, 0), true});
  }
  if (given.empty()) fail(ErrorKind::Value, "[vmap] there is no tensor to take examples of");
  if (!first) {
    fail(ErrorKind::Value,
         "[vmap] in_axes is None for every tensor: at least one must have an axis of examples");
  }
  return arguments;
}

Tensor placed(const Batched& result, const BatchAxis& axis, size_t index, int64_t size) {
  if (!axis) {
    if (!result.is_batched) return result.tensor;
    fail(ErrorKind::Value,
         "[vmap] out_axes of tensor {} is None, but it differs from example to example ({}): an "
         "axis is needed for the examples",
         index, text(result.tensor.type()));
  }
  const Tensor all = result.is_batched ? result.tensor : repeated(in_rows(result.tensor), size);
  const int64_t to = checked(*axis, all.rank(), "out_axes", index, all.type());
  return to == 0 ? all : ops::moveaxis(all, 0, to);
}

}  // namespace

std::vector<Tensor> vmap(const ExampleFunction& function, const std::vector<Tensor>& given,
                         const std::vector<BatchAxis>& in_axes, SourceLocation where) {
  const SourceLocation outer_site = current_call_site();
  const CallSiteScope site(outer_site.known() ? outer_site : where);
  const Arguments arguments = arranged(given, in_axes);
  RegionTrace trace("vmap", Invariants::Hoisted);
  Batcher batcher(arguments.size);
  ExampleResult example;
  std::vector<Ref<Value>> results;
  {
    // Draws take the example's number into their offset.
    const Tensor number = trace.number_input(DType::Int64);
    batcher.set(number.value(), {ops::element_numbers(Shape{arguments.size}), true});
    std::vector<Tensor> examples;
    for (const Batched& argument : arguments.values) {
      if (!argument.is_batched) {
        examples.push_back(argument.tensor);
        continue;
      }
      TensorType type = argument.tensor.type();
      type.shape.erase(0);
      examples.push_back(trace.input(type));
      batcher.set(examples.back().value(), argument);
    }
    const RecorderScope scope(trace);
    const TurnScope turns(number);
    const CallSiteScope own_lines(outer_site);
    example = function(examples);
    for (size_t i = 0; i < example.tensors.size(); ++i) {
      if (!example.tensors[i].defined()) {
        fail(ErrorKind::Value, "[vmap] result {} of the function is an undefined tensor", i);
      }
      results.push_back(trace.inside(example.tensors[i].value()));
    }
    trace.close();
  }
  batcher.set_captured(trace);
  batcher.run(needed_nodes(trace.tape(), results));
  std::vector<Tensor> placed_results;
  for (size_t i = 0; i < results.size(); ++i) {
    placed_results.push_back(placed(batcher.of(results[i]),
                                    axis_for(example.out_axes, i, results.size(), "out_axes"), i,
                                    arguments.size));
  }
  return placed_results;
}

Tensor vmap(const std::function<Tensor(const std::vector<Tensor>& examples)>& function,
            const std::vector<Tensor>& arguments, const std::vector<BatchAxis>& in_axes,
            SourceLocation where) {
  const ExampleFunction several = [&](const std::vector<Tensor>& examples) {
    return ExampleResult{.tensors = {function(examples)}};
  };
  return vmap(several, arguments, in_axes, where)[0];
}

}  // namespace lamella
