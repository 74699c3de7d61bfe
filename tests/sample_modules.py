"""A module that several tests use."""

import rushlight as torch
from rushlight import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)
        self.name = "net"

    def forward(self, x, factor=1):
        return self.body(x) * self.scale * factor + self.shift
