// Splitting launches among operations, adding them up, and writing tables.
#include "lamella/profile/cost_table.h"

#include <algorithm>
#include <unordered_map>

#include "lamella/profile/csv.h"

namespace lamella::profile {

namespace {

constexpr std::string_view kNoLayer = "(no layer)";
constexpr std::string_view kUnknown = "(unknown)";

// The time of spans inside each span, by index; 0 for activities, whose content is no launch's.
std::vector<int64_t> time_inside(const std::vector<Span>& spans) {
  std::vector<int64_t> inside(spans.size(), 0);
  std::vector<size_t> open;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].launch < 0) continue;
    while (!open.empty() && spans[open.back()].end <= spans[i].begin) open.pop_back();
    if (!open.empty()) inside[open.back()] += spans[i].duration();
    open.push_back(i);
  }
  return inside;
}

std::string key_of(const OperationShare& operation, CostKey key) {
  switch (key) {
    case CostKey::Operator:
      return std::string(operation.op->name());
    case CostKey::Layer:
      return operation.provenance.layer == nullptr ? std::string(kNoLayer)
                                                   : std::string(operation.provenance.layer);
    case CostKey::Line:
      return operation.line.known() ? fmt::format("{}:{}", operation.line.file, operation.line.line)
                                    : std::string(kUnknown);
  }
  return "";
}

class Table {
 public:
  explicit Table(CostKey key) : key_(key) {}

  void add(const ThreadRecord& thread) {
    const std::vector<int64_t> inside = time_inside(thread.spans);
    std::vector<std::vector<CostRow*>> rows(thread.launches.size());  // by kind, when first met
    for (size_t i = 0; i < thread.spans.size(); ++i) {
      const Span& span = thread.spans[i];
      if (span.launch < 0) continue;
      const LaunchKind& kind = thread.launches[static_cast<size_t>(span.launch)];
      auto& of_kind = rows[static_cast<size_t>(span.launch)];
      if (of_kind.empty()) {
        for (const OperationShare& operation : kind.operations) of_kind.push_back(&row(operation));
      }
      const double total = static_cast<double>(span.duration()) * 1e-9;
      const double self = total - static_cast<double>(inside[i]) * 1e-9;
      for (size_t o = 0; o < kind.operations.size(); ++o) {
        add(*of_kind[o], kind.operations[o], total, self, kind.bytes);
      }
    }
  }

  std::vector<CostRow> finish() && {
    for (auto& [name, row] : rows_) row.mean = row.total / static_cast<double>(row.count);
    if (key_ == CostKey::Layer) add_inner_layers();
    std::vector<CostRow> sorted;
    for (auto& [name, row] : rows_) sorted.push_back(std::move(row));
    std::sort(sorted.begin(), sorted.end(), [](const CostRow& a, const CostRow& b) {
      return a.self != b.self ? a.self > b.self : a.name < b.name;
    });
    return sorted;
  }

 private:
  CostRow& row(const OperationShare& operation) {
    const std::string name = key_of(operation, key_);
    CostRow& row = rows_[name];
    row.name = name;
    return row;
  }

  static void add(CostRow& row, const OperationShare& operation, double total, double self,
                  int64_t bytes) {
    ++row.count;
    row.total += total * operation.share;
    row.self += self * operation.share;
    row.longest = std::max(row.longest, total * operation.share);
    row.bytes += static_cast<double>(bytes) * operation.share;
    row.flops += operation.flops;
    switch (operation.provenance.phase) {
      case Phase::Forward:
        row.forward += self * operation.share;
        break;
      case Phase::Backward:
        row.backward += self * operation.share;
        break;
      case Phase::Update:
        row.update += self * operation.share;
        break;
    }
  }

  // A layer's total is its own and that of the layers in it, which also get rows if nothing but
  // their layers computes.
  void add_inner_layers() {
    std::unordered_map<std::string, double> inner;
    for (auto& [name, row] : rows_) {
      row.total = row.self;
      for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
        inner[name.substr(0, dot)] += row.self;
      }
    }
    for (const auto& [name, seconds] : inner) {
      rows_[name].name = name;
      rows_[name].total += seconds;
    }
  }

  const CostKey key_;
  std::unordered_map<std::string, CostRow> rows_;
};

std::string_view heading(CostKey key) {
  switch (key) {
    case CostKey::Operator:
      return "operator";
    case CostKey::Layer:
      return "layer";
    case CostKey::Line:
      return "line";
  }
  return "";
}

double all_self(const std::vector<CostRow>& rows) {
  double sum = 0;
  for (const CostRow& row : rows) sum += row.self;
  return sum;
}

}  // namespace

std::vector<CostRow> cost_table(std::span<const Recording> recordings, CostKey key) {
  Table table(key);
  for (const Recording& recording : recordings) {
    for (const ThreadRecord& thread : recording.threads) table.add(thread);
  }
  return std::move(table).finish();
}

std::string csv(const std::vector<CostRow>& rows, CostKey key) {
  const double whole = all_self(rows);
  std::string lines = fmt::format(
      "{},count,total_ms,self_ms,mean_ms,max_ms,share_percent,forward_ms,backward_ms,update_ms,"
      "bytes_moved,gflop_per_s\n",
      heading(key));
  for (const CostRow& row : rows) {
    lines +=
        fmt::format("{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.3f},{:.6f},{:.6f},{:.6f},{:.0f},{:.3f}\n",
                    csv_field(row.name), row.count, row.total * 1e3, row.self * 1e3, row.mean * 1e3,
                    row.longest * 1e3, whole > 0 ? row.self / whole * 100 : 0, row.forward * 1e3,
                    row.backward * 1e3, row.update * 1e3, row.bytes, row.gflops());
  }
  return lines;
}

std::string text(const std::vector<CostRow>& rows, CostKey key, size_t most) {
  const double whole = all_self(rows);
  std::string lines = fmt::format(
      "Time of kernels by {0}: {1:.3f} ms in all. A kernel that computes several operations (a "
      "fused\n"
      "one) has its time and bytes split among them by the floating-point operations that each\n"
      "operator declares. 'total' includes what runs inside ({2}), 'self' does not.\n\n",
      heading(key), whole * 1e3, key == CostKey::Layer ? "layers of the layer" : "bodies of loops");
  size_t width = heading(key).size();
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
    width = std::max(width, rows[i].name.size());
  }
  lines += fmt::format("{:<{}} {:>8} {:>11} {:>11} {:>10} {:>10} {:>7} {:>10} {:>10}\n",
                       heading(key), width, "count", "total ms", "self ms", "mean ms", "max ms",
                       "share", "MB moved", "GFLOP/s");
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const CostRow& row = rows[i];
    lines += fmt::format(
        "{:<{}} {:>8} {:>11.3f} {:>11.3f} {:>10.4f} {:>10.4f} {:>6.1f}% {:>10.1f} {:>10}\n",
        row.name, width, row.count, row.total * 1e3, row.self * 1e3, row.mean * 1e3,
        row.longest * 1e3, whole > 0 ? row.self / whole * 100 : 0, row.bytes * 1e-6,
        row.flops > 0 ? fmt::format("{:.2f}", row.gflops()) : "-");
  }
  if (rows.size() > most) lines += fmt::format("... and {} more rows\n", rows.size() - most);
  return lines;
}

}  // namespace lamella::profile
