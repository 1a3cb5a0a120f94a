// Kernel caches: what is found where, what a damaged or foreign folder does, what eviction frees.
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/tile/sample_programs.h"
#include <unistd.h>

#include "lamella/base/system/cache_folder.h"
#include "lamella/base/system/process.h"
#include "lamella/tile/cpu/kernel_cache.h"

namespace lamella::tile {
namespace {

namespace fs = std::filesystem;

Program scaling(double factor) {
  Builder b("scaling");
  b.store_output(
      b.apply(Opcode::Mul, b.load_input(DType::Float32), b.constant(DType::Float32, factor)));
  return std::move(b).finish();
}

void expect_scales(const Kernel& kernel, float factor) {
  std::vector<float> input = {1, 2, 3}, output(3);
  kernel.run({.extents = {3}, .buffers = {{input.data(), {1}}, {output.data(), {1}}}}, nullptr);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(output[i], input[i] * factor);
}

const InstructionSet kSet = native_instruction_set();

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("lamella-cache-test-" + std::to_string(process_id()) + "-" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_);
  }
  std::string entry(const Program& program) const {
    Program nameless = program;
    nameless.name.clear();
    return DiskCache(folder_.string()).path(print(nameless), kSet);
  }

  fs::path folder_;
};

TEST_F(Cache, FindsInMemoryThenOnDisk) {
  KernelCache first({.folder = folder_.string()});
  const auto kernel = first.get(scaling(2), kSet);
  EXPECT_EQ(first.get(scaling(2), kSet), kernel);
  EXPECT_EQ(first.statistics().compiled, 1);
  EXPECT_EQ(first.statistics().memory_hits, 1);
  EXPECT_EQ(first.statistics().disk_hits, 0);
  EXPECT_GT(first.statistics().code_bytes, 0);

  KernelCache second({.folder = folder_.string()});
  expect_scales(*second.get(scaling(2), kSet), 2);
  expect_scales(*second.get(scaling(3), kSet), 3);
  EXPECT_EQ(second.statistics().disk_hits, 1);
  EXPECT_EQ(second.statistics().compiled, 1);
}

TEST_F(Cache, TheNameIsNoPartOfTheKey) {
  KernelCache cache({.folder = folder_.string()});
  Program renamed = scaling(2);
  renamed.name = "other";
  EXPECT_EQ(cache.get(scaling(2), kSet), cache.get(renamed, kSet));
}

TEST_F(Cache, InstructionSetsAreApart) {
  KernelCache cache({.folder = folder_.string()});
  cache.get(scaling(2), InstructionSet::Generic);
  cache.get(scaling(2), kSet);
  EXPECT_EQ(cache.statistics().compiled, kSet == InstructionSet::Generic ? 1 : 2);
}

TEST_F(Cache, FolderIsPrivate) {
  KernelCache({.folder = folder_.string()}).get(scaling(2), kSet);
  const auto perms = fs::status(folder_).permissions();
  EXPECT_EQ(perms & fs::perms::mask, fs::perms::owner_all);
}

TEST_F(Cache, DamagedEntriesAreReplaced) {
  const std::vector<std::function<void(std::string&)>> damages = {
      [](std::string& content) { content.clear(); },
      [](std::string& content) { content.resize(10); },
      [](std::string& content) { content.resize(content.size() / 2); },
      [](std::string& content) { content.pop_back(); },
      [](std::string& content) { content += 'x'; },
      [](std::string& content) { content[content.size() - 20] ^= 1; },  // the code
      [](std::string& content) { content[20] ^= 1; },                   // the digest
      [](std::string& content) { content[3] ^= 1; },                    // the mark
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    KernelCache({.folder = folder_.string()}).get(scaling(2), kSet);
    std::string content = *read_whole_file(entry(scaling(2)));
    damages[i](content);
    ASSERT_TRUE(replace_whole_file(entry(scaling(2)), content));

    KernelCache damaged({.folder = folder_.string()});
    expect_scales(*damaged.get(scaling(2), kSet), 2);
    EXPECT_EQ(damaged.statistics().compiled, 1) << i;
    KernelCache repaired({.folder = folder_.string()});
    expect_scales(*repaired.get(scaling(2), kSet), 2);
    EXPECT_EQ(repaired.statistics().disk_hits, 1) << i;
  }
}

