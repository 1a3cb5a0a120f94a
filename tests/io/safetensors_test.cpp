// safetensors: what is written is read, other programs' files are read, nothing damaged is.
#include "lamella/io/safetensors.h"

#include <csignal>
#include <cstring>

#include "tests/files.h"
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/base/system/files.h"

namespace lamella::io {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string content;
  for (int shift = 0; shift < 64; shift += 8) {
    content += static_cast<char>(header.size() >> shift);
  }
  return content + header + data;
}

const std::vector<float> kWeights = {1.0f, -2.5f, 3.0f, 0.0f, 1e-30f, 7.0f};
const std::vector<int64_t> kStep = {123456789012345};
const std::vector<uint8_t> kFlags = {1, 0, 1};

std::vector<NamedArray> sample_tensors() {
  return {{"mask", DType::Bool, {3}, bytes_of(kFlags)},
          {"layer.weight", DType::Float32, {2, 3}, bytes_of(kWeights)},
          {"empty", DType::Float16, {0, 4}, {}},
          {"step", DType::Int64, {}, bytes_of(kStep)}};
}

TEST(SafeTensors, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  save_tensors(path, sample_tensors(), {{"epoch", "3"}, {"quote", "\"\\\n\xC3\xA4"}});
  const TensorFile file(path);
  EXPECT_EQ(file.metadata(), (Metadata{{"epoch", "3"}, {"quote", "\"\\\n\xC3\xA4"}}));
  const auto expected = sample_tensors();
  ASSERT_EQ(file.tensors().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const NamedArray& tensor = file.tensors()[i];
    EXPECT_EQ(tensor.name, expected[i].name);
    EXPECT_EQ(tensor.dtype, expected[i].dtype);
    EXPECT_EQ(tensor.sizes, expected[i].sizes);
    EXPECT_TRUE(std::ranges::equal(tensor.data, expected[i].data));
    EXPECT_EQ(&file.at(tensor.name), &tensor);
    const auto address = reinterpret_cast<uintptr_t>(tensor.data.data());
    EXPECT_EQ(address % static_cast<size_t>(size_of(tensor.dtype)), 0u);
  }
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_THAT(error_of([&] { file.at("none"); }).message(), HasSubstr("no tensor named 'none'"));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(SafeTensors, EveryDType) {
  const TemporaryFolder folder;
  std::vector<NamedArray> tensors;
  const std::vector<uint64_t> zeros(4);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (info(dtype).kind == DTypeKind::Complex) continue;
    tensors.push_back({std::string(name(dtype)),
                       dtype,
                       {3},
                       bytes_of(zeros).first(static_cast<size_t>(3 * size_of(dtype)))});
  }
  save_tensors(folder / "all", tensors);
  const TensorFile file(folder / "all");
  ASSERT_EQ(file.tensors().size(), 13u);
  for (const NamedArray& tensor : file.tensors()) EXPECT_EQ(tensor.name, name(tensor.dtype));
  EXPECT_EQ(error_of([&] {
              save_tensors(folder / "c",
                           std::vector<NamedArray>{{"z", DType::Complex64, {}, bytes_of(kStep)}});
            }).kind(),
            ErrorKind::Type);
}

TEST(SafeTensors, AFileOfNoTensors) {
  const TemporaryFolder folder;
  save_tensors(folder / "none", {});
  EXPECT_TRUE(TensorFile(folder / "none").tensors().empty());
}

TEST(SafeTensors, ReadsFilesOfTheReferenceImplementation) {
  // The bytes that the Python package safetensors 0.8 writes.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]}}    )";
  ASSERT_EQ(header.size(), 0x90u);
  const std::string content = file_of(header, std::string("\0\0\x80\x3F\1\0\2\0", 8));
  const TensorList list = parse_safetensors(bytes_of(content), "file");
  ASSERT_EQ(list.tensors.size(), 2u);
  float value = 0;
  std::memcpy(&value, list.tensors[0].data.data(), 4);
  EXPECT_EQ(value, 1.0f);
  EXPECT_EQ(list.tensors[1].sizes, (Axes{2, 1}));
  EXPECT_EQ(list.metadata.at("format"), "pt");
}

