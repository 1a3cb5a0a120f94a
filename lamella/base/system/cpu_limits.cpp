// CPU affinity and cgroup quota, read from Linux; other systems report the hardware's threads.
#include "lamella/base/system/cpu_limits.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

#include "lamella/base/env.h"

namespace lamella {

namespace {

int affinity_cpus() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<double> read_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The quota set in one cgroup folder, in processors: v2 has "cpu.max" with "quota period" or
// "max period"; v1 has two files, with -1 for no limit.
std::optional<double> quota_in(const std::string& folder) {
  std::ifstream v2(folder + "/cpu.max");
  double quota = 0, period = 0;
  if (v2 >> quota >> period) {
    if (quota > 0 && period > 0) return quota / period;
    return std::nullopt;
  }
  const auto v1_quota = read_number(folder + "/cpu.cfs_quota_us");
  const auto v1_period = read_number(folder + "/cpu.cfs_period_us");
  if (v1_quota && v1_period && *v1_quota > 0 && *v1_period > 0) return *v1_quota / *v1_period;
  return std::nullopt;
}

// The smallest quota on the way from this process's cgroup up to the root.
std::optional<double> cgroup_cpus() {
  std::optional<double> smallest;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);
    std::string id, controllers, path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("cpu") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controllers;
    for (;;) {
      if (const auto quota = quota_in(root + path); quota && (!smallest || *quota < *smallest)) {
        smallest = quota;
      }
      const size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) break;
      path.erase(slash);
    }
  }
  return smallest;
}

}  // namespace

int available_cpus() {
  int cpus = affinity_cpus();
  if (const auto quota = cgroup_cpus()) {
    cpus = std::min(cpus, std::max(1, static_cast<int>(std::ceil(*quota))));
  }
  return std::min<int>(cpus,
                       static_cast<int>(environment_integer("OMP_NUM_THREADS", cpus, 1, 1 << 20)));
}

int64_t last_level_cache_bytes() {
  static const int64_t bytes = [] {
#ifdef _SC_LEVEL3_CACHE_SIZE
    for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
      if (const long known = sysconf(level); known > 0) return int64_t{known};
    }
#endif
    constexpr int64_t kUnknown = int64_t{32} << 20;
    return kUnknown;
  }();
  return bytes;
}

}  // namespace lamella
