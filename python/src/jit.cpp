// Sites of jit: the traces of one function, found by the arguments and guards of a call.
#include "python/src/jit.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/jit_guard.h"
#include "python/src/object_reference.h"
#include "python/src/parameter_object.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/string.h>

#include "lamella/ir/trace.h"
#include "lamella/ir/window.h"
#include "lamella/nn/cell.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

// ---- Arguments ----

// The shape of an argument list: what must be the same for a trace to fit.
struct ArgumentSpec {
  enum class Kind : uint8_t { Tensor, Constant, Identity, Tuple, List, Dict };
  Kind kind;
  PyObject* object = nullptr;  // class of a tensor, constant, identity, tuple of keys; borrowed
  TensorType type = {};
  std::vector<ArgumentSpec> items = {};
};

// Calls visit(item) for each item of a tuple or list.
template <typename Visit>
void for_items(PyObject* sequence, Visit visit) {
  PyObject** items = PySequence_Fast_ITEMS(sequence);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) visit(items[i]);
}

// Reads Python objects into specs of a kind, whose items are those of lists, tuples and
// dictionaries. Goes only so far: they may contain themselves.
template <typename Spec>
class SpecReader {
 public:
  // Whether there was more than a trace can be kept for.
  bool exceeded() const { return exceeded_; }
  static constexpr const char* kExceeded = "lists, tuples or dictionaries nest too deeply";

 protected:
  using Kind = typename Spec::Kind;

  // Appends what specs borrow to `held`.
  explicit SpecReader(nb::list& held) : held_(held) {}
  ~SpecReader() = default;

  virtual Spec read(PyObject* object) = 0;

  Spec hold(Kind kind, PyObject* object) {
    held_.append(nb::handle(object));
    return {.kind = kind, .object = object};
  }

  void add(PyObject* item, Spec& to) {
    exceeded_ = exceeded_ || depth_ == kDeepest || ++items_ > kMostItems;
    if (exceeded_) return;
    ++depth_;
    to.items.push_back(read(item));
    --depth_;
  }

  // Nothing for an object that is no list, tuple or dictionary.
  std::optional<Spec> read_container(PyObject* object) {
    const bool is_list = PyList_CheckExact(object);
    if (is_list || PyTuple_CheckExact(object)) {
      Spec spec{.kind = is_list ? Kind::List : Kind::Tuple};
      for_items(object, [&](PyObject* item) { add(item, spec); });
      return spec;
    }
    if (!PyDict_CheckExact(object)) return std::nullopt;
    Spec spec = hold(Kind::Dict, nb::steal(PySequence_Tuple(object)).ptr());
    PyObject *key, *value;
    for (Py_ssize_t place = 0; PyDict_Next(object, &place, &key, &value);) add(value, spec);
    return spec;
  }

 private:
  static constexpr size_t kDeepest = 100, kMostItems = 1'000'000;

  nb::list& held_;
  size_t depth_ = 0, items_ = 0;
  bool exceeded_ = false;
};

class ArgumentReader final : public SpecReader<ArgumentSpec> {
 public:
  // Appends the tensors met to `tensors`.
  ArgumentReader(nb::list& held, std::vector<PyObject*>& tensors)
      : SpecReader(held), tensors_(tensors) {}

  ArgumentSpec read_call(const nb::object& args, const nb::object& kwargs) {
    ArgumentSpec spec{.kind = Kind::Tuple};
    // The list of arguments itself is new at each call, also where it holds constants only.
    for_items(args.ptr(), [&](PyObject* item) { add(item, spec); });
    add(kwargs.ptr(), spec);
    return spec;
  }

 private:
  ArgumentSpec read(PyObject* object) override {
    if (is_tensor(object) && !is_parameter(object)) {
      tensors_.push_back(object);
      ArgumentSpec spec = hold(Kind::Tensor, reinterpret_cast<PyObject*>(Py_TYPE(object)));
      spec.type = tensor_of(object).type();
      return spec;
    }
    if (is_static_constant(object)) return hold(Kind::Constant, object);
    if (auto container = read_container(object)) return *std::move(container);
    return hold(Kind::Identity, object);
  }

  std::vector<PyObject*>& tensors_;
};

