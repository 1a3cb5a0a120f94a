// Reading idx files, plain or gzipped.
#include "lamella/data/idx.h"

#include <cerrno>
#include <memory>
#include <system_error>

#include <zlib.h>

namespace lamella::data {

namespace {

uint32_t big_endian(const std::byte* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
  // zlib's reader passes through what is no gzip stream.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) {
    fail(ErrorKind::Io, "cannot open '{}': {}", path,
         errno != 0 ? std::generic_category().message(errno) : "out of memory");
  }
  gzbuffer(file.get(), 1 << 18);
  std::vector<std::byte> content;
  constexpr size_t kPiece = size_t{4} << 20;
  for (;;) {
    const size_t before = content.size();
    content.resize(before + kPiece);
    const int got = gzread(file.get(), content.data() + before, kPiece);
    int code = Z_OK;
    const char* reason = gzerror(file.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      fail(ErrorKind::Io, "cannot read '{}': {}", path,
           code == Z_ERRNO ? std::generic_category().message(errno) : std::string(reason));
    }
    content.resize(before + static_cast<size_t>(got));
    if (static_cast<size_t>(got) < kPiece) return content;
  }
}

Array parse_idx(std::vector<std::byte> content, const std::string& path) {
  constexpr size_t kMagic = 4;
  constexpr uint32_t kUnsignedByte = 0x08;
  if (content.size() < kMagic) {
    fail(ErrorKind::Io, "'{}' is no idx file: it has only {} bytes", path, content.size());
  }
  const uint32_t magic = big_endian(content.data());
  if (magic >> 16 != 0) {
    fail(ErrorKind::Io, "'{}' is no idx file: it begins with 0x{:08x}", path, magic);
  }
  const uint32_t element = magic >> 8 & 0xFF, axes = magic & 0xFF;
  if (element != kUnsignedByte) {
    fail(ErrorKind::Unsupported,
         "'{}' holds idx elements of type 0x{:02x}; only unsigned bytes (0x08) are read", path,
         element);
  }
  if (axes < 1 || axes > Axes::capacity()) {
    fail(ErrorKind::Io, "'{}' is damaged: its header names {} axes (accepted: 1 to {})", path, axes,
         Axes::capacity());
  }
  const size_t header = kMagic + 4 * size_t{axes};
  if (content.size() < header) {
    fail(ErrorKind::Io, "'{}' is truncated: {} bytes, where its header alone has {}", path,
         content.size(), header);
  }
  Axes sizes;
  uint64_t count = 1;
  bool fits = true;
  for (size_t i = 0; i < axes; ++i) {
    const uint32_t size = big_endian(content.data() + kMagic + 4 * i);
    sizes.push_back(size);
    fits = fits && !__builtin_mul_overflow(count, uint64_t{size}, &count);
  }
  const size_t data = content.size() - header;
  if (!fits || count != data) {
    fail(ErrorKind::Io, "'{}' is {}: its header announces {} elements, and {} bytes follow", path,
         fits && count < data ? "damaged" : "truncated", text(ArrayType{DType::UInt8, sizes}),
         data);
  }
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(content));
  const std::byte* elements = owner->data() + header;
  return Array(DType::UInt8, sizes, {std::move(owner), elements});
}

}  // namespace lamella::data
