// The text form of graphs: what is printed is read back, and nothing read ends in a crash.
#include "lamella/ir/text.h"

#include <random>

#include <gtest/gtest.h>

namespace lamella {
namespace {

constexpr std::string_view kGraph =
    "graph(%0: f32[s0,4], %1: number f32, %2: f16[2,3,4,5]:channels_last) {\n"
    "  %3: f32[s0,4] = mul(%0, %1)\n"
    "  %4: f32[s0,4] = add(%3, 0.5:f32)\n"
    "  %5: f32[s0] = sum(%4) {axis=(1), keepdims=false}\n"
    "  %6: f32[s0] = div(%5, size(4*s0):f32)\n"
    "  %7: f32[4*s0] = reshape(%4) {shape=[4*s0]}\n"
    "  %8: f32[2,3,4,5]:channels_last = cast(%2) {dtype=f32}\n"
    "  return %6, %7, %8\n"
    "}\n";

TEST(GraphText, WhatIsPrintedIsReadBack) {
  EXPECT_EQ(print(parse_graph(kGraph)), kGraph);
}

TEST(GraphText, ErrorsNameTheLine) {
  try {
    parse_graph("graph(%0: f32[4]) {\n  %1: f32[4] = no_such_operator(%0)\n  return %1\n}\n");
    FAIL() << "an unknown operator must be refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
  }
  EXPECT_THROW(parse_graph("graph(%0: f32[4]) {\n  return %1\n}\n"), Error);
  EXPECT_THROW(parse_graph("graph(%0: f32[4]) {\n  return %0\n} more"), Error);
  EXPECT_THROW(parse_graph(""), Error);
}

TEST(GraphText, DamagedTextIsRefusedOrRead) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text(kGraph);
    for (int edits = 0; edits < 3; ++edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(32 + random() % 95);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 10));
      }
    }
    try {
      (void)print(parse_graph(text));
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
    }
  }
}

}  // namespace
}  // namespace lamella
