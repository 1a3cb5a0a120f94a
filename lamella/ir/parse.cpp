// Reading graphs from text.
#include <charconv>
#include <map>

#include "lamella/ir/recorder.h"
#include "lamella/ir/text.h"

namespace lamella {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph parse() {
    expect("graph");
    expect("(");
    if (!take(")")) {
      do {
        const std::string name = value_name();
        expect(":");
        Ref<Value> input = take("number") ? Value::number_input(dtype()) : Value::input(type());
        define(name, input);
        graph_.inputs.push_back(std::move(input));
      } while (take(","));
      expect(")");
    }
    expect("{");
    while (!take("return")) node();
    if (!peek("}")) {
      do {
        graph_.outputs.push_back(operand());
      } while (take(","));
    }
    expect("}");
    skip_space();
    if (at_ < text_.size()) error("text behind the graph");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void error(std::string_view what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    fail(ErrorKind::Value, "[parse_graph] line {}: {}, found '{}'", line, what,
         text_.substr(at_, std::min<size_t>(20, text_.size() - at_)));
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  bool peek(std::string_view token) {
    skip_space();
    return text_.substr(at_, token.size()) == token;
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) error(fmt::format("expected '{}'", token));
  }
  std::string word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (begin == at_) error("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string value_name() {
    expect("%");
    return word();
  }
  void define(const std::string& name, Ref<Value> value) {
    if (!values_.emplace(name, std::move(value)).second)
      error(fmt::format("%{} is defined twice", name));
  }

  DType dtype() {
    const std::string name = word();
    const auto found = dtype_from_name(name);
    if (!found) error(fmt::format("'{}' is not a dtype", name));
    return *found;
  }

  int64_t integer() {
    skip_space();
    int64_t value = 0;
    const auto [end, status] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (status != std::errc()) error("expected a whole number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  // sum := product (('+' product) | negative integer)*; product := factor ('*' factor)*
  Dim size() {
    Dim sum = size_product();
    for (;;) {
      if (!take("+") && !peek("-")) return sum;
      sum = sum + size_product();
    }
  }
  Dim size_product() {
    Dim product = size_factor();
    while (take("*")) product = product * size_factor();
    return product;
  }
  Dim size_factor() {
    if (++depth_ > 32) error("a size nested too deep");
    Dim result;
    if (take("floor((")) {
      const Dim numerator = size();
      expect(")/(");
      const Dim denominator = size();
      expect("))");
      if (denominator.is(0)) error("a size divided by 0");
      result = floor_div(numerator, denominator);
    } else if (take("s")) {
      const int64_t index = integer();
      if (index < 0 || index > 255) error("symbols are s0 to s255");
      result = Dim::symbol(static_cast<int>(index));
    } else {
      result = integer();
    }
    --depth_;
    return result;
  }

  Shape shape() {
    expect("[");
    Shape result;
    if (take("]")) return result;
    do {
      if (result.size() == kMaxRank) error("at most 8 axes");
      result.push_back(size());
    } while (take(","));
    expect("]");
    return result;
  }

  TensorType type() {
    TensorType result;
    result.dtype = dtype();
    result.shape = shape();
    if (take(":channels_last")) result.layout = Layout::ChannelsLast;
    return result;
  }

  Ref<Value> operand() {
    if (peek("%")) {
      const std::string name = value_name();
      const auto found = values_.find(name);
      if (found == values_.end()) error(fmt::format("%{} is not defined", name));
      return found->second;
    }
    if (take("size(")) {
      const Dim value = size();
      expect(")");
      expect(":");
      return Value::size(dtype(), value);
    }
    const double value = number();
    expect(":");
    return Value::scalar_of(dtype(), value);
  }

  double number() {
    skip_space();
    double value = 0;
    const auto [end, status] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (status != std::errc()) error("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  AttributeValue attribute() {
    if (peek("[")) return shape();
    if (take("(")) {
      Axes axes;
      if (take(")")) return axes;
      do {
        if (axes.size() == kMaxRank) error("at most 8 axes");
        axes.push_back(integer());
      } while (take(","));
      expect(")");
      return axes;
    }
    if (take("\"")) {
      const size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) error("a string without end");
      std::string value(text_.substr(at_, end - at_));
      at_ = end + 1;
      return value;
    }
    if (std::isalpha(static_cast<unsigned char>(text_[std::min(at_, text_.size() - 1)]))) {
      const std::string name = word();
      if (name == "true") return true;
      if (name == "false") return false;
      if (const auto found = dtype_from_name(name)) return *found;
      if (name != "inf" && name != "nan") error(fmt::format("'{}' is not an attribute", name));
      return name == "inf" ? INFINITY : NAN;
    }
    const size_t begin = at_;
    const double value = number();
    const bool whole =
        text_.substr(begin, at_ - begin).find_first_of(".en") == std::string_view::npos;
    if (whole) {
      at_ = begin;
      return integer();
    }
    return value;
  }

  void node() {
    std::vector<std::pair<std::string, TensorType>> results;
    do {
      const std::string name = value_name();
      expect(":");
      results.emplace_back(name, type());
    } while (take(","));
    expect("=");
    const Operator& op = find_operator(word());
    expect("(");
    std::vector<Ref<Value>> operands;
    if (!take(")")) {
      do {
        operands.push_back(operand());
      } while (take(","));
      expect(")");
    }
    std::vector<AttributeValue> attributes;
    if (take("{")) {
      do {
        const std::string name = word();
        const auto names = op.attribute_names();
        if (attributes.size() >= names.size() || names[attributes.size()] != name) {
          error(fmt::format("{} has no attribute '{}' at place {}", op.name(), name,
                            attributes.size()));
        }
        expect("=");
        skip_space();
        if (at_ == text_.size()) error("expected an attribute");
        attributes.push_back(attribute());
      } while (take(","));
      expect("}");
    }
    if (attributes.size() != op.attribute_names().size()) {
      error(fmt::format("{} needs {} attributes", op.name(), op.attribute_names().size()));
    }
    std::vector<Value*> pointers;
    for (const Ref<Value>& value : operands) pointers.push_back(value.get());
    Ref<const Attributes> held;
    if (!attributes.empty()) held = make_attributes(std::move(attributes));
    Ref<Node> made;
    try {
      made = make_inferred_node(op, pointers, held, {});
    } catch (const std::bad_variant_access&) {
      error(fmt::format("an attribute of {} is of the wrong kind", op.name()));
    }
    if (made->results().size() != results.size()) error("the number of results is wrong");
    for (size_t i = 0; i < results.size(); ++i) {
      if (made->result(i)->type() != results[i].second) {
        error(fmt::format("%{} is of type {}", results[i].first, text(made->result(i)->type())));
      }
      define(results[i].first, made->results()[i]);
    }
    graph_.nodes.push_back(std::move(made));
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Graph graph_;
  std::map<std::string, Ref<Value>> values_;
};

}  // namespace

Graph parse_graph(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace lamella
