// The format of cache entries: a mark, a digest of the rest, what the code depends on as text, the
// object file.
#include "lamella/tile/cpu/disk_cache.h"

#include <cstring>

#include <llvm-c/Core.h>

#include "lamella/base/logging.h"
#include "lamella/base/system/cache_folder.h"
#include "lamella/tile/cpu/target.h"

namespace lamella::tile {

namespace {

constexpr std::string_view kMark = "lamella kernel 1\n";
constexpr int64_t kFolderLimit = int64_t{512} << 20;
constexpr uint64_t kInsertionsPerTrim = 256;

struct Header {
  Hash128 digest;  // of all that follows
  uint64_t identity_bytes = 0;
  uint64_t object_bytes = 0;
};

const std::string& build_id() {
  static const std::string id = library_build_id();
  return id;
}

// All that compiled code depends on, as text.
std::string identity(std::string_view source, InstructionSet set) {
  static const std::string llvm_version = [] {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    return fmt::format("{}.{}.{}", major, minor, patch);
  }();
  const TargetDescription& target = target_description(set);
  return fmt::format("build {} llvm {} set {} triple {} cpu {} features {}\n{}", build_id(),
                     llvm_version, static_cast<int>(set), target.triple, target.cpu,
                     target.features, source);
}

Hash128 digest_of(std::string_view content) {
  Hasher hasher;
  hasher.add(content);
  return hasher.digest();
}

std::string path_of(const std::string& folder, std::string_view identity_text) {
  const Hash128 hash = digest_of(identity_text);
  return fmt::format("{}/{:016x}{:016x}.kernel", folder, hash.high, hash.low);
}

std::string entry_of(std::string_view identity_text, std::string_view object) {
  Header header = {.identity_bytes = identity_text.size(), .object_bytes = object.size()};
  std::string rest(reinterpret_cast<const char*>(&header) + sizeof header.digest,
                   sizeof header - sizeof header.digest);
  rest += identity_text;
  rest += object;
  header.digest = digest_of(rest);
  std::string entry(kMark);
  entry.append(reinterpret_cast<const char*>(&header.digest), sizeof header.digest);
  return entry + rest;
}

// The object file in an entry that is whole and was made for the same identity.
std::optional<std::string> object_in(std::string_view entry, std::string_view identity_text) {
  if (!entry.starts_with(kMark)) return std::nullopt;
  entry.remove_prefix(kMark.size());
  Header header;
  if (entry.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof header);
  if (digest_of(entry.substr(sizeof header.digest)) != header.digest) return std::nullopt;
  entry.remove_prefix(sizeof header);
  if (header.identity_bytes > entry.size() ||
      header.object_bytes != entry.size() - header.identity_bytes ||
      entry.substr(0, header.identity_bytes) != identity_text) {
    return std::nullopt;
  }
  return std::string(entry.substr(header.identity_bytes));
}

}  // namespace

DiskCache::DiskCache(std::optional<std::string> folder) {
  if (!folder || build_id().empty()) return;
  if (!prepare_private_folder(*folder)) {
    log().debug("kernels are not kept on disk: {} is not a private folder of this user", *folder);
    return;
  }
  folder_ = std::move(folder);
}

std::string DiskCache::path(std::string_view source, InstructionSet set) const {
  return folder_ ? path_of(*folder_, identity(source, set)) : "";
}

std::optional<std::string> DiskCache::find(std::string_view source, InstructionSet set) const {
  if (!folder_) return std::nullopt;
  const std::string identity_text = identity(source, set);
  const auto entry = read_whole_file(path_of(*folder_, identity_text));
  return entry ? object_in(*entry, identity_text) : std::nullopt;
}

void DiskCache::insert(std::string_view source, InstructionSet set, std::string_view object) const {
  if (!folder_ || !writable_) return;
  const std::string identity_text = identity(source, set);
  // Now and then, so that a process that compiles nothing does not look through the folder.
  if (insertions_.fetch_add(1) % kInsertionsPerTrim == 0) trim_folder(*folder_, kFolderLimit);
  if (replace_whole_file(path_of(*folder_, identity_text), entry_of(identity_text, object))) return;
  log().debug("kernels are no longer kept on disk: cannot write to {}", *folder_);
  writable_ = false;
}

}  // namespace lamella::tile
