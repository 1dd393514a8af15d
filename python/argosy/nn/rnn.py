"""Recurrent layers."""

import math

import numpy as np

from argosy import _core
from argosy._apply import Tensor, apply, is_variable
from argosy._initializers import Uniform
from argosy._math import add, matmul, multiply, sigmoid, subtract, tanh
from argosy._shaping import concat, split, stack, transpose, unbind
from argosy.nn import functional as F
from argosy.nn.layer import Layer


class GRUCell(Layer):
    """One step of a gated recurrent unit."""

    def __init__(self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None,
                 bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__()
        self.hidden_size = hidden_size
        edge = 1.0 / math.sqrt(hidden_size)
        first = Uniform(-edge, edge)
        shapes = {"weight_ih": [3 * hidden_size, input_size],
                  "weight_hh": [3 * hidden_size, hidden_size],
                  "bias_ih": [3 * hidden_size], "bias_hh": [3 * hidden_size]}
        attrs = dict(zip(shapes, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)))
        for key, shape in shapes.items():
            self.add_parameter(key, self.create_parameter(shape, attrs[key], is_bias="bias" in key,
                                                          default_initializer=first))

    def forward(self, inputs, states=None):
        """The new state, twice: as the output and to be passed on."""
        if states is None:
            states = _zeros(inputs, self.hidden_size)
        new = self._step(self._from_input(inputs), states)
        return new, new

    def _from_input(self, x):
        gates = matmul(x, self.weight_ih, transpose_y=True)
        return gates if self.bias_ih is None else add(gates, self.bias_ih)

    def _step(self, from_input, state):
        from_state = matmul(state, self.weight_hh, transpose_y=True)
        if self.bias_hh is not None:
            from_state = add(from_state, self.bias_hh)
        x_reset, x_update, x_new = split(from_input, 3, -1)
        h_reset, h_update, h_new = split(from_state, 3, -1)
        reset, update = sigmoid(add(x_reset, h_reset)), sigmoid(add(x_update, h_update))
        new = tanh(add(x_new, multiply(reset, h_new)))
        return add(multiply(subtract(state, new), update), new)


def _zeros(x, size):
    """A first state for each row of x."""
    if not is_variable(x):
        return Tensor(np.zeros([x.shape[0], size], dtype="float32"))
    flat = apply("slice", [x], {"axes": [1], "starts": [0], "ends": [1]})[0]
    return multiply(apply("tile", [flat], {"repeats": [1, size]})[0], 0.0)


class GRU(Layer):
    """A gated recurrent unit over sequences [batch, time, features]."""

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward",
                 time_major=False, dropout=0.0, weight_ih_attr=None, weight_hh_attr=None,
                 bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__()
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise _core.ConfigError(f"GRU: direction '{direction}', expected forward or bidirect")
        self._both = direction != "forward"
        self.num_layers, self.hidden_size = num_layers, hidden_size
        self.time_major, self.dropout = time_major, dropout
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        for layer in range(num_layers):
            size = input_size if layer == 0 else hidden_size * (2 if self._both else 1)
            for end in ("", "_reverse") if self._both else ("",):
                self.add_sublayer(f"{layer}{end}", GRUCell(size, hidden_size, *attrs))

    def forward(self, inputs, initial_states=None, sequence_length=None):
        """The states of all steps, and the last ones [layers * directions, batch, hidden]."""
        x = transpose(inputs, [1, 0, 2]) if self.time_major else inputs
        if x.shape[1] < 1:
            raise _core.ConfigError(f"GRU: the number of steps must be known, got {inputs.shape}")
        states = unbind(initial_states, 0) if initial_states is not None else None
        kept = None
        if sequence_length is not None:
            mask = F.sequence_mask(sequence_length, x.shape[1], "float32")
            kept = split(mask, x.shape[1], 1)
        last = []
        for layer in range(self.num_layers):
            if layer > 0:
                x = F.dropout(x, self.dropout, training=self.training)
            sides = []
            for end in ("", "_reverse") if self._both else ("",):
                state = states[len(last)] if states is not None else None
                outputs, final = self._run(self._sub_layers[f"{layer}{end}"], x, state, kept,
                                           bool(end))
                sides.append(outputs)
                last.append(final)
            x = concat(sides, -1) if self._both else sides[0]
        return (transpose(x, [1, 0, 2]) if self.time_major else x), stack(last, 0)

    @staticmethod
    def _run(cell, x, state, kept, backwards):
        steps = unbind(cell._from_input(x), 1)
        state = _zeros(steps[0], cell.hidden_size) if state is None else state
        outputs = [None] * len(steps)
        for i in reversed(range(len(steps))) if backwards else range(len(steps)):
            new = cell._step(steps[i], state)
            if kept is None:
                state = outputs[i] = new
            else:
                outputs[i] = multiply(new, kept[i])
                state = add(state, multiply(subtract(new, state), kept[i]))
        return stack(outputs, 1), state
