// Event files: records of protobuf messages. Formats: tensorflow/core/lib/io/record_writer.h,
// tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
#include "lamella/io/event_writer.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "lamella/base/error.h"
#include "lamella/base/logging.h"
#include "lamella/base/system/process.h"
#include "lamella/io/crc32c.h"

namespace lamella::io {

namespace {

constexpr size_t kFlushBytes = 64 << 10;

void append_little_endian(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
}

// A protobuf message in wire format.
class Message {
 public:
  Message& integer(uint32_t field, int64_t value) {
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& fixed(uint32_t field, double value) {
    varint(field << 3 | 1);
    append_little_endian(bytes_, std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  Message& fixed(uint32_t field, float value) {
    varint(field << 3 | 5);
    append_little_endian(bytes_, std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  Message& bytes(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  std::string_view wire() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

uint32_t checksum(std::string_view bytes) {
  return masked_crc32c(std::as_bytes(std::span(bytes)));
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// TensorBoard looks for "tfevents" and orders a folder's files by their names, so by their time.
std::string new_path(const std::string& folder) {
  static std::atomic<int> counter{0};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorKind::Io, "cannot make the folder '{}': {}", folder, error.message());
  const auto name = fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(now()),
                                host_name(), process_id(), counter++);
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

EventWriter::EventWriter(const std::string& folder) : path_(new_path(folder)), file_(path_) {
  // Event { double wall_time = 1; string file_version = 3; }
  add(Message().fixed(1, now()).bytes(3, "brain.Event:2").wire());
  flush();
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error& error) {
    log().warn("events were lost: {}", error.what());
  }
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value) {
  scalar(tag, step, value, now());
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value, double wall_time) {
  // Event { double wall_time = 1; int64 step = 2; Summary summary = 5; }
  // Summary { repeated Value value = 1; }  Value { string tag = 1; float simple_value = 2; }
  const Message point = Message().bytes(1, tag).fixed(2, static_cast<float>(value));
  const Message summary = Message().bytes(1, point.wire());
  add(Message().fixed(1, wall_time).integer(2, step).bytes(5, summary.wire()).wire());
  if (pending_.size() >= kFlushBytes) flush();
}

void EventWriter::flush() {
  file_.write(pending_);
  pending_.clear();
}

void EventWriter::add(std::string_view event) {
  std::string length;
  append_little_endian(length, event.size(), 8);
  pending_ += length;
  append_little_endian(pending_, checksum(length), 4);
  pending_ += event;
  append_little_endian(pending_, checksum(event), 4);
}

}  // namespace lamella::io
