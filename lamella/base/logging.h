// The library's log: warnings go to standard error; LAMELLA_LOG=debug|info|warning|error|off sets
// the level.
#pragma once

#include <memory>

#include <spdlog/spdlog.h>

#include "lamella/base/api.h"

namespace lamella {

LAMELLA_API spdlog::logger& log();

}  // namespace lamella
