#!/usr/bin/env python3
"""Checks every #include against the layer table: layers only point down, and a third-party
library is known to one place. ps, comm and launch declare things in namespaces of their own. A build of some layers (ARGOSY_LAYERS of a preset) has all below
them, or it would not link. One line per violation; exit code 1 if there is any.

  check_layers.py [--root DIR]     check a source tree (default: this one)
  check_layers.py --self-test      prove that it finds what it should find
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

# layer: the layers it may include. Its own files are always allowed.
LAYERS = {
    "base": "",
    "tensor": "base",
    "world": "base",
    "net": "world base",
    "log": "world base",
    "watch": "base",
    "device": "tensor base",
    "graph": "tensor device base",
    "data": "tensor world base",
    "samples": "data tensor base",
    "ps": "log net device watch world base",
    "comm": "net device world base",
    "launch": "doctor net watch world base",
    "doctor": "net watch world base",
    "ops": "graph tensor device base",
    "nn": "graph tensor device base",
    "plan": "graph data ps comm net tensor world base",
    "modes": "plan graph data ps comm net tensor watch world base",
    "train": "modes plan ops nn graph data ps comm tensor net watch device world base",
    "job": "train modes plan graph data ps comm tensor net watch device world base",
    "ckpt": "train modes data ps tensor base",
    "zoo": "train ops nn graph tensor base",
    "config": "zoo job train modes plan samples ops nn graph data ps comm tensor net watch device world base",
}

# What *_test.cc files of a layer may include on top of that.
TEST_LAYERS = {
    "data": "net samples",
    "samples": "world",
    "train": "samples job",
    "job": "samples nn",
    "ckpt": "world",
    "config": "world",
    "ops": "data ps",
    "nn": "ops data ps",
}

# header prefix: the files, folders (ending in /), endings (from _) and parts of a path (from /) that
# may know it.
THIRD_PARTIES = {
    "thrust/": "argosy/device/",
    "cuda_runtime": "argosy/device/runtime.cc argosy/comm/modules/nccl.cc",
    "cublas": "argosy/device/gemm.cc",
    "dnnl": "argosy/tensor/gemm.cc bench/",
    "oneapi/dnnl": "argosy/tensor/gemm.cc bench/",
    "CLI/": "apps/",
    "asio": "argosy/net/ argosy/world/env.cc",
    "mpi.h": "argosy/comm/modules/mpi.cc bench/peers/",
    "nccl.h": "argosy/comm/modules/nccl.cc",
    "xxhash": "argosy/base/hash.cc",
    "yaml-cpp/": "argosy/config/config.cc",
    "zlib.h": "argosy/data/",
    "zstd.h": "argosy/data/",
    "gtest/": "tests/ _test.cc /test_",
    "gmock/": "tests/ _test.cc /test_",
    "benchmark/": "bench/",
    "nanobind/": "python/src/",
}

FOLDERS = ("argosy", "apps", "bench", "examples", "python", "tests")
# Layers with a namespace of their own, argosy::LAYER. Types of others are only declared ahead there.
NAMED = ("ps", "comm", "launch")
AHEAD = re.compile(r"(class|struct|enum class) [\w: ]+;|namespace \w+ \{|\}|")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def layer_of(path):
    """The layer of a path such as argosy/ps/rules/adam.cc or argosy/ops.def; None outside of layers."""
    parts = path.split("/")
    if parts[0] != "argosy" or path == "argosy/argosy.h":
        return None
    return parts[1].removesuffix(".def")


def layer_rule_broken(file, header, quote):
    """The rule that `file` breaks by including `header`, or None."""
    layer = layer_of(file)
    if not header.startswith("argosy/"):
        if quote == '"' and layer is not None:
            return 'own headers are included as "argosy/<layer>/<file>.h"'
        return None
    if layer is None:
        return None  # programs, examples, the Python extension and the umbrella header stand above all layers
    if header == "argosy/argosy.h":
        return "argosy/argosy.h is for users of the library, layers include what they use"
    if layer not in LAYERS:
        return f"no layer '{layer}' in the table of dev/check_layers.py"
    allowed = LAYERS[layer].split()
    if file.endswith("_test.cc"):
        allowed += TEST_LAYERS.get(layer, "").split()
    if layer_of(header) in (layer, *allowed):
        return None
    return f"{layer} may include only: {' '.join(allowed) or 'nothing of ours'}"


def library_rule_broken(file, header):
    """The rule that `file` breaks by knowing a third-party library, or None."""
    for prefix, places in THIRD_PARTIES.items():
        if header.startswith(prefix):
            for place in places.split():
                if file == place or (place.endswith("/") and file.startswith(place)):
                    return None
                if place.startswith("_") and file.endswith(place):
                    return None
                if place.startswith("/") and place in file:
                    return None
            return f"{prefix.rstrip('/')} is known only to: {places}"
    return None


def violations(root):
    """All violations under a source tree, as lines of text."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            file = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                quote, header = match.groups()
                rule = layer_rule_broken(file, header, quote) or library_rule_broken(file, header)
                if rule:
                    found.append(f"{file}:{number}: includes {header}: {rule}")
    return found


