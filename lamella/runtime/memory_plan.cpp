// Greedy placement by size.
#include "lamella/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace lamella {

namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool alive_together(const PlannedSlot& a, const PlannedSlot& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

}  // namespace

ArenaPlan plan_arena(const std::vector<PlannedSlot>& slots) {
  ArenaPlan plan;
  plan.offsets.assign(slots.size(), 0);
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return slots[a].bytes > slots[b].bytes; });
  std::vector<size_t> placed;
  for (size_t slot : order) {
    if (slots[slot].bytes == 0) continue;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : placed) {
      if (!alive_together(slots[slot], slots[other])) continue;
      taken.emplace_back(plan.offsets[other], plan.offsets[other] + aligned(slots[other].bytes));
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - offset >= aligned(slots[slot].bytes)) break;
      offset = std::max(offset, end);
    }
    plan.offsets[slot] = offset;
    plan.bytes = std::max(plan.bytes, offset + aligned(slots[slot].bytes));
    placed.push_back(slot);
  }
  int last = 0;
  for (const PlannedSlot& slot : slots) last = std::max(last, slot.last_step);
  std::vector<int64_t> change(static_cast<size_t>(last) + 2, 0);
  for (const PlannedSlot& slot : slots) {
    change[static_cast<size_t>(slot.first_step)] += aligned(slot.bytes);
    change[static_cast<size_t>(slot.last_step) + 1] -= aligned(slot.bytes);
  }
  int64_t alive = 0;
  for (int64_t delta : change) plan.lower_bound = std::max(plan.lower_bound, alive += delta);
  return plan;
}

}  // namespace lamella
