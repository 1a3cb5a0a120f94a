// What has to be put in order around fork.
//
// A child of fork has one thread, the one that forked; whatever other threads were doing stays as
// it was, locks included. So work that holds the library's locks is waited for, and what belonged
// to the parent's threads is set right in the child: parallel loops run in their own thread until
// the child asks for more (set_thread_count), operations that were pending are gone.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"

namespace lamella {

// Registers a function that is called before a fork, by the thread that forks.
LAMELLA_API void before_fork(void (*function)());
// Registers a function that is called in a child of fork, by its only thread.
LAMELLA_API void in_child_of_fork(void (*function)());

// Work that holds locks of the library; a fork in another thread waits until there is none. May be
// nested.
class LAMELLA_API UnforkableWork {
 public:
  UnforkableWork();
  ~UnforkableWork();
  UnforkableWork(const UnforkableWork&) = delete;
};

// fork(2). Throws Io with the system's reason.
LAMELLA_API int64_t fork_process();

}  // namespace lamella
