"""Shapes, pieces and places of Tensors and Variables."""

from typing import List, Optional, Sequence, Union

import numpy as np

from argosy import _core
from argosy._apply import Tensor, apply, apply_one, as_array, is_value, is_variable
from argosy._math import cast, multiply, named
from argosy.dtypes import dtype_name, engine_name


def ints(values) -> List[int]:
    """Whole numbers from a list, a tuple, an array or a Tensor of them."""
    if isinstance(values, Tensor):
        return [int(v) for v in values.numpy().reshape(-1)]
    if isinstance(values, (list, tuple, np.ndarray)):
        return [int(v) for v in values]
    return [int(values)]


def reshape(x, shape, name=None):
    """The same elements under another shape; one -1 is worked out, a 0 keeps the size."""
    return named(apply_one("reshape", [x], {"shape": ints(shape)}), name)


view = reshape


def flatten(x, start_axis=0, stop_axis=-1, name=None):
    """Several axes as one."""
    rank = len(x.shape)
    first = start_axis + rank if start_axis < 0 else start_axis
    last = stop_axis + rank if stop_axis < 0 else stop_axis
    shape = [0] * first + [-1] + list(x.shape[last + 1:])
    if shape.count(-1) > 1:
        raise _core.ConfigError(f"flatten: of {x.shape} several sizes are unknown")
    return reshape(x, shape, name)


def transpose(x, perm, name=None):
    """Axis i of the result is axis perm[i] of x."""
    return named(apply_one("transpose", [x], {"perm": [p + len(x.shape) if p < 0 else p
                                                       for p in ints(perm)]}), name)


def t(input, name=None):
    """A matrix turned over its diagonal."""
    if len(input.shape) > 2:
        raise _core.ConfigError(f"t takes at most 2 axes, got {input.shape}")
    return input if len(input.shape) < 2 else transpose(input, [1, 0], name)


