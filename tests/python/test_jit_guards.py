"""What a trace depends on: whatever changes between two calls, a traced function notices."""

import array
import collections
import dataclasses
import datetime
import enum
import functools
import itertools
import operator
import os
import sys
import types

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint, nn, ops
from traces import entered, same, settled, values

X = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
Y = Tensor(np.arange(12, 24, dtype=np.float32).reshape(3, 4))


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


# ---- Changes that are noticed ----
# Each gives a function, and what changes something that it reads.


def by_name(read):
    thing = Plain(k=1.0)
    return lambda x: x * read(thing), lambda: setattr(thing, "k", 5.0)


def item_of(container, read=lambda held: held[0], write=lambda held: held.__setitem__(0, 5.0)):
    return lambda x: x * read(container), lambda: write(container)


def of_class(read, write, **attributes):
    kind = type("Kind", (), attributes)
    thing = kind()
    return lambda x: x * read(thing, kind), lambda: write(kind)


def name_in_a_variable():
    thing = Plain(k=1.0, m=2.0)

    def function(x):
        for name in ("k", "m"):
            x = x * getattr(thing, name)
        return x

    return function, lambda: setattr(thing, "m", 5.0)


def name_made_anew():
    thing = Plain(k1=1.0)
    return lambda x: x * getattr(thing, f"k{1}"), lambda: setattr(thing, "k1", 5.0)


def name_by_a_condition():
    thing, flag = Plain(k=1.0, m=1.0), [True]
    return (
        lambda x: x * getattr(thing, "k" if flag else "m", None),
        lambda: setattr(thing, "k", 5.0),
    )


def attribute_set_later():
    thing = Plain()

    def function(x):
        try:
            return x * thing.k
        except AttributeError:
            return x

    return function, lambda: setattr(thing, "k", 5.0)


def own_attribute_before_a_method_that_finds_it():
    class Table:
        def __init__(self):
            self.table = {"k": 2.0}

        def __getattr__(self, name):
            return self.__dict__["table"][name]

    table = Table()
    return lambda x: x * table.k, lambda: setattr(table, "k", 5.0)


def nested_class():
    class Outer:
        class In:
            k = 1.0

    return lambda x: x * Outer.In.k, lambda: setattr(Outer.In, "k", 5.0)


def callable_held_by_a_class():
    class Scale:
        k = 1.0

        def __call__(self, x):
            return x * self.k

    class Kind:
        scale = Scale()

    return lambda x: Kind().scale(x), lambda: setattr(Kind.scale, "k", 5.0)


def value_above_in_the_classes():
    class Base:
        k = 1.0

    class Kind(Base):
        k = 2.0

        def run(self, x):
            return x * super().k

    thing = Kind()
    return lambda x: thing.run(x), lambda: setattr(Base, "k", 5.0)


def method_above_in_the_classes():
    class Base:
        def run(self, x):
            return x

    class Kind(Base):
        def run(self, x):
            return super().run(x)

    thing = Kind()
    return lambda x: thing.run(x), lambda: setattr(Base, "run", lambda self, x: x * 5)


def operator_of_a_class():
    class Kind:
        def __rmul__(self, x):
            return x + 1

    thing = Kind()
    return lambda x: 2.0 * thing * x, lambda: setattr(Kind, "__rmul__", lambda self, x: x + 5)


def value_of_a_metaclass():
    class Meta(type):
        k = 1.0

    class Kind(metaclass=Meta):
        pass

    return lambda x: x * Kind.k, lambda: setattr(Meta, "k", 5.0)


def class_of_an_object_with_its_own_value():
    class Kind:
        k = 1.0

    thing = Kind()
    thing.k = 2.0
    return lambda x: x * type(thing).k, lambda: setattr(Kind, "k", 5.0)


def variable_set_later():
    def function(x):
        try:
            return x * late
        except NameError:
            return x

    def change():
        nonlocal late
        late = 5.0

    late = 1.0
    del late
    return function, change


def twins_of_one_code():
    def scaled(box):
        return lambda x: x * box.k

    boxes = Plain(k=1.0), Plain(k=2.0)
    first, second = scaled(boxes[0]), scaled(boxes[1])
    return lambda x: second(first(x)), lambda: setattr(boxes[1], "k", 5.0)


def made_before_by_a_function_that_also_runs():
    def scaled(box):
        return lambda x: x * box.k

    box = Plain(k=1.0)
    before = scaled(box)
    return lambda x: scaled(Plain(k=2.0))(before(x)), lambda: setattr(box, "k", 5.0)


