// Logs, one a thread, each under a lock that only the end of a recording contends for.
#include "lamella/profile/recorder.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "lamella/device/pool.h"
#include "lamella/runtime/launch_listener.h"

namespace lamella::profile {

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t word(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

Hash128 digest_of(const LaunchEvent& event) {
  Hasher hasher;
  for (const LaunchPart& part : event.parts) {
    const Node& operation = event.operation(part);
    hasher.add(operation.op().id());
    hasher.add(word(operation.layer()));
    hasher.add(word(operation.location().file));
    hasher.add(static_cast<uint64_t>(operation.location().line) << 32 |
               static_cast<uint32_t>(part.node->provenance().operation));
    hasher.add(static_cast<uint64_t>(operation.provenance().phase));
    hasher.add(std::bit_cast<uint64_t>(part.flops));
  }
  hasher.add(static_cast<uint64_t>(event.bytes));
  return hasher.digest();
}

// Parts of one operation of the program become one.
LaunchKind kind_of(const LaunchEvent& event) {
  LaunchKind kind;
  kind.bytes = event.bytes;
  std::unordered_map<const Node*, size_t> known;
  for (const LaunchPart& part : event.parts) {
    const Node& operation = event.operation(part);
    const auto [place, fresh] = known.try_emplace(&operation, kind.operations.size());
    if (fresh) {
      kind.operations.push_back({.op = &operation.op(),
                                 .provenance = operation.provenance(),
                                 .line = operation.location()});
    }
    kind.operations[place->second].flops += part.flops;
    kind.operations[place->second].share += part.share;
  }
  return kind;
}

class ThreadLog {
 public:
  explicit ThreadLog(int id) { record_.id = id; }

  void begin(Activity activity, int64_t amount) {
    std::lock_guard lock(mutex_);
    open_.push_back({.begin = now(), .activity = activity, .amount = amount});
  }

  void begin(const LaunchEvent& event) {
    const Hash128 digest = digest_of(event);
    std::lock_guard lock(mutex_);
    const auto next = static_cast<int32_t>(record_.launches.size());
    const auto [kind, fresh] = kinds_.try_emplace(digest, next);
    if (fresh) record_.launches.push_back(kind_of(event));
    open_.push_back({.begin = now(), .launch = kind->second});
  }

  // Nothing is open if what ends began before the recording did.
  void end() {
    std::lock_guard lock(mutex_);
    if (open_.empty()) return;
    open_.back().end = now();
    record_.spans.push_back(open_.back());
    open_.pop_back();
  }

  void step(int64_t number) {
    std::lock_guard lock(mutex_);
    const int64_t time = now();
    if (step_.begin != 0) {
      step_.end = time;
      record_.spans.push_back(step_);
    }
    step_ = {.begin = time, .activity = Activity::Step, .amount = number};
  }

  void clear() {
    std::lock_guard lock(mutex_);
    record_ = {.id = record_.id, .spans = {}, .launches = {}};
    kinds_.clear();
    open_.clear();
    step_ = {};
  }

  ThreadRecord take(int64_t ended) {
    std::lock_guard lock(mutex_);
    for (Span& span : open_) {
      span.end = ended;
      record_.spans.push_back(span);
    }
    if (step_.begin != 0) {
      step_.end = ended;
      record_.spans.push_back(step_);
    }
    open_.clear();
    step_ = {};
    kinds_.clear();
    ThreadRecord record = std::exchange(record_, {.id = record_.id, .spans = {}, .launches = {}});
    std::stable_sort(record.spans.begin(), record.spans.end(), [](const Span& a, const Span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    return record;
  }

 private:
  std::mutex mutex_;
  ThreadRecord record_;
  std::unordered_map<Hash128, int32_t> kinds_;
  std::vector<Span> open_;
  Span step_;  // begins where the step before it ends
};

class Recorder final : public ActivityListener, public LaunchListener, public AllocationListener {
 public:
  // Never destroyed: threads may end activities while the process exits.
  static Recorder& instance() {
    static Recorder& recorder = *new Recorder;
    return recorder;
  }

  void start(Memory memory) {
    std::lock_guard lock(mutex_);
    if (running_) fail(ErrorKind::Value, "[Profiler] another profiler records already");
    {
      std::lock_guard logs_lock(logs_mutex_);
      std::erase_if(logs_, [](const auto& log) { return log.use_count() == 1; });
      for (const auto& log : logs_) log->clear();
    }
    {
      std::lock_guard memory_lock(memory_mutex_);
      memory_ = {};
      holder_numbers_.clear();
      largest_arena_ = 0;
    }
    began_ = now();
    if (memory == Memory::Recorded) {
      cpu_pool().set_listener(this);
      note_existing();
    }
    set_activity_listener(this);
    set_launch_listener(this);
    running_ = true;
  }

  Recording stop() {
    std::lock_guard lock(mutex_);
    if (!running_) fail(ErrorKind::Value, "[Profiler] nothing is being recorded");
    set_activity_listener(nullptr);
    set_launch_listener(nullptr);
    cpu_pool().set_listener(nullptr);
    running_ = false;
    Recording recording;
    recording.began = began_;
    recording.ended = now();
    {
      std::lock_guard logs_lock(logs_mutex_);
      for (const auto& log : logs_) {
        ThreadRecord record = log->take(recording.ended);
        if (!record.spans.empty()) recording.threads.push_back(std::move(record));
      }
    }
    std::lock_guard memory_lock(memory_mutex_);
    recording.memory = std::exchange(memory_, {});
    settle_existing(recording.memory, began_);
    return recording;
  }

  bool running() {
    std::lock_guard lock(mutex_);
    return running_;
  }

  void step(int64_t number) { log().step(number); }

 private:
  ThreadLog& log() {
    thread_local std::shared_ptr<ThreadLog> mine;
    if (!mine) {
      std::lock_guard lock(logs_mutex_);
      mine = std::make_shared<ThreadLog>(next_thread_++);
      logs_.push_back(mine);
    }
    return *mine;
  }

  void begin(Activity activity, int64_t amount) noexcept override { log().begin(activity, amount); }
  void end(Activity) noexcept override { log().end(); }
  void begin(const LaunchEvent& event) noexcept override { log().begin(event); }
  void end() noexcept override { log().end(); }

  void arena(const Allocation& arena,
             FunctionRef<std::vector<ArenaShare>()> contents) noexcept override {
    std::lock_guard lock(memory_mutex_);
    if (arena.size() <= largest_arena_) return;
    largest_arena_ = arena.size();
    ArenaRecord& record = memory_.arenas.emplace_back();
    record.allocation = &arena;
    record.time = now();
    for (ArenaShare& share : contents()) record.contents.emplace_back(share.holder, share.bytes);
  }

  void allocated(const Allocation& allocation) noexcept override {
    note(allocation, allocation.size());
  }
  void released(const Allocation& allocation) noexcept override {
    note(allocation, -allocation.size());
  }

  void note(const Allocation& allocation, int64_t bytes) {
    const int64_t reserved = cpu_pool().reserved();
    std::lock_guard lock(memory_mutex_);
    memory_.events.push_back({now(), &allocation, bytes, number_of(allocation.holder()), reserved});
  }

  void note_existing() {
    const std::vector<LiveAllocation> existing = cpu_pool().live();
    const int64_t reserved = cpu_pool().reserved();
    std::lock_guard lock(memory_mutex_);
    for (const LiveAllocation& live : existing) {
      memory_.before.push_back(
          {began_, live.allocation, live.bytes, number_of(live.holder), reserved});
    }
  }

  // Other threads allocate while it is noted what exists. Whose first event is a release existed,
  // whose first event is an allocation did not.
  static void settle_existing(MemoryRecord& memory, int64_t began) {
    std::unordered_map<const Allocation*, const MemoryEvent*> first;
    for (const MemoryEvent& event : memory.events) first.try_emplace(event.allocation, &event);
    std::unordered_set<const Allocation*> noted;
    std::erase_if(memory.before, [&](const MemoryEvent& existing) {
      noted.insert(existing.allocation);
      const auto found = first.find(existing.allocation);
      return found != first.end() && found->second->bytes > 0;
    });
    for (const MemoryEvent& event : memory.events) {
      if (event.bytes >= 0 || noted.contains(event.allocation)) continue;
      if (first[event.allocation] != &event) continue;
      memory.before.push_back(
          {began, event.allocation, -event.bytes, event.holder, event.reserved});
    }
  }

  int32_t number_of(const Holder& holder) {
    Hasher hasher;
    hasher.add(word(holder.name));
    hasher.add(word(holder.location.file));
    hasher.add(static_cast<uint64_t>(holder.location.line));
    hasher.add(static_cast<uint64_t>(holder.has_type) << 16 |
               static_cast<uint64_t>(holder.type.dtype) << 8 |
               static_cast<uint64_t>(holder.type.layout));
    for (Dim size : holder.type.shape) hasher.add(static_cast<uint64_t>(size.bits()));
    const auto next = static_cast<int32_t>(memory_.holders.size());
    const auto [number, fresh] = holder_numbers_.try_emplace(hasher.digest(), next);
    if (fresh) memory_.holders.push_back(holder);
    return number->second;
  }

  std::mutex mutex_;  // taken first
  bool running_ = false;
  int64_t began_ = 0;

  std::mutex logs_mutex_;
  std::vector<std::shared_ptr<ThreadLog>> logs_;  // shared with the threads that write them
  int next_thread_ = 0;

  std::mutex memory_mutex_;
  MemoryRecord memory_;
  std::unordered_map<Hash128, int32_t> holder_numbers_;
  int64_t largest_arena_ = 0;
};

}  // namespace

void start_recording(Memory memory) {
  if (launch_listener() != nullptr && !is_recording()) {
    fail(ErrorKind::Value, "[profiler] an explanation is running: one of both at a time");
  }
  Recorder::instance().start(memory);
}
Recording stop_recording() {
  return Recorder::instance().stop();
}
bool is_recording() {
  return Recorder::instance().running();
}
void record_step(int64_t number) {
  Recorder::instance().step(number);
}

}  // namespace lamella::profile
