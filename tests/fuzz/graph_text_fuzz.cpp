// Any text is a graph, which is printed and read back as it is, or an error.
#include <cstdint>
#include <cstdlib>

#include "lamella/base/error.h"
#include "lamella/ir/text.h"

#ifdef LAMELLA_FUZZ_ALONE
// Operators of all kinds of attributes, since those of the library are not linked.
namespace lamella {
namespace {

class SameType final : public Operator {
 public:
  using Operator::Operator;
  void infer(InferCall& call) const override {
    if (call.operands.empty()) fail(ErrorKind::Value, "[{}] has no operand", name());
    call.results.push_back(call.operand(0));
  }
  std::span<const std::string_view> attribute_names() const override { return attributes_; }
  std::vector<std::string_view> attributes_;
};

SameType& with(SameType& op, std::vector<std::string_view> attributes) {
  op.attributes_ = std::move(attributes);
  return op;
}

SameType add("add"), mul("mul"), sum("sum"), reshape("reshape"), cast("cast");
[[maybe_unused]] const auto& a = with(sum, {"axis", "keepdims"});
[[maybe_unused]] const auto& b = with(reshape, {"shape"});
[[maybe_unused]] const auto& c = with(cast, {"dtype"});

}  // namespace
}  // namespace lamella
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  try {
    const Graph graph = parse_graph({reinterpret_cast<const char*>(data), size});
    const std::string text = print(graph);
    if (print(parse_graph(text)) != text) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) std::abort();
  }
  return 0;
}