def attribute_of_a_function():
    def function(x):
        return x * function.k

    function.k = 1.0
    return function, lambda: setattr(function, "k", 5.0)


def imported_where_it_is_used():
    module = types.ModuleType("lamella_settings_of_a_test")
    module.k = 1.0
    sys.modules[module.__name__] = module

    def function(x):
        import lamella_settings_of_a_test as settings

        return x * settings.k

    return function, lambda: setattr(module, "k", 5.0)


def name_imported_where_it_is_used():
    module = types.ModuleType("lamella_names_of_a_test")
    module.k = 1.0
    sys.modules[module.__name__] = module

    def function(x):
        from lamella_names_of_a_test import k

        return x * k

    return function, lambda: setattr(module, "k", 5.0)


def class_of_a_module_named_like_the_package():
    kind = type("Config", (), {"__module__": "mindspore_models"})
    thing = kind()
    thing.k = 1.0
    return lambda x: x * thing.k, lambda: setattr(thing, "k", 5.0)


def environment():
    os.environ["LAMELLA_TEST_SCALE"] = "1"
    return (
        lambda x: x * float(os.environ.get("LAMELLA_TEST_SCALE")),
        lambda: os.environ.__setitem__("LAMELLA_TEST_SCALE", "5"),
    )


def held_by_partial():
    box = Plain(k=1.0)
    times = functools.partial(lambda box, x: x * box.k, box)
    return lambda x: times(x), lambda: setattr(box, "k", 5.0)


def keyword_of_partial():
    times = functools.partial(lambda x, k: x * k, k=1.0)
    return lambda x: times(x), lambda: times.keywords.__setitem__("k", 5.0)


def method_held_as_a_function():
    thing = Plain(k=1.0)
    thing.run = types.MethodType(lambda self, x: x * self.k, thing)
    run = thing.run
    return lambda x: run(x), lambda: setattr(thing, "k", 5.0)


def objects_in_a_set():
    things = {Plain(k=1.0)}

    def function(x):
        for thing in things:
            x = x * thing.k
        return x

    return function, lambda: setattr(next(iter(things)), "k", 5.0)


def number_in_a_set():
    things = {1}

    def change():
        things.clear()
        things.add(1.0)

    whole = Tensor([2, 3], ms.int32)
    return lambda x: [whole * thing for thing in things], change


def keys_in_order(table, move):
    def function(x):
        for key in table:
            x = x * 2 + table[key]
        return x

    return function, lambda: move(table)


def to_the_end(table):
    table["a"] = table.pop("a")


def order_of_an_attribute():
    thing = Plain(table={"a": 1.0, "b": 2.0})

    def function(x):
        for _, value in thing.table.items():
            x = x * 2 + value
        return x

    return function, lambda: to_the_end(thing.table)


def order_of_keywords():
    def scaled(x, **factors):
        for value in factors.values():
            x = x * 2 + value
        return x

    run = functools.partial(scaled, a=1.0, b=2.0)
    return lambda x: run(x), lambda: to_the_end(run.keywords)


def order_of_a_global():
    table = {"a": 1.0, "b": 2.0}
    names = {"TABLE": table, "__builtins__": __builtins__}
    code = "def function(x):\n for key in TABLE:\n  x = x * 2 + TABLE[key]\n return x"
    exec(code, names)
    return names["function"], lambda: to_the_end(table)


def list_of_another_class():
    class Items(list):
        k = 1.0

    items = Items([1.0])
    return lambda x: x * items[0] * items.k, lambda: setattr(items, "k", 5.0)


def attribute_of_a_layer():
    pad = nn.Pad(((0, 0), (1, 1)), "CONSTANT")
    return lambda x: pad(x), lambda: setattr(pad, "mode", "REFLECT")


def construct_of_a_class():
    class Net(nn.Cell):
        def construct(self, x):
            return x

    net = Net()
    return lambda x: net(x), lambda: setattr(Net, "construct", lambda self, x: x * 5)


def parameter_that_is_trained():
    weight = Parameter(Tensor([1.0]))
    return (
        lambda x: x * (2 if weight.requires_grad else 3),
        lambda: setattr(weight, "requires_grad", False),
    )


def parameter_that_is_named_anew():
    weight = Parameter(Tensor([1.0]), name="w")
    return lambda x: x * len(weight.name), lambda: setattr(weight, "name", "weight")


