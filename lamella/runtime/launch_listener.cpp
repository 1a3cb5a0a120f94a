// The one listener.
#include "lamella/runtime/launch_listener.h"

#include <atomic>

namespace lamella {

namespace {

std::atomic<LaunchListener*> listener{nullptr};

}  // namespace

LaunchListener* launch_listener() {
  return listener.load(std::memory_order_acquire);
}

void set_launch_listener(LaunchListener* heard) {
  listener.store(heard, std::memory_order_release);
}

}  // namespace lamella
