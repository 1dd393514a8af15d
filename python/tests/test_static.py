"""Static programs: recorded first, run later."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import argosy
from argosy import static
from argosy.nn import functional as F
from test_io_workers import wait_for


@pytest.fixture(autouse=True)
def fresh_program():
    """Each test records a program of its own."""
    argosy.enable_static()
    with argosy.unique_name.guard(), static.program_guard(static.Program(), static.Program()):
        yield
    argosy.disable_static()


def regression():
    """(loss, prediction) of a line through 13 features."""
    x, y = static.data("x", [-1, 13]), static.data("y", [-1, 1])
    prediction = static.nn.fc(x, 1)
    return argosy.mean(F.square_error_cost(prediction, y)), prediction


def houses(rows: int = 64) -> dict:
    """Points on a line."""
    draw = np.random.RandomState(3)
    x = draw.randn(rows, 13).astype("float32")
    return {"x": x, "y": x.sum(axis=1, keepdims=True)}


def ready(loss, optimizer=None) -> static.Executor:
    """An executor for the default program, which trains the loss."""
    (optimizer or argosy.optimizer.SGD(0.05)).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe


def test_trains_and_hands_out_any_variable():
    loss, prediction = regression()
    exe = ready(loss)
    first, = exe.run(feed=houses(), fetch_list=[loss])
    for _ in range(100):
        last, predicted, again = exe.run(feed=houses(), fetch_list=[loss, prediction.name, [loss]])
    assert first.shape == (1,) and last[0] < 0.1 * first[0]
    assert predicted.shape == (64, 1) and again[0] == last[0]


def test_a_clone_for_tests_trains_nothing():
    loss, prediction = regression()
    test_program = static.default_main_program().clone(for_test=True)
    exe = ready(loss)
    exe.run(feed=houses(), fetch_list=[])
    before = exe.run(test_program, feed=houses(), fetch_list=[loss])[0]
    assert exe.run(test_program, feed=houses(), fetch_list=[loss])[0] == before
    exe.run(feed=houses(), fetch_list=[loss])
    assert exe.run(test_program, feed=houses(), fetch_list=[loss])[0] < before


def test_a_clone_for_tests_drops_nothing():
    x = static.data("x", [-1, 13])
    kept = F.dropout(x, 0.5)
    loss = argosy.mean(static.nn.fc(kept, 1))
    test_program = static.default_main_program().clone(for_test=True)
    exe = ready(loss)
    feed = {"x": np.ones((8, 13), "float32")}
    dropped, = exe.run(feed=feed, fetch_list=[kept])
    whole, = exe.run(test_program, feed=feed, fetch_list=[kept])
    assert (dropped == 0).any() and (whole == 1).all()


def test_running_the_startup_program_again_begins_anew():
    loss, _ = regression()
    exe = ready(loss)
    first = exe.run(feed=houses(), fetch_list=[loss])[0]
    exe.run(feed=houses(), fetch_list=[loss])
    exe.run(static.default_startup_program())
    assert exe.run(feed=houses(), fetch_list=[loss])[0] == first


def test_a_program_without_an_optimizer_is_evaluated():
    x = static.data("x", [-1, 13])
    out = static.nn.fc(x, 2, weight_attr=argosy.nn.initializer.Constant(1.0))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    value, = exe.run(feed={"x": np.ones((3, 13), "float32")}, fetch_list=[out])
    assert (value == 13).all()


def test_values_can_be_read_and_set():
    loss, prediction = regression()
    exe = ready(loss)
    weight = static.global_scope().find_var("fc_0.w_0").get_tensor()
    assert weight.shape() == [13, 1]
    weight.set(np.ones((13, 1), "float32"))
    assert exe.run(feed=houses(), fetch_list=[loss])[0] < 1e-6
    assert static.global_scope().find_var("fc_9.w_0") is None


def test_saves_and_loads(tmp_path):
    loss, _ = regression()
    exe = ready(loss, argosy.optimizer.Adam(0.1))
    test_program = static.default_main_program().clone(for_test=True)
    for _ in range(5):
        exe.run(feed=houses(), fetch_list=[loss])
    static.save_persistables(exe, tmp_path / "saved")
    saved = exe.run(test_program, feed=houses(), fetch_list=[loss])[0]
    following = [exe.run(feed=houses(), fetch_list=[loss])[0] for _ in range(3)]
    static.load_persistables(exe, tmp_path / "saved")
    assert exe.run(test_program, feed=houses(), fetch_list=[loss])[0] == saved
    assert [exe.run(feed=houses(), fetch_list=[loss])[0] for _ in range(3)] == following


def test_exports_a_model_that_another_program_runs(tmp_path):
    loss, prediction, _ = clicks()
    exe = ready(loss, argosy.optimizer.Adam(0.05))
    exe.run(feed=clicked(), fetch_list=[loss])
    feed = clicked(6)
    expected, = exe.run(static.default_main_program().clone(for_test=True), feed=feed,
                        fetch_list=[prediction])
    static.save_inference_model(tmp_path / "model", [], [prediction], exe)
    program, names, targets = static.load_inference_model(tmp_path / "model", exe)
    assert names == ["C1", "C2"] and [target.name for target in targets] == [prediction.name]
    answers, = exe.run(program, feed={name: feed[name] for name in names}, fetch_list=targets)
    np.testing.assert_array_equal(answers, expected)
    with pytest.raises(argosy.ConfigError, match="does not answer 'loss'"):
        exe.run(program, feed=feed, fetch_list=["loss"])


def clicks(pool=None, **attributes):
    """(loss, prediction) of clicks on two slots of one table."""
    label = static.data("label", [-1, 1], "int64")
    parts = []
    for slot in ("C1", "C2"):
        ids = static.data(slot, [-1, 1], "int64", lod_level=0 if pool is None else 1)
        rows = static.nn.lookup(ids, [100, 4], argosy.ParamAttr("table", **attributes), None, True,
                                "float32")
        parts.append(rows if pool is None else static.nn.sequence_pool(rows, pool))
    prediction = F.softmax(static.nn.fc(argosy.concat(parts, axis=1), 2))
    from argosy._apply import apply_one

    return argosy.mean(apply_one("cross_entropy", [prediction, label], {})), prediction, label


def clicked(rows: int = 64) -> dict:
    """Clicks where the first id is even."""
    ids = np.random.RandomState(5).randint(0, 10, size=(rows, 2)).astype("int64")
    return {"C1": ids[:, :1], "C2": ids[:, 1:], "label": 1 - ids[:, :1] % 2}


def test_tables_learn_from_slices_of_an_array():
    loss, _, _ = clicks()
    exe = ready(loss, argosy.optimizer.Adam(0.05))
    for _ in range(100):
        last, = exe.run(feed=clicked(), fetch_list=[loss])
    assert last[0] < 0.1


def test_lookups_of_one_table_are_one():
    loss, _, _ = clicks()
    ready(loss)
    assert 'from="index(table, C1, C2)"' in static.default_main_program().record.use().plan()


def test_ids_beyond_the_table_are_refused():
    loss, _, _ = clicks()
    exe = ready(loss)
    feed = dict(clicked(4), C2=np.array([[1], [2], [100], [3]]))
    with pytest.raises(argosy.DataError, match="instance 2.*C2.*100"):
        exe.run(feed=feed, fetch_list=[loss])


def test_any_number_of_ids_is_pooled():
    loss, prediction, _ = clicks(pool="sum", initializer=argosy.nn.initializer.Constant(1.0))
    exe = ready(loss)
    feed = {"C1": static.create_lod_tensor([[1, 2], [3]], [[2, 1]]),
            "C2": static.create_lod_tensor([[4], [5, 6, 7]], [[1, 3]]),
            "label": np.array([[0], [1]])}
    assert exe.run(feed=feed, fetch_list=[prediction])[0].shape == (2, 2)


def test_auc_is_over_all_batches_until_it_is_reset():
    loss, prediction, label = clicks()
    overall, recent, states = static.auc(prediction, label, slide_steps=1)
    exe = ready(loss, argosy.optimizer.Adam(0.05))
    for _ in range(60):
        so_far, last = exe.run(feed=clicked(), fetch_list=[overall, recent])
    assert last[0] > so_far[0] > 0.5 and last[0] > 0.999
    for state in states:
        static.global_scope().find_var(state.name).get_tensor().set(np.zeros(3))
    assert exe.run(feed=clicked(), fetch_list=[overall])[0][0] == last[0]


def test_accuracy():
    scores = static.data("scores", [-1, 3])
    label = static.data("label", [-1, 1], "int64")
    best, two = static.accuracy(scores, label), static.accuracy(scores, label, k=2)
    exe = static.Executor()
    feed = {"scores": np.array([[1, 2, 3], [3, 2, 1], [1, 3, 2], [0, 1, 5]], "float32"),
            "label": np.array([[2], [1], [0], [2]])}
    values = exe.run(feed=feed, fetch_list=[best, two])
    assert [value[0] for value in values] == [0.5, 0.75]


def test_parameters_have_rates_and_decay_of_their_own():
    x = static.data("x", [-1, 2])
    still = argosy.ParamAttr("still", learning_rate=0.0)
    frozen = argosy.ParamAttr("frozen", trainable=False)
    loss = argosy.mean(static.nn.fc(static.nn.fc(x, 2, weight_attr=still, bias_attr=False), 2,
                                    weight_attr=frozen, bias_attr=False))
    decayed = static.nn.fc(x, 1, bias_attr=False, weight_attr=argosy.ParamAttr(
        "decayed", regularizer=argosy.regularizer.L2Decay(1.0)))
    exe = ready(loss + argosy.mean(decayed) * 0.0, argosy.optimizer.SGD(0.5))
    find = lambda name: np.array(static.global_scope().find_var(name).get_tensor())  # noqa: E731
    before = {name: find(name) for name in ("still", "frozen", "decayed")}
    exe.run(feed={"x": np.ones((4, 2), "float32")}, fetch_list=[loss])
    assert (find("still") == before["still"]).all() and (find("frozen") == before["frozen"]).all()
    np.testing.assert_allclose(find("decayed"), before["decayed"] * 0.5, rtol=1e-6)


def test_batch_norm_keeps_statistics():
    x = static.data("x", [-1, 3])
    out = static.nn.batch_norm(x)
    loss = argosy.mean(argosy.square(out))
    test_program = static.default_main_program().clone(for_test=True)
    exe = ready(loss)
    feed = {"x": np.full((16, 3), 5.0, "float32")}
    for _ in range(60):
        exe.run(feed=feed, fetch_list=[loss])
    value, = exe.run(test_program, feed=feed, fetch_list=[out])
    assert np.abs(value).max() < 3.0 and "batch_norm_0.mean" in \
        static.default_main_program().record.use().value_names()


@pytest.mark.parametrize("feed, words", [
    ({"x": np.zeros((4, 13), "int32"), "y": np.zeros((4, 1), "float32")},
     ["feed 'x' is int32[4, 13], expected float32[-1, 13]", "test_static.py:"]),
    ({"x": np.zeros((4, 12), "float32"), "y": np.zeros((4, 1), "float32")},
     ["feed 'x' is float32[4, 12], expected float32[-1, 13]"]),
    ({"x": np.zeros((4, 13), "float32")}, ["'y'", "is not fed"]),
    ({"x": np.zeros((4, 13), "float32"), "z": np.zeros((4, 1), "float32")}, ["'z'", "it has x, y"]),
])
def test_feeds_that_do_not_fit_are_named(feed, words):
    loss, _ = regression()
    exe = ready(loss)
    with pytest.raises(argosy.ConfigError) as error:
        exe.run(feed=feed, fetch_list=[loss])
    assert all(word in str(error.value) for word in words), error.value


def test_wrong_shapes_name_the_line_of_the_script():
    x, y = static.data("x", [-1, 13]), static.data("y", [7, 5])
    with pytest.raises(argosy.ConfigError, match=r"test_static\.py:\d+: matmul"):
        argosy.matmul(x, y)


def test_a_recorded_variable_has_no_value():
    loss, _ = regression()
    with pytest.raises(argosy.ConfigError, match="fetch it"):
        loss.numpy()
    with pytest.raises(argosy.ConfigError, match="truth value"):
        bool(loss)


def test_a_loss_of_many_numbers_is_refused():
    _, prediction = regression()
    with pytest.raises(argosy.ConfigError, match="a loss is one float"):
        argosy.optimizer.SGD(0.1).minimize(prediction)


def test_fetching_what_is_not_there():
    loss, _ = regression()
    exe = ready(loss)
    with pytest.raises(argosy.ConfigError, match="no variable 'lss'"):
        exe.run(feed=houses(), fetch_list=["lss"])


def slots_file(folder, rows=400, name="part-0"):
    """MultiSlot lines of clicked()."""
    data = clicked(rows)
    lines = [f"1 {a[0]} 1 {b[0]} 1 {c[0]}\n" for a, b, c in zip(data["C1"], data["C2"], data["label"])]
    (folder / name).write_text("".join(lines))
    return str(folder / name)


def test_a_data_set_brings_its_number_of_threads(tmp_path):
    loss, _, label = clicks()
    exe = ready(loss, argosy.optimizer.Adam(0.05))
    exe.run(feed=clicked(), fetch_list=[loss])
    program = static.default_main_program()
    dataset = argosy.dataset.QueueDataset()
    dataset.init(batch_size=16, thread_num=10, use_var=[program.var("C1"), program.var("C2"), label])
    dataset.set_filelist([slots_file(tmp_path, name=f"part-{i}") for i in range(4)])
    assert dataset.compute_threads() == min(4, os.cpu_count())
    for _ in range(3):
        exe.train_from_dataset(program, dataset)
        last, = exe.run(feed=clicked(), fetch_list=[loss])
    assert last[0] < 0.2


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_trains_from_files(tmp_path, capsys, kind):
    loss, prediction, label = clicks()
    auc = static.auc(prediction, label)[0]
    exe = ready(loss, argosy.optimizer.Adam(0.05))
    dataset = argosy.dataset.DatasetFactory().create_dataset(kind)
    program = static.default_main_program()
    dataset.set_use_var([program.var("C1"), program.var("C2"), label])
    dataset.set_batch_size(32)
    dataset.set_filelist([slots_file(tmp_path)])
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
        dataset.local_shuffle()
        assert dataset.get_memory_data_size() == 400
    for _ in range(8):
        exe.train_from_dataset(program, dataset, fetch_list=[auc, loss], fetch_info=["auc", "cost"],
                               print_period=5)
    exe.infer_from_dataset(program, dataset, fetch_list=[auc], fetch_info=["test auc"])
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("step 1\tauc\t") and out[1].startswith("step 1\tcost\t")
    assert out[-1].startswith("test auc\t") and float(out[-1].split("\t")[1]) > 0.95


def test_a_reader_that_fails_ends_training_with_its_traceback(tmp_path):
    loss, _, label = clicks()
    exe = ready(loss)
    dataset = argosy.dataset.QueueDataset()
    program = static.default_main_program()
    script = tmp_path / "reader.py"
    script.write_text("import sys\nraise RuntimeError('no such column')\n")
    dataset.init(batch_size=4, use_var=[program.var("C1"), program.var("C2"), label],
                 pipe_command=f"{sys.executable} {script}")
    dataset.set_filelist([slots_file(tmp_path)])
    with pytest.raises(argosy.Error, match="no such column"):
        exe.train_from_dataset(program, dataset)


def test_ctrl_c_ends_training_at_once(tmp_path):
    script = tmp_path / "train.py"
    slots_file(tmp_path)
    script.write_text(textwrap.dedent("""
        import paddle.fluid as fluid
        ids = fluid.layers.data("C1", [1], dtype="int64")
        other = fluid.layers.data("C2", [1], dtype="int64")
        label = fluid.layers.data("label", [1], dtype="int64")
        rows = fluid.layers.embedding(ids, [100, 4], is_sparse=True)
        cost = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(rows, 2, act="softmax"),
                                                            label))
        fluid.optimizer.SGD(0.1).minimize(cost)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        dataset = fluid.DatasetFactory().create_dataset()
        dataset.set_use_var([ids, other, label])
        dataset.set_pipe_command("cat; touch waits; sleep 600")
        dataset.set_filelist(["part-0"])
        dataset.set_batch_size(10)
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    """))
    job = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "waits").exists)
    os.kill(job.pid, signal.SIGINT)
    _, err = job.communicate(timeout=60)
    assert "KeyboardInterrupt" in err and job.returncode != 0


def test_a_table_that_grows_by_an_entry():
    from argosy.fleet.entries import CountFilterEntry

    ids = static.data("ids", [-1, 1], "int64")
    rows = static.nn.sparse_embedding(ids, [0, 2], entry=CountFilterEntry(2),
                                      param_attr=argosy.ParamAttr(
                                          "grows", initializer=argosy.nn.initializer.Constant(1.0)))
    loss = argosy.mean(rows)
    exe = ready(loss, argosy.optimizer.SGD(0.0))
    feed = {"ids": np.array([[2 ** 60]])}
    seen = [exe.run(feed=feed, fetch_list=[rows])[0].ravel().tolist() for _ in range(3)]
    assert seen[0] == [0.0, 0.0] and seen[2] == [1.0, 1.0]
    table = static.default_main_program().tables()["grows"]
    assert repr(table) == "table grows: 1 rows of 2 floats"
    assert table.keys.tolist() == [2 ** 60] and table[2 ** 60].tolist() == [1.0, 1.0]
    assert f"<td>{2 ** 60}</td>" in table._repr_html_()
    with pytest.raises(KeyError):
        table[5]
    assert "sparse" not in static.default_main_program().tables()
    assert "<pre>" in static.default_main_program()._repr_html_()


def test_rows_of_a_table_are_set_as_one_array():
    ids = static.data("ids", [-1, 1], "int64")
    rows = static.nn.embedding(ids, [4, 2], is_sparse=True, param_attr=argosy.ParamAttr(name="t"))
    argosy.optimizer.SGD(1.0).minimize(rows.sum())
    exe = static.Executor()
    tensor = static.global_scope().find_var("t").get_tensor()
    assert tensor.shape() == [4, 2]
    with pytest.raises(argosy.Error, match="'t' has 0 of 4 rows"):
        np.array(tensor)
    with pytest.raises(argosy.Error, match=r"'t' is \[4, 2\], got \[3, 2\]"):
        tensor.set(np.zeros((3, 2), "float32"))
    tensor.set(np.arange(8, dtype="float32").reshape(4, 2), None)
    assert np.array(tensor).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    looked_up, = exe.run(feed={"ids": np.array([[2], [0]])}, fetch_list=[rows])
    assert looked_up.reshape(2, 2).tolist() == [[4, 5], [0, 1]]
    assert np.array(tensor).tolist() == [[-1, 0], [2, 3], [3, 4], [6, 7]]
