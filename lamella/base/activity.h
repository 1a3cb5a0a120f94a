// What the threads of the process are busy with, told to whoever listens: the profiler. Without a
// listener an ActivityScope costs one branch.
#pragma once

#include <atomic>
#include <cstdint>

#include "lamella/base/api.h"

namespace lamella {

enum class Activity : uint8_t {
  Flush,          // a window runs; amount: its operations
  GraphLookup,    // its graph is looked for
  GraphCompile,   // it is lowered, fused and compiled
  KernelCompile,  // machine code is made, or read from disk; amount: programs
  MemoryPlan,     // memory and arguments are laid out for sizes met for the first time
  DataWait,       // the next row of a dataset is waited for
  DataLoad,       // a loader thread makes a row
  Step,           // a step of training, as the program counts them; amount: its number
};
LAMELLA_API const char* name(Activity activity);

// Told about every activity of every thread, from that thread; what begins ends, in order.
class ActivityListener {
 public:
  virtual void begin(Activity activity, int64_t amount) noexcept = 0;
  virtual void end(Activity activity) noexcept = 0;

 protected:
  ~ActivityListener() = default;
};

namespace detail {
LAMELLA_API extern std::atomic<ActivityListener*> activity_listener;
}

// The listener; null for none. It must live as long as the process: a thread may end an activity
// long after the listener was replaced.
inline ActivityListener* activity_listener() {
  return detail::activity_listener.load(std::memory_order_acquire);
}
LAMELLA_API void set_activity_listener(ActivityListener* listener);

class ActivityScope {
 public:
  explicit ActivityScope(Activity activity, int64_t amount = 0)
      : listener_(activity_listener()), activity_(activity) {
    if (listener_ != nullptr) [[unlikely]]
      listener_->begin(activity, amount);
  }
  ~ActivityScope() {
    if (listener_ != nullptr) [[unlikely]]
      listener_->end(activity_);
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  ActivityListener* const listener_;
  const Activity activity_;
};

}  // namespace lamella
