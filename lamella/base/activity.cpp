// The one listener, and names.
#include "lamella/base/activity.h"

namespace lamella {

std::atomic<ActivityListener*> detail::activity_listener{nullptr};

void set_activity_listener(ActivityListener* listener) {
  detail::activity_listener.store(listener, std::memory_order_release);
}

const char* name(Activity activity) {
  switch (activity) {
    case Activity::Flush:
      return "window";
    case Activity::GraphLookup:
      return "graph lookup";
    case Activity::GraphCompile:
      return "graph compilation";
    case Activity::KernelCompile:
      return "kernel compilation";
    case Activity::MemoryPlan:
      return "memory plan";
    case Activity::DataWait:
      return "wait for data";
    case Activity::DataLoad:
      return "load a row";
    case Activity::Step:
      return "step";
  }
  return "";
}

}  // namespace lamella
