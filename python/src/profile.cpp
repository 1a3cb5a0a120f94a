// Binding of profile::Profiler, and of the pool of host memory.
#include "python/src/profile.h"

#include "python/src/host_lock.h"
#include "python/src/object_reference.h"
#include <nanobind/stl/string.h>

#include "lamella/device/pool.h"
#include "lamella/profile/cost_table.h"
#include "lamella/profile/memory_history.h"
#include "lamella/profile/profiler.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

using profile::Profiler;

// Calls the Python object's _trace_ready, which the profiler does not keep alive.
void tell_trace_ready(Profiler& profiler) {
  const HostLock lock;
  nb::find(&profiler).attr("_trace_ready")();
}

profile::CostKey cost_key_from(const std::string& name) {
  if (name == "operator") return profile::CostKey::Operator;
  if (name == "layer") return profile::CostKey::Layer;
  if (name == "line") return profile::CostKey::Line;
  fail(ErrorKind::Value, "[Profiler.cost_table] by must be 'operator', 'layer' or 'line', got '{}'",
       name);
}

nb::list cost_rows(const Profiler& profiler, const std::string& by) {
  nb::list rows;
  for (const profile::CostRow& row :
       profile::cost_table(profiler.recordings(), cost_key_from(by))) {
    nb::dict entry;
    entry["name"] = row.name;
    entry["count"] = row.count;
    entry["total"] = row.total;
    entry["self"] = row.self;
    entry["mean"] = row.mean;
    entry["max"] = row.longest;
    entry["bytes"] = row.bytes;
    entry["flops"] = row.flops;
    rows.append(entry);
  }
  return rows;
}

}  // namespace

void add_profiler(nb::module_& module) {
  nb::class_<profile::Schedule>(module, "Schedule", nb::dynamic_attr())
      .def(
          "__init__",
          [](profile::Schedule* self, int64_t wait, int64_t warmup, int64_t active, int64_t repeat,
             int64_t skip_first) {
            const profile::Schedule given{wait, warmup, active, repeat, skip_first};
            given.check();
            new (self) profile::Schedule(given);
          },
          "wait"_a, "warmup"_a, "active"_a, "repeat"_a, "skip_first"_a)
      .def_ro("wait", &profile::Schedule::wait)
      .def_ro("warmup", &profile::Schedule::warmup)
      .def_ro("active", &profile::Schedule::active)
      .def_ro("repeat", &profile::Schedule::repeat)
      .def_ro("skip_first", &profile::Schedule::skip_first);
  nb::class_<Profiler>(module, "Profiler", nb::dynamic_attr(), nb::is_weak_referenceable(),
                       shared_object<Profiler>())
      .def(
          "__init__",
          [](Profiler* self, const std::string& path, bool memory,
             const profile::Schedule* schedule, bool receives) {
            profile::ProfilerOptions options{
                .output_path = path, .profile_memory = memory, .start_profile = false};
            if (schedule != nullptr) options.schedule = *schedule;
            if (receives) options.on_trace_ready = tell_trace_ready;
            new (self) Profiler(std::move(options));
          },
          "output_path"_a, "profile_memory"_a, "schedule"_a.none(), "receives"_a)
      .def("start", &Profiler::start)
      .def("stop", &Profiler::stop)
      .def("step", &Profiler::step)
      .def_prop_ro("recording", &Profiler::recording)
      .def_prop_ro("_started", &Profiler::started)
      .def_prop_ro("_output_path", [](Profiler& self) { return self.options().output_path; })
      .def(
          "_analyse",
          [](Profiler& self, const std::string& path) {
            const HostReleased released;
            self.analyse(path);
          },
          "output_path"_a)
      .def("cost_table", cost_rows, "by"_a = "operator",
           "Rows of time by operator, layer or line, the costliest first; times in seconds.")
      .def(
          "memory_peak",
          [](const Profiler& self) {
            const profile::MemoryPeak peak = profile::memory_peak(self.recordings());
            nb::list holders;
            for (const profile::HeldMemory& row : peak.holders) {
              holders.append(nb::make_tuple(row.holder, row.bytes));
            }
            return nb::make_tuple(peak.point.used, holders);
          },
          "Bytes used at the peak, and (holder, bytes) rows of who held them.");
}

void add_memory(nb::module_& module) {
  module.def("statistics", [] {
    const MemoryStatistics now = cpu_pool().statistics();
    nb::dict row;
    row["reserved"] = now.reserved;
    row["used"] = now.used;
    row["peak_used"] = now.peak_used;
    row["peak_reserved"] = now.peak_reserved;
    row["allocation_count"] = now.allocation_count;
    row["fragmentation"] = now.fragmentation();
    return row;
  });
  module.def("reset_peak_used", [] { cpu_pool().reset_peak_used(); });
  module.def("reset_peak_reserved", [] { cpu_pool().reset_peak_reserved(); });
  module.def("compact", [] { return cpu_pool().compact(); });
  module.def("limit", [] { return cpu_pool().limit(); });
  module.def("set_limit", [](int64_t bytes) { cpu_pool().set_limit(bytes); }, "bytes"_a);
  module.def("holders", [] {
    nb::list rows;
    for (const LiveAllocation& live : cpu_pool().live()) {
      rows.append(nb::make_tuple(text(live.holder), live.bytes));
    }
    return rows;
  });
}

}  // namespace lamella::python