TEST(SafeTensors, RefusesToWriteWhatCannotBeRead) {
  const TemporaryFolder folder;
  const auto save = [&](std::vector<NamedArray> tensors) {
    return error_of([&] { save_tensors(folder / "x", tensors); });
  };
  const NamedArray step{"step", DType::Int64, {}, bytes_of(kStep)};
  EXPECT_THAT(save({step, step}).message(), HasSubstr("two tensors are named 'step'"));
  EXPECT_THAT(save({{"__metadata__", DType::Int64, {}, bytes_of(kStep)}}).message(),
              HasSubstr("cannot be named"));
  EXPECT_THAT(save({{"step", DType::Int64, {2}, bytes_of(kStep)}}).message(),
              HasSubstr("tensor 'step', i64[2], comes with 8 bytes"));
  EXPECT_THAT(save({{"\xFF", DType::Int64, {}, bytes_of(kStep)}}).message(), HasSubstr("UTF-8"));
  EXPECT_EQ(folder.file_count(), 0u);
}

// ---- Damage ----

std::string damaged_message(const std::string& header, const std::string& data) {
  const std::string content = file_of(header, data);
  const Error error = error_of([&] { parse_safetensors(bytes_of(content), "some/file"); });
  EXPECT_THAT(error.message(), HasSubstr("some/file"));
  return error.message();
}

TEST(SafeTensors, NamesTheFaultOfAHeader) {
  const auto one = [](const std::string& fields, const std::string& data = "12345678") {
    return damaged_message("{\"t\":{" + fields + "}}", data);
  };
  EXPECT_THAT(one(R"("dtype":"F32","shape":[2])"), HasSubstr("lacks"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), HasSubstr("f32[3]"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), HasSubstr("does not fit"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), HasSubstr("3 data_off"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), HasSubstr("negative"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), HasSubstr("fractional"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"), HasSubstr("unknown"));
  EXPECT_THAT(one(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"),
              HasSubstr("has its dtype twice"));
  EXPECT_THAT(one(R"("dtype":"F4","shape":[2],"data_offsets":[0,8])"), HasSubstr("'F4'"));
  EXPECT_THAT(one(R"("dtype":["F32"],"shape":[2],"data_offsets":[0,8])"), HasSubstr("an array"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), HasSubstr("an array"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[{}],"data_offsets":[0,8])"), HasSubstr("an object"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), HasSubstr("a number"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":null,"data_offsets":[0,8])"), HasSubstr("null"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])", ""),
              HasSubstr("does not fit"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])"),
              HasSubstr("more than 8 axes"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[7],"data_offsets":[0,7])"), HasSubstr("1 bytes follow"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[9],"data_offsets":[0,9])"), HasSubstr("truncated"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[7],"data_offsets":[1,8])"), HasSubstr("where 0 is due"));
  EXPECT_THAT(one(R"("dtype":"BOOL","shape":[8],"data_offsets":[0,8])"), HasSubstr("BOOL"));
  EXPECT_THAT(damaged_message("{\"t\":1}", ""), HasSubstr("a number"));
  EXPECT_THAT(damaged_message("{\"t\":[]}", ""), HasSubstr("an array"));
  EXPECT_THAT(damaged_message("{\"__metadata__\":{\"a\":1}}", ""), HasSubstr("a number"));
  EXPECT_THAT(damaged_message("{\"__metadata__\":{\"a\":[\"b\"]}}", ""), HasSubstr("an array"));
  EXPECT_THAT(damaged_message("{\"__metadata__\":{},\"__metadata__\":{}}", ""),
              HasSubstr("occurs twice"));
  EXPECT_THAT(damaged_message("{} x", ""), HasSubstr("no JSON at byte"));
  EXPECT_THAT(damaged_message("{\"\xFF\":{}}", ""), HasSubstr("no JSON"));
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const std::string b = R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]})";
  EXPECT_THAT(damaged_message("{" + a + "," + b + "}", "xyz"), HasSubstr("where 2 is due"));
  EXPECT_THAT(damaged_message("{" + a + "," + a + "}", "xy"), HasSubstr("'a' occurs twice"));
}

