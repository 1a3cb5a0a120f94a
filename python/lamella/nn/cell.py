"""Cell: what a layer does in Python. The tree of cells and parameters is kept in C++."""

import collections
import functools
import types
import weakref

from lamella import _native, jit
from lamella._native import Tensor
from lamella.nn.parameter import Parameter

Cell = _native.nn.Cell
_graph_mode = False
_tracing = _native.jit.tracing
_NATIVE_CONSTRUCT = type(Cell.construct)


def _is_native(cell):
    return isinstance(type(cell).construct, _NATIVE_CONSTRUCT)


# ---- Attributes ----


def _set_attribute(self, name, value):
    if isinstance(value, Cell):
        self.__dict__.pop(name, None)
        self._set_cell(name, value)
    elif isinstance(value, Parameter):
        self.__dict__.pop(name, None)
        self._set_parameter(name, value)
    else:
        known = self._find(name) if not name.startswith("__") else None
        if isinstance(known, Parameter) and isinstance(value, Tensor):
            known.set_data(value)
            return
        if known is not None:
            if isinstance(value, Tensor) and not isinstance(known, Cell):
                self._set_buffer(name, value, True)
                return
            self._remove(name)
        object.__setattr__(self, name, value)


def _get_attribute(self, name):
    if name.startswith("__"):
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
    found = self._find(name)
    if found is None:
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
    return found


def _delete_attribute(self, name):
    if not self._remove(name):
        object.__delattr__(self, name)


# ---- Calling ----


def _cast_inputs(cell, args):
    dtype = cell._compute_dtype
    if dtype is None:
        return args
    return tuple(
        arg.astype(dtype)
        if isinstance(arg, Tensor) and arg.is_floating_point() and arg.dtype != dtype
        else arg
        for arg in args
    )


def _widened(outputs):
    """16-bit floats as float32."""
    if isinstance(outputs, (tuple, list)):
        return type(outputs)(_widened(output) for output in outputs)
    narrow = isinstance(outputs, Tensor) and outputs.dtype in (_native.float16, _native.bfloat16)
    return outputs.astype(_native.float32) if narrow else outputs


def _hooks(cell, kind):
    return list(cell.__dict__.get(kind, {}).values())


def _with_hooks(self, args, kwargs):
    if _hooks(self, "_pre_hooks") or _hooks(self, "_forward_hooks"):
        _native.jit.cannot_repeat("a hook runs")
    for hook, with_kwargs in _hooks(self, "_pre_hooks"):
        replaced = hook(self, args, kwargs) if with_kwargs else hook(self, args)
        if replaced is not None:
            if with_kwargs:
                args, kwargs = replaced
            else:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    watched = "_gradient_hooks" in self.__dict__ and not _is_native(self)
    if watched:
        args = _around(self._around_inputs, args)
    if _is_native(self):
        outputs = self._run(*args, **kwargs)
    elif _has_gradient_of_its_own(self):
        outputs = _with_bprop(self, _cast_inputs(self, args))
    else:
        outputs = self.construct(*_cast_inputs(self, args), **kwargs)
    if self._gives_float32:
        outputs = _widened(outputs)
    for hook, with_kwargs in _hooks(self, "_forward_hooks"):
        given = (self, args, kwargs, outputs) if with_kwargs else (self, args, outputs)
        replaced = hook(*given)
        if replaced is not None:
            outputs = replaced
    if watched:
        several = isinstance(outputs, tuple)
        outputs = _around(self._around_outputs, outputs if several else (outputs,))
        outputs = outputs if several else outputs[0]
    return outputs


def _around(function, values):
    """Puts the tensors among values through a function."""
    passed = iter(function(*[value for value in values if isinstance(value, Tensor)]))
    return tuple(next(passed) if isinstance(value, Tensor) else value for value in values)


def _call(self, *args, **kwargs):
    if (_graph_mode or "_traces" in self.__dict__) and not _tracing():
        return jit.traces_of(self).call((self, *args), kwargs)
    return call_untraced(self, *args, **kwargs)


def set_graph_mode(on):
    """Whether a cell that is called is traced as by jit."""
    global _graph_mode
    _graph_mode = on


def call_untraced(self, *args, **kwargs):
    """The call itself."""
    hooked = "_pre_hooks" in self.__dict__ or "_forward_hooks" in self.__dict__
    if _is_native(self) and not hooked and not kwargs:
        return self._run(*args)
    return self._scoped(_with_hooks, self, args, kwargs)


