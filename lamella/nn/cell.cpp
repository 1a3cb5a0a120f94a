// Calling a cell, and what its names mean.
#include "lamella/nn/cell.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "lamella/ir/trace.h"
#include "lamella/nn/backward_hooks.h"
#include "lamella/ops/functions.h"

namespace lamella::nn {

namespace {

template <typename T>
auto find(T& named, std::string_view name) {
  return std::find_if(named.begin(), named.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

Cell::Cell(NamePrefix prefix) : prefix_(prefix) {}
Cell::~Cell() = default;

// ---- Calling ----

namespace {

SourceLocation site_of(const Cell& cell, SourceLocation location) {
  if (cell.speaks_for_itself()) return {};
  return current_call_site().known() ? current_call_site() : location;
}

SourceLocation from(const Cell::Where& where) {
  return {where.file_name(), static_cast<int32_t>(where.line())};
}

}  // namespace

CallScope::CallScope(Cell& cell, SourceLocation location)
    : outer_(current_layer()), site_(site_of(cell, location)) {
  if (cell.name_.empty()) return;  // the root has no name of its own
  if (cell.path_ == nullptr || cell.outer_path_ != outer_) {
    const std::string outer = outer_ == nullptr ? "" : outer_;
    cell.path_ = intern_file_name(joined(outer, cell.name_));
    cell.outer_path_ = outer_;
  }
  set_current_layer(cell.path_);
}

CallScope::~CallScope() {
  set_current_layer(outer_);
}

Tensors Cell::call(const Tensors& inputs, SourceLocation location) {
  const CallScope scope(*this, location);
  if (!pre_hooks_.empty() || !hooks_.empty() || backward_hooks_) {
    Tracer::cannot_repeat("a hook runs");
  }
  const Tensors* given = &inputs;
  Tensors replaced;
  for (const ForwardPreHook& hook : pre_hooks_) {
    if (std::optional<Tensors> other = hook(*this, *given)) {
      replaced = std::move(*other);
      given = &replaced;
    }
  }
  if (backward_hooks_) {
    replaced = around_inputs(*given);
    given = &replaced;
  }
  Tensors outputs = compute_dtype_ ? construct(cast_inputs(*given)) : construct(*given);
  if (gives_float32_) widen(outputs);
  for (const ForwardHook& hook : hooks_) {
    if (std::optional<Tensors> other = hook(*this, *given, outputs)) outputs = std::move(*other);
  }
  return around_outputs(outputs);
}

Tensors Cell::around_inputs(const Tensors& inputs) {
  return backward_hooks_ ? backward_hooks_->around_inputs(inputs) : inputs;
}

Tensors Cell::around_outputs(const Tensors& outputs) {
  return backward_hooks_ ? backward_hooks_->around_outputs(outputs) : outputs;
}

void Cell::add_forward_pre_hook(ForwardPreHook hook) {
  note_change();
  pre_hooks_.push_back(std::move(hook));
}

void Cell::add_forward_hook(ForwardHook hook) {
  note_change();
  hooks_.push_back(std::move(hook));
}

void Cell::add_backward_hook(BackwardHook hook) {
  note_change();
  if (!backward_hooks_) backward_hooks_ = std::make_unique<BackwardHooks>(*this);
  backward_hooks_->add(std::move(hook));
}

void Cell::add_backward_pre_hook(BackwardPreHook hook) {
  note_change();
  if (!backward_hooks_) backward_hooks_ = std::make_unique<BackwardHooks>(*this);
  backward_hooks_->add(std::move(hook));
}

namespace {

Tensor only(const Cell& cell, Tensors outputs) {
  if (outputs.size() != 1) {
    fail(ErrorKind::Value, "[{}] the call expects one output, construct gave {}", cell.class_name(),
         outputs.size());
  }
  return std::move(outputs[0]);
}

}  // namespace

Tensors Cell::operator()(const Tensors& inputs, Where where) {
  return call(inputs, from(where));
}

Tensor Cell::operator()(const Tensor& x, Where where) {
  return only(*this, call({x}, from(where)));
}

Tensor Cell::operator()(const Tensor& x, const Tensor& y, Where where) {
  return only(*this, call({x, y}, from(where)));
}

Tensors Cell::construct(const Tensors& inputs) {
  if (inputs.size() == 1) return {construct(inputs[0])};
  if (inputs.size() == 2) return {construct(inputs[0], inputs[1])};
  fail(ErrorKind::Unsupported, "[{}] construct is not defined for {} inputs", class_name(),
       inputs.size());
}

Tensor Cell::construct(const Tensor&) {
  fail(ErrorKind::Unsupported, "[{}] construct is not defined for one input", class_name());
}

Tensor Cell::construct(const Tensor&, const Tensor&) {
  fail(ErrorKind::Unsupported, "[{}] construct is not defined for two inputs", class_name());
}

Tensors Cell::cast_inputs(const Tensors& inputs) const {
  Tensors cast = inputs;
  for (Tensor& tensor : cast) {
    if (tensor.defined() && is_float(tensor.dtype()) && tensor.dtype() != *compute_dtype_) {
      tensor = ops::cast(tensor, *compute_dtype_);
    }
  }
  return cast;
}

// ---- Parts by name ----

namespace {

[[noreturn]] void fail_missing(const Cell& cell, std::string_view kind, std::string_view name) {
  fail(ErrorKind::Value, "[{}] the {} '{}' is needed, but it was taken away", cell.class_name(),
       kind, name);
}

}  // namespace

const Ref<Parameter>& Cell::own_parameter(std::string_view name) const {
  const Ref<Parameter>& found = parameter(name);
  if (!found) fail_missing(*this, "parameter", name);
  return found;
}

Cell& Cell::own_cell(std::string_view name) const {
  const Ref<Cell>& found = child(name);
  if (!found) fail_missing(*this, "cell", name);
  return *found;
}

void Cell::fail_class(std::string_view name) const {
  fail(ErrorKind::Type, "[{}] '{}' must be of another class than {}", class_name(), name,
       own_cell(name).class_name());
}

void Cell::widen(Tensors& outputs) const {
  for (Tensor& output : outputs) {
    if (output.defined() && is_low_precision(output.dtype())) {
      output = ops::cast(output, DType::Float32);
    }
  }
}

Tensor Cell::in_compute_dtype(const Parameter& parameter) const {
  if (!compute_dtype_ || parameter.dtype() == *compute_dtype_) return parameter.tensor();
  return ops::cast(parameter.tensor(), *compute_dtype_);
}

Tensor Cell::use(std::string_view name) const {
  return in_compute_dtype(*own_parameter(name));
}

Operand Cell::use_if_there(std::string_view name) const {
  const Ref<Parameter>& found = parameter(name);
  return found ? Operand(in_compute_dtype(*found)) : Operand();
}

// ---- Adding ----

void Cell::check_name(const std::string& name) const {
  if (name.empty() || name.find('.') != std::string::npos) {
    fail(ErrorKind::Value, "[{}] '{}' is no name for a part: it must hold letters and no dot",
         class_name(), name);
  }
}

void Cell::check_free(const std::string& name) const {
  check_name(name);
  if (find(children_, name) != children_.end() || find(parameters_, name) != parameters_.end() ||
      find(buffers_, name) != buffers_.end()) {
    fail(ErrorKind::Value, "[{}] the name '{}' is taken: each part needs one of its own",
         class_name(), name);
  }
}

void Cell::add_cell(const std::string& name, Ref<Cell> cell) {
  check_free(name);
  set_cell(name, std::move(cell));
}

Ref<Parameter> Cell::add_parameter(const std::string& name, Ref<Parameter> parameter) {
  check_free(name);
  set_parameter(name, parameter);
  return parameter;
}

void Cell::adopt_parameter(Ref<Parameter> parameter) {
  note_change();
  parameters_.emplace_back(parameter->name(), std::move(parameter));
}

void Cell::add_buffer(const std::string& name, CellBuffer buffer) {
  check_free(name);
  note_change();
  buffers_.emplace_back(name, std::move(buffer));
}

void Cell::set_cell(const std::string& name, Ref<Cell> cell) {
  check_name(name);
  if (!cell) fail(ErrorKind::Type, "[{}] '{}' is no cell", class_name(), name);
  if (prefix_ == NamePrefix::Child) cell->update_parameters_name(path_prefix_ + name + ".");
  put_cell(name, std::move(cell));
}

void Cell::adopt_cell(const std::string& name, Ref<Cell> cell) {
  check_name(name);
  if (!cell) fail(ErrorKind::Type, "[{}] '{}' is no cell", class_name(), name);
  if (prefix_ == NamePrefix::Child) cell->place_below(path_prefix_ + name + ".");
  put_cell(name, std::move(cell));
}

void Cell::put_cell(const std::string& name, Ref<Cell> cell) {
  note_change();
  if (prefix_ == NamePrefix::Child) {
    cell->name_ = name;
    cell->path_ = nullptr;
  }
  if (const auto place = find(children_, name); place != children_.end()) {
    place->second = std::move(cell);
    return;
  }
  remove(name);
  children_.emplace_back(name, std::move(cell));
}

void Cell::set_parameter(const std::string& name, Ref<Parameter> parameter) {
  const auto place = find(parameters_, name);
  if (place == parameters_.end()) check_name(name);
  if (!parameter) fail(ErrorKind::Type, "[{}] '{}' is no parameter", class_name(), name);
  note_change();
  if (parameter->name() == Parameter::kUnnamed) parameter->set_name(path_prefix_ + name);
  if (place != parameters_.end()) {
    place->second = std::move(parameter);
    return;
  }
  remove(name);
  parameters_.emplace_back(name, std::move(parameter));
}

bool Cell::remove(std::string_view name) {
  note_change();
  const auto take = [&](auto& named) {
    const auto place = find(named, name);
    if (place == named.end()) return false;
    named.erase(place);
    return true;
  };
  return take(children_) || take(parameters_) || take(buffers_);
}

const Ref<Cell>& Cell::child(std::string_view name) const {
  static const Ref<Cell> none;
  const auto place = find(children_, name);
  return place == children_.end() ? none : place->second;
}

const Ref<Parameter>& Cell::parameter(std::string_view name) const {
  static const Ref<Parameter> none;
  const auto place = find(parameters_, name);
  return place == parameters_.end() ? none : place->second;
}

// ---- The tree ----

namespace {

void visit(Cell& cell, const std::string& path, std::unordered_set<const Cell*>& seen,
           Named<Cell*>& found) {
  if (!seen.insert(&cell).second) return;
  found.emplace_back(path, &cell);
  for (const auto& [name, child] : cell.children()) {
    visit(*child, joined(path, name), seen, found);
  }
}

}  // namespace

Named<Cell*> Cell::cells_and_names(const std::string& prefix) {
  Named<Cell*> found;
  std::unordered_set<const Cell*> seen;
  visit(*this, prefix, seen, found);
  return found;
}

Named<Ref<Parameter>> Cell::parameters_and_names(const std::string& prefix) {
  Named<Ref<Parameter>> found;
  std::unordered_set<const Parameter*> seen;
  for (const auto& [path, cell] : cells_and_names(prefix)) {
    for (const auto& [name, parameter] : cell->parameters_) {
      if (seen.insert(parameter.get()).second) found.emplace_back(joined(path, name), parameter);
    }
  }
  return found;
}

Named<CellBuffer> Cell::buffers_and_names(const std::string& prefix) {
  Named<CellBuffer> found;
  for (const auto& [path, cell] : cells_and_names(prefix)) {
    for (const auto& [name, buffer] : cell->buffers_)
      found.emplace_back(joined(path, name), buffer);
  }
  return found;
}

Named<Tensor> Cell::persistent_buffers() {
  Named<Tensor> found;
  for (const auto& [path, cell] : cells_and_names()) {
    for (const auto& [name, buffer] : cell->buffers_) {
      if (buffer.persistent && buffer.tensor.defined()) {
        found.emplace_back(cell->path_prefix_ + name, buffer.tensor);
      }
    }
  }
  return found;
}

Parameters Cell::get_parameters() {
  Parameters found;
  for (auto& [name, parameter] : parameters_and_names()) found.push_back(std::move(parameter));
  return found;
}

Parameters Cell::trainable_params() {
  Parameters found = get_parameters();
  std::erase_if(found, [](const Ref<Parameter>& each) { return !each->requires_grad(); });
  return found;
}

Parameters Cell::untrainable_params() {
  Parameters found = get_parameters();
  std::erase_if(found, [](const Ref<Parameter>& each) { return each->requires_grad(); });
  return found;
}

void Cell::update_parameters_name(const std::string& prefix) {
  for (const auto& [name, parameter] : parameters_and_names()) parameter->set_name(prefix + name);
  place_below(prefix);
}

void Cell::place_below(const std::string& prefix) {
  for (const auto& [path, cell] : cells_and_names()) {
    cell->path_prefix_ = path.empty() ? prefix : prefix + path + ".";
  }
}

void Cell::note_revision() {
  ++revision_;
  note_change();
}

std::vector<uint64_t> Cell::state_digest() {
  std::vector<uint64_t> digest;
  const auto add = [&](auto number) { digest.push_back(static_cast<uint64_t>(number)); };
  const auto add_address = [&](const void* address) {
    digest.push_back(reinterpret_cast<uintptr_t>(address));
  };
  const std::hash<std::string> hash;
  for (const auto& [path, cell] : cells_and_names()) {
    add(hash(path));
    add_address(cell);
    add(cell->training_ | cell->requires_grad_ << 1 | cell->gives_float32_ << 2);
    add(cell->compute_dtype_ ? static_cast<int>(*cell->compute_dtype_) : -1);
    add(cell->pre_hooks_.size() + cell->hooks_.size());
    add_address(cell->backward_hooks_.get());
    add(cell->revision_);
    for (const auto& [name, child] : cell->children_) {
      add(hash(name));
      add_address(child.get());
    }
    for (const auto& [name, parameter] : cell->parameters_) {
      add(hash(name));
      add_address(parameter.get());
      add_address(parameter->tensor().storage().get());
      add(parameter->requires_grad());
    }
    for (const auto& [name, buffer] : cell->buffers_) {
      add(hash(name));
      add_address(buffer.tensor.defined() ? buffer.tensor.storage().get() : nullptr);
    }
  }
  return digest;
}

void Cell::check_names() {
  std::map<std::string, std::string> path_of;
  for (const auto& [path, parameter] : parameters_and_names()) {
    const auto [place, is_new] = path_of.emplace(parameter->name(), path);
    if (!is_new) {
      fail(ErrorKind::Value, "[{}] the parameters {} and {} have the same name '{}'", class_name(),
           place->second, path, parameter->name());
    }
  }
}

// ---- Modes ----

namespace {

// Sets a mode in all cells; a change only where it was another one.
void set_mode(Cell& root, bool Cell::* mode, bool value) {
  for (const auto& [path, cell] : root.cells_and_names()) {
    if (std::exchange(cell->*mode, value) != value) note_change();
  }
}

}  // namespace

Cell& Cell::set_train(bool training) {
  set_mode(*this, &Cell::training_, training);
  return *this;
}

Cell& Cell::set_grad(bool requires_grad) {
  set_mode(*this, &Cell::requires_grad_, requires_grad);
  return *this;
}

Cell& Cell::to_float(DType dtype) {
  if (dtype != DType::Float16 && dtype != DType::BFloat16 && dtype != DType::Float32) {
    fail(ErrorKind::Type, "[to_float] accepts float16, bfloat16 and float32, got {}", name(dtype));
  }
  note_change();
  for (const auto& [path, cell] : cells_and_names()) cell->compute_dtype_ = dtype;
  return *this;
}

Cell& Cell::give_float32() {
  note_change();
  gives_float32_ = true;
  return *this;
}

}  // namespace lamella::nn
