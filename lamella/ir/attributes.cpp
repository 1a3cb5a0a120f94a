// Hashing and printing of attribute values.
#include "lamella/ir/attributes.h"

#include <bit>

#include <fmt/format.h>

namespace lamella {

namespace {

void add_value(Hasher& hasher, const AttributeValue& value, bool with_sizes) {
  hasher.add(value.index());
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, double>) {
          hasher.add(std::bit_cast<uint64_t>(held));
        } else if constexpr (std::is_same_v<T, std::string>) {
          hasher.add(held);
        } else if constexpr (std::is_same_v<T, Axes>) {
          hasher.add(held.size());
          for (int64_t item : held) hasher.add(static_cast<uint64_t>(item));
        } else if constexpr (std::is_same_v<T, Shape>) {
          hasher.add(held.size());
          // Sizes 0 and 1 change which rules apply, so they always count.
          for (Dim dim : held) {
            const bool plain = with_sizes || dim.is(0) || dim.is(1);
            hasher.add(plain ? static_cast<uint64_t>(dim.bits()) : uint64_t{2} << 62);
          }
        } else if constexpr (std::is_same_v<T, Ref<AttributeObject>>) {
          hasher.add(!held        ? Hash128{}
                     : with_sizes ? held->identity()
                                  : held->identity_without_sizes());
        } else {
          hasher.add(static_cast<uint64_t>(held));
        }
      },
      value);
}

}  // namespace

std::string text(const AttributeValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<T, DType>) {
          return std::string(short_name(held));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return fmt::format("\"{}\"", held);
        } else if constexpr (std::is_same_v<T, Axes>) {
          return fmt::format("({})", fmt::join(held.begin(), held.end(), ","));
        } else if constexpr (std::is_same_v<T, Shape>) {
          return lamella::text(held);
        } else if constexpr (std::is_same_v<T, Ref<AttributeObject>>) {
          return held ? held->description() : "none";
        } else if constexpr (std::is_same_v<T, double>) {
          // "1.0", never "1": the text form tells numbers of the two kinds apart.
          std::string number = fmt::format("{}", held);
          if (number.find_first_not_of("-0123456789") == std::string::npos) number += ".0";
          return number;
        } else {
          return fmt::format("{}", held);
        }
      },
      value);
}

Attributes::Attributes(std::vector<AttributeValue> values) : values_(std::move(values)) {
  Hasher exact, loose;
  for (const AttributeValue& value : values_) {
    add_value(exact, value, true);
    add_value(loose, value, false);
  }
  digest_ = exact.digest();
  digest_without_sizes_ = loose.digest();
}

void append_sizes(const Attributes* attributes, std::vector<int64_t>& sizes) {
  if (attributes == nullptr) return;
  for (const AttributeValue& value : attributes->values()) {
    if (const Shape* shape = std::get_if<Shape>(&value)) {
      for (Dim size : *shape) sizes.push_back(size.value());
    } else if (const auto* object = std::get_if<Ref<AttributeObject>>(&value); object && *object) {
      sizes.insert(sizes.end(), (*object)->sizes().begin(), (*object)->sizes().end());
    }
  }
}

Ref<const Attributes> with_sizes(const Ref<const Attributes>& attributes, SizeReader& sizes) {
  if (!attributes) return attributes;
  std::vector<AttributeValue> values = attributes->values();
  bool changed = false;
  for (AttributeValue& value : values) {
    if (Shape* shape = std::get_if<Shape>(&value)) {
      *shape = sizes.next(*shape);
      changed = true;
    } else if (auto* object = std::get_if<Ref<AttributeObject>>(&value);
               object && *object && !(*object)->sizes().empty()) {
      *object = (*object)->with_sizes(sizes.next((*object)->sizes().size()));
      changed = true;
    }
  }
  return changed ? make_attributes(std::move(values)) : attributes;
}

}  // namespace lamella
