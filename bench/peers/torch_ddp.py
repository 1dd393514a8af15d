"""Training steps of an MLP 784-H-H-10 (ReLU, SGD) in PyTorch's data parallel on Gloo, one thread per rank:
torchrun --nproc_per_node=N torch_ddp.py BATCH HIDDEN. Prints the version and samples per second of all ranks."""
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

batch, hidden = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo")
ranks = dist.get_world_size()
net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))
if ranks > 1:
    net = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loss = nn.CrossEntropyLoss()
inputs = [torch.rand(batch, 784) for _ in range(16)]
labels = [torch.randint(0, 10, (batch,)) for _ in range(16)]


def steps(count):
    """Trains so many batches; the seconds they took."""
    dist.barrier()
    start = time.perf_counter()
    for i in range(count):
        optimizer.zero_grad()
        loss(net(inputs[i % 16]), labels[i % 16]).backward()
        optimizer.step()
    dist.barrier()
    return time.perf_counter() - start


steps(20)
seconds = steps(400)
if dist.get_rank() == 0:
    print(f"{torch.__version__} {400 * batch * ranks / seconds:.0f}")
dist.destroy_process_group()
