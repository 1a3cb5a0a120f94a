// Reading the files of the MNIST family.
#include "lamella/data/mnist.h"

#include <algorithm>
#include <filesystem>

#include "lamella/data/idx.h"
#include "lamella/data/transforms/convert.h"

namespace lamella::data {

namespace {

constexpr int64_t kClasses = 10;

std::string find_file(const std::string& folder, const std::string& name, std::string_view source) {
  for (const char* ending : {"", ".gz"}) {
    const auto path = std::filesystem::path(folder) / (name + ending);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path.string();
  }
  fail(ErrorKind::Io, "[{}] the folder '{}' has no file {} or {}.gz", source, folder, name, name);
}

// Images [count, height, width, 1] and labels [count] of one part.
std::vector<Array> read_part(const std::string& folder, const std::string& part,
                             std::string_view source) {
  const std::string image_file = find_file(folder, part + "-images-idx3-ubyte", source);
  const std::string label_file = find_file(folder, part + "-labels-idx1-ubyte", source);
  const Array images = parse_idx(read_file(image_file), image_file);
  const Array labels = parse_idx(read_file(label_file), label_file);
  if (images.rank() != 3) {
    fail(ErrorKind::Io, "'{}' holds {}, not images of two axes each", image_file,
         text(images.type()));
  }
  if (labels.rank() != 1) {
    fail(ErrorKind::Io, "'{}' holds {}, not one label each", label_file, text(labels.type()));
  }
  if (images.sizes()[0] != labels.sizes()[0]) {
    fail(ErrorKind::Io, "'{}' has {} images, but '{}' has {} labels", image_file, images.sizes()[0],
         label_file, labels.sizes()[0]);
  }
  for (const uint8_t label : labels.as<uint8_t>()) {
    if (label >= kClasses) {
      fail(ErrorKind::Io, "'{}' is damaged: it has a label {}, above {}", label_file, label,
           kClasses - 1);
    }
  }
  Axes sizes = images.sizes();
  sizes.push_back(1);
  return {images.reshaped(sizes), convert(labels, kLabelDType, source)};
}

Array joined(const Array& first, const Array& second, const std::string& folder) {
  Axes sizes = first.sizes();
  sizes[0] = second.sizes()[0];
  if (sizes != second.sizes()) {
    fail(ErrorKind::Io, "the images of the parts in '{}' differ in size: {} and {}", folder,
         text(first.row(0).type()), text(second.row(0).type()));
  }
  sizes[0] += first.sizes()[0];
  Array both(first.dtype(), sizes);
  std::memcpy(both.writable(), first.data(), first.bytes());
  std::memcpy(both.writable() + first.bytes(), second.data(), second.bytes());
  return both;
}

std::vector<Array> read_folder(const std::string& folder, Usage usage, std::string_view source) {
  if (usage == Usage::Train) return read_part(folder, "train", source);
  if (usage == Usage::Test) return read_part(folder, "t10k", source);
  const auto train = read_part(folder, "train", source);
  const auto test = read_part(folder, "t10k", source);
  return {joined(train[0], test[0], folder), joined(train[1], test[1], folder)};
}

}  // namespace

Usage usage_from_name(std::string_view name, std::string_view source) {
  if (name == "train") return Usage::Train;
  if (name == "test") return Usage::Test;
  if (name == "all") return Usage::All;
  fail(ErrorKind::Value, "[{}] usage must be 'train', 'test' or 'all', got '{}'", source, name);
}

MnistDataset::MnistDataset(const std::string& folder, Usage usage, const SourceOptions& options)
    : MnistDataset(folder, usage, options, "MnistDataset") {}

MnistDataset::MnistDataset(const std::string& folder, Usage usage, const SourceOptions& options,
                           std::string_view source)
    : NumpySlicesDataset(read_folder(folder, usage, source), {"image", "label"}, options, source) {}

}  // namespace lamella::data
