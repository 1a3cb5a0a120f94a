// Cell: a layer, or a network of layers. It owns parameters and other cells under names, and
// computes its outputs from its inputs in `construct`.
//
//   class Net : public nn::Cell {
//    public:
//     Net() { add("conv", make_ref<nn::Conv2d>(1, 32, 3)); ... }
//     Tensor construct(const Tensor& x) override { return own_cell("dense")(own_cell("conv")(x)); }
//   };
//
// A part is kept in one place, under its name, and whoever needs it asks for the name: what was
// assigned last is what computes. Members that refer to parts would keep the old ones.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/ir/call_site.h"
#include "lamella/nn/parameter.h"

namespace lamella::nn {

class Cell;
using Tensors = std::vector<Tensor>;

// Whether the parameters of children take the child's name as a prefix.
enum class NamePrefix : uint8_t { Child, None };

// Called before `construct`: may replace the inputs.
using ForwardPreHook = std::function<std::optional<Tensors>(Cell&, const Tensors& inputs)>;
// Called after `construct`: may replace the outputs.
using ForwardHook =
    std::function<std::optional<Tensors>(Cell&, const Tensors& inputs, const Tensors& outputs)>;

// Called on the way back, with the gradients of the float inputs and outputs: may replace those of
// the inputs. Not called where no input has a gradient.
using BackwardHook = std::function<std::optional<Tensors>(Cell&, const Tensors& input_gradients,
                                                          const Tensors& output_gradients)>;
// Called before: may replace the gradients of the outputs.
using BackwardPreHook =
    std::function<std::optional<Tensors>(Cell&, const Tensors& output_gradients)>;
class BackwardHooks;

// How a cell takes to 16-bit floats, for automatic mixed precision.
enum class PrecisionNeed : uint8_t {
  Any,      // computes in whatever it is given
  Gains,    // faster and safe in 16 bits: products of matrices
  Float32,  // its sums need float32: normalisation
};

template <typename T>
using Named = std::vector<std::pair<std::string, T>>;

// A tensor that is part of a cell's state, but no parameter.
struct CellBuffer {
  Tensor tensor;
  bool persistent = true;  // whether checkpoints hold it
};

class LAMELLA_API Cell : public Object {
 public:
  explicit Cell(NamePrefix prefix = NamePrefix::Child);
  ~Cell() override;

  // The name of the class: "Conv2d".
  virtual std::string class_name() const { return "Cell"; }
  // Its arguments in short, for printing: "3, 16, kernel_size=(3, 3)".
  virtual std::string description() const { return {}; }
  virtual PrecisionNeed precision_need() const { return PrecisionNeed::Any; }

  // ---- Calling ----

  using Where = std::source_location;
  // Runs the hooks and `construct`; the nodes made inside belong to this cell's layer.
  Tensors operator()(const Tensors& inputs, Where where = Where::current());
  // As above for one or two inputs; throws Value unless there is one output.
  Tensor operator()(const Tensor& x, Where where = Where::current());
  Tensor operator()(const Tensor& x, const Tensor& y, Where where = Where::current());
  // As the first form, for callers whose line is no C++ line.
  Tensors call(const Tensors& inputs, SourceLocation location);

  // What the cell computes. A subclass overrides the form that fits; the first one calls the others
  // by the number of inputs. Throws Unsupported if there is none for that number.
  virtual Tensors construct(const Tensors& inputs);
  virtual Tensor construct(const Tensor& x);
  virtual Tensor construct(const Tensor& x, const Tensor& y);

  // Whether operations in `construct` carry their own lines (a user's cell), or come from the line
  // that called the cell.
  virtual bool speaks_for_itself() const { return true; }

  void add_forward_pre_hook(ForwardPreHook hook);
  void add_forward_hook(ForwardHook hook);
  void add_backward_hook(BackwardHook hook);
  void add_backward_pre_hook(BackwardPreHook hook);
  // What call() puts around a construct for backward hooks, for callers that run a cell's
  // computation by themselves.
  Tensors around_inputs(const Tensors& inputs);
  Tensors around_outputs(const Tensors& outputs);

  // ---- Parameters, cells and buffers of this cell ----

  // Each throws Value if the name is empty, holds a dot or is taken. Adding a cell names its
  // parameters by their path from the root ("block.conv1.weight"), unless prefixes are off; adding
  // a parameter that has no name yet does the same for it.
  template <typename T>
  Ref<T> add(const std::string& name, Ref<T> cell) {
    add_cell(name, Ref<Cell>(cell));
    return cell;
  }
  void add_cell(const std::string& name, Ref<Cell> cell);
  Ref<Parameter> add_parameter(const std::string& name, Ref<Parameter> parameter);
  void add_buffer(const std::string& name, CellBuffer buffer);
  // As the first two, but in the place of what has that name, if anything has.
  void set_cell(const std::string& name, Ref<Cell> cell);
  void set_parameter(const std::string& name, Ref<Parameter> parameter);
  // As set_cell, but parameters keep the names they have: for copies of a tree.
  void adopt_cell(const std::string& name, Ref<Cell> cell);
  // Takes the cell, parameter or buffer of that name away; false if there is none.
  bool remove(std::string_view name);

