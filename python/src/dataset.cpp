// The operations of datasets as methods, and users' objects as sources.
#include "python/src/dataset.h"

#include "python/src/dataset_arrays.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/base/host.h"
#include "lamella/data/config.h"
#include "lamella/data/generator.h"
#include "lamella/data/iterator.h"
#include "lamella/data/mnist.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

// Dropping an iterator waits for its workers, which may wait for Python's lock.
struct IteratorHandle {
  Ref<data::Iterator> iterator;

  explicit IteratorHandle(Ref<data::Iterator> given) : iterator(std::move(given)) {}
  IteratorHandle(IteratorHandle&&) = default;
  ~IteratorHandle() {
    const HostReleased released;
    iterator.reset();
  }
};

using Names = std::vector<std::string>;
using Count = std::optional<int64_t>;

// ---- Users' objects as sources ----

class PythonRandomAccess final : public data::RandomAccessSource {
 public:
  explicit PythonRandomAccess(nb::object source) : source_(std::move(source)) {}

  int64_t size() const override {
    const HostLock lock;
    const Py_ssize_t size = PyObject_Length(source_.get());
    if (size < 0) throw_python_error();
    return size;
  }
  std::vector<data::Array> get(int64_t index, data::RandomStream& random) const override {
    const uint64_t key = random.wide_word();
    const UserCall one_at_a_time;
    const HostLock lock;
    nb::object method = nb::handle(source_.get()).attr("__getitem__");
    return arrays_from(call_through_shim(method.ptr(), key, nb::make_tuple(index)).ptr());
  }

 private:
  SharedObject source_;
};

class PythonPass final : public data::SourcePass {
 public:
  explicit PythonPass(nb::object iterator) : iterator_(std::move(iterator)) {}
  bool next(std::vector<data::Array>& columns) override {
    const HostLock lock;
    PyObject* row = PyIter_Next(iterator_.get());
    if (row == nullptr) {
      if (PyErr_Occurred()) throw_python_error();
      return false;
    }
    columns = arrays_from(nb::steal(row).ptr());
    return true;
  }

 private:
  SharedObject iterator_;
};

class PythonIterable final : public data::IterableSource {
 public:
  explicit PythonIterable(nb::object source) : source_(std::move(source)) {}
  std::unique_ptr<data::SourcePass> begin(int64_t) const override {
    const HostLock lock;
    nb::object source = nb::borrow(source_.get());
    if (PyCallable_Check(source.ptr()) && !PyObject_HasAttrString(source.ptr(), "__iter__")) {
      source = source();
    }
    PyObject* iterator = PyObject_GetIter(source.ptr());
    if (iterator == nullptr) throw_python_error();
    return std::make_unique<PythonPass>(nb::steal(iterator));
  }

 private:
  SharedObject source_;
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
                        const SamplerHandle* sampler, Count shards, Count shard) {
  std::vector<data::Array> columns;
  for (nb::handle array : arrays) columns.push_back(array_from(array.ptr()));
  return {make_ref<data::NumpySlicesDataset>(
      std::move(columns), std::move(names),
      options_from(samples, shuffle, sampler, shards, shard, {}))};
}

DatasetHandle of_source(nb::object source, bool by_number, Names names, Count samples,
                        std::optional<bool> shuffle, const SamplerHandle* sampler, Count shards,
                        Count shard, std::optional<int> workers) {
  const auto options = options_from(samples, shuffle, sampler, shards, shard, workers);
  if (by_number) {
    return {make_ref<data::GeneratorDataset>(
        Ref<data::RandomAccessSource>(new PythonRandomAccess(std::move(source))), std::move(names),
        options)};
  }
  return {make_ref<data::IterableDataset>(
      Ref<data::IterableSource>(new PythonIterable(std::move(source))), std::move(names), options)};
}

DatasetHandle of_mnist(const std::string& folder, const std::string& usage, bool fashion,
                       Count samples, std::optional<bool> shuffle, const SamplerHandle* sampler,
                       Count shards, Count shard) {
  const auto options = options_from(samples, shuffle, sampler, shards, shard, {});
  const HostReleased released;
  if (fashion) {
    return {make_ref<data::FashionMnistDataset>(
        folder, data::usage_from_name(usage, "FashionMnistDataset"), options)};
  }
  return {
      make_ref<data::MnistDataset>(folder, data::usage_from_name(usage, "MnistDataset"), options)};
}

// ---- Batches ----

data::BatchOptions batch_options(bool drop_remainder, nb::object per_batch, Names inputs,
                                 Names outputs, std::optional<int> workers) {
  data::BatchOptions options{
      .remainder = drop_remainder ? data::Remainder::Drop : data::Remainder::Keep,
      .columns = {.inputs = std::move(inputs), .outputs = std::move(outputs), .workers = workers}};
  if (!per_batch.is_none()) {
    options.per_batch = [function = SharedObject(std::move(per_batch))](
                            std::vector<std::vector<data::Array>> columns, data::BatchInfo info) {
      const UserCall one_at_a_time;
      const HostLock lock;
      nb::list lists;
      for (std::vector<data::Array>& column : columns) {
        nb::list rows;
        for (data::Array& array : column) rows.append(nb::steal(to_numpy(std::move(array))));
        lists.append(rows);
      }
      const auto key = static_cast<uint64_t>(info.epoch) << 32 ^ static_cast<uint64_t>(info.batch);
      nb::tuple returned = nb::cast<nb::tuple>(
          call_through_shim(function.get(), key, nb::make_tuple(lists, info.epoch, info.batch)));
      std::vector<std::vector<data::Array>> made;
      for (nb::handle rows : returned) {
        std::vector<data::Array>& column = made.emplace_back();
        for (nb::handle row : rows) column.push_back(array_from(row.ptr()));
      }
      return made;
    };
  }
  return options;
}

