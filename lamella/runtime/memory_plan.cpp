// Greedy placement in several orders, the best of which is then changed at random while that helps.
#include "lamella/runtime/memory_plan.h"

#include <algorithm>
#include <random>

namespace lamella {

namespace {

constexpr int64_t kAlignment = 64;
// Bounds the time of planning, by comparisons of two slots: about 10 ms.
constexpr int64_t kMostComparisons = 4'000'000;
constexpr int64_t kMostAttempts = 400;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool alive_together(const PlannedSlot& a, const PlannedSlot& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
  size_t highest = 0;  // the slot that ends last
};

class Planner {
 public:
  explicit Planner(const std::vector<PlannedSlot>& slots) : slots_(slots) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].bytes > 0) nonempty_.push_back(i);
    }
  }

  // Ends early when it is close to the lower bound.
  Placement best(int64_t lower_bound) {
    const int64_t close_enough = lower_bound + lower_bound / 50;
    const int64_t comparisons =
        std::max<int64_t>(1, static_cast<int64_t>(nonempty_.size() * nonempty_.size() / 2));
    int64_t attempts = std::min(kMostComparisons / comparisons, kMostAttempts);
    for (const Before& before : kOrders) {
      if (best_.bytes > 0 && (best_.bytes <= close_enough || --attempts < 0)) break;
      std::vector<size_t> order = nonempty_;
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return before(slots_[a], slots_[b]); });
      keep_if_better(std::move(order));
    }
    std::minstd_rand random(1);  // the same plan every time
    while (best_.bytes > close_enough && --attempts >= 0 && order_.size() > 1) {
      keep_if_better(changed(random));
    }
    return std::move(best_);
  }

 private:
  using Before = bool (*)(const PlannedSlot&, const PlannedSlot&);
  static int64_t life(const PlannedSlot& slot) { return slot.last_step - slot.first_step + 1; }
  static constexpr Before kOrders[] = {
      [](const PlannedSlot& a, const PlannedSlot& b) { return a.bytes > b.bytes; },
      [](const PlannedSlot& a, const PlannedSlot& b) {
        return a.bytes * life(a) > b.bytes * life(b);
      },
      [](const PlannedSlot& a, const PlannedSlot& b) { return life(a) > life(b); },
      [](const PlannedSlot& a, const PlannedSlot& b) { return a.first_step < b.first_step; },
  };

  void keep_if_better(std::vector<size_t> order) {
    Placement placed = place(order);
    if (!best_.offsets.empty() && placed.bytes > best_.bytes) return;
    best_ = std::move(placed);
    order_ = std::move(order);
  }

  // The best order with the slot at the top somewhere earlier, or with two slots exchanged.
  std::vector<size_t> changed(std::minstd_rand& random) const {
    std::vector<size_t> order = order_;
    const auto at = [&](size_t place) {
      return order.begin() + static_cast<std::ptrdiff_t>(place);
    };
    const auto highest = std::find(order.begin(), order.end(), best_.highest);
    const auto place = static_cast<size_t>(highest - order.begin());
    if (random() % 2 == 0 && place > 0) {
      std::rotate(at(random() % place), highest, highest + 1);
    } else {
      std::iter_swap(at(random() % order.size()), at(random() % order.size()));
    }
    return order;
  }

  // Each slot at the lowest offset that is free for its whole life.
  Placement place(const std::vector<size_t>& order) const {
    Placement placed{.offsets = std::vector<int64_t>(slots_.size(), 0)};
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t i = 0; i < order.size(); ++i) {
      const PlannedSlot& slot = slots_[order[i]];
      taken.clear();
      for (size_t j = 0; j < i; ++j) {
        const PlannedSlot& other = slots_[order[j]];
        if (!alive_together(slot, other)) continue;
        const int64_t begin = placed.offsets[order[j]];
        taken.emplace_back(begin, begin + aligned(other.bytes));
      }
      std::sort(taken.begin(), taken.end());
      int64_t offset = 0;
      for (const auto& [begin, end] : taken) {
        if (begin - offset >= aligned(slot.bytes)) break;
        offset = std::max(offset, end);
      }
      placed.offsets[order[i]] = offset;
      if (offset + aligned(slot.bytes) > placed.bytes) {
        placed.bytes = offset + aligned(slot.bytes);
        placed.highest = order[i];
      }
    }
    return placed;
  }

  const std::vector<PlannedSlot>& slots_;
  std::vector<size_t> nonempty_;
  Placement best_;
  std::vector<size_t> order_;  // that gave it
};

}  // namespace

ArenaPlan plan_arena(const std::vector<PlannedSlot>& slots) {
  ArenaPlan plan;
  int last = 0;
  for (const PlannedSlot& slot : slots) last = std::max(last, slot.last_step);
  std::vector<int64_t> change(static_cast<size_t>(last) + 2, 0);
  for (const PlannedSlot& slot : slots) {
    change[static_cast<size_t>(slot.first_step)] += aligned(slot.bytes);
    change[static_cast<size_t>(slot.last_step) + 1] -= aligned(slot.bytes);
  }
  int64_t alive = 0;
  for (size_t step = 0; step < change.size(); ++step) {
    alive += change[step];
    if (alive <= plan.lower_bound) continue;
    plan.lower_bound = alive;
    plan.peak_step = static_cast<int>(step);
  }
  Placement best = Planner(slots).best(plan.lower_bound);
  plan.offsets = std::move(best.offsets);
  plan.offsets.resize(slots.size(), 0);
  plan.bytes = best.bytes;
  return plan;
}

}  // namespace lamella
