# Seed 004: its create_optimizer and the forward of its net, in a small model of ours around them.
import sys

import numpy as np
import paddle


class DNNLayer(paddle.nn.Layer):
    """26 slots looked up in one table, and a linear layer."""

    def __init__(self, sparse_feature_number, sparse_feature_dim, sync_mode=None):
        super().__init__()
        self.sync_mode = sync_mode
        self.sparse_feature_number = sparse_feature_number
        self.sparse_feature_dim = sparse_feature_dim
        self.embedding = paddle.nn.Embedding(
            sparse_feature_number, sparse_feature_dim, sparse=True,
            weight_attr=paddle.ParamAttr(name="SparseFeatFactors"))
        self.linear = paddle.nn.Linear(26 * sparse_feature_dim + 13, 2)

    def forward(self, sparse_inputs, dense_inputs):

        sparse_embs = []
        for s_input in sparse_inputs:
            if self.sync_mode == "gpubox":
                emb = paddle.fluid.contrib.sparse_embedding(
                    input=s_input,
                    size=[
                        self.sparse_feature_number, self.sparse_feature_dim
                    ],
                    param_attr=paddle.ParamAttr(name="embedding"))
            else:
                emb = self.embedding(s_input)
            emb = paddle.reshape(emb, shape=[-1, self.sparse_feature_dim])
            sparse_embs.append(emb)

        return self.linear(paddle.concat(sparse_embs + [dense_inputs], axis=1))


class StaticModel:
    """A static program of it."""

    def __init__(self, sync_mode=None):
        self.learning_rate = 0.03
        label = paddle.static.data("label", [None, 1], "int64")
        sparse = [paddle.static.data("C%d" % i, [None, 1], "int64") for i in range(1, 27)]
        dense = paddle.static.data("dense", [None, 13], "float32")
        raw = DNNLayer(1000, 9, sync_mode)(sparse, dense)
        self.predict = paddle.nn.functional.softmax(raw)
        self._cost = paddle.mean(paddle.nn.functional.cross_entropy(input=raw, label=label))
        self.inputs = [label] + sparse + [dense]

    def create_optimizer(self, strategy=None):
        optimizer = paddle.optimizer.Adam(learning_rate=self.learning_rate, lazy_mode=True)
        # 通过Fleet API获取分布式优化器，将参数传入飞桨的基础优化器
        if strategy != None:
            import paddle.distributed.fleet as fleet
            optimizer = fleet.distributed_optimizer(optimizer, strategy)
        optimizer.minimize(self._cost)


def main():
    """Trains on made-up batches whose label is that of the first id, and prints the losses."""
    mode = sys.argv[1]
    paddle.enable_static()
    model = StaticModel(sync_mode="gpubox" if mode == "gpubox" else None)
    if mode == "fleet":
        import paddle.distributed.fleet as fleet
        fleet.init(is_collective=True)
        model.create_optimizer(fleet.DistributedStrategy())
    else:
        model.create_optimizer()
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    draw = np.random.RandomState(1)
    for step in range(101):
        ids = draw.randint(0, 20, size=(64, 26)).astype("int64")
        feed = {"C%d" % (i + 1): ids[:, i:i + 1] for i in range(26)}
        feed["label"] = ids[:, :1] % 2
        feed["dense"] = draw.rand(64, 13).astype("float32")
        loss, = exe.run(feed=feed, fetch_list=[model._cost])
        if step % 50 == 0:
            print("step %d loss %f" % (step, loss[0]))


if __name__ == "__main__":
    main()
