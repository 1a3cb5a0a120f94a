// The library's log.
#include "lamella/base/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include "lamella/base/env.h"
#include "lamella/base/error.h"

namespace lamella {

namespace {

spdlog::level::level_enum level_from_environment() {
  const std::string name = environment("LAMELLA_LOG").value_or("warning");
  const auto level = spdlog::level::from_str(name);
  if (level == spdlog::level::off && name != "off") {
    fail(ErrorKind::Value,
         "environment variable LAMELLA_LOG must be debug, info, warning, error or off, got '{}'",
         name);
  }
  return level;
}

}  // namespace

spdlog::logger& log() {
  // Never destroyed: destructors of other static objects may still log.
  static auto& logger = *[] {
    auto* made =
        new spdlog::logger("lamella", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%n: %l: %v");
    made->set_level(level_from_environment());
    return made;
  }();
  return logger;
}

}  // namespace lamella