def state_of_an_attribute_object(kind, **given):
    thing = kind(**given)
    return lambda x: x * thing.k, lambda: setattr(thing, "k", 5.0)


@dataclasses.dataclass
class Options:
    k: float = 1.0


def fields_of_a_dataclass():
    options = Options()
    return lambda x: x * dataclasses.asdict(options)["k"], lambda: setattr(options, "k", 5.0)


NOTICED = {
    "getattr": lambda: by_name(lambda thing: getattr(thing, "k")),  # noqa: B009
    "getattr with a default": lambda: by_name(lambda thing: getattr(thing, "k", 2.0)),
    "getattr under another name": lambda: by_name(lambda thing, get=getattr: get(thing, "k")),
    "getattr called for it": lambda: by_name(lambda thing: next(map(getattr, [thing], ["k"]))),
    "getattr held by partial": lambda: by_name(
        lambda thing: functools.partial(getattr, thing)("k")
    ),
    "attrgetter": lambda: by_name(lambda thing: operator.attrgetter("k")(thing)),
    "attrgetter made before": lambda: by_name(
        lambda thing, get=operator.attrgetter("k"): get(thing)
    ),
    "vars": lambda: by_name(lambda thing: vars(thing)["k"]),
    "__dict__": lambda: by_name(lambda thing: thing.__dict__["k"]),
    "__getattribute__": lambda: by_name(lambda thing: object.__getattribute__(thing, "k")),
    "hasattr": lambda: by_name(lambda thing: 2.0 if hasattr(thing, "later") else thing.k),
    "name in a variable": name_in_a_variable,
    "name made anew": name_made_anew,
    "name by a condition": name_by_a_condition,
    "attribute set later": attribute_set_later,
    "own attribute later": own_attribute_before_a_method_that_finds_it,
    "class attribute None": lambda: of_class(
        lambda thing, kind: thing.k or 1.0, lambda kind: setattr(kind, "k", 5.0), k=None
    ),
    "class attribute later": lambda: of_class(
        lambda thing, kind: getattr(thing, "k", 1.0), lambda kind: setattr(kind, "k", 5.0)
    ),
    "nested class": nested_class,
    "callable of a class": callable_held_by_a_class,
    "super value": value_above_in_the_classes,
    "super method": method_above_in_the_classes,
    "operator of a class": operator_of_a_class,
    "metaclass": value_of_a_metaclass,
    "type of an object": class_of_an_object_with_its_own_value,
    "variable set later": variable_set_later,
    "two functions of one code": twins_of_one_code,
    "function made before": made_before_by_a_function_that_also_runs,
    "attribute of a function": attribute_of_a_function,
    "import": imported_where_it_is_used,
    "import of a name": name_imported_where_it_is_used,
    "module named alike": class_of_a_module_named_like_the_package,
    "environment": environment,
    "partial": held_by_partial,
    "keyword of partial": keyword_of_partial,
    "method as a function": method_held_as_a_function,
    "objects in a set": objects_in_a_set,
    "number in a set": number_in_a_set,
    "order of a dictionary": lambda: keys_in_order({"a": 1.0, "b": 2.0}, to_the_end),
    "order of an OrderedDict": lambda: keys_in_order(
        collections.OrderedDict(a=1.0, b=2.0), lambda table: table.move_to_end("a")
    ),
    "order of a Counter": lambda: keys_in_order(collections.Counter(a=1, b=2), to_the_end),
    "order of a subclass": lambda: keys_in_order(
        type("Ordered", (collections.OrderedDict,), {})(a=1.0, b=2.0),
        lambda table: table.move_to_end("a"),
    ),
    "order of a global": order_of_a_global,
    "order of an attribute": order_of_an_attribute,
    "order of keywords": order_of_keywords,
    "subclass of list": list_of_another_class,
    "namespace": lambda: state_of_an_attribute_object(types.SimpleNamespace, k=1.0),
    "dataclass": lambda: state_of_an_attribute_object(Options),
    "fields of a dataclass": fields_of_a_dataclass,
    "deque": lambda: item_of(collections.deque([1.0])),
    "array": lambda: item_of(array.array("f", [1.0])),
    "bytearray": lambda: item_of(bytearray(b"1"), write=lambda held: held.__setitem__(0, 5)),
    "UserList": lambda: item_of(collections.UserList([1.0])),
    "UserDict": lambda: item_of(collections.UserDict({0: 1.0})),
    "ChainMap": lambda: item_of(collections.ChainMap({0: 1.0})),
    "OrderedDict": lambda: item_of(collections.OrderedDict({0: 1.0})),
    "defaultdict": lambda: item_of(collections.defaultdict(float, {0: 1.0})),
    "dictionary view": lambda: item_of(
        (lambda table: types.SimpleNamespace(view=table.values(), table=table))({0: 1.0}),
        lambda held: next(iter(held.view)),
        lambda held: held.table.__setitem__(0, 5.0),
    ),
    "layer": attribute_of_a_layer,
    "construct": construct_of_a_class,
    "requires_grad": parameter_that_is_trained,
    "name of a parameter": parameter_that_is_named_anew,
}