bool fits(const ArgumentSpec& spec, PyObject* object, std::vector<PyObject*>& tensors) {
  using Kind = ArgumentSpec::Kind;
  switch (spec.kind) {
    case Kind::Tensor:
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != spec.object ||
          tensor_of(object).type() != spec.type) {
        return false;
      }
      tensors.push_back(object);
      return true;
    case Kind::Constant:
      return same_constant(spec.object, object);
    case Kind::Identity:
      return spec.object == object;
    case Kind::Tuple:
    case Kind::List: {
      const bool same_class =
          spec.kind == Kind::List ? PyList_CheckExact(object) : PyTuple_CheckExact(object);
      if (!same_class ||
          static_cast<size_t>(PySequence_Fast_GET_SIZE(object)) != spec.items.size()) {
        return false;
      }
      PyObject** items = PySequence_Fast_ITEMS(object);
      for (size_t i = 0; i < spec.items.size(); ++i) {
        if (!fits(spec.items[i], items[i], tensors)) return false;
      }
      return true;
    }
    case Kind::Dict: {
      if (!PyDict_CheckExact(object) ||
          static_cast<size_t>(PyDict_GET_SIZE(object)) != spec.items.size()) {
        return false;
      }
      PyObject *key, *value;
      size_t i = 0;
      for (Py_ssize_t place = 0; PyDict_Next(object, &place, &key, &value); ++i) {
        PyObject* expected = PyTuple_GET_ITEM(spec.object, static_cast<Py_ssize_t>(i));
        if (!same_constant(expected, key) || !fits(spec.items[i], value, tensors)) return false;
      }
      return true;
    }
  }
  return false;
}

bool same_spec(const ArgumentSpec& a, const ArgumentSpec& b) {
  if (a.kind != b.kind || a.type != b.type || a.items.size() != b.items.size()) return false;
  const bool same_object = a.kind == ArgumentSpec::Kind::Dict ? same_items(a.object, b.object)
                                                              : same_constant(a.object, b.object);
  if (!same_object) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!same_spec(a.items[i], b.items[i])) return false;
  }
  return true;
}

std::vector<Ref<Storage>> storages_of(const std::vector<PyObject*>& tensors) {
  std::vector<Ref<Storage>> storages;
  storages.reserve(tensors.size());
  for (PyObject* tensor : tensors) storages.push_back(tensor_of(tensor).storage());
  return storages;
}

// ---- What is returned ----

struct OutputSpec {
  enum class Kind : uint8_t { Made, Argument, HandleOfArgument, Object, Tuple, List, Dict };
  Kind kind;
  size_t number = 0;           // of a made tensor or an argument
  PyObject* object = nullptr;  // an object, a tuple of keys; borrowed
  std::vector<OutputSpec> items = {};
};

class OutputReader final : public SpecReader<OutputSpec> {
 public:
  OutputReader(Tracer& tracer, const std::vector<PyObject*>& arguments, nb::list& held)
      : SpecReader(held), tracer_(tracer), arguments_(arguments) {}

  OutputSpec read(PyObject* object) override {
    if (is_tensor(object)) return read_tensor(object);
    if (is_static_constant(object)) return hold(Kind::Object, object);
    if (auto container = read_container(object)) return *std::move(container);
    tracer_.give_up(std::string("it returns an object of class ") + Py_TYPE(object)->tp_name);
    return hold(Kind::Object, object);
  }

  const std::vector<Tensor>& made() const { return made_; }

 private:
  OutputSpec read_tensor(PyObject* object) {
    const Tensor& tensor = tensor_of(object);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i] == object) return {.kind = Kind::Argument, .number = i};
    }
    if (tracer_.made_here(tensor)) {
      if (Py_TYPE(object) != tensor_type) {
        tracer_.give_up(std::string("it returns a new ") + Py_TYPE(object)->tp_name);
      }
      made_.push_back(tensor);
      return {.kind = Kind::Made, .number = made_.size() - 1};
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (tensor_of(arguments_[i]).storage() == tensor.storage()) {
        return {.kind = Kind::HandleOfArgument, .number = i};
      }
    }
    return hold(Kind::Object, object);
  }

  Tracer& tracer_;
  const std::vector<PyObject*>& arguments_;
  std::vector<Tensor> made_;
};

nb::object build(const OutputSpec& spec, std::span<const Tensor> made,
                 const std::vector<PyObject*>& arguments) {
  using Kind = OutputSpec::Kind;
  switch (spec.kind) {
    case Kind::Made:
      return nb::steal(wrap(made[spec.number]));
    case Kind::Argument:
      return nb::borrow(arguments[spec.number]);
    case Kind::HandleOfArgument:
      return nb::steal(wrap(tensor_of(arguments[spec.number])));
    case Kind::Object:
      return nb::borrow(spec.object);
    case Kind::List: {
      nb::list list;
      for (const OutputSpec& item : spec.items) list.append(build(item, made, arguments));
      return list;
    }
    case Kind::Tuple: {
      nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(spec.items.size())));
      for (size_t i = 0; i < spec.items.size(); ++i) {
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i),
                         build(spec.items[i], made, arguments).release().ptr());
      }
      return tuple;
    }
    case Kind::Dict: {
      nb::dict dict;
      for (size_t i = 0; i < spec.items.size(); ++i) {
        dict[nb::handle(PyTuple_GET_ITEM(spec.object, static_cast<Py_ssize_t>(i)))] =
            build(spec.items[i], made, arguments);
      }
      return dict;
    }
  }
  return nb::none();
}

