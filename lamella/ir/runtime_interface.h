// What the graph asks of the layer that runs it; lamella/runtime implements it and installs itself.
#pragma once

#include <span>

#include "lamella/base/api.h"
#include "lamella/base/function_ref.h"
#include "lamella/ir/value.h"

namespace lamella {

class LAMELLA_API RuntimeInterface {
 public:
  virtual ~RuntimeInterface() = default;

  // Runs pending nodes, in program order, so that every result with a handle and every result of a
  // kept node is fulfilled. `journal_references` tells how many references the caller's undo
  // journal holds on a value, beyond those of the nodes. Throws without having fulfilled or written
  // anything.
  virtual void run(std::span<const Ref<Node>> nodes,
                   FunctionRef<int64_t(const Value&)> journal_references) = 0;

  // A ready value's elements in row-major order: its own buffer if they lie so, else a copy.
  virtual Buffer row_major(const Value& value) = 0;
  // Memory for host data.
  virtual Buffer allocate(int64_t bytes, const Holder& holder) = 0;
};

LAMELLA_API RuntimeInterface& runtime();
LAMELLA_API void install_runtime(RuntimeInterface* implementation);

}  // namespace lamella