TEST_F(Cache, AnEntryOfAnotherProgramIsNotUsed) {
  KernelCache({.folder = folder_.string()}).get(scaling(2), kSet);
  KernelCache({.folder = folder_.string()}).get(scaling(3), kSet);
  fs::copy_file(entry(scaling(3)), entry(scaling(2)), fs::copy_options::overwrite_existing);
  KernelCache cache({.folder = folder_.string()});
  expect_scales(*cache.get(scaling(2), kSet), 2);
  EXPECT_EQ(cache.statistics().disk_hits, 0);
}

TEST_F(Cache, AFolderOthersMayReadIsNotUsed) {
  fs::create_directory(folder_);
  for (const fs::perms extra : {fs::perms::group_read, fs::perms::others_write}) {
    fs::permissions(folder_, fs::perms::owner_all | extra);
    KernelCache cache({.folder = folder_.string()});
    expect_scales(*cache.get(scaling(2), kSet), 2);
    EXPECT_TRUE(fs::is_empty(folder_));
  }
}

TEST_F(Cache, AFolderOfAnotherUserIsNotUsed) {
  // /proc/1 is a folder of root; as root, one is given away.
  fs::path other = "/proc/1";
  fs::create_directory(folder_);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder_.c_str(), 12345, 12345), 0);
    other = folder_;
  }
  EXPECT_FALSE(DiskCache(other.string()).usable());
}

TEST_F(Cache, MemoryOnlyWhereNothingCanBeWritten) {
  {
    std::ofstream file(folder_);  // a file where the folder should be
  }
  KernelCache cache({.folder = (folder_ / "below").string()});
  expect_scales(*cache.get(scaling(2), kSet), 2);
  EXPECT_EQ(cache.statistics().compiled, 1);
  fs::remove(folder_);

  KernelCache nowhere({});
  expect_scales(*nowhere.get(scaling(2), kSet), 2);
}

TEST_F(Cache, AReadOnlyFolderStillServes) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  KernelCache({.folder = folder_.string()}).get(scaling(2), kSet);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  KernelCache cache({.folder = folder_.string()});
  expect_scales(*cache.get(scaling(2), kSet), 2);
  expect_scales(*cache.get(scaling(3), kSet), 3);
  EXPECT_EQ(cache.statistics().disk_hits, 1);
}

TEST_F(Cache, EvictedKernelsLiveWhileHeld) {
  KernelCache cache({.code_limit = 1, .folder = std::nullopt});
  const auto held = cache.get(scaling(2), kSet);
  for (int i = 3; i < 20; ++i) expect_scales(*cache.get(scaling(i), kSet), static_cast<float>(i));
  EXPECT_EQ(cache.statistics().evicted, 17);
  EXPECT_LT(cache.statistics().code_bytes, 5000);
  expect_scales(*held, 2);
  // The same program again is another kernel; both work.
  const auto again = cache.get(scaling(2), kSet);
  EXPECT_NE(again, held);
  expect_scales(*again, 2);
  expect_scales(*held, 2);
}

TEST_F(Cache, ThreadsAndWritersDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      KernelCache own({.folder = folder_.string()});
      for (int i = 0; i < 12; ++i) {
        const int factor = (i + 3 * t) % 12 + 1;
        expect_scales(*own.get(scaling(factor), kSet), static_cast<float>(factor));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& file : fs::directory_iterator(folder_)) {
    EXPECT_EQ(file.path().extension(), ".kernel") << file.path();
  }
  KernelCache reader({.folder = folder_.string()});
  for (int factor = 1; factor <= 12; ++factor) reader.get(scaling(factor), kSet);
  EXPECT_EQ(reader.statistics().disk_hits, 12);
}

TEST_F(Cache, SharedCacheServesSeveralThreads) {
  KernelCache cache({.folder = folder_.string()});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int factor = 1; factor <= 8; ++factor) {
        expect_scales(*cache.get(scaling(factor), kSet), static_cast<float>(factor));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Cache, TrimsTheOldestFiles) {
  ASSERT_TRUE(prepare_private_folder(folder_.string()));
  for (int i = 0; i < 5; ++i) {
    const fs::path file = folder_ / std::to_string(i);
    ASSERT_TRUE(replace_whole_file(file.string(), std::string(1000, 'x')));
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  trim_folder(folder_.string(), 2500);
  EXPECT_FALSE(fs::exists(folder_ / "2"));
  EXPECT_TRUE(fs::exists(folder_ / "3"));
  EXPECT_TRUE(fs::exists(folder_ / "4"));
}

}  // namespace
}  // namespace lamella::tile
