// The operations of datasets as methods, and users' objects as sources.
#include "python/src/dataset.h"

#include <atomic>
#include <set>
#include <thread>

#include "python/src/dataset_arrays.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/tensor_object.h"
#include "python/src/user_function.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "lamella/base/host.h"
#include "lamella/data/config.h"
#include "lamella/data/csv_file.h"
#include "lamella/data/generator.h"
#include "lamella/data/iterator.h"
#include "lamella/data/mnist.h"
#include "lamella/data/text_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

// The iterators that Python has. Changed under Python's lock only.
struct OpenIterators {
  std::set<data::Iterator*> all;
  std::atomic<bool> ended = false;  // no thread may start any more
  std::thread::id ended_by;
};

OpenIterators& open_iterators() {
  static OpenIterators* const open = new OpenIterators;
  return *open;
}

// A thread that still reads when the interpreter ends (a daemon) goes no further: what it would say
// could only come in the way of what ends.
void stay_if_ended() {
  const OpenIterators& open = open_iterators();
  if (open.ended && open.ended_by != std::this_thread::get_id()) stay();
}

// Calls a function that may wait, without Python's lock.
template <typename Function>
auto without_lock(Function&& function) {
  const HostReleased released;
  struct AtTheEnd {
    ~AtTheEnd() { stay_if_ended(); }
  } const at_the_end;
  return function();
}

// Dropping an iterator waits for its workers, which may wait for Python's lock.
struct IteratorHandle {
  Ref<data::Iterator> iterator;

  explicit IteratorHandle(Ref<data::Iterator> given) : iterator(std::move(given)) {
    open_iterators().all.insert(iterator.get());
  }
  IteratorHandle(IteratorHandle&&) = default;
  ~IteratorHandle() {
    open_iterators().all.erase(iterator.get());
    const HostReleased released;
    iterator.reset();
  }
};

IteratorHandle iterate(DatasetHandle& self, int64_t epochs, std::vector<std::string> columns,
                       std::optional<int> workers) {
  if (open_iterators().ended) {
    {
      const HostReleased released;
      stay_if_ended();
    }
    fail(ErrorKind::Value, "[iterator] the interpreter ends: no dataset is read any more");
  }
  return IteratorHandle(
      self.dataset->iterate({.epochs = epochs, .columns = std::move(columns), .workers = workers}));
}

// Threads and processes of iterators end before the interpreter does.
void end_iterators() {
  OpenIterators& open = open_iterators();
  open.ended_by = std::this_thread::get_id();
  open.ended = true;
  const std::vector<Ref<data::Iterator>> all(open.all.begin(), open.all.end());
  const HostReleased released;
  // By the user, whom one of them hears; the others end all the same.
  std::exception_ptr interruption;
  for (const auto& iterator : all) {
    try {
      iterator->close();
    } catch (...) {
      interruption = std::current_exception();
    }
  }
  if (interruption) std::rethrow_exception(interruption);
}

using Names = std::vector<std::string>;
using Count = std::optional<int64_t>;

// ---- Users' objects as sources ----

class PythonRandomAccess final : public data::RandomAccessSource {
 public:
  PythonRandomAccess(nb::object source, UserFunction get)
      : source_(std::move(source)), get_(std::move(get)) {}

  int64_t size() const override {
    const HostLock lock;
    const Py_ssize_t size = PyObject_Length(source_.get());
    if (size < 0) throw_python_error();
    return size;
  }
  std::vector<data::Array> get(int64_t index, data::RandomStream& random) const override {
    return get_.call({.key = random.wide_word(), .numbers = {index}}).arrays;
  }
  std::shared_ptr<data::ProcessGroup> start_processes(int workers) const override {
    return get_.start_processes(workers);
  }

 private:
  SharedObject source_;
  UserFunction get_;
};

// Handlers of a pass: one that begins it and returns the handler of its rows as a Python object,
// which answers with one number, 0 at the end.
class PythonPass final : public data::SourcePass {
 public:
  explicit PythonPass(UserFunction next) : next_(std::move(next)) {}
  bool next(std::vector<data::Array>& columns, data::RandomStream& random) override {
    data::Message row = next_.call({.key = random.wide_word()});
    columns = std::move(row.arrays);
    return row.numbers.at(0) != 0;
  }

 private:
  UserFunction next_;
};

