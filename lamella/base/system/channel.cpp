// Channels as pairs of sockets, with an anonymous shared mapping.
#include "lamella/base/system/channel.h"

#include <cerrno>
#include <system_error>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lamella/base/error.h"

namespace lamella {

std::pair<Channel, Channel> Channel::pair(int64_t shared_bytes) {
  int descriptors[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, descriptors) != 0) {
    fail(ErrorKind::Io, "[channel] the system gave no pair of sockets: {}",
         std::generic_category().message(errno));
  }
  std::pair<Channel, Channel> ends;
  ends.first.descriptor_ = descriptors[0];
  ends.second.descriptor_ = descriptors[1];
  if (shared_bytes > 0) {
    const auto size = static_cast<size_t>(shared_bytes);
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      fail(ErrorKind::Io, "[channel] the system gave no shared memory of {} bytes: {}",
           shared_bytes, std::generic_category().message(errno));
    }
    ends.first.shared_ = {static_cast<std::byte*>(memory),
                          [size](std::byte* pages) { ::munmap(pages, size); }};
    ends.second.shared_ = ends.first.shared_;
    ends.first.shared_bytes_ = ends.second.shared_bytes_ = size;
  }
  return ends;
}

Channel& Channel::operator=(Channel&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  shared_bytes_ = std::exchange(other.shared_bytes_, 0);
  shared_ = std::move(other.shared_);
  return *this;
}

bool Channel::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

bool Channel::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

void Channel::await_end() const {
  pollfd end{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
}

void Channel::shut_down() {
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
}

void Channel::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  shared_.reset();
  shared_bytes_ = 0;
}

}  // namespace lamella
