// Any text is a tile program, which is printed and read back as it is, or an error.
#include <cstdint>
#include <cstdlib>

#include "lamella/base/error.h"
#include "lamella/tile/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  try {
    const tile::Program program = tile::parse({reinterpret_cast<const char*>(data), size});
    const std::string text = tile::print(program);
    if (tile::print(tile::parse(text)) != text) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) std::abort();
  }
  return 0;
}
