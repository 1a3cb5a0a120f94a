// The host's functions; none of them does anything until a host says what they are.
#include "lamella/base/host.h"

#include <chrono>

namespace lamella {

namespace {

Host host_functions;

}  // namespace

void set_host(Host host) {
  host_functions = host;
}

HostReleased::HostReleased()
    : state_(host_functions.release != nullptr ? host_functions.release() : nullptr) {}

HostReleased::~HostReleased() {
  if (state_ != nullptr) host_functions.acquire(state_);
}

void poll_host() {
  if (host_functions.poll == nullptr) return;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(50);
  thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < kPause) return;
  last = now;
  host_functions.poll();
}

}  // namespace lamella
