// Rows between a process and its workers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lamella/base/system/channel.h"
#include "lamella/data/array.h"

namespace lamella::data {

// What is asked of a worker, and what it answers. What the numbers mean is up to the two.
struct Message {
  uint64_t key = 0;  // of the random numbers
  std::vector<int64_t> numbers = {};
  std::vector<Array> arrays = {};
  std::string failure = {};  // an answer: how the work failed, in the host's own form
};

// Sends a message; false if the other end is closed. Arrays go through the channel's shared memory
// if they fit, else through the channel itself. The other end must have received the message before
// one is sent back, since both directions use the same memory.
[[nodiscard]] LAMELLA_API bool send_message(Channel& channel, const Message& message);
// The next message, with arrays of its own; nothing if the channel ended first.
LAMELLA_API std::optional<Message> receive_message(Channel& channel);

}  // namespace lamella::data
