"""Layers and parameters in lists."""

from argosy.nn.layer import Layer


class Sequential(Layer):
    """Layers one after another."""

    def __init__(self, *layers):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)) \
                and not (len(layers[0]) == 2 and isinstance(layers[0][0], str)):
            layers = layers[0]
        for i, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, (list, tuple)) else (str(i), layer)
            self.add_sublayer(name, layer)

    def forward(self, x):
        """The last layer of the one before of ... x."""
        for layer in self._sub_layers.values():
            x = layer(x)
        return x

    def __getitem__(self, key):
        layers = list(self._sub_layers.values())
        return Sequential(*layers[key]) if isinstance(key, slice) else layers[key]

    def __len__(self):
        return len(self._sub_layers)


class _List(Layer):
    _kind = ""

    def __init__(self, items=None):
        super().__init__()
        for item in items or []:
            self.append(item)

    def _items(self):
        return getattr(self, self._kind)

    def append(self, item):
        """Adds one at the end."""
        self._add(str(len(self)), item)
        return self

    def extend(self, items):
        """Adds several at the end."""
        for item in items:
            self.append(item)
        return self

    def __getitem__(self, key):
        items = list(self._items().values())
        return type(self)(items[key]) if isinstance(key, slice) else items[key]

    def __setitem__(self, key, item):
        self._add(str(key % len(self)), item)

    def __len__(self):
        return len(self._items())

    def __iter__(self):
        return iter(self._items().values())


class LayerList(_List):
    """Layers that are called one by one."""

    _kind = "_sub_layers"

    def __init__(self, sublayers=None):
        super().__init__(sublayers)

    def _add(self, name, item):
        self.add_sublayer(name, item)

    def insert(self, index, sublayer):
        """Adds a layer before another."""
        items = list(self)
        items.insert(index, sublayer)
        self._sub_layers.clear()
        self.extend(items)


class ParameterList(_List):
    """Parameters in a list."""

    _kind = "_parameters"

    def __init__(self, parameters=None):
        super().__init__(parameters)

    def _add(self, name, item):
        self._parameters[name] = item


class LayerDict(Layer):
    """Layers by name."""

    def __init__(self, sublayers=None):
        super().__init__()
        self.update(sublayers or {})

    def update(self, sublayers):
        """Adds layers by name."""
        for name, layer in dict(sublayers).items():
            self.add_sublayer(name, layer)

    def __getitem__(self, key):
        return self._sub_layers[key]

    def __setitem__(self, key, layer):
        self.add_sublayer(key, layer)

    def __delitem__(self, key):
        del self._sub_layers[key]

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers)

    def __contains__(self, key):
        return key in self._sub_layers

    def keys(self):
        """The names."""
        return self._sub_layers.keys()

    def values(self):
        """The layers."""
        return self._sub_layers.values()

    def items(self):
        """Names and layers."""
        return self._sub_layers.items()
