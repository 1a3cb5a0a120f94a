// Cache files over POSIX, and the build identity from the library's ELF notes.
#include "lamella/base/system/cache_folder.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <span>
#include <vector>

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lamella/base/env.h"
#include "lamella/base/system/process.h"

namespace lamella {

namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }

 private:
  int number_;
};

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t moved = ::write(descriptor, content.data(), content.size());
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    content.remove_prefix(static_cast<size_t>(moved));
  }
  return true;
}

}  // namespace

std::optional<std::string> cache_folder_path() {
  if (const auto folder = environment("LAMELLA_CACHE_DIR")) {
    return *folder == "none" ? std::nullopt : folder;
  }
  if (const auto folder = environment("XDG_CACHE_HOME")) return *folder + "/lamella";
  if (const auto home = environment("HOME")) return *home + "/.cache/lamella";
  return std::nullopt;
}

bool prepare_private_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  return folder.valid() && ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

std::optional<std::string> read_whole_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t moved = ::read(file.get(), content.data() + done, content.size() - done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return std::nullopt;
    done += static_cast<size_t>(moved);
  }
  return content;
}

bool replace_whole_file(const std::string& path, std::string_view content) {
  static std::atomic<uint64_t> counter{0};
  const std::string temporary =
      fmt::format("{}.{}-{}.tmp", path, process_id(), counter.fetch_add(1));
  {
    const Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) return false;
    if (write_all(file.get(), content) && ::rename(temporary.c_str(), path.c_str()) == 0) {
      return true;
    }
  }
  ::unlink(temporary.c_str());
  return false;
}

void trim_folder(const std::string& path, int64_t limit) {
  struct File {
    std::filesystem::file_time_type time;
    std::filesystem::path path;
    int64_t size;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    std::error_code gone;
    if (!entry.is_regular_file(gone) || gone) continue;
    const auto time = entry.last_write_time(gone);
    const auto size = static_cast<int64_t>(entry.file_size(gone));
    if (gone) continue;
    files.push_back({time, entry.path(), size});
    total += size;
  }
  if (total <= limit) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (total <= limit) break;
    std::error_code gone;
    if (std::filesystem::remove(file.path, gone)) total -= file.size;
  }
}

namespace {

struct BuildId {
  uintptr_t address;  // of a function in the library looked for
  std::string text;
};

// Appends the build-id note of one loaded object in hexadecimal.
void read_notes(const dl_phdr_info& object, const ElfW(Phdr) & segment, std::string& text) {
  const char* note = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
  const char* end = note + segment.p_memsz;
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    const auto* header = reinterpret_cast<const ElfW(Nhdr)*>(note);
    const char* name = note + sizeof *header;
    const char* content = name + padded(header->n_namesz);
    if (header->n_type == NT_GNU_BUILD_ID &&
        std::string_view(name, header->n_namesz) == std::string_view("GNU\0", 4)) {
      for (size_t i = 0; i < header->n_descsz; ++i) {
        text += fmt::format("{:02x}", static_cast<unsigned char>(content[i]));
      }
      return;
    }
    note = content + padded(header->n_descsz);
  }
}

int find_build_id(dl_phdr_info* object, size_t, void* context) {
  auto& wanted = *static_cast<BuildId*>(context);
  const auto holds = [&](const ElfW(Phdr) & segment) {
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && wanted.address >= begin &&
           wanted.address < begin + segment.p_memsz;
  };
  const std::span segments(object->dlpi_phdr, object->dlpi_phnum);
  if (std::none_of(segments.begin(), segments.end(), holds)) return 0;
  for (const auto& segment : segments) {
    if (segment.p_type == PT_NOTE && wanted.text.empty()) {
      read_notes(*object, segment, wanted.text);
    }
  }
  return 1;
}

}  // namespace

std::string library_build_id() {
  BuildId id = {.address = reinterpret_cast<uintptr_t>(&find_build_id), .text = {}};
  dl_iterate_phdr(find_build_id, &id);
  return id.text;
}

}  // namespace lamella
