// Event files, read back by a small reader of records and protobuf that shares nothing with the
// writer.
#include "lamella/io/event_writer.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/files.h"

#include "lamella/io/crc32c.h"

namespace lamella::io {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, KnownVectors) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xFF'))), 0x62A8AB43u);
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  EXPECT_EQ(crc32c(bytes_of(rising)), 0x46DD794Eu);
  EXPECT_EQ(crc32c({}), 0u);
}

// ---- The reader ----

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value * 256 + static_cast<uint8_t>(bytes[i]);
  return value;
}

// The checksum of a record, bit by bit from its definition.
uint32_t record_checksum(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = crc % 2 == 1 ? crc / 2 ^ 0x82F63B78 : crc / 2;
  }
  crc = ~crc;
  return (crc / 32768 + crc * 131072) + 0xA282EAD8;
}

std::vector<std::string> read_records(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const std::string_view length = file.substr(0, 8);
    EXPECT_EQ(little_endian(file.substr(8, 4)), record_checksum(length));
    const std::string_view data = file.substr(12, little_endian(length));
    EXPECT_EQ(little_endian(file.substr(12 + data.size(), 4)), record_checksum(data));
    records.emplace_back(data);
    file.remove_prefix(16 + data.size());
  }
  return records;
}

struct Field {
  uint64_t number, integer = 0;
  std::string bytes;  // of fixed-size and length-delimited fields
};

std::vector<Field> read_fields(std::string_view message) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte % 128) << shift;
      if (byte < 128) return value;
    }
  };
  std::vector<Field> fields;
  while (at < message.size()) {
    const uint64_t key = varint();
    Field field{key / 8};
    if (key % 8 == 0) {
      field.integer = varint();
    } else {
      const size_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : varint();
      field.bytes = std::string(message.substr(at, size));
      at += size;
    }
    fields.push_back(field);
  }
  return fields;
}

template <typename T>
T as(const std::string& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST(EventWriter, WritesWhatAReaderExpects) {
  const TemporaryFolder folder;
  std::string path;
  {
    EventWriter writer(folder / "run/1");
    path = writer.path();
    writer.scalar("loss/train", 0, 2.5, 1700000000.25);
    writer.scalar("accuracy", 1LL << 40, 0.875);
  }
  EXPECT_THAT(path, HasSubstr("run/1/events.out.tfevents."));
  const auto records = read_records(read_bytes(path));
  ASSERT_EQ(records.size(), 3u);
  const auto version = read_fields(records[0]);
  EXPECT_EQ(version.at(1).number, 3u);
  EXPECT_EQ(version.at(1).bytes, "brain.Event:2");

  const auto event = read_fields(records[1]);
  ASSERT_EQ(event.size(), 3u);
  EXPECT_EQ(event[0].number, 1u);
  EXPECT_EQ(as<double>(event[0].bytes), 1700000000.25);
  EXPECT_EQ(event[1].number, 2u);
  EXPECT_EQ(event[1].integer, 0u);
  EXPECT_EQ(event[2].number, 5u);
  const auto summary = read_fields(event[2].bytes);
  const auto value = read_fields(summary.at(0).bytes);
  EXPECT_EQ(summary[0].number, 1u);
  EXPECT_EQ(value.at(0).number, 1u);
  EXPECT_EQ(value[0].bytes, "loss/train");
  EXPECT_EQ(value.at(1).number, 2u);
  EXPECT_EQ(as<float>(value[1].bytes), 2.5f);
  EXPECT_EQ(read_fields(records[2]).at(1).integer, uint64_t{1} << 40);
}

TEST(EventWriter, FlushShowsEventsToAReader) {
  const TemporaryFolder folder;
  EventWriter writer(folder.path());
  writer.scalar("x", 1, NAN);
  EXPECT_EQ(read_records(read_bytes(writer.path())).size(), 1u);
  writer.flush();
  EXPECT_EQ(read_records(read_bytes(writer.path())).size(), 2u);
  for (int i = 0; i < 10000; ++i) writer.scalar("x", i, i);
  EXPECT_GT(read_records(read_bytes(writer.path())).size(), 5000u);
}

TEST(EventWriter, TwoWritersOfAFolderHaveFilesOfTheirOwn) {
  const TemporaryFolder folder;
  const EventWriter one(folder.path()), two(folder.path());
  EXPECT_NE(one.path(), two.path());
  write_bytes(folder / "file", "x");
  EXPECT_THROW(EventWriter(folder / "file"), Error);
}

}  // namespace
}  // namespace lamella::io
