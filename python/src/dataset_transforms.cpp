// Transforms of datasets.
#include "python/src/dataset.h"
#include "python/src/dataset_arrays.h"
#include "python/src/dtype_object.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

TransformHandle user_function(nb::object function, const std::string& name) {
  return made<data::FunctionTransform>(
      [held = SharedObject(std::move(function))](std::vector<data::Array> inputs,
                                                 data::RandomStream& random) {
        return call_user(held, std::move(inputs), random.wide_word());
      },
      name);
}

}  // namespace

void add_transforms(nb::module_& module) {
  nb::class_<TransformHandle>(module, "Transform")
      .def("apply",
           [](TransformHandle& self, nb::args inputs) {
             std::vector<data::Array> arrays;
             for (nb::handle input : inputs) arrays.push_back(array_from(input.ptr()));
             data::RandomStream random({});
             nb::list outputs;
             for (data::Array& output : self.transform->apply(std::move(arrays), random)) {
               outputs.append(nb::steal(to_numpy(std::move(output))));
             }
             return nb::tuple(outputs);
           })
      .def("name", [](TransformHandle& self) { return std::string(self.transform->name()); });
  module.def("function_transform", user_function, "function"_a, "name"_a);
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