def _construct(self, *args):
    """How C++ calls a construct written in Python; the scope is open already."""
    return _with_hooks(self, args, {})


def _has_gradient_of_its_own(cell):
    return "bprop" in dir(type(cell))


def _with_bprop(cell, args):
    """construct, with bprop(*inputs, output, output's gradient) as its gradient."""
    _native.jit.cannot_repeat(f"{type(cell).__name__} has a gradient of its own")
    tensors = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    structure = []

    def forward(*operands):
        inputs = list(args)
        for i, operand in zip(tensors, operands, strict=True):
            inputs[i] = operand
        outputs = cell.construct(*inputs)
        structure.append(isinstance(outputs, tuple))
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def backward(operands, results, cotangents):
        inputs = list(args)
        for i, operand in zip(tensors, operands, strict=True):
            inputs[i] = operand
        filled = tuple(
            result * 0 if cotangent is None else cotangent
            for result, cotangent in zip(results, cotangents, strict=True)
        )
        several = structure[0]
        output = results if several else results[0]
        gradients = cell.bprop(*inputs, output, filled if several else filled[0])
        gradients = gradients if isinstance(gradients, (tuple, list)) else (gradients,)
        return tuple(gradients[i] if i < len(gradients) else None for i in tensors)

    results = _native.with_gradient([args[i] for i in tensors], forward, backward)
    return tuple(results) if structure[0] else results[0]


# ---- Hooks ----


class HookHandle:
    """Takes a hook away again."""

    def __init__(self, cell, hooks, key):
        self._cell, self._hooks, self._key = weakref.ref(cell), hooks, key

    def remove(self):
        self._hooks.pop(self._key, None)
        if (cell := self._cell()) is not None:
            cell._note_revision()


def _add_hook(cell, kind, hook, prepend, with_kwargs):
    if not callable(hook):
        raise TypeError(f"[Cell] a hook is a function, got {type(hook).__name__}")
    hooks = cell.__dict__.setdefault(kind, collections.OrderedDict())
    key = object()
    hooks[key] = (hook, with_kwargs)
    cell._note_revision()
    if prepend:
        hooks.move_to_end(key, last=False)
    return HookHandle(cell, hooks, key)


def _register_forward_pre_hook(self, hook_fn, *, prepend=False, with_kwargs=False):
    """Called with (cell, inputs) before construct; what it returns replaces the inputs."""
    return _add_hook(self, "_pre_hooks", hook_fn, prepend, with_kwargs)


def _register_forward_hook(self, hook_fn, *, prepend=False, with_kwargs=False, always_call=False):
    """Called with (cell, inputs, output) after construct; what it returns replaces the output."""
    return _add_hook(self, "_forward_hooks", hook_fn, prepend, with_kwargs)


def _add_gradient_hook(cell, kind, hook):
    if "_gradient_hooks" not in cell.__dict__:
        cell.__dict__["_gradient_hooks"] = True
        cell._watch_gradients()
    return _add_hook(cell, kind, hook, False, False)


def _register_backward_hook(self, hook_fn):
    """Called with (cell, gradients of inputs, of outputs); what it returns replaces the former."""
    return _add_gradient_hook(self, "_backward_hooks", hook_fn)


def _register_backward_pre_hook(self, hook_fn):
    """Called with (cell, gradients of outputs) before; what it returns replaces them."""
    return _add_gradient_hook(self, "_backward_pre_hooks", hook_fn)


def _output_gradients(self, gradients):
    for hook, _ in _hooks(self, "_backward_pre_hooks"):
        gradients = _replaced(hook(self, gradients), gradients)
    return gradients


def _input_gradients(self, gradients, output_gradients):
    for hook, _ in _hooks(self, "_backward_hooks"):
        gradients = _replaced(hook(self, gradients, output_gradients), gradients)
    return gradients


def _replaced(given, gradients):
    if given is None:
        return gradients
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


# ---- The tree ----


def _cells_and_names(self, cells=None, name_prefix=""):
    """(path, cell) of this cell and all below."""
    yield from self._cells_and_names(name_prefix)


def _parameters_and_names(self, name_prefix="", expand=True):
    """(path, parameter) of all parameters of the tree."""
    if not expand:
        prefix = name_prefix + "." if name_prefix else ""
        yield from ((prefix + name, parameter) for name, parameter in self._own_parameters())
        return
    yield from self._parameters_and_names(name_prefix)


