// Which trace fits a call, and when a trace is trusted.
#include "lamella/nn/jit.h"

#include <algorithm>

#include "lamella/base/error.h"
#include "lamella/base/logging.h"
#include "lamella/ir/call_site.h"
#include "lamella/ir/window.h"
#include "lamella/nn/parameter.h"

namespace lamella::nn {

namespace {

constexpr size_t kMostVariants = 16;
// After so many calls that could not be kept no more are followed.
constexpr int kMostFailures = 3;
// And after so many in a row of which none was repeated.
constexpr int kMostFollowed = 32;

// What a call gives back in one place.
struct Returned {
  enum class Origin : uint8_t { Made, Argument, Outside };
  Origin origin;
  size_t number = 0;  // among the tensors made, or the arguments
  Tensor outside = {};

  friend bool operator==(const Returned& a, const Returned& b) {
    return a.origin == b.origin && a.number == b.number &&
           a.outside.storage() == b.outside.storage();
  }
};

// What a call must have in common with the one that was followed.
struct Circumstances {
  std::vector<TensorType> types;
  std::vector<size_t> shared;  // by argument, the first that is a handle of the same tensor
  uint64_t cell_changes;
  // How many times over what is recorded may be differentiated: loops keep what that takes.
  int gradient_order;

  Circumstances(const std::vector<Tensor>& arguments, std::span<const Ref<Storage>> storages)
      : shared(sharing(storages)),
        cell_changes(changes()),
        gradient_order(Window::of_thread().gradient_order()) {
    for (const Tensor& argument : arguments) types.push_back(argument.type());
  }
  friend bool operator==(const Circumstances&, const Circumstances&) = default;
};

}  // namespace

struct Jit::Variant {
  Circumstances circumstances;
  std::vector<Returned> returned;
  Ref<Trace> trace;
  bool confirmed = false;  // by a second call that did the same

  std::vector<Tensor> replay(const std::vector<Tensor>& arguments,
                             std::span<const Ref<Storage>> storages) const {
    const std::vector<Tensor> made = trace->replay(storages);
    std::vector<Tensor> results;
    results.reserve(returned.size());
    for (const Returned& each : returned) {
      results.push_back(each.origin == Returned::Origin::Made       ? made[each.number]
                        : each.origin == Returned::Origin::Argument ? arguments[each.number]
                                                                    : each.outside);
    }
    return results;
  }
};

Jit::Jit(Function function) : function_(std::move(function)) {
  if (!function_) fail(ErrorKind::Value, "[jit] the function to follow is empty");
}

std::vector<Tensor> Jit::operator()(const std::vector<Tensor>& arguments) {
  if (recorded_elsewhere()) return function_(arguments);
  const std::vector<Ref<Storage>> storages = storages_of(arguments);
  Circumstances now(arguments, storages);
  for (size_t v = 0; v < variants_.size(); ++v) {
    if (!variants_[v]->confirmed || variants_[v]->circumstances != now) continue;
    std::swap(variants_[v], variants_.front());
    // What the replay calls may call this function again, and drop the variant.
    const std::shared_ptr<Variant> kept = variants_.front();
    if (!kept->trace->takes(storages)) return function_(arguments);
    followed_ = 0;
    return kept->replay(arguments, storages);
  }
  if (failures_ >= kMostFailures) return function_(arguments);
  if (++followed_ > kMostFollowed) {
    failures_ = kMostFailures;
    stay_as_it_is("its calls do not repeat: arguments or cells change from call to call",
                  current_call_site());
    return function_(arguments);
  }
  auto variant = std::make_shared<Variant>(Variant{.circumstances = std::move(now)});
  return follow(arguments, std::move(variant));
}

std::vector<Tensor> Jit::follow(const std::vector<Tensor>& arguments,
                                std::shared_ptr<Variant> variant) {
  Tracer tracer(arguments, current_call_site);
  std::vector<Tensor> results = function_(arguments);
  if (tracer.kept_made(results)) {
    tracer.give_up("it keeps a tensor that it makes in a variable of outside");
  }
  if (tracer.kept_argument(results)) {
    // For good: a call with the tensor that is kept already would look as if nothing was kept.
    failures_ = kMostFailures;
    tracer.give_up("it keeps an argument in a variable of outside");
  }
  std::vector<Tensor> made;
  for (const Tensor& result : results) {
    const auto argument = std::find_if(arguments.begin(), arguments.end(), [&](const Tensor& each) {
      return each.storage() == result.storage();
    });
    if (argument != arguments.end()) {
      const auto number = static_cast<size_t>(argument - arguments.begin());
      variant->returned.push_back({Returned::Origin::Argument, number});
    } else if (tracer.made_here(result)) {
      variant->returned.push_back({Returned::Origin::Made, made.size()});
      made.push_back(result);
    } else {
      variant->returned.push_back({Returned::Origin::Outside, 0, result});
    }
  }
  variant->trace = tracer.finish(made);
  if (const auto& reason = tracer.reason()) {
    give_up(reason->why, reason->location);
  } else if (changes() != variant->circumstances.cell_changes) {
    // Cells were set up or changed by the call itself: the next one shows what stays.
    give_up("it changes the parts or the mode of a cell", current_call_site());
  } else {
    keep(std::move(variant));
  }
  return results;
}

void Jit::keep(std::shared_ptr<Variant> variant) {
  const uint64_t cell_changes = variant->circumstances.cell_changes;
  std::erase_if(variants_,
                [&](const auto& each) { return each->circumstances.cell_changes != cell_changes; });
  const auto earlier = std::find_if(variants_.begin(), variants_.end(), [&](const auto& each) {
    return each->circumstances == variant->circumstances;
  });
  if (earlier == variants_.end()) {
    // Those there are stay: types that come in turn would drive each other out for ever.
    if (variants_.size() < kMostVariants) variants_.push_back(std::move(variant));
    return;
  }
  variant->confirmed =
      variant->returned == (*earlier)->returned && variant->trace->same_as(*(*earlier)->trace);
  *earlier = std::move(variant);
  if ((*earlier)->confirmed) {
    reason_.clear();
    followed_ = 0;
  } else {
    give_up("two calls with equal arguments do different things", current_call_site());
  }
}

void Jit::give_up(std::string why, const SourceLocation& line) {
  if (++failures_ < kMostFailures) {
    reason_ = std::move(why);
  } else {
    stay_as_it_is(std::move(why), line);
  }
}

void Jit::stay_as_it_is(std::string why, const SourceLocation& line) {
  reason_ = std::move(why);
  log().warn("jit: a function runs as if it was not wrapped, since {}{}", reason_,
             line.known() ? fmt::format(" ({}:{})", line.file, line.line) : "");
}

}  // namespace lamella::nn