class PythonIterable final : public data::IterableSource {
 public:
  PythonIterable(nb::object begin, std::string name)
      : begin_(std::move(begin)), name_(std::move(name)) {}
  std::unique_ptr<data::SourcePass> begin(int64_t, data::RandomStream& random) const override {
    const uint64_t key = random.wide_word();
    const HostLock lock;
    nb::object rows = nb::handle(begin_.get())(key);
    return std::make_unique<PythonPass>(UserFunction(std::move(rows), name_, std::nullopt));
  }

 private:
  SharedObject begin_;
  std::string name_;
};

// A user's sampler. It is asked for an epoch's numbers when the epoch begins, and also to know how
// many there are.
class PythonSampler final : public data::Sampler {
 public:
  PythonSampler(UserFunction numbers, Count samples)
      : numbers_(std::move(numbers)), samples_(samples) {
    data::check_samples("Sampler", samples);
  }

  int64_t length(int64_t size) const override {
    return static_cast<int64_t>(order(size, data::RandomStream({})).size());
  }
  std::vector<int64_t> order(int64_t, data::RandomStream random) const override {
    std::vector<int64_t> order = numbers_.call({.key = random.wide_word()}).numbers;
    if (samples_ && *samples_ < static_cast<int64_t>(order.size())) {
      order.resize(static_cast<size_t>(*samples_));
    }
    return order;
  }

 private:
  UserFunction numbers_;
  Count samples_;
};

data::SourceOptions options_from(Count samples, std::optional<bool> shuffle,
                                 const SamplerHandle* sampler, Count shards, Count shard,
                                 std::optional<int> workers) {
  return {.num_samples = samples,
          .shuffle = shuffle,
          .sampler = sampler == nullptr ? Ref<data::Sampler>() : sampler->sampler,
          .num_shards = shards,
          .shard_id = shard,
          .workers = workers};
}

DatasetHandle of_arrays(nb::list arrays, Names names, Count samples, std::optional<bool> shuffle,
                        const SamplerHandle* sampler, Count shards, Count shard,
                        std::optional<int> workers) {
  std::vector<data::Array> columns;
  for (nb::handle array : arrays) columns.push_back(array_from(array.ptr()));
  return {make_ref<data::NumpySlicesDataset>(
      std::move(columns), std::move(names),
      options_from(samples, shuffle, sampler, shards, shard, workers))};
}

DatasetHandle of_source(nb::object source, UserFunction get, Names names, Count samples,
                        std::optional<bool> shuffle, const SamplerHandle* sampler, Count shards,
                        Count shard, std::optional<int> workers) {
  return {make_ref<data::GeneratorDataset>(
      Ref<data::RandomAccessSource>(new PythonRandomAccess(std::move(source), std::move(get))),
      std::move(names), options_from(samples, shuffle, sampler, shards, shard, workers))};
}

DatasetHandle of_iterable(nb::object begin, std::string name, Names names, Count samples,
                          std::optional<bool> shuffle, const SamplerHandle* sampler, Count shards,
                          Count shard) {
  return {make_ref<data::IterableDataset>(
      Ref<data::IterableSource>(new PythonIterable(std::move(begin), std::move(name))),
      std::move(names), options_from(samples, shuffle, sampler, shards, shard, {}))};
}

data::ShuffleScope scope_from(bool files_only) {
  return files_only ? data::ShuffleScope::Files : data::ShuffleScope::Records;
}

DatasetHandle of_text(const Names& files, bool files_only, Count samples,
                      std::optional<bool> shuffle, Count shards, Count shard,
                      std::optional<int> workers) {
  const auto options = options_from(samples, shuffle, nullptr, shards, shard, workers);
  const HostReleased released;
  return {make_ref<data::TextFileDataset>(files, options, scope_from(files_only))};
}

// A default with its dtype; none for text.
data::CsvDefault csv_default(nb::handle value, std::optional<DType> dtype) {
  if (!dtype) return nb::cast<std::string>(value);
  switch (*dtype) {
    case DType::Int32:
      return nb::cast<int32_t>(value);
    case DType::Int64:
      return nb::cast<int64_t>(value);
    case DType::Float32:
      return static_cast<float>(nb::cast<double>(value));
    case DType::Float64:
      return nb::cast<double>(value);
    default:
      fail(ErrorKind::Type, "[CSVDataset] a column cannot hold {}", name(*dtype));
  }
}

