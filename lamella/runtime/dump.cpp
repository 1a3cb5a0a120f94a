// Writing graphs for people.
#include "lamella/runtime/dump.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include "lamella/base/env.h"
#include "lamella/base/logging.h"

namespace lamella {

GraphDump::GraphDump() {
  static const std::optional<std::string> folder = environment("LAMELLA_DUMP");
  static std::atomic<int> next{0};
  if (folder) prefix_ = fmt::format("{}/graph-{:04}-", *folder, next++);
}

void GraphDump::write(std::string_view stage, const std::string& text) const {
  if (!wanted()) return;
  const std::string path = fmt::format("{}{}.txt", prefix_, stage);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::ofstream file(path);
  file << text;
  if (!file.flush()) {
    static std::atomic<bool> reported{false};
    if (!reported.exchange(true)) log().warn("LAMELLA_DUMP: cannot write {}", path);
  }
}

std::string print(const Fusion& fusion) {
  const auto form = [](tile::Reduction reduction) {
    switch (reduction) {
      case tile::Reduction::Rows:
        return "rows";
      case tile::Reduction::Columns:
        return "columns";
      default:
        return "elementwise";
    }
  };
  std::string result;
  for (size_t i = 0; i < fusion.steps.size(); ++i) {
    const ScheduledStep& step = fusion.steps[i];
    if (step.kernel != nullptr) {
      result += fmt::format("step {}: kernel {}\n", i, step.kernel->op().name());
      continue;
    }
    result +=
        fmt::format("step {}: {} over {}", i, form(step.group.reduction), text(step.group.domain));
    if (!step.group.reduced.empty()) {
      result += fmt::format(" reducing ({})",
                            fmt::join(step.group.reduced.begin(), step.group.reduced.end(), ","));
    }
    result += ":";
    for (const Node* node : step.group.nodes) result += fmt::format(" {}", node->op().name());
    result += "\n";
  }
  return result;
}

}  // namespace lamella
