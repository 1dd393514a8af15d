# Seed 003, parameter servers with FleetX, as printed. The data come from `argosy gen` instead of a download. The seed
# sets a_sync to False and says that True is the asynchronous mode: A_SYNC=1 asks for that.
import os
import fleetx as X
import paddle.fluid as fluid
import paddle.distributed.fleet as fleet
import paddle.distributed.fleet.base.role_maker as role_maker

configs = X.parse_train_configs()
role = role_maker.PaddleCloudRoleMaker()
fleet.init(role)

model = X.applications.MultiSlotCTR()
loader = model.load_criteo_from_file('./train_data')

dist_strategy = fleet.DistributedStrategy()
dist_strategy.a_sync = bool(int(os.environ.get("A_SYNC", "0")))

optimizer = fluid.optimizer.SGD(learning_rate=0.0001)
optimizer = fleet.distributed_optimizer(optimizer, dist_strategy)
optimizer.minimize(model.loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    fleet.init_worker()
    trainer = X.Trainer(fluid.CPUPlace())
    trainer.fit(model, loader, epoch=10)
