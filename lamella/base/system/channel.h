// A channel of bytes between a process and one it forked, with memory that both see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "lamella/base/api.h"

namespace lamella {

// One end of a channel; used by one thread at a time. Both ends are made before the fork, and each
// process closes the one it does not use. Descriptors are not inherited by programs that are
// started.
class LAMELLA_API Channel {
 public:
  // Two ends that are connected. `shared_bytes` of memory (0 for none) belong to both; it has no
  // name, so nothing of it is left when the processes end. Throws Io with the system's reason.
  static std::pair<Channel, Channel> pair(int64_t shared_bytes);

  Channel() = default;
  Channel(Channel&& other) noexcept { *this = std::move(other); }
  Channel& operator=(Channel&& other) noexcept;
  ~Channel() { close(); }

  // Sends all the bytes; false if the other end is closed.
  [[nodiscard]] bool send(std::span<const std::byte> bytes);
  // Fills `bytes`; false if the other end was closed first.
  [[nodiscard]] bool receive(std::span<std::byte> bytes);
  // Returns once the other end is closed or the process that had it is gone; takes nothing from the
  // channel. Called by another thread than the one that receives.
  void await_end() const;
  // Makes the other end, and a thread that waits here, see the end of the channel. Called by any
  // thread.
  void shut_down();
  void close();

  // The memory both ends see.
  std::span<std::byte> shared() const { return {shared_.get(), shared_bytes_}; }

 private:
  int descriptor_ = -1;
  size_t shared_bytes_ = 0;
  std::shared_ptr<std::byte> shared_;
};

}  // namespace lamella
