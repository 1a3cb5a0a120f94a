// The window and its counters, as Python sees them.
#include "python/src/context.h"

#include <optional>
#include <string>

#include "python/src/host_lock.h"
#include "python/src/source_location.h"
#include <nanobind/stl/string.h>

#include "lamella/ir/call_site.h"
#include "lamella/ir/window.h"
#include "lamella/runtime/counters.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

// The user's line as the source of what library code makes, for a `with` statement.
class CallSite {
 public:
  void enter() { scope_.emplace(caller_location()); }
  void exit(const nb::args&) { scope_.reset(); }

 private:
  std::optional<CallSiteScope> scope_;
};

}  // namespace

void add_context(nb::module_& module) {
  nb::class_<CallSite>(module, "CallSite")
      .def(nb::init<>())
      .def("__enter__", &CallSite::enter)
      .def("__exit__", &CallSite::exit);
  module.def("version", [] { return LAMELLA_VERSION; }, "The version of this build.");
  module.def(
      "flush",
      [] {
        const HostReleased released;
        Window::of_thread().flush();
      },
      "Runs this thread's pending operations.");
  module.def(
      "set_window",
      [](int64_t operations) {
        WindowLimits limits = Window::of_thread().limits();
        limits.fixed = operations;
        const HostReleased released;
        Window::of_thread().flush();
        Window::of_thread().set_limits(limits);
      },
      nb::arg("operations"),
      "Runs this thread's pending operations after every so many, from 1 to a million; 0 leaves it "
      "to the runtime. ValueError for another number.");
  module.def(
      "window", [] { return Window::of_thread().limits().fixed; },
      "The number that set_window set.");
  module.def(
      "pending", [] { return Window::of_thread().size(); },
      "The number of operations recorded and not yet run.");
  module.def(
      "counters",
      [] {
        const RuntimeCounters& now = counters();
        nb::dict row;
        row["flushes"] = now.flushes;
        row["graphs"] = now.graphs;
        row["graph_hits"] = now.graph_hits;
        row["launches"] = now.launches;
        row["arena_bytes"] = now.arena_bytes;
        row["arena_lower_bound"] = now.arena_lower_bound;
        return row;
      },
      "What the runtime has done so far.");
  module.def("set_package_folder", set_package_folder, nb::arg("folder"),
             "Frames of files below this folder are not the user's.");
  module.def(
      "caller_location",
      [] {
        const SourceLocation location = caller_location();
        return nb::make_tuple(location.file == nullptr ? "" : location.file, location.line);
      },
      "File and line of the innermost frame outside the package.");
}

}  // namespace lamella::python