  // In order of adding; names are those given to `add`.
  const Named<Ref<Cell>>& children() const { return children_; }
  const Named<Ref<Parameter>>& own_parameters() const { return parameters_; }
  const Named<CellBuffer>& own_buffers() const { return buffers_; }
  // Null if there is none of that name.
  const Ref<Cell>& child(std::string_view name) const;
  const Ref<Parameter>& parameter(std::string_view name) const;

  // ---- The whole tree: each cell and parameter once, a cell before its children ----

  // Names are paths from this cell, joined by dots behind `prefix`; this cell's own is `prefix`.
  Named<Cell*> cells_and_names(const std::string& prefix = {});
  Named<Ref<Parameter>> parameters_and_names(const std::string& prefix = {});
  Named<CellBuffer> buffers_and_names(const std::string& prefix = {});
  // The persistent buffers of the tree, named as parameters are: what checkpoints hold beside
  // those.
  Named<Tensor> persistent_buffers();
  Parameters get_parameters();
  // Those that require a gradient, and those that do not.
  Parameters trainable_params();
  Parameters untrainable_params();
  // Names every parameter of the tree by `prefix` and its path.
  void update_parameters_name(const std::string& prefix = {});
  // What operations recorded by this cell and those below depend on, as numbers to compare: parts,
  // modes, hooks, which parameters are trained. Equal if nothing was changed since.
  std::vector<uint64_t> state_digest();
  // Says that what a call does has changed in a way that is kept elsewhere.
  void note_revision();
  // Throws Value naming the parameters that have a name in common.
  void check_names();

  // ---- Modes, each for the whole tree ----

  // Training or inference, for layers in which they differ; inference when made.
  Cell& set_train(bool training = true);
  bool training() const { return training_; }
  Cell& set_grad(bool requires_grad = true);
  bool requires_grad() const { return requires_grad_; }
  // Casts float inputs and parameters to `dtype` where they are used: Float16, BFloat16 or Float32
  // (Type otherwise).
  Cell& to_float(DType dtype);
  std::optional<DType> compute_dtype() const { return compute_dtype_; }
  // Casts outputs of this cell alone that are 16-bit floats to float32.
  Cell& give_float32();
  bool gives_float32() const { return gives_float32_; }

 protected:
  // What `construct` uses, by name: the parts that are there now. Each throws Value if there is
  // none of that name.
  const Ref<Parameter>& own_parameter(std::string_view name) const;
  Cell& own_cell(std::string_view name) const;
  // A cell that must be of a class; throws Type.
  template <typename T>
  T& own_cell(std::string_view name) const {
    T* const cell = dynamic_cast<T*>(&own_cell(name));
    if (cell == nullptr) fail_class(name);
    return *cell;
  }
  // A parameter's tensor, in the dtype of to_float.
  Tensor use(std::string_view name) const;
  // The same, or an operand left out if there is no such parameter.
  Operand use_if_there(std::string_view name) const;
  // Adds a parameter under its own full name, dots and all: state that follows another parameter.
  void adopt_parameter(Ref<Parameter> parameter);

 private:
  friend class CallScope;

  void check_name(const std::string& name) const;
  void check_free(const std::string& name) const;
  [[noreturn]] void fail_class(std::string_view name) const;
  Tensor in_compute_dtype(const Parameter& parameter) const;
  void place_below(const std::string& prefix);
  void put_cell(const std::string& name, Ref<Cell> cell);
  Tensors cast_inputs(const Tensors& inputs) const;
  void widen(Tensors& outputs) const;

  Named<Ref<Cell>> children_;
  Named<Ref<Parameter>> parameters_;
  Named<CellBuffer> buffers_;
  std::vector<ForwardPreHook> pre_hooks_;
  std::vector<ForwardHook> hooks_;
  std::unique_ptr<BackwardHooks> backward_hooks_;
  std::string name_;         // in the cell it was added to last; empty at the root
  std::string path_prefix_;  // of the names of parts: the path from the root and a dot
  NamePrefix prefix_;
  uint64_t revision_ = 0;
  bool training_ = false;
  bool requires_grad_ = false;
  std::optional<DType> compute_dtype_;
  bool gives_float32_ = false;
  // The layer path under the caller's path it was last called from.
  const char* outer_path_ = nullptr;
  const char* path_ = nullptr;
};

// Base of the library's own layers: what they record comes from the line that calls them.
class LAMELLA_API Layer : public Cell {
 public:
  using Cell::Cell;
  bool speaks_for_itself() const override { return false; }
};

// What surrounds a call: the layer nodes belong to and the line they come from. For callers that
// run a cell's computation by themselves.
class LAMELLA_API CallScope {
 public:
  CallScope(Cell& cell, SourceLocation location);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const char* outer_;
  CallSiteScope site_;
};

}  // namespace lamella::nn
