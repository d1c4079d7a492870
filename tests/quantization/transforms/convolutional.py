"""Small convolutional networks whose channels pass what channels may pass, and some that stop them."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind


class Chain(nn.Module):
    """Every kind of pair: through norms, pools, padding and flattening, into grouped and depthwise convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.na = nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.b, self.nb = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8, eps=1e-3)
        self.c = nn.Conv2d(8, 6, 1, bias=False)
        self.d = nn.Conv2d(6, 4, 3, groups=2)
        self.e, self.ne = nn.Linear(16, 10, bias=False), nn.BatchNorm1d(10)
        self.f, self.nf = nn.Linear(10, 3), nn.BatchNorm1d(3, affine=False)
        self.act = nn.LeakyReLU(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.na(self.a(x)).relu(), 2)
        x = self.act(self.c(self.nb(self.b(x)).relu_()))
        x = nn.functional.avg_pool2d(nn.functional.pad(x, (1, 1, 1, 1)), 1)
        x = self.ne(self.e(self.d(x)[:, :, ::2, ::2].flatten(1))).relu()
        return self.nf(self.f(x))


class Residual(nn.Module):
    """The first convolution's outputs are a stream, the block's inner ones free; no norm after the last."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.one, self.two = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(6, 4, 3, padding=1)
        self.out = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.stem(x))
        x = (x + self.two(self.one(x).relu())).relu()
        return self.out(x.mean(dim=(2, 3)))


class Stopped(nn.Module):
    """Nothing homogeneous, and a norm that normalises by each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.n = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)
        self.b, self.out = nn.Conv2d(4, 4, 3), nn.Linear(4, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu6(self.b(nn.functional.silu(self.n(self.a(x)))))
        return self.out(x.mean(dim=(2, 3)))


class Plain(nn.Module):
    """No norm, and no layer with a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.out = nn.Conv2d(2, 4, 3, bias=False), nn.Linear(4, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.a(x).relu().mean(dim=(2, 3)))


def classifier(network: type[nn.Module] = Chain, seed: int = 0) -> NetworkModel:
    """Return a network with norms as after training, and channels of very different size."""
    torch.manual_seed(seed)
    made = network()
    with torch.no_grad():
        for module in made.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                if module.running_mean is not None:
                    module.running_mean.normal_(0, 0.3)
                    module.running_var.uniform_(0.3, 2)
                if module.affine:
                    module.weight.copy_(torch.logspace(-1, 0.7, module.num_features))
                    module.bias.normal_(0, 0.3)
    return model_of(made, OutputKind.CLASS_LOGITS)


def pictures(samples: int = 24, seed: int = 1) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    return Rows(
        inputs=torch.randn(samples, 2, 8, 8, generator=generator) + 0.5,
        labels=torch.randint(0, 3, (samples,), generator=generator),
    )
