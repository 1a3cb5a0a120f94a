// Messages between processes arrive whole, through shared memory or without.
#include "lamella/data/message.h"

#include <thread>

#include <gtest/gtest.h>

namespace lamella::data {
namespace {

Message example() {
  std::vector<float> many(100'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  return {.key = ~uint64_t{0},
          .numbers = {-1, 0, int64_t{1} << 62},
          .arrays = {Array::of<float>(many, {100, 1000}), Array::scalar<int8_t>(-3),
                     Array(DType::Int64, {0, 5}), Array::text("text")},
          .failure = std::string("\0failed", 7)};
}

TEST(Message, ArrivesAsItWasSent) {
  const Message sent = example();
  // No shared memory, too little for the arrays, enough.
  for (int64_t shared : {0, 4096, 1 << 20}) {
    auto [ours, theirs] = Channel::pair(shared);
    for (int turn = 0; turn < 3; ++turn) {
      bool whole = false;
      std::thread sender([&, &end = ours] { whole = send_message(end, sent); });
      const std::optional<Message> got = receive_message(theirs);
      sender.join();
      ASSERT_TRUE(whole && got);
      EXPECT_EQ(got->key, sent.key);
      EXPECT_EQ(got->numbers, sent.numbers);
      EXPECT_EQ(got->failure, sent.failure);
      ASSERT_EQ(got->arrays.size(), sent.arrays.size());
      for (size_t i = 0; i < sent.arrays.size(); ++i) {
        EXPECT_EQ(got->arrays[i].type(), sent.arrays[i].type());
        EXPECT_EQ(std::memcmp(got->arrays[i].data(), sent.arrays[i].data(), sent.arrays[i].bytes()),
                  0);
      }
    }
  }
}

TEST(Message, AnEndOfTheChannelIsNoMessage) {
  auto [ours, theirs] = Channel::pair(0);
  const std::byte part{};
  ASSERT_TRUE(ours.send({&part, 1}));  // the front of a message
  ours.close();
  EXPECT_FALSE(receive_message(theirs));
  EXPECT_FALSE(send_message(theirs, example()));
}

}  // namespace
}  // namespace lamella::data