// ---- The site ----

// One trace, with everything under which it may be replayed.
struct Variant {
  ArgumentSpec arguments;
  std::vector<size_t> shared;
  std::vector<Guard> guards;
  std::vector<nn::Cell*> cells;
  std::vector<std::vector<uint64_t>> cell_digests;
  uint64_t changes_seen = 0;
  OutputSpec output;
  Ref<Trace> trace;
  // How many times over what was recorded may be differentiated: loops keep what that takes.
  int gradient_order = 0;
  // A trace is used once a second run depended on the same: the first may have set things up.
  bool confirmed = false;
  nb::list held;  // what is borrowed above

  bool guards_hold() {
    for (const Guard& guard : guards) {
      if (!guard.holds()) return false;
    }
    const uint64_t now = nn::changes();
    if (now == changes_seen) return true;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i]->state_digest() != cell_digests[i]) return false;
    }
    changes_seen = now;
    return true;
  }
};

// A call that is being followed.
struct Pending {
  nb::object args, kwargs;
  ArgumentSpec arguments;
  std::vector<PyObject*> tensors;
  std::unique_ptr<Tracer> tracer;
  nb::list held;
};

class Site {
 public:
  static constexpr size_t kMostVariants = 16;

  // The result by a trace that fits, or `miss`.
  nb::object replay(const nb::object& args, const nb::object& kwargs, const nb::object& miss) {
    std::vector<PyObject*> tensors;
    const int order = Window::of_thread().gradient_order();
    for (size_t v = 0; v < variants_.size(); ++v) {
      Variant& variant = *variants_[v];
      if (!variant.confirmed || variant.gradient_order < order) continue;
      tensors.clear();
      if (!fits_call(variant.arguments, args, kwargs, tensors)) continue;
      const std::vector<Ref<Storage>> storages = storages_of(tensors);
      if (sharing(storages) != variant.shared || !variant.guards_hold()) continue;
      if (!variant.trace->takes(storages)) continue;
      if (v > 0) std::swap(variants_[v], variants_[0]);
      // What the call drops, or the guards' objects, may drop this variant.
      const std::shared_ptr<Variant> kept = variants_[0];
      return build(kept->output, kept->trace->replay(storages), tensors);
    }
    return miss;
  }

  // False if a call is being followed already.
  bool start(const nb::object& args, const nb::object& kwargs) {
    if (pending_) return false;
    pending_ = std::make_unique<Pending>();
    pending_->args = args;
    pending_->kwargs = kwargs;
    ArgumentReader reader(pending_->held, pending_->tensors);
    pending_->arguments = reader.read_call(args, kwargs);
    std::vector<Tensor> tensors;
    for (PyObject* tensor : pending_->tensors) tensors.push_back(tensor_of(tensor));
    pending_->tracer = std::make_unique<Tracer>(tensors, [] {
      const HostLock lock;  // values are read without it
      return caller_location();
    });
    if (reader.exceeded()) pending_->tracer->give_up(reader.kExceeded);
    return true;
  }

  // Ends following the call without keeping a trace.
  void drop() { pending_.reset(); }

  // Ends following the call. `guards` are rows for guard_from, `cells` the cells met. Gives what
  // became of it: "kept", "again" (a second call must show the same), or a tuple of the reason, its
  // file and its line.
  nb::object finish(const nb::object& result, const nb::list& guards, const nb::list& cells) {
    const std::unique_ptr<Pending> pending = std::move(pending_);
    Tracer& tracer = *pending->tracer;
    auto variant = std::make_shared<Variant>();
    variant->held = pending->held;
    OutputReader reader(tracer, pending->tensors, variant->held);
    variant->output = reader.read(result.ptr());
    if (reader.exceeded()) tracer.give_up(reader.kExceeded);
    for (nb::handle row : guards) variant->guards.push_back(guard_from(row));
    check_arguments(*pending, variant->guards);
    variant->trace = tracer.finish(reader.made());
    if (const auto& reason = tracer.reason()) {
      return nb::make_tuple(reason->why,
                            reason->location.file == nullptr ? "" : reason->location.file,
                            reason->location.line);
    }
    pending->tracer.reset();
    variant->arguments = std::move(pending->arguments);
    variant->shared = sharing(storages_of(pending->tensors));
    variant->held.append(guards);
    variant->held.append(cells);
    for (nb::handle cell : cells) {
      variant->cells.push_back(nb::cast<Ref<nn::Cell>>(cell).get());
      variant->cell_digests.push_back(variant->cells.back()->state_digest());
    }
    variant->changes_seen = nn::changes();
    variant->gradient_order = Window::of_thread().gradient_order();
    return keep(std::move(variant), guards);
  }

