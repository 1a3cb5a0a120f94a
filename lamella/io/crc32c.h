// CRC-32C (Castagnoli; RFC 3720, appendix B.4), as TensorFlow's record files use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lamella::io {

constexpr std::array<uint32_t, 256> make_crc32c_table() {
  constexpr uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr uint32_t crc32c(std::span<const std::byte> bytes) {
  constexpr auto table = make_crc32c_table();
  uint32_t crc = 0xFFFFFFFF;
  for (std::byte byte : bytes) {
    crc = crc >> 8 ^ table[(crc ^ std::to_integer<uint32_t>(byte)) & 0xFF];
  }
  return ~crc;
}

// The checksum as records store it: rotated and offset, so that the checksum of data that holds
// checksums stays sound.
constexpr uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

}  // namespace lamella::io
