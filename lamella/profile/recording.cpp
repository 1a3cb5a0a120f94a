// Names of launches.
#include "lamella/profile/recording.h"

#include <algorithm>

namespace lamella::profile {

std::string name_of(const LaunchKind& kind) {
  constexpr size_t kNamed = 3;
  std::vector<const OperationShare*> costliest;
  for (const OperationShare& operation : kind.operations) costliest.push_back(&operation);
  std::stable_sort(costliest.begin(), costliest.end(),
                   [](const auto* a, const auto* b) { return a->share > b->share; });
  std::vector<std::string_view> named;
  for (const OperationShare* operation : costliest) {
    const std::string_view name = operation->op->name();
    if (std::find(named.begin(), named.end(), name) == named.end()) named.push_back(name);
  }
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, named.size()); ++i) {
    text += (i == 0 ? "" : " + ") + std::string(named[i]);
  }
  if (named.size() > kNamed) text += fmt::format(" + {} more", named.size() - kNamed);
  return text;
}

const OperationShare& main_operation(const LaunchKind& kind) {
  return *std::max_element(
      kind.operations.begin(), kind.operations.end(),
      [](const OperationShare& a, const OperationShare& b) { return a.share < b.share; });
}

}  // namespace lamella::profile
