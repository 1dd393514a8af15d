"""Trains CTR-DNN (26 ids of one table, 13 numbers, 512-256-128-32, softmax of two) from MultiSlot files with
train_from_dataset, on either paddle, and prints the examples per second of the second pass.

usage: ctr_work.py local|async DATA BATCH; async is started by a launcher with servers and workers"""
import glob
import sys
import time

import paddle

IDS, DIM, SIZES = 1000001, 9, (512, 256, 128, 32)


def build(on_server):
    """The loss, and what a line of the files holds."""
    label = paddle.static.data("label", [None, 1], "int64")
    sparse = [paddle.static.data("C%d" % i, [None, 1], "int64") for i in range(1, 27)]
    dense = paddle.static.data("dense_input", [None, 13], "float32")
    attr = paddle.ParamAttr(name="SparseFeatFactors", initializer=paddle.nn.initializer.Uniform())

    def rows(ids):
        if on_server:
            found = paddle.static.nn.sparse_embedding(input=ids, size=[IDS, DIM], param_attr=attr)
        else:
            found = paddle.static.nn.embedding(input=ids, size=[IDS, DIM], is_sparse=True,
                                               param_attr=attr)
        return paddle.reshape(found, [-1, DIM])

    x = paddle.concat([rows(ids) for ids in sparse] + [dense], axis=1)
    for size in SIZES:
        x = paddle.static.nn.fc(x, size, activation="relu")
    predict = paddle.static.nn.fc(x, 2, activation="softmax")
    cost = paddle.nn.functional.cross_entropy(predict, label, use_softmax=False)
    return paddle.mean(cost), sparse + [dense, label]


def second_pass(exe, use_var, data, batch):
    """Examples per second, without the pass that makes the rows."""
    files = sorted(glob.glob(data + "/part-*"))
    lines = sum(sum(1 for _ in open(file)) for file in files)
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=use_var, pipe_command="cat", batch_size=batch, thread_num=1)
    dataset.set_filelist(files)
    rate = 0.0
    for _ in range(2):
        start = time.perf_counter()
        exe.train_from_dataset(paddle.static.default_main_program(), dataset, thread=1,
                               print_period=1000000)
        rate = lines / (time.perf_counter() - start)
    return rate


def main():
    mode, data, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    paddle.enable_static()
    loss, use_var = build(on_server=mode != "local")
    optimizer = paddle.optimizer.Adam(1e-3, lazy_mode=True)
    exe = paddle.static.Executor(paddle.CPUPlace())
    if mode == "local":
        optimizer.minimize(loss)
        exe.run(paddle.static.default_startup_program())
        print(second_pass(exe, use_var, data, batch))
        return
    import paddle.distributed.fleet as fleet

    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    rate = second_pass(exe, use_var, data, batch)
    with open("rate.txt", "w") as out:
        out.write(str(rate))
    fleet.stop_worker()


main()
