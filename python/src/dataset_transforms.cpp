// Transforms of datasets.
#include <atomic>
#include <utility>

#include "python/src/dataset.h"
#include "python/src/dataset_arrays.h"
#include "python/src/dtype_object.h"
#include "python/src/user_function.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/data/config.h"
#include "lamella/data/transforms/types.h"
#include "lamella/data/transforms/vision.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

template <typename T, typename... Arguments>
TransformHandle made(Arguments&&... arguments) {
  return {make_ref<T>(std::forward<Arguments>(arguments)...)};
}

data::Border border_from(const std::string& name) {
  if (name == "constant") return data::Border::Constant;
  if (name == "edge") return data::Border::Edge;
  if (name == "reflect") return data::Border::Reflect;
  if (name == "symmetric") return data::Border::Symmetric;
  fail(ErrorKind::Value,
       "[RandomCrop] padding_mode must be 'constant', 'edge', 'reflect' or 'symmetric', got '{}'",
       name);
}

data::Interpolation interpolation_from(const std::string& name) {
  if (name == "nearest") return data::Interpolation::Nearest;
  if (name == "bilinear") return data::Interpolation::Bilinear;
  fail(ErrorKind::Unsupported, "[Resize] interpolation must be 'nearest' or 'bilinear', got '{}'",
       name);
}

TransformHandle random_crop(int64_t height, int64_t width, std::vector<int64_t> padding,
                            bool pad_if_needed, std::vector<float> fill, const std::string& mode) {
  data::RandomCropOptions options{
      .pad_if_needed = pad_if_needed, .fill = std::move(fill), .border = border_from(mode)};
  if (!padding.empty()) options.padding = {padding[0], padding[1], padding[2], padding[3]};
  return made<data::RandomCrop>(data::CropSize{height, width}, options);
}

TransformHandle function_transform(UserFunction function) {
  return made<data::FunctionTransform>(
      [function](std::vector<data::Array> inputs, data::RandomStream& random) {
        return function.call({.key = random.wide_word(), .arrays = std::move(inputs)}).arrays;
      },
      function.name(), [function](int workers) { return function.start_processes(workers); });
}

// Random numbers of transforms that are called on arrays, not by a pipeline. Within a user's
// function they come from the key of its row.
thread_local std::optional<uint64_t> row_key;
thread_local uint64_t calls_in_row = 0;
std::atomic<uint64_t> calls{0};

data::RandomStream stream_of_call() {
  constexpr uint32_t kCalled = 0xFFFFFFFF;  // no operation of a pipeline has this number
  if (row_key)
    return data::RandomStream({.seed = *row_key, .operation = kCalled, .sample = calls_in_row++});
  return data::RandomStream({.seed = static_cast<uint64_t>(data::config::seed()),
                             .operation = kCalled,
                             .epoch = static_cast<int64_t>(data::config::seed_generation()),
                             .sample = calls++});
}

// Says whose row this thread makes from now on; returns whose it made before.
std::optional<uint64_t> set_row_key(std::optional<uint64_t> key) {
  calls_in_row = 0;
  return std::exchange(row_key, key);
}

}  // namespace

void add_transforms(nb::module_& module) {
  nb::class_<TransformHandle>(module, "Transform")
      .def("apply",
           [](TransformHandle& self, nb::args inputs) {
             std::vector<data::Array> arrays;
             for (nb::handle input : inputs) arrays.push_back(array_from(input.ptr()));
             data::RandomStream random = stream_of_call();
             nb::list outputs;
             for (data::Array& output : self.transform->apply(std::move(arrays), random)) {
               outputs.append(nb::steal(to_numpy(std::move(output))));
             }
             return nb::tuple(outputs);
           })
      .def("name", [](TransformHandle& self) { return std::string(self.transform->name()); });
  module.def("function_transform", function_transform, "function"_a);
  module.def("set_row_key", set_row_key, "key"_a.none());
  module.def(
      "compose",
      [](std::vector<TransformHandle> transforms) {
        std::vector<Ref<data::Transform>> list;
        for (TransformHandle& handle : transforms) list.push_back(std::move(handle.transform));
        return made<data::Compose>(std::move(list));
      },
      "transforms"_a);
  module.def(
      "type_cast", [](nb::handle dtype) { return made<data::TypeCast>(dtype_from(dtype.ptr())); },
      "dtype"_a);
  module.def(
      "one_hot",
      [](int64_t classes, float smoothing) { return made<data::OneHot>(classes, smoothing); },
      "classes"_a, "smoothing"_a);
  module.def(
      "rescale", [](float rescale, float shift) { return made<data::Rescale>(rescale, shift); },
      "rescale"_a, "shift"_a);
  module.def(
      "normalize",
      [](std::vector<float> mean, std::vector<float> std, bool channels_last) {
        return made<data::Normalize>(
            std::move(mean), std::move(std),
            channels_last ? data::ChannelAxis::Last : data::ChannelAxis::First);
      },
      "mean"_a, "std"_a, "channels_last"_a);
  module.def("hwc_to_chw", [] { return made<data::HWC2CHW>(); });
  module.def(
      "random_horizontal_flip",
      [](float probability) { return made<data::RandomHorizontalFlip>(probability); },
      "probability"_a);
  module.def("random_crop", random_crop, "height"_a, "width"_a, "padding"_a, "pad_if_needed"_a,
             "fill"_a, "mode"_a);
  module.def(
      "resize",
      [](int64_t height, int64_t width, const std::string& interpolation) {
        return made<data::Resize>(data::CropSize{height, width}, interpolation_from(interpolation));
      },
      "height"_a, "width"_a, "interpolation"_a);
  module.def(
      "resize_shorter_side",
      [](int64_t size, const std::string& interpolation) {
        return made<data::Resize>(size, interpolation_from(interpolation));
      },
      "size"_a, "interpolation"_a);
}

}  // namespace lamella::python
