// The text form of programs. An example:
//
//   program "softmax" rows outer 1
//   buffer 0 read f32 unit
//   buffer 1 write f32 unit
//   %0 = load f32 [0]
//   %1 = reducemax f32 %0
//   %2 = sub f32 %0 %1
//   %3 = exp f32 %2
//   %4 = reducesum f32 %3
//   %5 = div f32 %3 %4
//   %6 = store f32 %5 [1]
//
// Floats are written in hexadecimal, so nothing is lost. A line may end in a comment after "//".
#include <charconv>
#include <cmath>

#include "lamella/base/error.h"
#include "lamella/tile/opcode.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

namespace {

constexpr std::array<std::string_view, 3> kReductionNames = {"none", "rows", "columns"};
constexpr std::array<std::string_view, 2> kAccessNames = {"read", "write"};
constexpr std::string_view kStreamed = "streamed";
constexpr std::array<std::string_view, 3> kStrideNames = {"zero", "unit", "any"};

bool has_index(Opcode opcode) {
  return opcode == Opcode::Load || opcode == Opcode::Store || opcode == Opcode::Scalar ||
         opcode == Opcode::Iota || opcode == Opcode::Random;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string immediate_text(const Instruction& instruction) {
  if (!is_float(instruction.dtype)) return fmt::format("{}", instruction.immediate_integer);
  if (!std::isfinite(instruction.immediate)) {
    return fmt::format("bits:{:016x}", std::bit_cast<uint64_t>(instruction.immediate));
  }
  return fmt::format("{:a}", instruction.immediate);
}

// Reads the words of one line.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(text), number_(number) { skip_blank(); }

  [[noreturn]] void fail_here(const std::string& what) const {
    fail(ErrorKind::Value, "[tile] line {}: {}", number_, what);
  }

  bool at_end() const { return rest_.empty() || rest_.starts_with("//"); }
  void expect_end() const {
    if (!at_end()) fail_here(fmt::format("\"{}\" does not belong here", rest_));
  }

  // The next word, up to a blank.
  std::string_view word(const char* what) {
    if (at_end()) fail_here(fmt::format("{} is missing", what));
    const size_t size = std::min(rest_.find_first_of(" \t"), rest_.size());
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    skip_blank();
    return result;
  }
  std::string_view peek() const { return rest_.substr(0, rest_.find_first_of(" \t")); }
  void expect(std::string_view expected) {
    const std::string_view found = word(std::string(expected).c_str());
    if (found != expected) {
      fail_here(fmt::format("\"{}\" is expected, not \"{}\"", expected, found));
    }
  }

  template <typename T>
  T number(std::string_view text, const char* what, int base = 10) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) {
      fail_here(fmt::format("{} is no number that fits: \"{}\"", what, text));
    }
    return value;
  }
  int32_t next_number(const char* what) { return number<int32_t>(word(what), what); }

  // One of a list of names, as the position in it.
  template <typename Names>
  uint8_t choice(const Names& names, const char* what) {
    const std::string_view found = word(what);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == found) return static_cast<uint8_t>(i);
    }
    fail_here(fmt::format("\"{}\" is no {}", found, what));
  }
  DType dtype() {
    const std::string_view found = word("the dtype");
    const std::optional<DType> result = dtype_from_name(found);
    if (!result) fail_here(fmt::format("\"{}\" is no dtype", found));
    return *result;
  }

  std::string quoted_text() {
    if (!rest_.starts_with('"')) fail_here("the name must stand in double quotes");
    std::string result;
    size_t i = 1;
    while (i < rest_.size() && rest_[i] != '"') {
      if (rest_[i] != '\\') {
        result += rest_[i++];
      } else if (i + 3 < rest_.size() && rest_[i + 1] == 'x') {
        result += static_cast<char>(number<uint8_t>(rest_.substr(i + 2, 2), "an escape", 16));
        i += 4;
      } else if (i + 1 < rest_.size()) {
        result += rest_[i + 1];
        i += 2;
      } else {
        break;
      }
    }
    if (i >= rest_.size()) fail_here("the name does not end");
    rest_.remove_prefix(i + 1);
    skip_blank();
    return result;
  }

 private:
  void skip_blank() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size()));
  }

  std::string_view rest_;
  int number_;
};

