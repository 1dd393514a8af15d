"""All functions on values, for `from argosy._functions import *`."""

from argosy._autograd import (backward, enable_grad, grad, is_grad_enabled, no_grad,
                              set_grad_enabled)
from argosy._creation import (arange, bernoulli, empty, empty_like, eye, from_dlpack, from_numpy,
                              full, full_like, gaussian, get_rng_state, is_floating_point,
                              is_integer, is_tensor, linspace, normal, ones, ones_like, rand,
                              randint, randn, randperm, seed, set_rng_state, standard_normal,
                              to_tensor, uniform, zeros, zeros_like)
from argosy._math import (abs, add, add_n, addmm, all, allclose, amax, amin, any, argmax, argmin,
                          bmm, cast, ceil, clip, cos, cumsum, divide, dot, equal, equal_all, erf,
                          exp, expm1, floor, floor_divide, floor_mod, fmax, fmin, greater_equal,
                          greater_than, increment, isfinite, isinf, isnan, less_equal, less_than,
                          log, log1p, log2, log10, logical_and, logical_not, logical_or,
                          logical_xor, logsumexp, matmul, max, maximum, mean, min, minimum, mm, mod,
                          multiply, neg, norm, not_equal, pow, prod, reciprocal, remainder, round,
                          rsqrt, scale, sigmoid, sign, sin, sqrt, square, stanh, std, subtract, sum,
                          tanh, var)
from argosy._serialization import load, save
from argosy._shaping import (argsort, assign, broadcast_to, chunk, clone, concat, diag, einsum,
                             expand, expand_as, flatten, flip, gather, gather_nd, index_sample,
                             index_select, is_empty, masked_fill, masked_select, meshgrid, moveaxis,
                             nonzero, numel, one_hot, rank, repeat_interleave, reshape, roll,
                             scatter, scatter_nd_add, shape, slice, sort, split, squeeze, stack,
                             strided_slice, t, take_along_axis, tile, topk, transpose, tril, triu,
                             unbind, unique, unsqueeze, unstack, view, where)

__all__ = [name for name in dir() if not name.startswith("_")]
