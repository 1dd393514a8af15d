"""Readers of pipe_command."""

import io
import subprocess
import sys
import textwrap

import pytest

from argosy import data_generator


def lines_of(generator, lines=None, monkeypatch=None):
    """What a reader prints for these lines."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    if lines is None:
        generator.run_from_memory()
    else:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        generator.run_from_stdin()
    return out.getvalue().splitlines()


class Words(data_generator.MultiSlotDataGenerator):
    """label and ids of a line."""

    def generate_sample(self, line):
        def samples():
            words = line.split()
            yield [("label", [int(words[0])]), ("ids", [int(word) for word in words[1:]])]
        return samples


def test_samples_are_printed_with_the_number_of_their_values(monkeypatch):
    assert lines_of(Words(), ["1 10 20", "0 7"], monkeypatch) == ["1 1 2 10 20", "1 0 1 7"]


def test_batches_can_be_changed_before_they_are_printed(monkeypatch):
    class Reversed(Words):
        def generate_batch(self, samples):
            sizes.append(len(samples))
            return lambda: reversed(samples)

    sizes = []
    generator = Reversed()
    generator.set_batch(2)
    assert lines_of(generator, ["1 1", "1 2", "1 3"], monkeypatch) == ["1 1 1 2", "1 1 1 1",
                                                                       "1 1 1 3"]
    assert sizes == [2, 1]


def test_texts_are_printed_as_they_are(monkeypatch):
    class Texts(data_generator.MultiSlotStringDataGenerator):
        def generate_sample(self, line):
            return lambda: iter([[("a", ["x", "y"]), ("b", ["1.50"])], None])

    assert lines_of(Texts(), None, monkeypatch) == ["2 x y 1 1.50"]


@pytest.mark.parametrize("sample, message", [
    (zip(["a"], [[1]]), "must be in list or tuple type, got a zip"),
    ([("label", [])], "slot 'label' has no values"),
    ([("label", ["1"])], "slot 'label' has '1' of type str, expected an integer or a float"),
    ([("label", [True])], "slot 'label' has True of type bool"),
    ([("label", 1)], "slot 'label' has a int, expected a list of values"),
    ([(1, [1])], "the name of a slot is 1, expected a text"),
    ([("label", [1]), ("x", [1])], "has 2 slots, the first had 1"),
    ([("other", [1])], "slot 0 is 'other', the first sample had 'label' there"),
])
def test_wrong_samples_are_named(sample, message, monkeypatch):
    class Wrong(data_generator.MultiSlotDataGenerator):
        def generate_sample(self, line):
            fits = [("label", [1])]
            return lambda: iter([fits, sample] if "first" in message else [sample])

    with pytest.raises(ValueError) as caught:
        lines_of(Wrong(), None, monkeypatch)
    assert message in str(caught.value)


def test_integers_and_floats_may_share_a_slot(monkeypatch):
    import numpy as np

    class Mixed(data_generator.MultiSlotDataGenerator):
        def generate_sample(self, line):
            return lambda: iter([[("x", [1, 0.5])], [("x", [np.int64(3), np.float32(0.25)])]])

    assert lines_of(Mixed(), None, monkeypatch) == ["2 1 0.5", "2 3 0.25"]


BAD_READER = """
    from argosy.data_generator import MultiSlotDataGenerator

    class Reader(MultiSlotDataGenerator):
        def generate_sample(self, line):
            words = line.split()
            if words[0] == "bad":
                raise KeyError("what the reader does not know")
            dense = [float(word) for word in words[1:]]
            return lambda: iter([[("dense_input", dense), ("label", [int(words[0])])]])

    Reader().run_from_stdin()
"""


def test_an_exception_in_a_reader_ends_the_training_with_its_traceback(tmp_path):
    (tmp_path / "reader.py").write_text(textwrap.dedent(BAD_READER))
    (tmp_path / "part-0").write_text("1 0.5 0.5\n" * 10 + "bad\n")
    (tmp_path / "train.py").write_text(textwrap.dedent(f"""
        import argosy
        from argosy import dataset, static
        argosy.enable_static()
        x = static.data("dense_input", [-1, 2], "float32")
        y = static.data("label", [-1, 1], "int64")
        loss = argosy.mean(static.nn.fc(x, 1))
        argosy.optimizer.SGD(learning_rate=0.1).minimize(loss)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        data = dataset.QueueDataset()
        data.init(batch_size=2, use_var=[x, y], pipe_command="{sys.executable} reader.py")
        data.set_filelist(["part-0"])
        exe.train_from_dataset(static.default_main_program(), data)
        print("trained to the end")
    """))
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, text=True, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode != 0 and "trained to the end" not in done.stdout
    assert "KeyError: 'what the reader does not know'" in done.stderr, done.stderr
