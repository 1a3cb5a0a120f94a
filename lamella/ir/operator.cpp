// The registry of operators, filled while the library loads.
#include "lamella/ir/operator.h"

#include <algorithm>
#include <map>

#include "lamella/base/error.h"

namespace lamella {

namespace {

std::map<std::string_view, const Operator*>& registry() {
  static auto& operators = *new std::map<std::string_view, const Operator*>;
  return operators;
}

}  // namespace

Operator::Operator(std::string_view name)
    : name_(name), id_(static_cast<uint32_t>(registry().size())) {
  const bool fresh = registry().emplace(name, this).second;
  LAMELLA_CHECK(fresh);
}

const Operator& find_operator(std::string_view name) {
  const auto found = registry().find(name);
  if (found == registry().end()) fail(ErrorKind::Value, "there is no operator named '{}'", name);
  return *found->second;
}

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> operators;
  for (const auto& [name, op] : registry()) operators.push_back(op);
  return operators;
}

}  // namespace lamella
