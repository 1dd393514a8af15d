"""Training steps of an MLP 784-H-H-10 (ReLU, SGD) in PyTorch, one thread: python torch_mlp.py BATCH HIDDEN"""
import sys
import time

import torch
from torch import nn

batch, hidden = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loss = nn.CrossEntropyLoss()
inputs = [torch.rand(batch, 784) for _ in range(16)]
labels = [torch.randint(0, 10, (batch,)) for _ in range(16)]


def step(i):
    optimizer.zero_grad()
    loss(net(inputs[i % 16]), labels[i % 16]).backward()
    optimizer.step()


for i in range(20):
    step(i)
rates = []
for _ in range(5):
    start = time.perf_counter()
    for i in range(400):
        step(i)
    rates.append(400 * batch / (time.perf_counter() - start))
print(f"{torch.__version__} {sorted(rates)[2]:.0f}")
