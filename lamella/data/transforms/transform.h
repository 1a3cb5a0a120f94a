// What `map` applies to the columns of a row.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/ref.h"
#include "lamella/data/array.h"
#include "lamella/data/process_group.h"
#include "lamella/data/random_stream.h"

namespace lamella::data {

class BatchTransform;

// Images [height, width, channels] or [channels, height, width].
enum class ChannelAxis : uint8_t { Last, First };

// Makes columns from columns. Called from several threads at once.
class LAMELLA_API Transform : public RefCounted<Transform> {
 public:
  virtual ~Transform() = default;
  // "Normalize", as errors name it.
  virtual std::string_view name() const = 0;
  // The columns made from `inputs`; all its randomness comes from `random`.
  virtual std::vector<Array> apply(std::vector<Array> inputs, RandomStream& random) const = 0;
  // Whether the result depends on `inputs` and `random` alone. Others may count their calls, so a
  // map with one worker calls them in the order of the rows.
  virtual bool pure() const { return true; }
  // This transform as one that takes many samples in one call, if it is one.
  virtual const BatchTransform* batched() const { return nullptr; }
  // Starts `workers` processes that apply it, if it runs in processes.
  virtual std::shared_ptr<ProcessGroup> start_processes(int /*workers*/) const { return nullptr; }
  // The transforms that this one applies in turn, if it only does that.
  virtual std::vector<Ref<Transform>> parts() { return {Ref<Transform>(this)}; }

  // Throws Type if the column holds text.
  void require_numbers(const Array& column) const;
};

// A transform of one array at a time; more input columns are each transformed, with the same draws.
class LAMELLA_API ArrayTransform : public Transform {
 public:
  std::vector<Array> apply(std::vector<Array> inputs, RandomStream& random) const final;
  virtual Array apply_array(const Array& sample, RandomStream& random) const = 0;
};

// A transform without randomness that treats the samples of a batch alike.
class LAMELLA_API BatchTransform : public ArrayTransform {
 public:
  // `samples` has the samples along its first axis, and so has the result.
  virtual Array apply_batch(const Array& samples) const = 0;
  // For images whose channels lie at `channels`: where the result has its channels, if each element
  // of it depends on the element at the same pixel and channel, and on which channel that is, only.
  virtual std::optional<ChannelAxis> pointwise(ChannelAxis /*channels*/) const {
    return std::nullopt;
  }

  // One sample is a batch of one.
  Array apply_array(const Array& sample, RandomStream& random) const final;
  const BatchTransform* batched() const final { return this; }
};

// Transforms one after the other.
class LAMELLA_API Compose : public Transform {
 public:
  explicit Compose(std::vector<Ref<Transform>> transforms);

  std::string_view name() const override { return "Compose"; }
  std::vector<Array> apply(std::vector<Array> inputs, RandomStream& random) const override;
  bool pure() const override;
  std::vector<Ref<Transform>> parts() override;

 private:
  std::vector<Ref<Transform>> transforms_;
};

// A user's function. It may be called from any worker thread; a Python function is wrapped by one
// that takes the interpreter's lock. For randomness that does not depend on the number of workers,
// the function draws from `random`, or seeds its own generator with a word of it.
class LAMELLA_API FunctionTransform : public Transform {
 public:
  using Function = std::function<std::vector<Array>(std::vector<Array>, RandomStream&)>;
  using StartProcesses = std::function<std::shared_ptr<ProcessGroup>(int workers)>;
  explicit FunctionTransform(Function function, std::string name = "function",
                             StartProcesses start_processes = {});

  std::string_view name() const override { return name_; }
  std::vector<Array> apply(std::vector<Array> inputs, RandomStream& random) const override;
  bool pure() const override { return false; }
  std::shared_ptr<ProcessGroup> start_processes(int workers) const override;

 private:
  Function function_;
  std::string name_;
  StartProcesses start_processes_;
};

}  // namespace lamella::data
