// LAMELLA_DUMP=folder: every compiled graph as text, after each pass.
#pragma once

#include <string>
#include <string_view>

#include "lamella/transform/fusion.h"

namespace lamella {

// The files graph-<number>-<stage>.txt of one compiled graph. Does nothing if LAMELLA_DUMP is
// unset; a folder that cannot be written is reported once and costs no run.
class GraphDump {
 public:
  GraphDump();

  bool wanted() const { return !prefix_.empty(); }
  void write(std::string_view stage, const std::string& text) const;

 private:
  std::string prefix_;
};

// The steps of a fusion, each with its nodes.
LAMELLA_API std::string print(const Fusion& fusion);

}  // namespace lamella
