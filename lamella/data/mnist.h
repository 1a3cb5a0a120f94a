// MNIST and the datasets that share its format.
#pragma once

#include <string>

#include "lamella/data/source.h"

namespace lamella::data {

// Which part of a dataset; All is the training samples, then the test samples.
enum class Usage : uint8_t { Train, Test, All };

// "train", "test" or "all"; Value, in the name of `source`, otherwise.
LAMELLA_API Usage usage_from_name(std::string_view name, std::string_view source);

// Labels are int32, where MindSpore has uint32: losses and one_hot take int32 as they are.
inline constexpr DType kLabelDType = DType::Int32;

// The four files of a folder: train-images-idx3-ubyte, train-labels-idx1-ubyte and the same with
// t10k, each plain or with .gz. Columns: "image", uint8 [28, 28, 1] (height, width, channels);
// "label", int32 [], 0 to 9. All samples are held in memory. Throws Io for a missing or damaged
// file, and if images and labels do not belong together.
class LAMELLA_API MnistDataset : public NumpySlicesDataset {
 public:
  explicit MnistDataset(const std::string& folder, Usage usage = Usage::All,
                        const SourceOptions& options = {});

 protected:
  MnistDataset(const std::string& folder, Usage usage, const SourceOptions& options,
               std::string_view source);
};

// Fashion-MNIST: ten kinds of clothing, in the files of MNIST.
class LAMELLA_API FashionMnistDataset : public MnistDataset {
 public:
  explicit FashionMnistDataset(const std::string& folder, Usage usage = Usage::All,
                               const SourceOptions& options = {})
      : MnistDataset(folder, usage, options, "FashionMnistDataset") {}
};

}  // namespace lamella::data
