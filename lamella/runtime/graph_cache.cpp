// Finding and compiling graphs.
#include "lamella/runtime/graph_cache.h"

#include "lamella/base/activity.h"
#include "lamella/base/logging.h"
#include "lamella/runtime/counters.h"

namespace lamella {

namespace {

// Entries are dropped all at once past this; a program that makes so many graphs gains from none.
constexpr size_t kMostGraphs = 4096;

Hash128 digest(const std::vector<uint64_t>& words) {
  Hasher hasher;
  for (uint64_t word : words) hasher.add(word);
  return hasher.digest();
}

bool types_agree(const std::vector<TensorType>& types, const Capture& captured,
                 std::span<const int64_t> bindings) {
  size_t next = 0;
  for (const Node* node : captured.nodes) {
    for (const Ref<Value>& result : node->results()) {
      const TensorType& expected = types[next++];
      const TensorType& actual = result->type();
      if (expected.dtype != actual.dtype || expected.shape.size() != actual.shape.size())
        return false;
      for (size_t i = 0; i < actual.shape.size(); ++i) {
        if (expected.shape[i].evaluate(bindings) != actual.shape[i].value()) return false;
      }
    }
  }
  return true;
}

}  // namespace

RuntimeCounters& counters() {
  static RuntimeCounters counters;
  return counters;
}

std::shared_ptr<Executable> GraphCache::compile(LoweredCapture lowered) {
  const ActivityScope busy(Activity::GraphCompile);
  ++counters().graphs;
  return std::make_shared<Executable>(std::move(lowered.graph));
}

std::optional<GraphCache::Found> GraphCache::fit(const Structure& structure,
                                                 const Capture& captured) const {
  if (!structure.symbolic) return std::nullopt;
  auto bindings = structure.pattern.bind(captured.sizes);
  if (!bindings || !types_agree(structure.types, captured, *bindings)) return std::nullopt;
  return Found{structure.symbolic, std::move(*bindings)};
}

std::optional<GraphCache::Found> GraphCache::compile_symbolic(Structure& structure,
                                                              const Capture& captured) {
  SizePattern pattern = generalize(structure.sizes, captured.sizes);
  auto bindings = pattern.bind(captured.sizes);
  if (!bindings) return std::nullopt;
  try {
    LoweredCapture lowered = lower(captured, pattern.sizes);
    if (!types_agree(lowered.types, captured, *bindings)) return std::nullopt;
    structure.types = lowered.types;
    structure.symbolic = compile(std::move(lowered));
    structure.pattern = std::move(pattern);
  } catch (const Error& error) {
    // A rule that needs to know a size; such a structure gets one graph a size.
    log().debug("a graph could not be made over symbolic sizes: {}", error.what());
    return std::nullopt;
  }
  return Found{structure.symbolic, std::move(*bindings)};
}

GraphCache::Found GraphCache::find_or_compile(const Capture& captured) {
  const ActivityScope busy(Activity::GraphLookup);
  std::lock_guard lock(mutex_);
  const Hash128 key = digest(captured.words);
  if (const auto entry = exact_.find(key);
      entry != exact_.end() && entry->second.words == captured.words) {
    ++counters().graph_hits;
    return entry->second.found;
  }
  if (exact_.size() >= kMostGraphs) exact_.clear();
  Structure& structure = structures_[digest(captured.structure)];
  const bool known = structure.words == captured.structure && !captured.structure.empty();
  std::optional<Found> found;
  if (known) {
    found = fit(structure, captured);
    if (!found && structure.sizes != captured.sizes && structure.generalized < 2) {
      found = compile_symbolic(structure, captured);
      ++structure.generalized;
    }
  } else {
    structure = Structure{.words = captured.structure, .sizes = captured.sizes};
  }
  if (!found) {
    const std::vector<Dim> sizes(captured.sizes.begin(), captured.sizes.end());
    found = Found{compile(lower(captured, sizes)), {}};
  }
  exact_[key] = Exact{captured.words, *found};
  return *found;
}

void GraphCache::clear() {
  std::lock_guard lock(mutex_);
  exact_.clear();
  structures_.clear();
}

}  // namespace lamella
