"""Einstein's notation as transposes, products of matrices and sums."""

import math

from argosy import _core
from argosy._math import matmul, multiply, sum
from argosy._shaping import reshape, squeeze, transpose, unsqueeze


def einsum(equation: str, operands: list):
    """Sums of products; operands are joined from left to right."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if "." in text:
        raise _core.ConfigError(f"einsum '{equation}': an ellipsis is not supported")
    if len(terms) != len(operands):
        raise _core.ConfigError(f"einsum '{equation}': {len(terms)} terms for "
                                f"{len(operands)} operands")
    for term, operand in zip(terms, operands):
        if len(term) != len(operand.shape) or len(set(term)) != len(term):
            raise _core.ConfigError(f"einsum '{equation}': '{term}' for {list(operand.shape)}")
    if not arrow:
        letters = sorted(set("".join(terms)))
        result = "".join(c for c in letters if "".join(terms).count(c) == 1)
    value, term = operands[0], terms[0]
    for i in range(1, len(operands)):
        needed = set(result).union(*terms[i + 1:])
        value, term = _joined(value, term, operands[i], terms[i], needed)
    value, term = _summed(value, term, set(result))
    if not term:
        return reshape(value, [1])
    return value if term == result else transpose(value, [term.index(c) for c in result])


def _summed(value, term, needed):
    """Without the axes that nobody needs."""
    gone = [i for i, c in enumerate(term) if c not in needed]
    if not gone:
        return value, term
    return sum(value, gone), "".join(c for c in term if c in needed)


def _joined(a, a_term, b, b_term, needed):
    a, a_term = _summed(a, a_term, needed | set(b_term))
    b, b_term = _summed(b, b_term, needed | set(a_term))
    batch = [c for c in a_term if c in b_term and c in needed]
    inner = [c for c in a_term if c in b_term and c not in needed]
    a_own = [c for c in a_term if c not in b_term]
    b_own = [c for c in b_term if c not in a_term]
    if not inner:
        order = batch + a_own + b_own
        return multiply(_spread(a, a_term, order), _spread(b, b_term, order)), "".join(order)
    left = _grouped(a, a_term, [batch, a_own, inner])
    right = _grouped(b, b_term, [batch, inner, b_own])
    groups, order = [batch, a_own, b_own], batch + a_own + b_own
    product = matmul(left, right)
    if all(len(group) <= 1 for group in groups):
        single = [axis for axis, group in enumerate(groups) if not group]
        return (reshape(product, [1]) if len(single) == 3 else squeeze(product, single)), \
            "".join(order)
    sizes = {**dict(zip(b_term, b.shape)), **dict(zip(a_term, a.shape))}
    return reshape(product, [sizes[c] for c in order]), "".join(order)


def _grouped(value, term, groups):
    """Three axes: one for each group of letters."""
    order = [c for group in groups for c in group]
    if "".join(order) != term:
        value = transpose(value, [term.index(c) for c in order])
    if all(len(group) <= 1 for group in groups):
        single = [axis for axis, group in enumerate(groups) if not group]
        return unsqueeze(value, single) if single else value
    sizes = dict(zip(order, value.shape))
    shape = []
    for group in groups:
        unknown = any(sizes[c] == -1 for c in group)
        shape.append(-1 if unknown else math.prod(sizes[c] for c in group))
    return reshape(value, shape)


def _spread(value, term, order):
    """With axes of size 1 for the letters that the term lacks."""
    own = [c for c in order if c in term]
    if "".join(own) != term:
        value = transpose(value, [term.index(c) for c in own])
    sizes = dict(zip(own, value.shape))
    return reshape(value, [sizes.get(c, 1) for c in order])