def _get_parameters(self, expand=True):
    """The parameters of the tree."""
    return (parameter for _, parameter in _parameters_and_names(self, "", expand))


def _trainable_params(self, recurse=True):
    """Parameters that are trained."""
    return [p for p in _get_parameters(self, recurse) if p.requires_grad]


def _untrainable_params(self, recurse=True):
    return [p for p in _get_parameters(self, recurse) if not p.requires_grad]


def _parameters_dict(self, recurse=True):
    """Parameters by their names."""
    return collections.OrderedDict((p.name, p) for p in _get_parameters(self, recurse))


def _cells(self):
    return [cell for _, cell in self._children()]


def _name_cells(self):
    return collections.OrderedDict(self._children())


def _insert_param(self, param_name, param, check_name_contain_dot=True):
    self._set_parameter(param_name, param)


def _insert_child(self, child_name, child_cell):
    self._set_cell(child_name, child_cell)


def _register_buffer(self, name, tensor, persistent=True):
    self.__dict__.pop(name, None)
    if tensor is None:
        object.__setattr__(self, name, None)
    else:
        self._set_buffer(name, tensor, persistent)


def _buffers(self, recurse=True):
    rows = self._buffers_and_names("") if recurse else self._own_buffers()
    return (tensor for _, tensor, _ in rows)


def _named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
    return ((name, tensor) for name, tensor, _ in self._buffers_and_names(prefix))


def _get_sub_cell(self, name):
    cell = self
    for part in name.split("."):
        cell = getattr(cell, part)
    return cell


def _apply(self, fn):
    """Calls fn with every cell, children first."""
    for cell in _cells(self):
        cell.apply(fn)
    fn(self)
    return self


# ---- Modes ----


def _set_train(self, mode=True):
    """Training or inference, for this cell and all below."""
    self._set_train(bool(mode))
    return self


def _set_grad(self, requires_grad=True):
    self._set_grad(bool(requires_grad))
    return self


def _to_float(self, dst_type):
    """Casts float inputs and parameters where they are used."""
    self._to_float(dst_type)
    return self


def _freeze(self):
    """No parameter of the tree is trained from now on."""
    for parameter in _get_parameters(self):
        parameter.requires_grad = False
    return self


def _accept(self, *args, **kwargs):
    return self


# ---- Copies and text ----


def _reduce(self):
    """For copies and pickles: made anew with its arguments, then given its parts."""
    return _make, (type(self), self._arguments()), _state(self)


def _make(kind, arguments):
    args, kwargs = arguments
    cell = kind.__new__(kind)
    # First values that the parts replace; they must not move the generator.
    random_state = _native.random_state()
    _package_class(kind).__init__(cell, *args, **kwargs)
    _native.set_random_state(*random_state)
    return cell


def _package_class(kind):
    package = ("lamella.", "mindspore.nn")
    return next(each for each in kind.__mro__ if each.__module__.startswith(package))


class _MadeWithParent:
    """The state of a cell that C++ makes with the one it is part of."""

    def __init__(self, cell):
        self.state = _state(cell)


def _is_made_with_parent(cell):
    return type(cell).__module__.startswith("lamella._native")


def _state(cell):
    children = [
        (name, _MadeWithParent(child) if _is_made_with_parent(child) else child)
        for name, child in cell._children()
    ]
    return (
        children, cell._own_parameters(), cell._own_buffers(),
        (cell.training, cell.requires_grad, cell._compute_dtype, cell._gives_float32),
        dict(cell.__dict__),
    )  # fmt: skip


def _set_state(self, state):
    children, parameters, buffers, modes, attributes = state
    training, requires_grad, dtype, gives_float32 = modes
    self.__dict__.clear()
    self.__dict__.update(attributes)
    self._set_train(training)
    self._set_grad(requires_grad)
    if dtype is not None:
        self._to_float(dtype)
    if gives_float32:
        self._give_float32()
    if "_gradient_hooks" in attributes:
        self._watch_gradients()
    self._take_parts(children, parameters, buffers)  # which have modes of their own