// `defaults` are pairs of a value and its dtype, None for text.
DatasetHandle of_csv(const Names& files, const std::string& delimiter, nb::list defaults,
                     Names names, bool files_only, Count samples, std::optional<bool> shuffle,
                     Count shards, Count shard, std::optional<int> workers) {
  const auto options = options_from(samples, shuffle, nullptr, shards, shard, workers);
  data::CsvOptions csv{.delimiter = delimiter.at(0), .names = std::move(names)};
  for (nb::handle pair : defaults) {
    nb::object dtype = pair[1];
    csv.defaults.push_back(
        csv_default(nb::object(pair[0]),
                    dtype.is_none() ? std::nullopt : std::optional(dtype_from(dtype.ptr()))));
  }
  const HostReleased released;
  return {make_ref<data::CsvDataset>(files, csv, options, scope_from(files_only))};
}

DatasetHandle of_mnist(const std::string& folder, const std::string& usage, bool fashion,
                       Count samples, std::optional<bool> shuffle, const SamplerHandle* sampler,
                       Count shards, Count shard, std::optional<int> workers) {
  const auto options = options_from(samples, shuffle, sampler, shards, shard, workers);
  const HostReleased released;
  if (fashion) {
    return {make_ref<data::FashionMnistDataset>(
        folder, data::usage_from_name(usage, "FashionMnistDataset"), options)};
  }
  return {
      make_ref<data::MnistDataset>(folder, data::usage_from_name(usage, "MnistDataset"), options)};
}

// ---- Batches ----

// Numbers of a request: the epoch, the batch, how many rows each column has; arrays: all rows of
// the first column, then of the second. Of the answer: how many rows each column has; alike.
data::BatchFunction batch_function(UserFunction function) {
  return [function](std::vector<std::vector<data::Array>> columns, data::BatchInfo info,
                    data::RandomStream& random) {
    data::Message request{.key = random.wide_word(), .numbers = {info.epoch, info.batch}};
    for (std::vector<data::Array>& column : columns) {
      request.numbers.push_back(static_cast<int64_t>(column.size()));
      for (data::Array& row : column) request.arrays.push_back(std::move(row));
    }
    columns.clear();
    data::Message answer = function.call(std::move(request));
    auto row = answer.arrays.begin();
    for (int64_t count : answer.numbers) {
      std::vector<data::Array>& column = columns.emplace_back();
      for (int64_t i = 0; i < count; ++i) column.push_back(std::move(*row++));
    }
    return columns;
  };
}

// For each column: sizes (None for all, or a list whose entries may be None), and a value.
using PadRows =
    std::map<std::string, std::pair<std::optional<std::vector<std::optional<int64_t>>>, double>>;

DatasetHandle batch(DatasetHandle& self, std::variant<int64_t, UserFunction> size,
                    bool drop_remainder, std::optional<UserFunction> per_batch, Names inputs,
                    Names outputs, std::optional<int> workers, std::optional<PadRows> pad) {
  data::BatchOptions options{
      .remainder = drop_remainder ? data::Remainder::Drop : data::Remainder::Keep,
      .columns = {.inputs = std::move(inputs), .outputs = std::move(outputs), .workers = workers}};
  if (per_batch) {
    options.per_batch = batch_function(*per_batch);
    options.start_processes = [function = *per_batch](int count) {
      return function.start_processes(count);
    };
  }
  if (pad) {
    options.pad.emplace();
    for (auto& [column, how] : *pad) {
      (*options.pad)[column] = {.sizes = std::move(how.first), .value = how.second};
    }
  }
  if (const auto* fixed = std::get_if<int64_t>(&size)) {
    return {self.dataset->batch(*fixed, std::move(options))};
  }
  return {self.dataset->batch(
      [function = std::get<UserFunction>(size)](data::BatchInfo info, data::RandomStream& random) {
        return function.call({.key = random.wide_word(), .numbers = {info.epoch, info.batch}})
            .numbers.at(0);
      },
      std::move(options))};
}

DatasetHandle filter(DatasetHandle& self, UserFunction predicate, Names inputs) {
  return {self.dataset->filter(
      [function = std::move(predicate)](std::span<const data::Array> row,
                                        data::RandomStream& random) {
        return function.call({.key = random.wide_word(), .arrays = {row.begin(), row.end()}})
                   .numbers.at(0) != 0;
      },
      std::move(inputs))};
}

DatasetHandle map(DatasetHandle& self, std::vector<TransformHandle> transforms, Names inputs,
                  Names outputs, std::optional<int> workers) {
  std::vector<Ref<data::Transform>> list;
  for (TransformHandle& handle : transforms) list.push_back(std::move(handle.transform));
  return {self.dataset->map(
      list, {.inputs = std::move(inputs), .outputs = std::move(outputs), .workers = workers})};
}

