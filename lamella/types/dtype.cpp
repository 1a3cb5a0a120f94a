// Look-up of dtypes by name.
#include "lamella/types/dtype.h"

namespace lamella {

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DTypeInfo& entry = info(static_cast<DType>(i));
    if (name == entry.name || name == entry.short_name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace lamella