def _take_parts(self, children, parameters, buffers):
    made = {name for name, child in children if isinstance(child, _MadeWithParent)}
    for name, _ in self._children() + self._own_parameters():
        if name not in made:
            self._remove(name)
    for name, parameter in parameters:
        self._set_parameter(name, parameter)
    for name, child in children:
        if name in made:
            _set_state(self._find(name), child.state)
        else:
            self._adopt_cell(name, child)
    for name, tensor, persistent in buffers:
        self._set_buffer(name, tensor, persistent)


def _arguments(self):
    return self.__dict__.get("_made_with", ((), {}))


def _represent(self):
    lines = []
    for name, child in self._children():
        text = repr(child).replace("\n", "\n  ")
        lines.append(f"  ({name}): {text}")
    head = f"{type(self).__name__}("
    own = self.extend_repr()
    if not lines:
        return f"{head}{own})"
    return "\n".join([head + own, *lines, ")"])


_METHODS = {
    "__setattr__": _set_attribute,
    "__getattr__": _get_attribute,
    "__delattr__": _delete_attribute,
    "__call__": _call,
    "__repr__": _represent,
    "__reduce__": _reduce,
    "__setstate__": _set_state,
    "_take_parts": _take_parts,
    "_construct": _construct,
    "_arguments": _arguments,
    "extend_repr": lambda self: self._description(),
    "cls_name": property(lambda self: type(self).__name__),
    "cells_and_names": _cells_and_names,
    "cells": _cells,
    "name_cells": _name_cells,
    "parameters_and_names": _parameters_and_names,
    "get_parameters": _get_parameters,
    "trainable_params": _trainable_params,
    "untrainable_params": _untrainable_params,
    "parameters_dict": _parameters_dict,
    "insert_param_to_cell": _insert_param,
    "insert_child_to_cell": _insert_child,
    "register_buffer": _register_buffer,
    "buffers": _buffers,
    "named_buffers": _named_buffers,
    "get_buffer": lambda self, target: _get_sub_cell(self, target),
    "get_sub_cell": _get_sub_cell,
    "update_parameters_name": lambda self, prefix="", recurse=True: self._update_names(prefix),
    "update_cell_prefix": lambda self: None,
    "apply": _apply,
    "set_train": _set_train,
    "set_grad": _set_grad,
    "to_float": _to_float,
    "freeze_parameters": _freeze,
    "register_forward_hook": _register_forward_hook,
    "register_forward_pre_hook": _register_forward_pre_hook,
    "register_backward_hook": _register_backward_hook,
    "register_backward_pre_hook": _register_backward_pre_hook,
    "_output_gradients": _output_gradients,
    "_input_gradients": _input_gradients,
    "recompute": _accept,
    "set_inputs": _accept,
    "set_jit_config": _accept,
    "compile": _accept,
    "init_parameters_data": lambda self, auto_parallel_mode=False: {},
    "set_data_parallel": _accept,
    "add_flags": _accept,
    "add_flags_recursive": _accept,
    "_cells": property(_name_cells),
    "_params": property(lambda self: collections.OrderedDict(self._own_parameters())),
}


def make_children(cell, **makers):
    """Puts cells of the package's classes in the place of those C++ made, with their parts."""
    random_state = _native.random_state()
    for name, make in makers.items():
        old, new = cell._find(name), make()
        new._take_parts(old._children(), old._own_parameters(), old._own_buffers())
        cell._set_cell(name, new)
    _native.set_random_state(*random_state)


def _init_of(kind):
    """A layer's __init__ under the layer's name, by which Python's errors call it."""
    made = kind.__init__
    if isinstance(made, types.FunctionType):
        if "__init__" not in vars(kind):  # shared with others
            shared = made
            made = types.FunctionType(
                shared.__code__, shared.__globals__, shared.__name__, shared.__defaults__,
                shared.__closure__,
            )  # fmt: skip
            made.__kwdefaults__ = shared.__kwdefaults__
        made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


def layer(kind):
    """A layer under MindSpore's arguments; copies and pickles make it with the same again."""
    made = _init_of(kind)

    @functools.wraps(made)
    def __init__(self, *args, **kwargs):  # noqa: N807
        with _native.CallSite():  # parameters are the user's, made at this line
            made(self, *args, **kwargs)
        self.__dict__["_made_with"] = (args, kwargs)

    kind.__init__ = __init__
    return kind


for _name, _method in _METHODS.items():
    setattr(Cell, _name, _method)
Cell.__module__ = "mindspore.nn"
