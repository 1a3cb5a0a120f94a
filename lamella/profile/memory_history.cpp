// Replaying allocations.
#include "lamella/profile/memory_history.h"

#include <algorithm>
#include <unordered_map>

#include "lamella/profile/csv.h"

namespace lamella::profile {

namespace {

std::vector<HeldMemory> sorted(const std::unordered_map<std::string, HeldMemory>& held) {
  std::vector<HeldMemory> rows;
  for (const auto& [name, row] : held) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const HeldMemory& a, const HeldMemory& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.holder < b.holder;
  });
  return rows;
}

void add(std::unordered_map<std::string, HeldMemory>& held, const Holder& holder, int64_t bytes) {
  HeldMemory& row = held[lamella::text(holder)];
  row.holder = lamella::text(holder);
  row.bytes += bytes;
  ++row.count;
}

// What lives after the first `events` events.
void collect_holders(MemoryPeak& peak, const MemoryRecord& memory, size_t events) {
  std::unordered_map<const Allocation*, MemoryEvent> live;
  const auto replay = [&](const MemoryEvent& event) {
    if (event.bytes >= 0) {
      live[event.allocation] = event;
    } else {
      live.erase(event.allocation);
    }
  };
  for (const MemoryEvent& event : memory.before) replay(event);
  for (size_t i = 0; i < events; ++i) replay(memory.events[i]);
  // Until when they live: their place in memory may be another one's later.
  std::unordered_map<const Allocation*, int64_t> released;
  for (size_t i = events; i < memory.events.size(); ++i) {
    const MemoryEvent& event = memory.events[i];
    if (event.bytes < 0) released.try_emplace(event.allocation, event.time);
  }
  std::unordered_map<std::string, HeldMemory> held, in_arena;
  for (const auto& [allocation, event] : live) {
    add(held, memory.holders[static_cast<size_t>(event.holder)], event.bytes);
    const auto end = released.find(allocation);
    for (const ArenaRecord& arena : memory.arenas) {
      if (arena.allocation != allocation || arena.time < event.time) continue;
      if (end != released.end() && arena.time > end->second) break;
      for (const auto& [holder, bytes] : arena.contents) add(in_arena, holder, bytes);
      break;  // told right after the allocation was made
    }
  }
  peak.holders = sorted(held);
  peak.in_arena = sorted(in_arena);
}

}  // namespace

std::vector<MemoryPoint> memory_points(const Recording& recording) {
  const MemoryRecord& memory = recording.memory;
  if (memory.before.empty() && memory.events.empty()) return {};
  MemoryPoint point{.time = recording.began};
  for (const MemoryEvent& event : memory.before) {
    point.used += event.bytes;
    point.reserved = event.reserved;
  }
  if (memory.before.empty()) point.reserved = memory.events.front().reserved;
  std::vector<MemoryPoint> points = {point};
  for (const MemoryEvent& event : memory.events) {
    point = {event.time, point.used + event.bytes, event.reserved};
    points.push_back(point);
  }
  return points;
}

MemoryPeak memory_peak(std::span<const Recording> recordings) {
  MemoryPeak peak;
  const Recording* of = nullptr;
  size_t events = 0;
  for (const Recording& recording : recordings) {
    const std::vector<MemoryPoint> points = memory_points(recording);
    for (size_t i = 0; i < points.size(); ++i) {
      if (of != nullptr && points[i].used <= peak.point.used) continue;
      peak.point = points[i];
      of = &recording;
      events = i;
    }
  }
  if (of != nullptr) collect_holders(peak, of->memory, events);
  return peak;
}

std::string csv(std::span<const Recording> recordings) {
  std::string lines = "time_ms,used_bytes,reserved_bytes\n";
  for (const Recording& recording : recordings) {
    for (const MemoryPoint& point : memory_points(recording)) {
      lines += fmt::format("{:.6f},{},{}\n",
                           static_cast<double>(point.time - recordings.front().began) * 1e-6,
                           point.used, point.reserved);
    }
  }
  return lines;
}

std::string csv(const MemoryPeak& peak) {
  std::string lines = "holder,bytes,count,where\n";
  for (const HeldMemory& row : peak.holders) {
    lines += fmt::format("{},{},{},pool\n", csv_field(row.holder), row.bytes, row.count);
  }
  for (const HeldMemory& row : peak.in_arena) {
    lines += fmt::format("{},{},{},temporaries\n", csv_field(row.holder), row.bytes, row.count);
  }
  return lines;
}

std::string text(const MemoryPeak& peak, size_t most) {
  const auto table = [&](const std::vector<HeldMemory>& rows) {
    std::string lines;
    for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
      lines +=
          fmt::format("{:>14} bytes {:>6} x  {}\n", rows[i].bytes, rows[i].count, rows[i].holder);
    }
    if (rows.size() > most) lines += fmt::format("... and {} more\n", rows.size() - most);
    return lines;
  };
  std::string lines =
      fmt::format("At the peak {} bytes were used and {} reserved. Who held them:\n\n",
                  peak.point.used, peak.point.reserved) +
      table(peak.holders);
  if (!peak.in_arena.empty()) {
    lines +=
        "\nThe temporaries of a window share one piece of memory. When most of it is in use:\n\n" +
        table(peak.in_arena);
  }
  return lines;
}

}  // namespace lamella::profile