def moveaxis(x, source, destination, name=None):
    """x with some axes moved to other places."""
    rank = len(x.shape)
    source = [a % rank for a in ints(source)]
    destination = [a % rank for a in ints(destination)]
    order = [a for a in range(rank) if a not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return transpose(x, order, name)


def squeeze(x, axis=None, name=None):
    """x without these axes if they have size 1; without all such axes if none is named."""
    rank = len(x.shape)
    axes = range(rank) if axis is None else [a % rank for a in ints(axis)]
    axes = [a for a in axes if x.shape[a] == 1]
    return named(apply_one("squeeze", [x], {"axes": axes}), name) if axes else x


def unsqueeze(x, axis, name=None):
    """x with axes of size 1 at these places."""
    return named(apply_one("unsqueeze", [x], {"axes": ints(axis)}), name)


def _one_type(values) -> list:
    values = [value if is_value(value) else Tensor(as_array(value)) for value in values]
    return values


def concat(x, axis=0, name=None):
    """Values one after another along an axis."""
    axis = ints(axis)[0] if is_value(axis) else int(axis)
    return named(apply_one("concat", _one_type(x), {"axis": axis}), name)


def stack(x, axis=0, name=None):
    """Values of one shape side by side along a new axis."""
    return named(apply_one("stack", _one_type(x), {"axis": int(axis)}), name)


def split(x, num_or_sections, axis=0, name=None) -> list:
    """x cut along an axis into equal parts, or into parts of these sizes (one may be -1)."""
    axis = ints(axis)[0] if is_value(axis) else int(axis)
    if isinstance(num_or_sections, int):
        return apply("split", [x], {"axis": axis, "num": num_or_sections})
    sizes = ints(num_or_sections)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(size for size in sizes if size != -1)
    return apply("split", [x], {"axis": axis, "sizes": sizes})


def chunk(x, chunks, axis=0, name=None) -> list:
    """x cut along an axis into equal parts."""
    return split(x, chunks, axis)


def unbind(input, axis=0) -> list:
    """The slices of a value along an axis."""
    count = input.shape[axis]
    return [squeeze(part, axis) for part in split(input, count, axis)]


unstack = unbind


def tile(x, repeat_times, name=None):
    """x repeated along each axis."""
    return named(apply_one("tile", [x], {"repeats": ints(repeat_times)}), name)


def expand(x, shape, name=None):
    """x broadcast to a shape, in which -1 keeps a size."""
    if x.dtype in ("float32", "float64"):
        return named(apply_one("expand", [x], {"shape": ints(shape)}), name)
    return cast(expand(cast(x, "float64"), shape, name), x.dtype)


broadcast_to = expand


def expand_as(x, y, name=None):
    """x broadcast to the shape of y."""
    return expand(x, y.shape, name)


def gather(x, index, axis=0, name=None):
    """The slices of x along an axis that the index names."""
    axis = ints(axis)[0] if axis is not None else 0
    if len(index.shape) == 2 and index.shape[1] == 1:
        index = squeeze(index, 1)
    return named(apply_one("gather", [x, index], {"axis": axis}), name)


def index_select(x, index, axis=0, name=None):
    """The slices of x along an axis that the index names."""
    return named(apply_one("gather", [x, index], {"axis": int(axis)}), name)


def gather_nd(x, index, name=None):
    """x at the places whose numbers stand along the index's last axis."""
    sizes, depth = list(x.shape), index.shape[-1]
    flat = None
    for axis, part in enumerate(unbind(index, -1)):
        place = part if flat is None else multiply(flat, sizes[axis]) + part
        flat = place
    rows = reshape(x, [-1] + sizes[depth:])
    return named(apply_one("gather", [rows, flat], {"axis": 0}), name)


def take_along_axis(arr, indices, axis, name=None):
    """Elements along an axis by an index of the same rank."""
    return named(apply_one("take_along_axis", [arr, indices], {"axis": int(axis)}), name)


def index_sample(x, index):
    """For each row of x the elements that the same row of the index names."""
    return take_along_axis(x, index, 1)


def scatter(x, index, updates, overwrite=True, name=None):
    """x with the rows that the index names replaced by updates, or with overwrite=False by their sum."""
    index = reshape(index, [-1])
    kept = apply_one("scatter_add", [_zeros([x.shape[0]], "float32"), index,
                                     _ones_of(index, "float32")], {})
    mask = reshape(cast(kept == 0, x.dtype), [-1] + [1] * (len(x.shape) - 1))
    if overwrite:
        last = {int(row): i for i, row in enumerate(index.numpy())}
        order = Tensor(np.array(list(last.values()), dtype="int64"))
        index, updates = gather(index, order), gather(updates, order)
    return named(apply_one("scatter_add", [multiply(x, mask), index, updates], {}), name)


def _zeros(shape, dtype):
    return _core.empty(shape, dtype)


def _ones_of(index, dtype):
    return Tensor(np.ones(index.shape, dtype=dtype))


def scatter_nd_add(x, index, updates, name=None):
    """x with updates added at the places whose numbers stand along the index's last axis."""
    if index.shape[-1] != 1:
        raise _core.ConfigError("scatter_nd_add: only an index of one axis is supported")
    return named(apply_one("scatter_add", [x, squeeze(index, -1), updates], {}), name)


def slice(input, axes, starts, ends, name=None):
    """input[start:end] on each of these axes."""
    most = 2**31 - 1
    limits = [min(end, most) for end in ints(ends)]
    return named(apply_one("slice", [input], {"axes": ints(axes), "starts": ints(starts),
                                              "ends": limits}), name)


def strided_slice(x, axes, starts, ends, strides, name=None):
    """input[start:end:stride] on each of these axes."""
    key = [_slice_type(None)] * len(x.shape)
    for axis, start, end, stride in zip(ints(axes), ints(starts), ints(ends), ints(strides)):
        key[axis] = _slice_type(start, end, stride)
    return named(getitem(x, tuple(key)), name)


_slice_type = type(np.s_[:])


def roll(x, shifts, axis=None, name=None):
    """x with elements moved along an axis, those beyond the end to the start."""
    if axis is None:
        return reshape(roll(reshape(x, [-1]), shifts, 0), x.shape, name)
    for shift, a in zip(ints(shifts), ints(axis)):
        size = x.shape[a]
        cut = -shift % size
        if cut:
            x = concat([slice(x, [a], [cut], [size]), slice(x, [a], [0], [cut])], a)
    return named(x, name)


def flip(x, axis, name=None):
    """x backwards along some axes."""
    for a in ints(axis):
        index = np.arange(x.shape[a] - 1, -1, -1, dtype="int64")
        x = apply_one("gather", [x, index], {"axis": a % len(x.shape)})
    return named(x, name)


def repeat_interleave(x, repeats, axis=None, name=None):
    """Each slice along an axis repeated."""
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    index = np.repeat(np.arange(x.shape[axis], dtype="int64"),
                      ints(repeats) if is_value(repeats) else repeats)
    return named(apply_one("gather", [x, index], {"axis": axis % len(x.shape)}), name)


def where(condition, x=None, y=None, name=None):
    """x where the condition holds, y elsewhere; without both, the places where it holds."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    values = x if is_value(x) else y
    dtype = values.dtype if is_value(values) else "float32"
    x = x if is_value(x) else np.array([x], dtype=dtype)
    y = y if is_value(y) else np.array([y], dtype=dtype)
    return named(apply_one("where", [condition, x, y], {}), name)


def masked_fill(x, mask, value, name=None):
    """x with a number where the mask is true."""
    return where(mask, value, x, name)


def _expect_tensor(value, what):
    if is_variable(value):
        raise _core.ConfigError(f"{what}: its shape depends on values, which a recorded program "
                                "does not know; use it on Tensors")


def nonzero(x, as_tuple=False):
    """The places of elements that are not 0, a row for each."""
    _expect_tensor(x, "nonzero")
    places = np.nonzero(x.numpy())
    if as_tuple:
        return tuple(Tensor(place.astype("int64").reshape(-1, 1)) for place in places)
    return Tensor(np.stack(places, axis=1).astype("int64"))


def masked_select(x, mask, name=None):
    """The elements of x where the mask is true, in a row."""
    _expect_tensor(x, "masked_select")
    chosen = np.broadcast_to(mask.numpy(), tuple(x.shape))
    places = Tensor(np.flatnonzero(chosen).astype("int64"))
    return named(apply_one("gather", [reshape(x, [-1]), places], {"axis": 0}), name)


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None,
           dtype="int64", name=None):
    """The different elements in order, and on request where they stand and how often."""
    _expect_tensor(x, "unique")
    found = np.unique(x.numpy(), return_index, return_inverse, return_counts, axis)
    if not isinstance(found, tuple):
        return Tensor(found)
    rest = [Tensor(part.astype(dtype_name(dtype))) for part in found[1:]]
    return (Tensor(found[0]), *rest)


def argsort(x, axis=-1, descending=False, name=None):
    """Where the elements stand in order along an axis."""
    return named(apply_one("argsort", [x], {"axis": int(axis), "descending": int(descending)}),
                 name)


def sort(x, axis=-1, descending=False, name=None):
    """The elements in order along an axis."""
    return take_along_axis(x, argsort(x, axis, descending), axis, name)


def topk(x, k, axis=None, largest=True, sorted=True, name=None):
    """The k largest elements along an axis and where they stand."""
    axis = (-1 if axis is None else axis) % len(x.shape)
    k = ints(k)[0] if is_value(k) else int(k)
    if k > x.shape[axis] >= 0:
        raise _core.ConfigError(f"topk: {k} of only {x.shape[axis]} elements")
    places = slice(argsort(x, axis, largest), [axis], [0], [k])
    return take_along_axis(x, places, axis), places


def _triangle(x, diagonal, keep, name):
    rows, columns = x.shape[-2:]
    if min(rows, columns) < 0:
        raise _core.ConfigError(f"a triangle of {list(x.shape)}: its sizes must be known")
    mask = keep(np.ones((rows, columns), dtype=x.dtype), diagonal)
    return named(apply_one("mul", [x, mask], {}), name)


def tril(x, diagonal=0, name=None):
    """x with zeros above a diagonal."""
    return _triangle(x, diagonal, np.tril, name)


def triu(x, diagonal=0, name=None):
    """x with zeros below a diagonal."""
    return _triangle(x, diagonal, np.triu, name)


def diag(x, offset=0, padding_value=0, name=None):
    """A matrix with x on its diagonal, or the diagonal of a matrix."""
    if len(x.shape) == 1:
        size = x.shape[0] + abs(offset)
        places = np.flatnonzero(np.eye(size, k=offset)).astype("int64")
        start = np.full([size * size], padding_value, dtype=x.dtype)
        start[places] = 0
        return reshape(apply_one("scatter_add", [Tensor(start), Tensor(places), x], {}),
                       [size, size], name)
    places = np.flatnonzero(np.eye(*x.shape, k=offset)).astype("int64")
    return named(apply_one("gather", [reshape(x, [-1]), places], {"axis": 0}), name)


def meshgrid(*args, name=None) -> list:
    """Values of one axis each, spread over a common grid."""
    values = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    sizes = [value.shape[0] for value in values]
    return [expand(reshape(value, [1] * i + [-1] + [1] * (len(values) - i - 1)), sizes)
            for i, value in enumerate(values)]


def shape(input):
    """The sizes of a value's axes, as int32."""
    if is_variable(input) and -1 in list(input.shape):
        raise _core.ConfigError(f"shape: {list(input.shape)} is not known while a program is "
                                "recorded; ..._like functions and reshape with 0 keep a size")
    return Tensor(np.array(input.shape, dtype="int32"))


def numel(x, name=None):
    """How many elements there are."""
    return Tensor(np.array([int(np.prod(x.shape))], dtype="int64"))


def rank(input):
    """How many axes there are."""
    return Tensor(np.array([len(input.shape)], dtype="int32"))


def is_empty(x, name=None):
    """One bool: there are no elements."""
    return Tensor(np.array([0 in list(x.shape)]))


def one_hot(x, num_classes, name=None):
    """float32 with a one where the index says."""
    return named(apply_one("one_hot", [x], {"depth": int(num_classes), "append": 1}), name)


def assign(x, output=None):
    """A copy of x, or x put into a Tensor."""
    value = x if is_value(x) else Tensor(np.array(as_array(x)))
    result = apply_one("cast", [value], {"to": engine_name(value.dtype)})
    if output is None:
        return result
    output._take(result)
    return output


def clone(x, name=None):
    """A copy of x through which gradients flow."""
    return named(assign(x), name)


def einsum(equation: str, *operands):
    """Sums of products by Einstein's notation: "bij,bjk->bik"."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    from argosy._einsum import einsum as run

    return run(equation, list(operands))


# Places.

Key = Union[int, type(np.s_[:]), None, type(Ellipsis), Sequence, Tensor]


def getitem(x, key: Key):
    """x[key]: whole numbers, slices, None, Ellipsis, and arrays of places or of bools."""
    parts = _parts(x, key)
    if parts is None:
        return _by_places(x, key)
    axes, starts, ends, taken, added = [], [], [], [], []
    axis = place = 0
    for part in parts:
        if part is None:
            added.append(place)
            place += 1
            continue
        size = x.shape[axis]
        if isinstance(part, _slice_type):
            if part.start is not None or part.stop is not None:
                axes.append(axis)
                starts.append(0 if part.start is None else part.start)
                ends.append(2**31 - 1 if part.stop is None else part.stop)
            place += 1
        else:
            if size >= 0 and not -size <= part < size:
                raise IndexError(f"index {part} on axis {axis} of {list(x.shape)}")
            axes.append(axis)
            starts.append(part)
            ends.append(part + 1 if part != -1 else 2**31 - 1)
            taken.append(axis)
        axis += 1
    if axes:
        x = apply_one("slice", [x], {"axes": axes, "starts": starts, "ends": ends})
    if taken:
        x = _without(x, taken)
    return unsqueeze(x, added) if added else x


def _without(x, axes):
    if len(axes) == len(x.shape):
        return reshape(x, [1])
    return apply_one("squeeze", [x], {"axes": axes})


def _parts(x, key) -> Optional[list]:
    """A key of whole numbers, plain slices and None, with Ellipsis filled in; else None."""
    parts = list(key) if isinstance(key, tuple) else [key]
    plain = []
    for part in parts:
        if isinstance(part, (bool, np.bool_)):
            return None
        if isinstance(part, np.integer):
            part = int(part)
        if isinstance(part, _slice_type):
            if part.step not in (None, 1):
                return None
            part = _slice_type(_whole(part.start), _whole(part.stop))
        elif isinstance(part, Tensor) and part.size == 1 and part.dtype != "bool" \
                and len(part.shape) <= 1 and not is_variable(x):
            return None
        elif not (part is None or part is Ellipsis or isinstance(part, int)):
            return None
        plain.append(part)
    used = len([part for part in plain if part is not None and part is not Ellipsis])
    if used > len(x.shape):
        raise IndexError(f"{used} indices for {list(x.shape)}")
    rest = [_slice_type(None)] * (len(x.shape) - used)
    if Ellipsis not in plain:
        return plain + rest
    at = plain.index(Ellipsis)
    return plain[:at] + rest + plain[at + 1:]


def _whole(value):
    return None if value is None else int(value)


def _numpy_key(key):
    if isinstance(key, tuple):
        return tuple(_numpy_key(part) for part in key)
    if isinstance(key, Tensor):
        return key.numpy()
    return key


def places_of(x, key) -> np.ndarray:
    """The numbers, counted through all of x, of the elements that a key names."""
    every = np.arange(int(np.prod(x.shape)), dtype="int64").reshape(tuple(x.shape))
    return np.asarray(every[_numpy_key(key)])


def _by_places(x, key):
    if is_value(key) and key.dtype in ("int32", "int64"):
        return apply_one("gather", [x, key], {"axis": 0})
    if is_variable(x):
        raise _core.ConfigError(f"a recorded value takes whole numbers, slices without a step, "
                                f"None, ... and one integer value as an index, not {key!r}")
    places = places_of(x, key)
    shape = places.shape or (1,)
    index = Tensor(np.ascontiguousarray(places.reshape(shape)))
    return apply_one("gather", [reshape(x, [-1]), index], {"axis": 0})


def setitem(x, key, value) -> None:
    """x[key] = value; earlier results keep the numbers they were computed with."""
    _expect_tensor(x, "x[...] = value")
    places = places_of(x, key)
    if x.stop_gradient and not (isinstance(value, Tensor) and not value.stop_gradient):
        array = np.array(x.numpy())
        array.reshape(-1)[places] = value.numpy() if isinstance(value, Tensor) else value
        x.set_value(array.reshape(x.shape))
        return
    value = value if isinstance(value, Tensor) else Tensor(np.array(value, dtype=x.dtype, ndmin=1))
    flat = places.reshape(-1)
    kept = np.ones(int(np.prod(x.shape)), dtype=x.dtype)
    kept[flat] = 0
    spread = reshape(expand(cast(value, x.dtype), list(places.shape) or [1]), [-1])
    zeros_kept = multiply(reshape(x, [-1]), Tensor(kept))
    changed = apply_one("scatter_add", [zeros_kept, Tensor(np.ascontiguousarray(flat)), spread], {})
    x._take(reshape(changed, x.shape))