@pytest.mark.parametrize("case", NOTICED)
def test_a_change_is_noticed(case):
    function, change = NOTICED[case]()
    compiled = ms.jit(function)
    same(compiled, function, X)
    before = values(function(X))
    change()
    same(compiled, function, X)
    if case != "hasattr":
        assert str(values(function(X))) != str(before), "the change must change something"


@pytest.mark.parametrize(
    ("function", "module", "name"),
    [
        (lambda x: ops.relu(x - 5), ops, "relu"),
        (lambda x: ms.ops.relu(x - 5), ops, "relu"),
        (lambda x: mint.nn.functional.relu(x - 5), mint.nn.functional, "relu"),
        (lambda x: x * float(np.sqrt(4.0)), np, "sqrt"),
    ],
)
def test_a_library_function_that_is_replaced_is_noticed(function, module, name, monkeypatch):
    compiled = settled(function, X)
    before = values(function(X))
    monkeypatch.setattr(module, name, lambda value: value * 10.0)
    same(compiled, function, X)
    assert values(function(X)) != before


# ---- What cannot be repeated ----


def next_of(iterator):
    return lambda x: x * next(iterator)


def rotating():
    held = collections.deque([1.0, 2.0, 3.0])

    def function(x):
        held.rotate(1)
        return x * held[0]

    return function


def keeping(keep):
    held = Plain(items=[X], table={})

    def function(x):
        keep(held, x)
        return x, held.last if hasattr(held, "last") else held.items + list(held.table.values())

    return function


def held_clock():
    clock = datetime.datetime
    return lambda x: x + clock.now().microsecond


def keep_attribute(held, x):
    held.last = x


def keep_by_name(held, x):
    setattr(held, "last", x)  # noqa: B010


def keep_item(held, x):
    held.items[0] = x


def keep_key(held, x):
    held.table["k"] = x


