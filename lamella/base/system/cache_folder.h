// Files that only speed things up: a folder of the user's own, and small files in it that are read
// and replaced whole. Nothing here throws; what cannot be read or written is simply absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lamella/base/api.h"

namespace lamella {

// LAMELLA_CACHE_DIR, else $XDG_CACHE_HOME/lamella, else ~/.cache/lamella; nothing if there is no
// home or the variable says "none".
LAMELLA_API std::optional<std::string> cache_folder_path();

// Makes the folder if it is missing (mode 0700) and tells whether it may be trusted: it is a folder
// that belongs to this user and that nobody else can read or write.
LAMELLA_API bool prepare_private_folder(const std::string& path);

LAMELLA_API std::optional<std::string> read_whole_file(const std::string& path);

// Writes a temporary file beside `path` and renames it: readers see the old file or the new one,
// whole. Nothing is synced, so after a crash of the machine the file may be damaged.
LAMELLA_API bool replace_whole_file(const std::string& path, std::string_view content);

// Removes the oldest files of the folder until the rest is at most `limit` bytes.
LAMELLA_API void trim_folder(const std::string& path, int64_t limit);

// Text that changes whenever the library that holds this code is built anew; empty if the build
// left none.
LAMELLA_API std::string library_build_id();

}  // namespace lamella
