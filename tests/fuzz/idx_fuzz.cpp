// Any bytes are an idx file, whose array has as many elements as it says, or an error.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "lamella/data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const lamella::data::Array array =
        lamella::data::parse_idx(std::vector<std::byte>(bytes, bytes + size), "input");
    uint64_t sum = 0;
    for (uint8_t element : array.as<uint8_t>()) sum += element;
    if (sum > 255 * size) std::abort();
  } catch (const lamella::Error& error) {
    if (error.kind() == lamella::ErrorKind::Internal) std::abort();
  }
  return 0;
}
