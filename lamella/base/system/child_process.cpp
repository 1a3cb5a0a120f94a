// Child processes over POSIX.
#include "lamella/base/system/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

namespace lamella {

void kill_process(int64_t process) {
  ::kill(static_cast<pid_t>(process), SIGKILL);
}

std::string reap_process(int64_t process) {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(static_cast<pid_t>(process), &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0) return "ended";
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace lamella