EACH_CALL = {
    "count": lambda: next_of(itertools.count(1)),
    "list iterator": lambda: next_of(iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
    "cycle": lambda: next_of(itertools.cycle([1.0, 2.0, 3.0])),
    "next as a method": lambda: (lambda step: lambda x: x * step())(itertools.count(1).__next__),
    "deque": rotating,
    "kept attribute": lambda: keeping(keep_attribute),
    "attribute kept by name": lambda: keeping(keep_by_name),
    "kept item": lambda: keeping(keep_item),
    "kept key": lambda: keeping(keep_key),
}


@pytest.mark.parametrize("case", EACH_CALL)
def test_what_moves_on_at_every_call(case):
    compiled, function = ms.jit(EACH_CALL[case]()), EACH_CALL[case]()
    for x in [X, X, X, X, Y, X, Y]:
        assert values(compiled(x)) == values(function(x))


def test_a_clock_is_read_at_every_call():
    function = held_clock()
    compiled = ms.jit(function)
    for _ in range(5):
        ran, _ = entered(function, lambda: compiled(X))
        assert ran


# ---- Arguments that are changed ----


def append(x, held):
    held.append(x * 2)
    return x


def replace_item(x, held):
    held[0] = x * 2
    return x


def replace_number(x, held):
    held[1] = 7.0
    return x


def cut(x, held):
    del held[1:]
    return x


@pytest.mark.parametrize("function", [append, replace_item, replace_number, cut])
def test_what_is_written_into_a_list_that_is_given(function):
    compiled = ms.jit(function)
    for _ in range(5):
        given, expected = [X, 1.0], [X, 1.0]
        compiled(X, given)
        function(X, expected)
        assert values(given) == values(expected)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_what_is_written_into_a_dictionary_that_is_given(mode):
    class Net(nn.Cell):
        def construct(self, x, cache):
            cache["k"] = x * 2
            return x

    net = Net()
    ms.set_context(mode=mode)
    try:
        for _ in range(5):
            cache = {}
            net(X, cache)
            assert values(cache) == values({"k": X * 2})
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_lists_that_are_given_and_only_read_are_traced():
    key = enum.Enum("Key", "A").A

    def function(x, held, table):
        return x * held[0] + held[1]["k"] * table[key]

    settled(function, X, [2.0, {"k": Y}], {key: 3.0})


def test_a_list_of_another_class_that_is_given():
    class Items(list):
        pass

    def function(x, items):
        return x * items[0]

    items = Items([2.0])
    compiled = settled(function, X, items)
    items[0] = 5.0
    same(compiled, function, X, items)


# ---- Arguments that are also reached in another way ----


def test_an_argument_that_is_also_a_variable():
    def function(x):
        return x + X

    compiled = ms.jit(function)
    for x in [X, X, X, Y, Y, X]:
        assert values(compiled(x)) == values(function(x))


def test_a_variable_that_becomes_an_argument():
    held = Tensor([1.0, 2.0])

    def function(x):
        before = held * 1
        x += 1
        return before, held * 1

    compiled = ms.jit(function)
    for _ in range(4):
        compiled(Tensor([3.0, 4.0]))
    assert values(compiled(held)) == [[1.0, 2.0], [2.0, 3.0]]


# ---- Errors of the user's methods ----


@pytest.mark.parametrize("method", ["__getattr__", "__getattribute__"])
def test_errors_of_methods_that_find_attributes_stay_inside(method):
    class Table:
        def __init__(self):
            object.__setattr__(self, "table", {"k": 2.0})

        def find(self, name):
            return object.__getattribute__(self, "table")[name]

    setattr(Table, method, Table.find)
    table = Table()
    calls = []

    def function(x):
        calls.append(1)
        return x * table.k

    compiled = ms.jit(function)
    for count in range(1, 5):
        assert values(compiled(X)) == values(X * 2)
        assert len(calls) == count


# ---- What stays traceable ----


class Mode(enum.Enum):
    A = 1
    B = 2


Point = collections.namedtuple("Point", "a b")


class Named(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer0 = nn.Dense(4, 4)
        self.scale = 2.0

    def construct(self, x):
        return getattr(self, "layer0")(x) * getattr(self, "scale", 1.0)  # noqa: B009


def inner_recursion(x):
    def go(n, y):
        return y if n == 0 else go(n - 1, y * 2)

    return go(3, x)


def caught(x):
    try:
        return x * {}["k"]
    except KeyError:
        return x * 3


def iterated(x):
    for i, factor in zip(itertools.count(), (1.0, 2.0), strict=False):
        x = x * factor + i
    return functools.reduce(operator.add, [x, x])


TRACED = {
    "getattr": lambda: (lambda net: lambda x: net(x))(Named()),
    "name in a variable": lambda: name_in_a_variable()[0],
    "enum": lambda: (lambda mode: lambda x: x * mode.value if mode is Mode.A else x)(Mode.A),
    "named tuple": lambda: (lambda point: lambda x: x * point.a + point.b)(Point(1.0, Y)),
    "dataclass": lambda: fields_of(Options()),
    "namespace": lambda: fields_of(types.SimpleNamespace(k=1.0)),
    "partial": lambda: held_by_partial()[0],
    "default dictionary": lambda: (lambda held: lambda x: x * held["k"])(
        collections.defaultdict(float, k=2.0)
    ),
    "super": lambda: value_above_in_the_classes()[0],
    "inner recursion": lambda: inner_recursion,
    "caught error": lambda: caught,
    "iterators made inside": lambda: iterated,
    "class attribute None": lambda: NOTICED["class attribute None"]()[0],
    "nested class": lambda: nested_class()[0],
    "set": lambda: objects_in_a_set()[0],
    "import": lambda: imported_where_it_is_used()[0],
    "NumPy numbers": lambda: (lambda k: lambda x: x * float(np.sqrt(k)) * np.pi)(np.float32(4.0)),
}


def fields_of(thing):
    return lambda x: x * thing.k


@pytest.mark.parametrize("case", TRACED)
def test_ordinary_python_is_traced(case):
    function = TRACED[case]()
    compiled = ms.jit(function)
    same(compiled, function, X)
    ran, _ = entered(function, lambda: compiled(X))
    assert not ran


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_attributes_by_name_in_a_cell(mode):
    net = Named()
    ms.set_context(mode=mode)
    try:
        for scale in (2.0, 5.0):
            net.scale = scale
            expected = values(net.layer0(X) * scale)
            for _ in range(4):
                assert values(net(X)) == expected
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
