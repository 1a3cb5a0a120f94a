// Mapping files over POSIX.
#include "lamella/base/system/mapped_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lamella/base/error.h"

namespace lamella {

namespace {

// Closes on every way out; the mapping keeps the file alive by itself.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail_io(const std::string& path, std::string_view reason) {
  fail(ErrorKind::Io, "cannot read '{}': {}", path, reason);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail_io(path, std::generic_category().message(errno));
  struct stat status{};
  if (::fstat(file.number, &status) != 0) fail_io(path, std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) fail_io(path, "it is no regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // an empty range cannot be mapped
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (data == MAP_FAILED) fail_io(path, std::generic_category().message(errno));
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lamella
