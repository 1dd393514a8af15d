"""Records what PyTorch's optimizers do to a small parameter: one text file per rule.

A file's first line names the rule as argosy writes it, the rate and the sizes; each further line
holds the weights after one step. Weights and gradients come from formulas exact in float, which
argosy/ps/rule_trace_test.cc repeats.
"""

import pathlib

import torch

ELEMENTS = 19
STEPS = 20


def first_weight(i):
    return ((i * 53) % 97 - 48) / 32.0


def gradient(i, t):
    return ((i * 37 + t * 101) % 211 - 105) / 64.0


def record(name, rule, rate, make):
    w = torch.tensor([first_weight(i) for i in range(ELEMENTS)], requires_grad=True)
    optimizer = make([w], lr=rate, foreach=False)
    lines = [f"rule={rule} rate={rate} elements={ELEMENTS} steps={STEPS}"]
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor([gradient(i, t) for i in range(ELEMENTS)])
        optimizer.step()
        lines.append(" ".join(f"{x:.9g}" for x in w.tolist()))
    path = pathlib.Path(__file__).with_name(f"{name}.txt")
    path.write_text("\n".join(lines) + "\n")


def with_options(kind, **options):
    return lambda params, **common: kind(params, **options, **common)


def main():
    sgd, adagrad = torch.optim.SGD, torch.optim.Adagrad
    adam, adamw = torch.optim.Adam, torch.optim.AdamW
    record("sgd", "sgd", 0.05, sgd)
    record("momentum", "momentum(mu=0.9)", 0.05, with_options(sgd, momentum=0.9))
    record("nesterov", "momentum(mu=0.8,nesterov=1)", 0.05,
           with_options(sgd, momentum=0.8, nesterov=True))
    record("adagrad", "adagrad(epsilon=1e-6,initial_accumulator=0.1)", 0.1,
           with_options(adagrad, eps=1e-6, initial_accumulator_value=0.1))
    record("adam", "adam(beta1=0.9,beta2=0.999,epsilon=1e-8)", 0.01, adam)
    record("adam_large_epsilon", "adam(beta1=0.8,beta2=0.99,epsilon=0.1)", 0.02,
           with_options(adam, betas=(0.8, 0.99), eps=0.1))
    record("adamw", "adamw(beta1=0.9,beta2=0.999,epsilon=1e-8,weight_decay=0.05)", 0.01,
           with_options(adamw, weight_decay=0.05))


if __name__ == "__main__":
    main()
