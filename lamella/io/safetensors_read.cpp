// Reading safetensors files; nothing in them is believed unchecked.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "lamella/base/error.h"
#include "lamella/io/foreign_format.h"
#include "lamella/io/safetensors.h"
#include "lamella/io/safetensors_dtypes.h"

namespace lamella::io {

namespace {

constexpr size_t kLengthBytes = 8;
// The format's own limit.
constexpr uint64_t kLongestHeader = 100'000'000;

struct Entry {
  NamedArray tensor;
  uint64_t begin = 0, end = 0;
};

// Takes the header apart as the JSON parser walks over it, with one level of nesting for what the
// format allows and no more. A handler that returns false has set `fault`.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  Metadata metadata;
  std::string fault;
  ErrorKind fault_kind = ErrorKind::Io;

  bool start_object(size_t) override {
    if (++depth_ == 1) return true;
    if (depth_ > 2 || in_array_) return refuse("an object stands where none may");
    if (key_ == kMetadataKey) {
      in_metadata_ = true;
    } else {
      entries.emplace_back().tensor.name = key_;
      fields_.clear();
    }
    return true;
  }
  bool end_object() override {
    if (--depth_ == 0) return true;
    if (!std::exchange(in_metadata_, false) && fields_.size() != 3) {
      return refuse(fmt::format("tensor '{}' lacks dtype, shape or data_offsets",
                                entries.back().tensor.name));
    }
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      key_ = name;
      if (!names_.insert(name).second) return refuse(fmt::format("'{}' occurs twice", name));
    } else if (in_metadata_) {
      field_ = name;
      if (metadata.contains(name)) return refuse(fmt::format("metadata '{}' occurs twice", name));
    } else {
      field_ = name;
      if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets") {
        return refuse(fmt::format("tensor '{}' has an unknown field '{}'", key_, name));
      }
      if (!fields_.insert(name).second) {
        return refuse(fmt::format("tensor '{}' has its {} twice", key_, name));
      }
    }
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_ && !in_array_) {
      metadata[field_] = value;
      return true;
    }
    if (depth_ != 2 || in_array_ || field_ != "dtype") return refuse_value("a string");
    for (const auto& [name, dtype] : kSafetensorsDTypes) {
      if (name == value) {
        entries.back().tensor.dtype = dtype;
        return true;
      }
    }
    fault_kind = ErrorKind::Unsupported;
    return refuse(
        fmt::format("tensor '{}' has the dtype '{}', which is not supported", key_, value));
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_ || field_ == "dtype") {
      return refuse_value("an array");
    }
    in_array_ = true;
    numbers_ = 0;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    if (field_ == "data_offsets" && numbers_ != 2) {
      return refuse(fmt::format("tensor '{}' has {} data_offsets instead of 2", key_, numbers_));
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return refuse_value("a number");
    Entry& entry = entries.back();
    if (field_ == "data_offsets") {
      (numbers_++ == 0 ? entry.begin : entry.end) = value;
      return true;
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return refuse(fmt::format("tensor '{}' has an axis of size {}", key_, value));
    }
    if (entry.tensor.sizes.size() == Axes::capacity()) {
      fault_kind = ErrorKind::Unsupported;
      return refuse(fmt::format("tensor '{}' has more than {} axes", key_, Axes::capacity()));
    }
    entry.tensor.sizes.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t) override { return refuse_value("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse_value("a fractional number");
  }
  bool null() override { return refuse_value("null"); }
  bool boolean(bool) override { return refuse_value("a truth value"); }
  bool binary(binary_t&) override { return refuse_value("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse(fmt::format("it is no JSON at byte {}", position));
  }

 private:
  bool refuse(std::string reason) {
    if (fault.empty()) fault = std::move(reason);
    return false;
  }
  bool refuse_value(std::string_view what) {
    return refuse(depth_ < 2 ? fmt::format("{} stands where an object must", what)
                             : fmt::format("{} stands in '{}' of '{}'", what, field_, key_));
  }

  int depth_ = 0;
  bool in_metadata_ = false, in_array_ = false;
  int numbers_ = 0;
  std::string key_, field_;
  std::set<std::string> names_, fields_;
};

uint64_t header_length(std::span<const std::byte> content) {
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<uint64_t>(content[i]);
  }
  return length;
}

[[noreturn]] void fail_damaged(const std::string& path, std::string_view fault) {
  fail(ErrorKind::Io, "'{}' is a damaged safetensors file: {}", path, fault);
}