  size_t count() const { return variants_.size(); }
  size_t confirmed() const {
    return static_cast<size_t>(std::count_if(variants_.begin(), variants_.end(),
                                             [](const auto& each) { return each->confirmed; }));
  }
  void clear() { variants_.clear(); }

  template <typename Visit>
  void for_held(Visit visit) const {
    for (const auto& variant : variants_) visit(variant->held.ptr());
  }

 private:
  // Gives up if the call changed its lists or dictionaries, whose items no guard watches, or
  // reached a tensor it was given in another way too.
  static void check_arguments(const Pending& pending, const std::vector<Guard>& guards) {
    nb::list held;
    std::vector<PyObject*> tensors;
    const ArgumentSpec now = ArgumentReader(held, tensors).read_call(pending.args, pending.kwargs);
    if (tensors != pending.tensors || !same_spec(now, pending.arguments)) {
      pending.tracer->give_up("it changes a list or dictionary that it is given");
    }
    for (PyObject* tensor : tensors) {
      const Storage* storage = tensor_of(tensor).storage().get();
      const bool reached = std::ranges::any_of(
          guards, [&](const Guard& guard) { return guard.storage() == storage; });
      if (reached) pending.tracer->give_up("a tensor it is given is also one that it holds");
    }
  }

  static bool fits_call(const ArgumentSpec& spec, const nb::object& args, const nb::object& kwargs,
                        std::vector<PyObject*>& tensors) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(args.ptr()));
    if (spec.items.size() != count + 1) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!fits(spec.items[i], PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i)), tensors)) {
        return false;
      }
    }
    return fits(spec.items[count], kwargs.ptr(), tensors);
  }

  nb::object keep(std::shared_ptr<Variant> variant, const nb::list& rows) {
    for (auto& earlier : variants_) {
      if (earlier->confirmed || earlier->shared != variant->shared ||
          earlier->gradient_order != variant->gradient_order ||
          !same_spec(earlier->arguments, variant->arguments)) {
        continue;
      }
      // What differs between the two runs, for the message.
      std::string changed;
      const size_t before = earlier->guards.size(), now = variant->guards.size();
      for (size_t i = 0; changed.empty() && i < std::min(before, now); ++i) {
        if (earlier->guards[i] == variant->guards[i]) continue;
        changed = nb::cast<std::string>(nb::object(rows[i][5]));
      }
      if (changed.empty() && before != now) changed = "what it reads";
      if (changed.empty() &&
          (earlier->cells != variant->cells || earlier->cell_digests != variant->cell_digests)) {
        changed = "the parts or modes of a cell";
      }
      variant->confirmed = changed.empty();
      earlier = std::move(variant);
      if (changed.empty()) return nb::str("kept");
      return nb::make_tuple(changed + " changes from call to call", "", 0);
    }
    if (variants_.size() >= kMostVariants) variants_.pop_back();
    variants_.insert(variants_.begin(), std::move(variant));
    return nb::str("again");
  }

  std::vector<std::shared_ptr<Variant>> variants_;
  std::unique_ptr<Pending> pending_;
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  int stopped = 0;
  nb::inst_ptr<Site>(self)->for_held([&](PyObject* held) {
    if (stopped == 0) stopped = visit(held, arg);
  });
  return stopped;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Site>(self)->clear();
  return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void add_jit(nb::module_& module) {
  nb::module_ jit = module.def_submodule("jit");
  nb::class_<Site>(jit, "Site", nb::type_slots(slots))
      .def(nb::init<>())
      .def("replay", &Site::replay, "args"_a, "kwargs"_a, "miss"_a)
      .def("start", &Site::start, "args"_a, "kwargs"_a)
      .def("drop", &Site::drop)
      .def("finish", &Site::finish, "result"_a.none(), "guards"_a, "cells"_a)
      .def_prop_ro("confirmed", &Site::confirmed)
      .def("__len__", &Site::count);
  jit.def(
      "defined_in_python",
      [](nb::type_object cls) {
        return defined_in_python(reinterpret_cast<PyTypeObject*>(cls.ptr()));
      },
      "cls"_a, "Whether a class is written in Python.");
  jit.def(
      "tracing", recorded_elsewhere,
      "Whether what this thread does is recorded elsewhere: it is being traced, or in the body of "
      "a loop or branch.");
  jit.def(
      "cannot_repeat",
      [](const std::string& why) {
        if (Tracer* tracer = Tracer::current()) tracer->give_up(why);
      },
      "why"_a, "Says that what runs now cannot be repeated from a trace.");
}

}  // namespace lamella::python