DatasetHandle batch(DatasetHandle& self, nb::object size, bool drop_remainder, nb::object per_batch,
                    Names inputs, Names outputs, std::optional<int> workers) {
  data::BatchOptions options = batch_options(drop_remainder, std::move(per_batch),
                                             std::move(inputs), std::move(outputs), workers);
  if (!PyCallable_Check(size.ptr())) {
    return {self.dataset->batch(nb::cast<int64_t>(size), std::move(options))};
  }
  return {self.dataset->batch(
      [function = SharedObject(std::move(size))](data::BatchInfo info) {
        const HostLock lock;
        return nb::cast<int64_t>(nb::handle(function.get())(info.epoch, info.batch));
      },
      std::move(options))};
}

DatasetHandle filter(DatasetHandle& self, nb::object predicate, Names inputs) {
  return {self.dataset->filter(
      [function = SharedObject(std::move(predicate))](std::span<const data::Array> row) {
        const UserCall one_at_a_time;
        const HostLock lock;
        nb::list arguments;
        for (const data::Array& array : row) arguments.append(nb::steal(to_numpy(array)));
        nb::object answer = nb::handle(function.get())(*nb::tuple(arguments));
        const int truth = PyObject_IsTrue(answer.ptr());
        if (truth < 0) throw_python_error();
        return truth == 1;
      },
      std::move(inputs))};
}

DatasetHandle map(DatasetHandle& self, std::vector<TransformHandle> transforms, Names inputs,
                  Names outputs, std::optional<int> workers) {
  std::vector<Ref<data::Transform>> list;
  for (TransformHandle& handle : transforms) list.push_back(std::move(handle.transform));
  return {self.dataset->map(
      std::move(list),
      {.inputs = std::move(inputs), .outputs = std::move(outputs), .workers = workers})};
}

// The next row as a tuple, of tensors or of NumPy arrays; None at the end of an epoch.
nb::object next(IteratorHandle& self, bool numpy) {
  std::optional<data::Row> row;
  {
    const HostReleased released;
    row = self.iterator->next();
  }
  if (!row) return nb::none();
  std::vector<data::Array> columns(row->columns());
  row.reset();
  nb::list made;
  for (data::Array& column : columns) {
    made.append(
        nb::steal(numpy ? to_numpy(std::move(column)) : wrap(to_tensor(std::move(column)))));
  }
  return nb::tuple(made);
}

template <typename Function>
auto without_lock(Function&& function) {
  const HostReleased released;
  return function();
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
             const data::Position position = self.iterator->position();
             return std::pair(position.epoch, position.batch);
           })
      .def(
          "seek",
          [](IteratorHandle& self, int64_t epoch, int64_t batch) {
            without_lock([&] { self.iterator->seek({.epoch = epoch, .batch = batch}); });
          },
          "epoch"_a, "batch"_a)
      .def("close", [](IteratorHandle& self) { without_lock([&] { self.iterator.reset(); }); });
  nb::class_<DatasetHandle>(module, "Dataset")
      .def("columns", [](DatasetHandle& self) { return self.dataset->columns(); })
      .def("size",
           [](DatasetHandle& self) { return without_lock([&] { return self.dataset->size(); }); })
      .def("types",
           [](DatasetHandle& self) {
             const auto types = without_lock([&] { return self.dataset->types(); });
             nb::list rows;
             for (const data::ArrayType& type : types) {
               nb::list sizes;
               for (int64_t size : type.sizes) sizes.append(size);
               rows.append(nb::make_tuple(nb::borrow(dtype_object(type.dtype)), sizes));
             }
             return rows;
           })
      .def("batch_size", [](DatasetHandle& self) { return self.dataset->batch_size(); })
      .def("repeat_count", [](DatasetHandle& self) { return self.dataset->repeat_count(); })
      .def("map", map, "transforms"_a, "inputs"_a, "outputs"_a, "workers"_a.none())
      .def("filter", filter, "predicate"_a, "inputs"_a)
      .def("batch", batch, "size"_a, "drop_remainder"_a, "per_batch"_a.none(), "inputs"_a,
           "outputs"_a, "workers"_a.none())
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
      .def(
          "iterate",
          [](DatasetHandle& self, int64_t epochs, Names columns, std::optional<int> workers) {
            return IteratorHandle(self.dataset->iterate(
                {.epochs = epochs, .columns = std::move(columns), .workers = workers}));
          },
          "epochs"_a, "columns"_a, "workers"_a.none());
  module.def("dataset_of_arrays", of_arrays, "arrays"_a, "names"_a, "samples"_a.none(),
             "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(), "shard"_a.none());
  module.def("dataset_of_source", of_source, "source"_a, "by_number"_a, "names"_a,
             "samples"_a.none(), "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(),
             "shard"_a.none(), "workers"_a.none());
  module.def("dataset_of_mnist", of_mnist, "folder"_a, "usage"_a, "fashion"_a, "samples"_a.none(),
             "shuffle"_a.none(), "sampler"_a.none(), "shards"_a.none(), "shard"_a.none());
  module.def("set_call_shim", set_call_shim, "shim"_a);

  nb::module_ config = module.def_submodule("config");
  config.def("set_seed", data::config::set_seed, "seed"_a);
  config.def("seed", data::config::seed);
  config.def("set_num_parallel_workers", data::config::set_num_parallel_workers, "count"_a);
  config.def("num_parallel_workers", data::config::num_parallel_workers);
  config.def("set_prefetch_size", data::config::set_prefetch_size, "size"_a);
  config.def("prefetch_size", data::config::prefetch_size);
}

}  // namespace lamella::python
