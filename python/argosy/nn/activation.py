"""Functions of one value as layers."""

from argosy import _math
from argosy.nn import functional as F
from argosy.nn.layer import Layer


def _layer(name, function, **defaults):
    """A Layer class whose arguments are those of the function, with these defaults."""

    def __init__(self, *args, **kwargs):
        Layer.__init__(self)
        kwargs.pop("name", None)
        given = dict(zip(defaults, args))
        unknown = [key for key in kwargs if key not in defaults]
        if unknown or len(args) > len(defaults):
            raise TypeError(f"{name} takes {', '.join(defaults) or 'no arguments'}, "
                            f"got {', '.join(unknown) or len(args)}")
        self._settings = {**defaults, **given, **kwargs}

    def forward(self, x):
        """The function of x."""
        return function(x, **self._settings)

    def extra_repr(self):
        """Its settings."""
        return ", ".join(f"{key}={value}" for key, value in self._settings.items())

    return type(name, (Layer,), {"__init__": __init__, "forward": forward,
                                 "extra_repr": extra_repr, "__doc__": function.__doc__,
                                 "__module__": __name__})


ReLU = _layer("ReLU", F.relu)
ReLU6 = _layer("ReLU6", F.relu6)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu, negative_slope=0.01)
Sigmoid = _layer("Sigmoid", _math.sigmoid)
Tanh = _layer("Tanh", _math.tanh)
Softmax = _layer("Softmax", F.softmax, axis=-1)
LogSoftmax = _layer("LogSoftmax", F.log_softmax, axis=-1)
GELU = _layer("GELU", F.gelu, approximate=False)
ELU = _layer("ELU", F.elu, alpha=1.0)
SELU = _layer("SELU", F.selu)
Silu = _layer("Silu", F.silu)
Swish = _layer("Swish", F.silu)
Mish = _layer("Mish", F.mish)
Softplus = _layer("Softplus", F.softplus, beta=1.0, threshold=20.0)
Softsign = _layer("Softsign", F.softsign)
LogSigmoid = _layer("LogSigmoid", F.log_sigmoid)
Hardtanh = _layer("Hardtanh", F.hardtanh, min=-1.0, max=1.0)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid)
Hardswish = _layer("Hardswish", F.hardswish)
GLU = _layer("GLU", F.glu, axis=-1)
