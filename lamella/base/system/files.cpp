// Writing files over POSIX: temporary file, fsync, rename, fsync of the folder.
#include "lamella/base/system/files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lamella/base/error.h"
#include "lamella/base/system/process.h"

namespace lamella {

namespace {

[[noreturn]] void fail_io(std::string_view action, const std::string& path, int code) {
  fail(ErrorKind::Io, "cannot {} '{}': {}", action, path, std::generic_category().message(code));
}

int open_file(const std::string& path, int flags) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor >= 0) return descriptor;
    if (errno != EINTR) fail_io("open", path, errno);
  }
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

FileWriter::FileWriter(const std::string& path, Start start)
    : FileWriter(path, open_file(path, O_WRONLY | O_CREAT |
                                           (start == Start::Empty ? O_TRUNC : O_APPEND))) {}

FileWriter::FileWriter(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  // One call moves at most 2 GiB on Linux; smaller pieces also let a signal interrupt sooner.
  constexpr size_t kPiece = size_t{256} << 20;
  while (!bytes.empty()) {
    const ssize_t moved = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kPiece));
    if (moved < 0) {
      if (errno == EINTR) continue;
      fail_io("write", path_, errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(moved));
    written_ += static_cast<uint64_t>(moved);
  }
}

void FileWriter::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void FileWriter::sync() {
  if (::fsync(descriptor_) != 0) fail_io("sync", path_, errno);
}

void FileWriter::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR) fail_io("close", path_, errno);
}

// A locked temporary file beside its target. The lock tells a live writer from a killed one.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : target_(target) {
    static std::atomic<uint64_t> counter{0};
    remove_leftovers();
    for (;;) {
      const std::string path = fmt::format("{}/{}{}-{}", folder_of(target_), prefix(target_),
                                           process_id(), counter.fetch_add(1));
      const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor < 0) {
        if (errno == EEXIST || errno == EINTR) continue;
        fail_io("create", path, errno);
      }
      path_ = file_.path_ = path;
      file_.descriptor_ = descriptor;
      // A file system without locks refuses here; nothing is taken for a leftover there. And
      // between creation and lock another process may take the file for a leftover and unlink it.
      const bool contended = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
      struct stat status{};
      if (!contended && ::fstat(descriptor, &status) == 0 && status.st_nlink > 0) return;
      file_.close();
      ::unlink(path.c_str());
    }
  }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  FileWriter& file() { return file_; }

  void publish() {
    file_.sync();
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_io("rename to", target_, errno);
    path_.clear();
    file_.close();
    sync_folder(folder_of(target_));
  }

 private:
  static std::string prefix(const std::string& target) {
    return fmt::format(".{}.tmp-", std::filesystem::path(target).filename().string());
  }

  void remove_leftovers() const {
    const std::string start = prefix(target_);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_of(target_), ignored)) {
      if (!entry.path().filename().string().starts_with(start)) continue;
      const int descriptor = ::open(entry.path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
      if (descriptor < 0) continue;
      if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
      ::close(descriptor);
    }
  }

  std::string target_, path_;
  FileWriter file_{"", -1};
};

void atomic_write_file(const std::string& path, FunctionRef<void(FileWriter&)> write) {
  TemporaryFile temporary(path);
  write(temporary.file());
  temporary.publish();
}

void sync_folder(const std::string& folder) {
  const int descriptor = open_file(folder, O_RDONLY | O_DIRECTORY);
  const int status = ::fsync(descriptor);
  const int code = errno;
  ::close(descriptor);
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to be done there.
  if (status != 0 && code != EINVAL) fail_io("sync", folder, code);
}

}  // namespace lamella
