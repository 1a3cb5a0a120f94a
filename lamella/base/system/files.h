// Files written so that a reader sees the old content or the new one, whole, whatever happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lamella/base/api.h"
#include "lamella/base/function_ref.h"

namespace lamella {

// A file open for writing. Every failure throws Io with the file's name and the system's reason.
class LAMELLA_API FileWriter {
 public:
  enum class Start : uint8_t { Empty, End };  // of a file that exists

  // Creates the file, or writes one that exists anew, or goes on at its end.
  explicit FileWriter(const std::string& path, Start start = Start::Empty);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  // Hands the bytes to the operating system; nothing is buffered here.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Returns once the bytes are on the device.
  void sync();
  void close();
  uint64_t written() const { return written_; }

 private:
  friend class TemporaryFile;
  FileWriter(std::string path, int descriptor);

  std::string path_;
  int descriptor_;
  uint64_t written_ = 0;
};

// Replaces the file `path` by what `write` writes: into a temporary file of the same folder, which
// is synced, renamed over `path`, and the folder synced. If anything throws, `path` is as it was
// and the temporary file is gone. Temporaries of `path` that killed processes left are removed
// first; those of processes still writing are told by their lock and stay.
LAMELLA_API void atomic_write_file(const std::string& path, FunctionRef<void(FileWriter&)> write);

// Returns once the names of files made, renamed or removed in `folder` are on the device.
LAMELLA_API void sync_folder(const std::string& folder);

}  // namespace lamella