// The next row as a tuple, of tensors or of NumPy arrays, which text always is; None at the end of
// an epoch.
nb::object next(IteratorHandle& self, bool numpy) {
  std::optional<data::Row> row;
  try {
    row = without_lock([&] { return self.iterator->next(); });
  } catch (const nb::python_error& error) {
    // The iterator keeps what it throws, for later calls; what is raised here is used up.
    throw nb::python_error(error);
  }
  if (!row) return nb::none();
  std::vector<data::Array> columns(row->columns());
  row.reset();
  nb::list made;
  for (data::Array& column : columns) {
    const bool as_array = numpy || column.type().is_text;
    made.append(
        nb::steal(as_array ? to_numpy(std::move(column)) : wrap(to_tensor(std::move(column)))));
  }
  return nb::tuple(made);
}

void add_samplers(nb::module_& module) {
  nb::class_<SamplerHandle>(module, "Sampler");
  module.def(
      "sequential_sampler",
      [](int64_t start, Count samples) {
        return SamplerHandle{make_ref<data::SequentialSampler>(start, samples)};
      },
      "start"_a, "samples"_a.none());
  module.def(
      "random_sampler",
      [](bool replacement, Count samples) {
        return SamplerHandle{make_ref<data::RandomSampler>(
            replacement ? data::Replacement::With : data::Replacement::Without, samples)};
      },
      "replacement"_a, "samples"_a.none());
  module.def(
      "subset_sampler",
      [](std::vector<int64_t> indices, bool random, Count samples) {
        return SamplerHandle{make_ref<data::SubsetSampler>(
            std::move(indices), random ? data::Order::Random : data::Order::AsGiven, samples)};
      },
      "indices"_a, "random"_a, "samples"_a.none());
  module.def(
      "python_sampler",
      [](UserFunction numbers, Count samples) {
        return SamplerHandle{make_ref<PythonSampler>(std::move(numbers), samples)};
      },
      "numbers"_a, "samples"_a.none());
  module.def(
      "weighted_sampler",
      [](std::vector<double> weights, Count samples, bool replacement) {
        return SamplerHandle{make_ref<data::WeightedRandomSampler>(
            std::move(weights), samples,
            replacement ? data::Replacement::With : data::Replacement::Without)};
      },
      "weights"_a, "samples"_a.none(), "replacement"_a);
  module.def(
      "distributed_sampler",
      [](int64_t shards, int64_t shard, bool random, Count samples) {
        return SamplerHandle{make_ref<data::DistributedSampler>(
            shards, shard, random ? data::Order::Random : data::Order::AsGiven, samples)};
      },
      "shards"_a, "shard"_a, "random"_a, "samples"_a.none());
}

}  // namespace