// The header's text; an error if the content cannot be a safetensors file.
std::string_view header_of(std::span<const std::byte> content, const std::string& path) {
  if (content.empty()) fail(ErrorKind::Io, "'{}' is empty", path);
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  if (content.size() > kLengthBytes && text[kLengthBytes] == '{') {
    const uint64_t length = header_length(content);
    const uint64_t rest = content.size() - kLengthBytes;
    if (length <= std::min(rest, kLongestHeader)) return text.substr(kLengthBytes, length);
    if (length <= kLongestHeader) {
      fail(ErrorKind::Io, "'{}' is truncated: its header has {} bytes, the file holds {} of them",
           path, length, rest);
    }
  }
  if (is_mindspore_checkpoint(content)) {
    fail(ErrorKind::Unsupported,
         "'{}' is a MindSpore protobuf checkpoint (.ckpt), which is not yet supported; save it as "
         "safetensors",
         path);
  }
  if (const std::string_view format = foreign_format(content); !format.empty()) {
    fail(ErrorKind::Io, "'{}' is no safetensors file but {}", path, format);
  }
  if (content.size() <= kLengthBytes) {
    fail(ErrorKind::Io, "'{}' is no safetensors file, or a truncated one: it has {} bytes", path,
         content.size());
  }
  fail(ErrorKind::Io, "'{}' is no safetensors file: no header stands at its beginning", path);
}

// Offsets that cover the data without holes or overlaps, each as long as its tensor.
void check_offsets(const std::vector<Entry>& entries, uint64_t data_bytes,
                   const std::string& path) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) {
    const NamedArray& tensor = entry.tensor;
    uint64_t bytes = static_cast<uint64_t>(size_of(tensor.dtype));
    bool fits = true;
    for (int64_t size : tensor.sizes) {
      fits = fits && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
    }
    if (entry.end < entry.begin || !fits || entry.end - entry.begin != bytes) {
      fail_damaged(path, fmt::format("tensor '{}', {}[{}], does not fit its data_offsets [{}, {}]",
                                     tensor.name, short_name(tensor.dtype),
                                     fmt::join(tensor.sizes.begin(), tensor.sizes.end(), ","),
                                     entry.begin, entry.end));
    }
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t end = 0;
  for (const Entry* entry : order) {
    if (entry->begin != end) {
      fail_damaged(path, fmt::format("the data of tensor '{}' begins at {}, where {} is due",
                                     entry->tensor.name, entry->begin, end));
    }
    end = entry->end;
  }
  if (end > data_bytes) {
    fail(ErrorKind::Io, "'{}' is truncated: its tensors have {} bytes, the file holds {} of them",
         path, end, data_bytes);
  }
  if (end < data_bytes) {
    fail_damaged(path, fmt::format("{} bytes follow its last tensor", data_bytes - end));
  }
}

}  // namespace

TensorList parse_safetensors(std::span<const std::byte> content, const std::string& path) {
  const std::string_view header = header_of(content, path);
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader)) {
    if (reader.fault_kind == ErrorKind::Unsupported) {
      fail(ErrorKind::Unsupported, "'{}': {}", path, reader.fault);
    }
    fail_damaged(path, fmt::format("in its header, {}", reader.fault));
  }
  const auto data = content.subspan(kLengthBytes + header.size());
  check_offsets(reader.entries, data.size(), path);

  TensorList list;
  list.metadata = std::move(reader.metadata);
  list.tensors.reserve(reader.entries.size());
  for (Entry& entry : reader.entries) {
    entry.tensor.data = data.subspan(entry.begin, entry.end - entry.begin);
    if (entry.tensor.dtype == DType::Bool &&
        std::any_of(entry.tensor.data.begin(), entry.tensor.data.end(),
                    [](std::byte value) { return value > std::byte{1}; })) {
      fail_damaged(path, fmt::format("tensor '{}' is BOOL and holds a byte other than 0 and 1",
                                     entry.tensor.name));
    }
    list.tensors.push_back(std::move(entry.tensor));
  }
  return list;
}

TensorFile::TensorFile(const std::string& path)
    : path_(path),
      mapping_(std::make_shared<const MappedFile>(path)),
      list_(parse_safetensors(mapping_->bytes(), path)) {
  for (size_t i = 0; i < list_.tensors.size(); ++i) places_.emplace(list_.tensors[i].name, i);
}

const NamedArray* TensorFile::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &list_.tensors[found->second];
}

const NamedArray& TensorFile::at(std::string_view name) const {
  if (const NamedArray* tensor = find(name)) return *tensor;
  fail(ErrorKind::Value, "'{}' holds no tensor named '{}'", path_, name);
}

}  // namespace lamella::io
