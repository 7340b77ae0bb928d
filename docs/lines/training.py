# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network, and looks at the error on other data after each epoch."""

import sys

from libraries import library

torch = library("torch")
torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
ROWS = int(sys.argv[1]) << 9
WIDTH = 256


def batches(count):
    for _ in range(count):
        yield torch.rand(ROWS, WIDTH)


def main():
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 2 * WIDTH),
        torch.nn.ReLU(),
        torch.nn.Linear(2 * WIDTH, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, 1),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        for batch in batches(2):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        for batch in batches(4):
            losses.append(model(batch).square().mean())
    print(min(losses).item())


main()
