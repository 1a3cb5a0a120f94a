"""Cells that hold cells: by number, in a row, by name."""

import collections

from lamella import _native
from lamella.nn.cell import Cell

_nn = _native.nn


class _Numbered:
    """What lists of cells share; children are named by their numbers."""

    def _all(self):
        return [cell for _, cell in self._children()]

    def _replace(self, cells):
        for name, _ in self._children():
            self._remove(name)
        for number, cell in enumerate(cells):
            self._set_cell(str(number), _checked(cell, type(self).__name__))

    def _position(self, index):
        count = len(self)
        if not isinstance(index, int):
            raise TypeError(f"[{type(self).__name__}] an index is an integer, got {index!r}")
        if not -count <= index < count:
            raise IndexError(f"[{type(self).__name__}] index {index} is outside of {count} cells")
        return index % count

    def __len__(self):
        return len(self._children())

    def __iter__(self):
        return iter(self._all())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(self._all()[index])
        return self._all()[self._position(index)]

    def __setitem__(self, index, cell):
        position = self._position(index)
        name = self._children()[position][0]
        self._set_cell(name, _checked(cell, type(self).__name__))

    def __delitem__(self, index):
        cells = self._all()
        if isinstance(index, int):
            index = self._position(index)
        del cells[index]
        self._replace(cells)

    def append(self, cell):
        self._set_cell(str(len(self)), _checked(cell, type(self).__name__))
        return self

    def extend(self, cells):
        for cell in cells:
            self.append(cell)
        return self

    def insert(self, index, cell):
        cells = self._all()
        cells.insert(index, cell)
        self._replace(cells)


def _checked(cell, name):
    if not isinstance(cell, Cell):
        raise TypeError(f"[{name}] cells are expected, got {type(cell).__name__}")
    return cell


class CellList(_Numbered, _nn.CellList):
    """Cells in a list; not called as a whole."""

    def __init__(self, *args, **kwargs):
        super().__init__(kwargs.get("auto_prefix", True))
        self.__dict__["_made_with"] = ((), kwargs)
        cells = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        self.extend(cells)

    def construct(self, *inputs):
        raise NotImplementedError("[CellList] a list of cells is not called as a whole")


class SequentialCell(_Numbered, _nn.SequentialCell):
    """Cells called one after the other."""

    def __init__(self, *args):
        super().__init__()
        self.__dict__["_made_with"] = ((), {})
        if len(args) == 1 and isinstance(args[0], collections.OrderedDict):
            for name, cell in args[0].items():
                self._set_cell(name, _checked(cell, "SequentialCell"))
            return
        cells = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        self.extend(cells)

    def construct(self, input_data):
        for cell in self._all():
            input_data = cell(input_data)
        return input_data


class CellDict(Cell):
    """Cells by name."""

    def __init__(self, *args, **kwargs):
        super().__init__(kwargs.get("auto_prefix", True))
        self.update(args[0] if args else {})

    def update(self, cells):
        for name, cell in cells.items() if hasattr(cells, "items") else cells:
            self[name] = cell

    def __setitem__(self, name, cell):
        self._set_cell(name, _checked(cell, "CellDict"))

    def __getitem__(self, name):
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __delitem__(self, name):
        if not self._remove(name):
            raise KeyError(name)

    def __contains__(self, name):
        return self._find(name) is not None

    def __len__(self):
        return len(self._children())

    def __iter__(self):
        return iter(self.keys())

    def keys(self):
        return [name for name, _ in self._children()]

    def values(self):
        return [cell for _, cell in self._children()]

    def items(self):
        return self._children()
