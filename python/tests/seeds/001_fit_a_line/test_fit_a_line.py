# Seed 001, the distributed script. Repaired: the parts that the seed leaves out (the program, the reader, the variables
# of its table, read from the environment of its launch lines) are filled in; the trainers' exe.run gets its feed and
# fetch_list. The launch lines: PADDLE_CURRENT_IPP is PADDLE_CURRENT_IP, the trainers are 0 and 1, and they are given the
# server's address.
import os

import paddle.v2 as paddle
import paddle.fluid as fluid

x = fluid.layers.data(name='x', shape=[13], dtype='float32')
y_predict = fluid.layers.fc(input=x, size=1, act=None)
y = fluid.layers.data(name='y', shape=[1], dtype='float32')

cost = fluid.layers.square_error_cost(input=y_predict, label=y)
avg_cost = fluid.layers.mean(x=cost)

sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.001)
optimize_ops, params_grads = sgd_optimizer.minimize(avg_cost)  # get optimize OPs and gradient parameters

port = os.environ["PADDLE_PSERVER_PORT"]
pserver = ",".join(ip + ":" + port for ip in os.environ["PADDLE_PSERVER_IPS"].split(","))
trainers = int(os.environ["PADDLE_TRAINERS"])
server_endpoint = os.environ["PADDLE_CURRENT_IP"] + ":" + port
trainer_id = int(os.environ["PADDLE_TRAINER_ID"])
training_role = os.environ["PADDLE_TRAINING_ROLE"]

exe = fluid.Executor(fluid.CPUPlace())
t = fluid.DistributeTranspiler()
t.transpile(
    optimize_ops,
    params_grads,
    trainer_id,
    pservers=pserver,
    trainers=trainers)
if training_role == "PSERVER":
    pserver_prog = t.get_pserver_program(server_endpoint)
    pserver_startup = t.get_startup_program(server_endpoint, pserver_prog)
    exe.run(pserver_startup)
    exe.run(pserver_prog)
    exit(0)

train_reader = paddle.batch(
    paddle.reader.shuffle(
        paddle.dataset.uci_housing.train(), buf_size=500),
    batch_size=20)
feeder = fluid.DataFeeder(place=fluid.CPUPlace(), feed_list=[x, y])
exe.run(fluid.default_startup_program())
for pass_id in range(100):
    for data in train_reader():
        avg_loss_value, = exe.run(t.get_trainer_program(), feed=feeder.feed(data), fetch_list=[avg_cost])
        if avg_loss_value[0] < 10.0:
            print("pass %d: loss %f" % (pass_id, avg_loss_value[0]))
            exit(0)
exit(1)