void add_datasets(nb::module_& module) {
  add_samplers(module);
  nb::class_<IteratorHandle>(module, "Iterator")
      .def("next", next, "numpy"_a)
      .def("columns", [](IteratorHandle& self) { return self.iterator->columns(); })
      .def("position",
           [](IteratorHandle& self) {
             const data::Position position =
                 without_lock([&] { return self.iterator->position(); });
             return std::pair(position.epoch, position.batch);
           })
      .def(
          "seek",
          [](IteratorHandle& self, int64_t epoch, int64_t batch) {
            without_lock([&] { self.iterator->seek({.epoch = epoch, .batch = batch}); });
          },
          "epoch"_a, "batch"_a)
      .def("close", [](IteratorHandle& self) { without_lock([&] { self.iterator->close(); }); });
  nb::class_<DatasetHandle>(module, "Dataset")
      .def("columns", [](DatasetHandle& self) { return self.dataset->columns(); })
      .def("size",
           [](DatasetHandle& self) { return without_lock([&] { return self.dataset->size(); }); })
      .def("types",
           // A dtype, None for text, and sizes for each column.
           [](DatasetHandle& self) {
             const auto types = without_lock([&] { return self.dataset->types(); });
             nb::list rows;
             for (const data::ArrayType& type : types) {
               nb::list sizes;
               for (int64_t size : type.sizes) sizes.append(size);
               if (type.is_text) {
                 nb::del(sizes[nb::len(sizes) - 1]);
                 rows.append(nb::make_tuple(nb::none(), sizes));
                 continue;
               }
               rows.append(nb::make_tuple(nb::borrow(dtype_object(type.dtype)), sizes));
             }
             return rows;
           })
      .def("batch_size", [](DatasetHandle& self) { return self.dataset->batch_size(); })
      .def("repeat_count", [](DatasetHandle& self) { return self.dataset->repeat_count(); })
      .def("map", map, "transforms"_a, "inputs"_a, "outputs"_a, "workers"_a.none())
      .def("filter", filter, "predicate"_a, "inputs"_a)
      .def("batch", batch, "size"_a, "drop_remainder"_a, "per_batch"_a.none(), "inputs"_a,
           "outputs"_a, "workers"_a.none(), "pad"_a.none())
      .def(
          "shuffle",
          [](DatasetHandle& self, int64_t buffer) {
            return DatasetHandle{self.dataset->shuffle(buffer)};
          },
          "buffer_size"_a)
      .def(
          "repeat",
          [](DatasetHandle& self, int64_t count) {
            return DatasetHandle{self.dataset->repeat(count)};
          },
          "count"_a)
      .def(
          "take",
          [](DatasetHandle& self, int64_t count) {
            return DatasetHandle{self.dataset->take(count)};
          },
          "count"_a)
      .def(
          "skip",
          [](DatasetHandle& self, int64_t count) {
            return DatasetHandle{self.dataset->skip(count)};
          },
          "count"_a)
      .def(
          "split",
          [](DatasetHandle& self,
             const std::variant<std::vector<int64_t>, std::vector<double>>& sizes, bool random) {
            const data::Order order = random ? data::Order::Random : data::Order::AsGiven;
            const auto parts = without_lock([&] {
              return std::visit([&](const auto& rows) { return self.dataset->split(rows, order); },
                                sizes);
            });
            nb::list handles;
            for (const auto& part : parts) handles.append(DatasetHandle{part});
            return handles;
          },
          "sizes"_a, "random"_a)
      .def(
          "zip",
          [](DatasetHandle& self, DatasetHandle& other) {
            return DatasetHandle{self.dataset->zip(other.dataset)};
          },
          "other"_a)
      .def(
          "concat",
          [](DatasetHandle& self, DatasetHandle& other) {
            return DatasetHandle{self.dataset->concat(other.dataset)};
          },
          "other"_a)
      .def(
          "project",
          [](DatasetHandle& self, Names columns) {
            return DatasetHandle{self.dataset->project(std::move(columns))};
          },
          "columns"_a)
      .def(
          "rename",
          [](DatasetHandle& self, const Names& from, const Names& to) {
            return DatasetHandle{self.dataset->rename(from, to)};
          },
          "inputs"_a, "outputs"_a)
      .def("reset", [](DatasetHandle& self) { self.dataset->reset(); })
      .def("iterate", iterate, "epochs"_a, "columns"_a, "workers"_a.none());
  module.def("end_iterators", end_iterators);
  module.def("dataset_of_arrays", of_arrays, "arrays"_a, "names"_a, "samples"_a.none(),
             "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(), "shard"_a.none(),
             "workers"_a.none());
  module.def("dataset_of_source", of_source, "source"_a, "get"_a, "names"_a, "samples"_a.none(),
             "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(), "shard"_a.none(),
             "workers"_a.none());
  module.def("dataset_of_iterable", of_iterable, "begin"_a, "name"_a, "names"_a, "samples"_a.none(),
             "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(), "shard"_a.none());
  module.def("dataset_of_text", of_text, "files"_a, "files_only"_a, "samples"_a.none(),
             "shuffle"_a.none(), "shards"_a.none(), "shard"_a.none(), "workers"_a.none());
  module.def("dataset_of_csv", of_csv, "files"_a, "delimiter"_a, "defaults"_a, "names"_a,
             "files_only"_a, "samples"_a.none(), "shuffle"_a.none(), "shards"_a.none(),
             "shard"_a.none(), "workers"_a.none());
  module.def("dataset_of_mnist", of_mnist, "folder"_a, "usage"_a, "fashion"_a, "samples"_a.none(),
             "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(), "shard"_a.none(),
             "workers"_a.none());

  nb::module_ config = module.def_submodule("config");
  config.def("set_seed", data::config::set_seed, "seed"_a);
  config.def("seed", data::config::seed);
  config.def("set_num_parallel_workers", data::config::set_num_parallel_workers, "count"_a);
  config.def("num_parallel_workers", data::config::num_parallel_workers);
  config.def("set_prefetch_size", data::config::set_prefetch_size, "size"_a);
  config.def("prefetch_size", data::config::prefetch_size);
}

}  // namespace lamella::python
