// The program around Lamella, where it is a language with a lock of its own (Python): that lock is
// given up around long work, and the user's wish to stop is asked for during it.
#pragma once

#include <mutex>

#include "lamella/base/api.h"

namespace lamella {

struct Host {
  // Gives up the host's lock; null if this thread does not hold it.
  void* (*release)() = nullptr;
  // Takes it again; gets what release returned.
  void (*acquire)(void*) = nullptr;
  // Throws if the user asked to stop. Called now and then, without the lock.
  void (*poll)() = nullptr;
};

LAMELLA_API void set_host(Host host);

// Gives up the host's lock while it lives.
class LAMELLA_API HostReleased {
 public:
  HostReleased();
  ~HostReleased();
  HostReleased(const HostReleased&) = delete;
  HostReleased& operator=(const HostReleased&) = delete;

 private:
  void* state_;
};

// Locks a mutex that another thread may hold while it waits for the host's lock.
template <typename Mutex>
std::unique_lock<Mutex> lock_beside_host(Mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    const HostReleased released;
    lock.lock();
  }
  return lock;
}

// Throws if the user asked to stop; asks at most twenty times a second.
LAMELLA_API void poll_host();

}  // namespace lamella