class Parser {
 public:
  Program run(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const size_t size = std::min(text.find('\n'), text.size());
      Line line(text.substr(0, size), ++number);
      if (!line.at_end()) read(line);
      text.remove_prefix(std::min(size + 1, text.size()));
    }
    if (!seen_header_) fail(ErrorKind::Value, "[tile] the text holds no program");
    return std::move(program_);
  }

 private:
  void read(Line& line) {
    if (!seen_header_) return read_header(line);
    if (line.peek() == "buffer") return read_buffer(line);
    if (line.peek() == "scalar") return read_scalar(line);
    read_instruction(line);
  }

  void read_header(Line& line) {
    line.expect("program");
    program_.name = line.quoted_text();
    program_.reduction = static_cast<Reduction>(line.choice(kReductionNames, "kind of reduction"));
    line.expect("outer");
    program_.outer_rank = line.next_number("the number of outer axes");
    if (program_.reduction == Reduction::Columns) {
      line.expect("reduced");
      program_.reduced_rank = line.next_number("the number of reduced axes");
    }
    line.expect_end();
    seen_header_ = true;
  }

  void expect_number(Line& line, size_t expected, const char* what) {
    if (line.next_number(what) != static_cast<int32_t>(expected)) {
      line.fail_here(fmt::format("{} must be {}, the next one", what, expected));
    }
  }

  void read_buffer(Line& line) {
    line.expect("buffer");
    expect_number(line, program_.buffers.size(), "the buffer's number");
    BufferParameter buffer;
    buffer.access = static_cast<Access>(line.choice(kAccessNames, "access"));
    buffer.dtype = line.dtype();
    buffer.vector_stride = static_cast<VectorStride>(line.choice(kStrideNames, "vector stride"));
    if (line.peek() == kStreamed) {
      line.expect(kStreamed);
      buffer.streamed = true;
    }
    line.expect_end();
    program_.buffers.push_back(buffer);
  }

  void read_scalar(Line& line) {
    line.expect("scalar");
    expect_number(line, program_.scalars.size(), "the scalar's number");
    program_.scalars.push_back(line.dtype());
    line.expect_end();
  }

  int32_t value_number(const Line& line, std::string_view text) {
    if (!text.starts_with('%')) line.fail_here(fmt::format("\"{}\" is no value", text));
    return line.number<int32_t>(text.substr(1), "the value's number");
  }

  void read_instruction(Line& line) {
    if (value_number(line, line.word("the value")) != static_cast<int32_t>(program_.body.size())) {
      line.fail_here(fmt::format("the next value is %{}", program_.body.size()));
    }
    line.expect("=");
    Instruction instruction;
    const std::string_view opcode_name = line.word("the opcode");
    const std::optional<Opcode> opcode = opcode_from_name(opcode_name);
    if (!opcode) line.fail_here(fmt::format("\"{}\" is no opcode", opcode_name));
    instruction.opcode = *opcode;
    instruction.dtype = line.dtype();
    for (int i = 0; i < operand_count(*opcode); ++i) {
      instruction.operands[static_cast<size_t>(i)] = value_number(line, line.word("an operand"));
    }
    if (has_index(*opcode)) {
      std::string_view index = line.word("the index");
      if (!index.starts_with('[') || !index.ends_with(']')) {
        line.fail_here(fmt::format("the index must stand in brackets, not \"{}\"", index));
      }
      index.remove_prefix(1);
      index.remove_suffix(1);
      instruction.index = line.number<int32_t>(index, "the index");
    }
    if (*opcode == Opcode::Constant) read_immediate(line, instruction);
    line.expect_end();
    program_.body.push_back(instruction);
  }

  void read_immediate(Line& line, Instruction& instruction) {
    std::string_view text = line.word("the constant");
    if (!is_float(instruction.dtype)) {
      instruction.immediate_integer = line.number<int64_t>(text, "the constant");
      return;
    }
    if (text.starts_with("bits:")) {
      const auto bits = line.number<uint64_t>(text.substr(5), "the constant's bits", 16);
      instruction.immediate = std::bit_cast<double>(bits);
      return;
    }
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value,
                        hexadecimal ? std::chars_format::hex : std::chars_format::general);
    if (error != std::errc() || end != text.data() + text.size()) {
      line.fail_here(fmt::format("the constant is no number: \"{}\"", text));
    }
    instruction.immediate = negative ? -value : value;
  }

  Program program_;
  bool seen_header_ = false;
};

}  // namespace

std::string print(const Program& program) {
  std::string text =
      fmt::format("program {} {} outer {}", quoted(program.name),
                  kReductionNames[static_cast<size_t>(program.reduction)], program.outer_rank);
  if (program.reduction == Reduction::Columns) {
    text += fmt::format(" reduced {}", program.reduced_rank);
  }
  text += '\n';
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const BufferParameter& buffer = program.buffers[i];
    text += fmt::format("buffer {} {} {} {}", i, kAccessNames[static_cast<size_t>(buffer.access)],
                        short_name(buffer.dtype),
                        kStrideNames[static_cast<size_t>(buffer.vector_stride)]);
    if (buffer.streamed) text += fmt::format(" {}", kStreamed);
    text += '\n';
  }
  for (size_t i = 0; i < program.scalars.size(); ++i) {
    text += fmt::format("scalar {} {}\n", i, short_name(program.scalars[i]));
  }
  for (size_t i = 0; i < program.body.size(); ++i) {
    const Instruction& instruction = program.body[i];
    text += fmt::format("%{} = {} {}", i, name(instruction.opcode), short_name(instruction.dtype));
    for (int k = 0; k < operand_count(instruction.opcode); ++k) {
      text += fmt::format(" %{}", instruction.operands[static_cast<size_t>(k)]);
    }
    if (has_index(instruction.opcode)) text += fmt::format(" [{}]", instruction.index);
    if (instruction.opcode == Opcode::Constant) text += ' ' + immediate_text(instruction);
    text += '\n';
  }
  return text;
}

Program parse(std::string_view text) {
  Program program = Parser().run(text);
  try {
    verify(program);
  } catch (const Error& error) {
    throw_error(ErrorKind::Value, error.message());
  }
  return program;
}

}  // namespace lamella::tile
