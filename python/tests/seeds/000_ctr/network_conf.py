"""The network of the CTR example: one table for all slots, three layers, a softmax of two classes."""

import math

import paddle.fluid as fluid


def ctr_dnn_model_dataset(dense_input, sparse_inputs, label, embedding_size, sparse_feature_dim):
    """The summed loss, the AUC over everything, and the AUC over the last 20 batches."""

    def embedding_layer(ids):
        return fluid.layers.embedding(
            input=ids, is_sparse=True, is_distributed=False,
            size=[sparse_feature_dim, embedding_size],
            param_attr=fluid.ParamAttr(name="SparseFeatFactors",
                                       initializer=fluid.initializer.Uniform()))

    def hidden_layer(x):
        spread = 1 / math.sqrt(x.shape[1])
        return fluid.layers.fc(
            input=x, size=400, act="relu",
            param_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal(scale=spread)))

    x = fluid.layers.concat([embedding_layer(ids) for ids in sparse_inputs] + [dense_input], axis=1)
    for _ in range(3):
        x = hidden_layer(x)
    predict = fluid.layers.fc(
        input=x, size=2, act="softmax",
        param_attr=fluid.ParamAttr(
            initializer=fluid.initializer.Normal(scale=1 / math.sqrt(x.shape[1]))))
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    loss = fluid.layers.reduce_sum(cost)
    auc_var, batch_auc_var, _ = fluid.layers.auc(input=predict, label=label,
                                                 num_thresholds=2 ** 12, slide_steps=20)
    return loss, auc_var, batch_auc_var