TEST(SafeTensors, EveryTruncationIsAnError) {
  const TemporaryFolder folder;
  save_tensors(folder / "model", sample_tensors());
  const std::string whole = read_bytes(folder / "model");
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string part = whole.substr(0, length);
    const Error error = error_of([&] { parse_safetensors(bytes_of(part), "file"); });
    EXPECT_EQ(error.kind(), ErrorKind::Io) << length;
  }
  write_bytes(folder / "model", "");
  EXPECT_THAT(error_of([&] { TensorFile file(folder / "model"); }).message(),
              HasSubstr("is empty"));
}

TEST(SafeTensors, AFlippedBitOfTheHeaderNeverCrashes) {
  const TemporaryFolder folder;
  save_tensors(folder / "model", sample_tensors());
  const std::string whole = read_bytes(folder / "model");
  const size_t header = 8 + static_cast<uint8_t>(whole[0]) + 256u * static_cast<uint8_t>(whole[1]);
  size_t refused = 0;
  for (size_t bit = 0; bit < header * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      parse_safetensors(bytes_of(damaged), "file");
    } catch (const Error& error) {
      EXPECT_THAT(error.kind(), AnyOf(ErrorKind::Io, ErrorKind::Unsupported));
      ++refused;
    }
  }
  EXPECT_GT(refused, header * 8 * 3 / 4);  // the rest are other letters in names
}

TEST(SafeTensors, SaysWhatAForeignFileIs) {
  const auto error = [](const std::string& content) {
    return error_of([&] { parse_safetensors(bytes_of(content), "file"); });
  };
  // A MindSpore checkpoint of one tensor: value { tag: "conv1.weight" tensor { ... } }
  const std::string checkpoint = std::string("\x0A\x20\x0A\x0C") + "conv1.weight" +
                                 "\x12\x10\x08\x01\x12\x07" + "Float32" + "\x1A\x04" + "abcd";
  EXPECT_EQ(error(checkpoint).kind(), ErrorKind::Unsupported);
  EXPECT_THAT(error(checkpoint).message(), HasSubstr("not yet supported"));
  EXPECT_THAT(error(std::string("PK\x03\x04", 4) + std::string(60, 'x')).message(),
              HasSubstr("zip archive"));
  EXPECT_THAT(error("version https://git-lfs.github.com/spec/v1\noid ...").message(),
              HasSubstr("Git LFS"));
  EXPECT_THAT(error("just some text that is no such file").message(),
              HasSubstr("no safetensors file"));
  EXPECT_THAT(error_of([] { TensorFile file("/"); }).message(), HasSubstr("no regular file"));
  EXPECT_THAT(error_of([] { TensorFile file("/no/such"); }).message(),
              StartsWith("cannot read '/no/such': No such file"));
}

// ---- Atomic writing ----

TEST(AtomicWrite, AFailureLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_bytes(path, "old");
  EXPECT_THROW(atomic_write_file(path,
                                 [](FileWriter& file) {
                                   file.write("new");
                                   throw std::runtime_error("stop");
                                 }),
               std::runtime_error);
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(folder.file_count(), 1u);
  EXPECT_THAT(error_of([&] { save_tensors(folder / "none/x", {}); }).message(),
              HasSubstr("No such file or directory"));
}

TEST(AtomicWrite, AKillLeavesTheOldFileAndTheNextSaveClearsUp) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_bytes(path, "old");
  const pid_t child = fork();
  if (child == 0) {
    atomic_write_file(path, [](FileWriter& file) {
      file.write("half of the new");
      raise(SIGKILL);
    });
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(folder.file_count(), 2u);
  atomic_write_file(folder / "file2", [](FileWriter& file) { file.write("other"); });
  EXPECT_EQ(folder.file_count(), 3u);  // another target's temporary stays
  atomic_write_file(path, [](FileWriter& file) { file.write("new"); });
  EXPECT_EQ(read_bytes(path), "new");
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(AtomicWrite, TwoWritersOfOneFileDoNotDisturbEachOther) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  atomic_write_file(path, [&](FileWriter& outer) {
    outer.write("outer");
    atomic_write_file(path, [](FileWriter& inner) { inner.write("inner"); });
    EXPECT_EQ(read_bytes(path), "inner");
  });
  EXPECT_EQ(read_bytes(path), "outer");
  EXPECT_EQ(folder.file_count(), 1u);
}

}  // namespace
}  // namespace lamella::io
