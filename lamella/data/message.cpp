// Messages as bytes. Both ends are the same program, so the form is its memory's.
#include "lamella/data/message.h"

namespace lamella::data {

namespace {

struct Header {
  uint64_t key;
  uint64_t numbers, arrays, failure;  // how many of each; bytes
  uint64_t data_bytes;                // of all arrays
  uint64_t in_shared_memory;
};

struct ArrayHeader {
  int64_t sizes[Axes::capacity()];
  uint8_t rank;
  DType dtype;
  bool is_text;
};

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& items) {
  return std::as_bytes(std::span<const T>(items));
}

ArrayHeader header_of(const Array& array) {
  ArrayHeader header{};
  header.rank = static_cast<uint8_t>(array.rank());
  std::copy(array.sizes().begin(), array.sizes().end(), header.sizes);
  header.dtype = array.dtype();
  header.is_text = array.type().is_text;
  return header;
}

Array array_of(const ArrayHeader& header) {
  Axes sizes;
  for (size_t i = 0; i < header.rank; ++i) sizes.push_back(header.sizes[i]);
  const Array array(header.dtype, sizes);
  return header.is_text ? array.as_text() : array;
}

}  // namespace

bool send_message(Channel& channel, const Message& message) {
  std::vector<ArrayHeader> headers;
  uint64_t bytes = 0;
  for (const Array& array : message.arrays) {
    headers.push_back(header_of(array));
    bytes += array.bytes();
  }
  const bool shared = bytes <= channel.shared().size();
  const Header header{
      message.key, message.numbers.size(), message.arrays.size(), message.failure.size(), bytes,
      shared};
  if (shared) {
    std::byte* to = channel.shared().data();
    for (const Array& array : message.arrays) {
      if (array.bytes() > 0) std::memcpy(to, array.data(), array.bytes());
      to += array.bytes();
    }
  }
  std::vector<std::byte> front;
  for (const auto& part : {std::as_bytes(std::span(&header, 1)), bytes_of(message.numbers),
                           bytes_of(headers), std::as_bytes(std::span(message.failure))}) {
    front.insert(front.end(), part.begin(), part.end());
  }
  if (!channel.send(front)) return false;
  if (shared) return true;
  for (const Array& array : message.arrays) {
    if (!channel.send({array.data(), array.bytes()})) return false;
  }
  return true;
}

std::optional<Message> receive_message(Channel& channel) {
  Header header;
  if (!channel.receive(std::as_writable_bytes(std::span(&header, 1)))) return std::nullopt;
  Message message{.key = header.key};
  message.numbers.resize(header.numbers);
  std::vector<ArrayHeader> headers(header.arrays);
  message.failure.resize(header.failure);
  for (const auto& part : {std::as_writable_bytes(std::span(message.numbers)),
                           std::as_writable_bytes(std::span(headers)),
                           std::as_writable_bytes(std::span(message.failure))}) {
    if (!channel.receive(part)) return std::nullopt;
  }
  const std::byte* from = channel.shared().data();
  for (const ArrayHeader& each : headers) {
    Array array = array_of(each);
    if (header.in_shared_memory == 0) {
      if (!channel.receive({array.writable(), array.bytes()})) return std::nullopt;
    } else if (array.bytes() > 0) {
      std::memcpy(array.writable(), from, array.bytes());
      from += array.bytes();
    }
    message.arrays.push_back(std::move(array));
  }
  return message;
}

}  // namespace lamella::data
