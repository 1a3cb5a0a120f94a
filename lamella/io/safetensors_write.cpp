// Writing safetensors files.
#include <algorithm>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "lamella/base/error.h"
#include "lamella/base/system/files.h"
#include "lamella/io/safetensors.h"
#include "lamella/io/safetensors_dtypes.h"

namespace lamella::io {

namespace {

std::string_view format_name(const NamedArray& tensor) {
  for (const auto& [name, dtype] : kSafetensorsDTypes) {
    if (dtype == tensor.dtype) return name;
  }
  fail(ErrorKind::Type, "[save_tensors] tensor '{}' is {}, which safetensors cannot hold",
       tensor.name, name(tensor.dtype));
}

void check(std::span<const NamedArray> tensors) {
  std::set<std::string_view> names;
  for (const NamedArray& tensor : tensors) {
    if (tensor.name == kMetadataKey) {
      fail(ErrorKind::Value, "[save_tensors] a tensor cannot be named '{}'", kMetadataKey);
    }
    if (!names.insert(tensor.name).second) {
      fail(ErrorKind::Value, "[save_tensors] two tensors are named '{}'", tensor.name);
    }
    const int64_t count =
        std::accumulate(tensor.sizes.begin(), tensor.sizes.end(), int64_t{1}, std::multiplies<>());
    if (static_cast<uint64_t>(count * size_of(tensor.dtype)) != tensor.data.size()) {
      fail(ErrorKind::Value, "[save_tensors] tensor '{}', {}[{}], comes with {} bytes", tensor.name,
           short_name(tensor.dtype), fmt::join(tensor.sizes.begin(), tensor.sizes.end(), ","),
           tensor.data.size());
    }
  }
}

}  // namespace

void save_tensors(const std::string& path, std::span<const NamedArray> tensors,
                  const Metadata& metadata) {
  check(tensors);
  // The largest elements first, so that each tensor begins at a multiple of its element size.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(tensors[a].dtype) > size_of(tensors[b].dtype);
  });
  std::vector<uint64_t> begins(tensors.size());
  uint64_t end = 0;
  for (size_t i : order) {
    begins[i] = end;
    end += tensors[i].data.size();
  }

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  for (size_t i = 0; i < tensors.size(); ++i) {
    header[tensors[i].name] = {
        {"dtype", format_name(tensors[i])},
        {"shape", std::vector<int64_t>(tensors[i].sizes.begin(), tensors[i].sizes.end())},
        {"data_offsets", {begins[i], begins[i] + tensors[i].data.size()}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::Value, "[save_tensors] a name or metadata entry for '{}' is not valid UTF-8",
         path);
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length;
  for (int shift = 0; shift < 64; shift += 8) length += static_cast<char>(text.size() >> shift);

  atomic_write_file(path, [&](FileWriter& file) {
    file.write(length + text);
    for (size_t i : order) file.write(tensors[i].data);
  });
}

}  // namespace lamella::io
