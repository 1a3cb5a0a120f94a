// The `lamella` command: looks at the machine, and at what the compiler makes of a graph or a tile
// program.
#include <fstream>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>

#include "lamella/base/parallel.h"
#include "lamella/ir/text.h"
#include "lamella/runtime/dump.h"
#include "lamella/runtime/kernel_step.h"
#include "lamella/tile/cpu/kernel.h"
#include "lamella/transform/lowering.h"

namespace {

using namespace lamella;

std::string read_file(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path);
  if (!file) fail(ErrorKind::Io, "cannot read {}", path);
  text << file.rdbuf();
  return text.str();
}

std::string_view name(tile::InstructionSet set) {
  switch (set) {
    case tile::InstructionSet::Avx512:
      return "avx512";
    case tile::InstructionSet::Avx2:
      return "avx2";
    default:
      return "generic";
  }
}

void print_info() {
  fmt::print("instruction set: {}\n", name(tile::native_instruction_set()));
  fmt::print("threads: {}\n", thread_count());
  fmt::print("operators: {}\n", all_operators().size());
}

enum class Stage { Parsed, Lowered, Legalized, Fused, Tiles };

// A graph after the passes up to a stage.
void print_stage(const std::string& path, Stage stage) {
  Graph graph = parse_graph(read_file(path));
  if (stage >= Stage::Lowered) graph = lower(graph);
  if (stage >= Stage::Legalized) {
    legalize_views(graph);
    remove_dead_nodes(graph);
  }
  if (stage <= Stage::Legalized) {
    std::cout << print(graph);
    return;
  }
  const Fusion fusion = fuse(graph);
  if (stage == Stage::Fused) {
    std::cout << print(fusion);
    return;
  }
  for (size_t i = 0; i < fusion.steps.size(); ++i) {
    if (fusion.steps[i].kernel == nullptr)
      std::cout << tile::print(make_tile_step(fusion, i).program) << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Lamella, a deep-learning training framework"};
  app.require_subcommand(1);

  app.add_subcommand("info", "Show what Lamella finds on this machine")->callback(print_info);

  std::string path = "-";
  Stage stage = Stage::Fused;
  const std::map<std::string, Stage> stages = {{"parse", Stage::Parsed},
                                               {"lower", Stage::Lowered},
                                               {"legalize", Stage::Legalized},
                                               {"fuse", Stage::Fused},
                                               {"tile", Stage::Tiles}};
  CLI::App* graph = app.add_subcommand("graph", "Show a graph in text form after a pass");
  graph->add_option("file", path, "the graph; - is standard input");
  graph->add_option("--after", stage, "the pass")->transform(CLI::CheckedTransformer(stages));
  graph->callback([&] { print_stage(path, stage); });

  CLI::App* program = app.add_subcommand("tile", "Check a tile program in text form and print it");
  program->add_option("file", path, "the program; - is standard input");
  program->callback([&] {
    const tile::Program parsed = tile::parse(read_file(path));
    tile::verify(parsed);
    std::cout << tile::print(parsed);
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "lamella: " << error.what() << "\n";
    return 1;
  }
}
