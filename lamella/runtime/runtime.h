// The runtime behind dynamic mode. init() installs it; the library does so when it is loaded.
#pragma once

#include "lamella/ir/runtime_interface.h"
#include "lamella/runtime/graph_cache.h"

namespace lamella {

class LAMELLA_API CpuRuntime final : public RuntimeInterface {
 public:
  static CpuRuntime& instance();

  void run(std::span<const Ref<Node>> nodes,
           FunctionRef<int64_t(const Value&)> journal_references) override;
  Buffer row_major(const Value& value) override;
  Buffer allocate(int64_t bytes, const Holder& holder) override;

  GraphCache& graphs() { return graphs_; }

 private:
  GraphCache graphs_;
};

}  // namespace lamella