def namespace_violations(root):
    """Blocks of `namespace argosy` in files of layers that have a namespace of their own, as lines of text."""
    found = []
    for layer in NAMED:
        for path in sorted((root / "argosy" / layer).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            within = None  # another namespace's block
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                opened = re.match(r"namespace argosy((?:::\w+)*) \{", line)
                if opened:
                    within = None if opened.group(1).split("::")[1:2] == [layer] else opened.group(0)[:-2]
                elif line.startswith("}  // namespace argosy"):
                    within = None
                elif within and not AHEAD.fullmatch(line.split("//")[0].strip()):
                    file = path.relative_to(root).as_posix()
                    found.append(f"{file}:{number}: declares something in {within}, expected namespace argosy::{layer}")
                    within = None  # one line for a block
    return found


def preset_violations(root):
    """Presets of CMakePresets.json that build some layers without one below them, as lines of text."""
    path = root / "CMakePresets.json"
    if not path.exists():
        return []
    found = []
    for preset in json.loads(path.read_text(encoding="utf-8"))["configurePresets"]:
        settings = preset.get("cacheVariables", {})
        tested, plain = (settings.get(name, "").split(";") for name in ("ARGOSY_LAYERS", "ARGOSY_UNSANITIZED"))
        for layer in filter(None, tested + plain):
            needed = f"{LAYERS.get(layer, '')} {TEST_LAYERS.get(layer, '') if layer in tested else ''}".split()
            missing = " ".join(name for name in needed if name not in tested + plain)
            if layer not in LAYERS or missing:
                wrong = f"does not link without: {missing}" if missing else "is no layer"
                found.append(f"CMakePresets.json: {preset['name']}: ARGOSY_LAYERS: {layer} {wrong}")
    return found


def table_order():
    """Layers from the bottom up; fails if the table has a cycle or an unknown name."""
    order = []
    while len(order) < len(LAYERS):
        ready = [l for l in LAYERS if l not in order and set(LAYERS[l].split()) <= set(order)]
        assert ready, f"cycle or unknown layer below one of: {set(LAYERS) - set(order)}"
        order += ready
    return order


def self_test():
    """Each line: a file, one include in it, and whether that is a violation."""
    cases = [
        ("argosy/graph/program.h", '"argosy/tensor/tensor.h"', False),
        ("argosy/graph/program.cc", '"argosy/graph/program.h"', False),
        ("argosy/ops/plugins.cc", '"argosy/ops.def"', False),
        ("argosy/train/trainer_test.cc", '"argosy/nn/layers.h"', False),
        ("argosy/nn/layers_test.cc", '"argosy/ops/op_support.h"', False),
        ("argosy/ps/parameter_test.cc", "<gtest/gtest.h>", False),
        ("argosy/config/test_golden.h", "<gtest/gtest.h>", False),
        ("argosy/tensor/gemm.cc", "<dnnl.hpp>", False),
        ("bench/mlp.cc", "<dnnl.hpp>", False),
        ("apps/argosy.cc", '"argosy/train/trainer.h"', False),
        ("argosy/argosy.h", '"argosy/train/trainer.h"', False),
        ("python/src/eager.cc", '"argosy/graph/builder.h"', False),
        ("python/src/bindings.h", "<nanobind/nanobind.h>", False),
        ("argosy/tensor/tensor.h", '"argosy/graph/program.h"', True),
        ("argosy/graph/fuse.cc", '"argosy/ops/op_support.h"', True),
        ("argosy/ps/specs.h", '"argosy/tensor/tensor.h"', True),
        ("argosy/ps/rules/adam.cc", "<argosy/graph/program.h>", True),
        ("argosy/ps/parameter_test.cc", '"argosy/graph/program.h"', True),
        ("argosy/nn/layers.cc", '"argosy/ops/op_support.h"', True),
        ("argosy/train/trainer.cc", '"argosy/launch/launcher.h"', True),
        ("argosy/train/trainer.cc", '"argosy/argosy.h"', True),
        ("argosy/extras/thing.cc", '"argosy/base/error.h"', True),
        ("argosy/base/rng.cc", '"rng.h"', True),
        ("argosy/graph/executor.cc", "<dnnl.hpp>", True),
        ("argosy/train/checkpoint.cc", "  <zlib.h>", True),
        ("examples/mnist_mlp.cc", "<CLI/CLI.hpp>", True),
        ("argosy/base/clock.h", "<gtest/gtest.h>", True),
        ("argosy/graph/builder.h", "<nanobind/nanobind.h>", True),
    ]
    table_order()
    for file, header, bad in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, file)
            path.parent.mkdir(parents=True)
            path.write_text(f"// A file.\n#include {header}\n", encoding="utf-8")
            found = violations(pathlib.Path(folder))
        assert bool(found) == bad, f"{file} with {header}: expected {'a' if bad else 'no'} violation, got {found}"
        assert not bad or found[0].startswith(f"{file}:2: "), found
    blocks = [
        ("argosy/ps/rule.h", "namespace argosy::ps {\nclass Rule {};\n}  // namespace argosy::ps\n", 0),
        ("argosy/ps/rules/sgd.cc", "namespace argosy::ps::rules {\nint sgd();\n}\n", 0),
        ("argosy/ps/rule.h", "namespace argosy {\nclass Call;  // base\nnamespace device {\nclass Stream;\n}\n}  // namespace argosy\n"
                             "\nnamespace argosy::ps {\nclass Rule {};\n}\n", 0),
        ("argosy/base/call.h", "namespace argosy {\nclass Call {};\n}\n", 0),
        ("argosy/ps/rule.h", "namespace argosy {\nclass Rule {\n  int i;\n};\n}  // namespace argosy\n", 2),
        ("argosy/ps/rules/sgd.cc", "namespace argosy::rules {\nint sgd();\n}\n", 2),
        ("argosy/ps/verbs/stop.cc", "namespace argosy::psi {\nint stop();\n}\n", 2),
        ("argosy/comm/group.h", "namespace argosy {\nnamespace {\nint i;\n}\n}  // namespace argosy\n", 2),
        ("argosy/comm/group.h", "namespace argosy {\n\nclass Env;\nint ranks();\n}  // namespace argosy\n", 4),
        ("argosy/launch/plan_test.cc", "namespace argosy::comm {\nTEST(Plan, Is) {}\n}  // namespace argosy::comm\n", 2),
    ]
    for file, text, line in blocks:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, file)
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            found = namespace_violations(pathlib.Path(folder))
        assert len(found) == (line > 0), f"{file}: expected {'a' if line else 'no'} violation, got {found}"
        assert not line or found[0].startswith(f"{file}:{line}: declares something in namespace argosy"), found
    presets = [("base;world;net;tensor;data;samples", "", ""),
               ("base;world;tensor;data;samples", "", "data does not link without: net"),
               ("base;world;tensor", "data", ""),  # whose tests, which need net, are left out
               ("base;tensor", "ops", "ops does not link without: graph device"),
               ("base;tensor;device;graph", "", ""), ("base;cake", "", "cake is no layer")]
    for layers, plain, wrong in presets:
        with tempfile.TemporaryDirectory() as folder:
            preset = {"name": "short", "cacheVariables": {"ARGOSY_LAYERS": layers, "ARGOSY_UNSANITIZED": plain}}
            pathlib.Path(folder, "CMakePresets.json").write_text(json.dumps({"configurePresets": [preset]}), encoding="utf-8")
            found = preset_violations(pathlib.Path(folder))
        assert found == ([f"CMakePresets.json: short: ARGOSY_LAYERS: {wrong}"] if wrong else []), (layers, found)
    print(f"check_layers: self-test passed, {len(cases) + len(blocks) + len(presets)} cases")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    found = violations(args.root) + namespace_violations(args.root) + preset_violations(args.root)
    print("\n".join(found + [f"check_layers: {len(found)} violations" if found else "check_layers: clean"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
