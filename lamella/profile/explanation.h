// What runs for a layer, and how well: for each launch the operations in it, its tile programs or
// the library's kernels, its arithmetic intensity, and the share of the machine's peak it reached.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/runtime/peak_rates.h"

namespace lamella::profile {

// The runs of launches that do the same work for the same layers, in one graph or in several: with
// the same operations and programs over the same sizes.
struct ExplainedLaunch {
  std::vector<std::string> layers;      // "backbone.conv1"; "" stands for none
  std::vector<std::string> operations;  // as the program called them, in order
  std::vector<std::string> phases;      // "forward", "backward", "update"
  std::vector<std::string> remarks;     // programs and kernels, from the first run
  int64_t runs = 0;
  int64_t first_runs = 0;  // of them the first in their graphs, which may compile what they need
  // Without the launches inside (the body of a loop).
  double first_seconds = 0;
  double later_seconds = 0;
  double flops = 0;  // of one run, as the operators declare them
  double bytes = 0;  // of one run: each operand and result once

  double total_seconds() const { return first_seconds + later_seconds; }
  // Of one run: first ones do not count if there are others.
  double mean_seconds() const {
    return runs > first_runs ? later_seconds / static_cast<double>(runs - first_runs)
                             : first_seconds / static_cast<double>(runs);
  }
};

// Hears the launches between start and stop, of all threads. Instead of a profiler: one of both at
// a time.
class LAMELLA_API Explainer {
 public:
  // Launches with an operation of this layer or of a layer in it; "" is all launches.
  explicit Explainer(std::string layer);
  ~Explainer();
  Explainer(const Explainer&) = delete;

  // Throws Value while something else listens.
  void start();
  void stop();

  // The costliest first.
  std::vector<ExplainedLaunch> launches() const;

  struct State;

 private:
  std::shared_ptr<State> state_;  // also of the launches that still run
  bool listening_ = false;
};

// The launches as text, at most `count` of them.
LAMELLA_API std::string explanation(const std::vector<ExplainedLaunch>& launches,
                                    const PeakRates& peak, size_t count);

}  // namespace lamella::profile
