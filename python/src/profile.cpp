// Binding of profile::Profiler, and of the pool of host memory.
#include "python/src/profile.h"

#include "python/src/host_lock.h"
#include "python/src/object_reference.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "lamella/device/pool.h"
#include "lamella/profile/cost_table.h"
#include "lamella/profile/memory_history.h"
#include "lamella/profile/profiler.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

using profile::Profiler;

// wait, warmup, active, repeat, skip_first.
using ScheduleNumbers = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;

std::optional<profile::Schedule> schedule_of(const std::optional<ScheduleNumbers>& numbers) {
  if (!numbers) return std::nullopt;
  const auto [wait, warmup, active, repeat, skip_first] = *numbers;
  return profile::Schedule{wait, warmup, active, repeat, skip_first};
}

// Calls the Python object's _cycle_ended, which the profiler does not keep alive.
void tell_cycle_ended(Profiler& profiler) {
  const HostLock lock;
  nb::find(&profiler).attr("_cycle_ended")();
}

nb::list cost_rows(const Profiler& profiler, const std::string& key) {
  const profile::CostKey by = key == "layer"  ? profile::CostKey::Layer
                              : key == "line" ? profile::CostKey::Line
                                              : profile::CostKey::Operator;
  nb::list rows;
  for (const profile::CostRow& row : profile::cost_table(profiler.recordings(), by)) {
    nb::dict entry;
    entry["name"] = row.name;
    entry["count"] = row.count;
    entry["total"] = row.total;
    entry["self"] = row.self;
    entry["mean"] = row.mean();
    entry["max"] = row.longest;
    entry["bytes"] = row.bytes;
    entry["flops"] = row.flops;
    rows.append(entry);
  }
  return rows;
}

}  // namespace

void add_profiler(nb::module_& module) {
  nb::class_<Profiler>(module, "Profiler", nb::dynamic_attr(), nb::is_weak_referenceable(),
                       shared_object<Profiler>())
      .def(
          "__init__",
          [](Profiler* self, const std::string& path, bool memory,
             const std::optional<ScheduleNumbers>& schedule) {
            new (self) Profiler({.output_path = path,
                                 .profile_memory = memory,
                                 .start_profile = false,
                                 .schedule = schedule_of(schedule),
                                 .on_trace_ready = tell_cycle_ended});
          },
          "output_path"_a, "profile_memory"_a, "schedule"_a.none())
      .def("start", &Profiler::start)
      .def("stop", &Profiler::stop)
      .def("step", &Profiler::step)
      .def_prop_ro("recording", &Profiler::recording)
      .def(
          "_analyse",
          [](Profiler& self, const std::optional<std::string>& path) {
            const HostReleased released;
            self.analyse(path.value_or(self.options().output_path));
          },
          "output_path"_a.none())
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
