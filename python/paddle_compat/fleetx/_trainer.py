"""The loop of FleetX."""

import time
from typing import Any

import paddle.distributed.fleet as fleet
from argosy.static import Executor, default_main_program, default_startup_program


class Trainer:
    """fit(model, loader, epoch): trains and prints the loss of each step."""

    def __init__(self, place: Any):
        self.exe = Executor(place)

    def fit(self, model: Any, dataloader: Any, epoch: int, use_dali: bool = False,
            start_step: int = 10) -> None:
        """So many passes over the loader; lines begin after start_step steps."""
        if use_dali:
            raise NotImplementedError("use_dali: not supported, expected False")
        self.exe.run(default_startup_program())
        worker = fleet.worker_index()
        step, begin = 0, time.time()
        for _ in range(epoch):
            for feed in dataloader():
                loss, = self.exe.run(default_main_program(), feed=feed, fetch_list=[model.loss])
                step += 1
                if step == start_step:
                    begin = time.time()
                if step > start_step:
                    self._print(worker, step, float(loss[0]), time.time() - begin,
                                step - start_step, dataloader.batch_size)
        fleet.stop_worker()

    @staticmethod
    def _print(worker: int, step: int, loss: float, cost: float, steps: int, batch: int) -> None:
        rate = steps / cost
        print("worker_index: %d, step%d, train_loss: %f, total time cost = %f, step per second: %f, "
              "speed: %f" % (worker, step, loss, cost, rate, rate * batch))


class CPUTrainer(Trainer):
    """The later name: connects and leaves by itself."""

    def __init__(self) -> None:
        import paddle

        super().__init__(paddle.CPUPlace())

    def fit(self, model: Any, dataloader: Any, epoch: int, start_step: int = 10) -> None:
        """As Trainer.fit."""
        fleet.init_worker()
        super().fit(model, dataloader, epoch, start_step=start_step)
