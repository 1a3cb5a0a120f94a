// Any bytes are a CSV file, whose records are read alike in one pass and one by one, or an error.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "lamella/base/error.h"
#include "lamella/data/csv.h"
#include "lamella/data/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella::data;
  try {
    const auto content = utf8_content(std::as_bytes(std::span<const uint8_t>(data, size)), "input");
    CsvReader all(content, ',', "input");
    std::vector<std::string> fields, again;
    while (all.next(fields)) {
      size_t bytes = 0;
      for (const std::string& field : fields) bytes += field.size();
      if (fields.empty() || bytes > size) std::abort();
      CsvReader one(content, ',', "input", all.record_start());
      if (!one.next(again) || again != fields) std::abort();
    }
  } catch (const lamella::Error& error) {
    if (error.kind() != lamella::ErrorKind::Io) std::abort();
  }
  return 0;
}
