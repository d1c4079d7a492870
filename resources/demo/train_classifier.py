"""Train the demo classifier on the handwritten digits that ship with scikit-learn.

Run from anywhere:  python resources/demo/train_classifier.py
Writes into digits-classifier/, beside its network.py: weights, calibration and evaluation images, README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import platform
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent / "digits-classifier"
CALIBRATION, EVALUATION = 200, 400  # images; the others train


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """Images uint8 (N, 8, 8) with values 0..16 and their labels uint8 (N,)."""

    images: np.ndarray
    labels: np.ndarray

    def save(self, path: Path) -> None:
        """An .npz with the keys images and labels."""
        np.savez_compressed(path, images=self.images, labels=self.labels)

    @staticmethod
    def load(path: Path) -> Digits:
        """What `save` wrote."""
        with np.load(path) as stored:
            return Digits(images=stored["images"], labels=stored["labels"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Share of the images that are classified rightly, and mean cross-entropy in nats."""

    accuracy: float
    loss: float


def network_module() -> ModuleType:
    """network.py of the model folder, whose name is no Python identifier."""
    spec = importlib.util.spec_from_file_location("network", HERE / "network.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"expected a Python file: {HERE / 'network.py'}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def split(seed: int) -> tuple[Digits, Digits, Digits]:
    """Train, calibration, evaluation: one shuffled order cut in three, repeated images kept once."""
    pixels, labels = load_digits(return_X_y=True)
    images = pixels.astype(np.uint8).reshape(-1, 8, 8)
    _, first = np.unique(images.reshape(len(images), -1), axis=0, return_index=True)
    order = np.random.default_rng(seed).permutation(np.sort(first))
    cuts = np.split(order, [len(order) - CALIBRATION - EVALUATION, len(order) - EVALUATION])
    train, calibration, evaluation = (Digits(images=images[c], labels=labels[c].astype(np.uint8)) for c in cuts)
    return train, calibration, evaluation


def shifted(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each image (N, 1, 8, 8) moved by -1, 0 or 1 pixels in both directions."""
    padded = functional.pad(images, (1, 1, 1, 1))
    corners = torch.randint(0, 3, (len(images), 2), generator=generator)
    rows, columns = (corners[:, i, None] + torch.arange(8) for i in (0, 1))
    return padded[torch.arange(len(images))[:, None, None], 0, rows[:, :, None], columns[:, None, :]].unsqueeze(1)


def fit(network: nn.Module, images: torch.Tensor, labels: torch.Tensor, options: argparse.Namespace) -> None:
    """AdamW with a cosine schedule on shuffled, shifted batches."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.rate, weight_decay=options.weight_decay)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    generator = torch.Generator().manual_seed(options.seed)
    network.train()
    for epoch in range(options.epochs):
        for chosen in torch.randperm(len(images), generator=generator).split(options.batch):
            loss = functional.cross_entropy(network(shifted(images[chosen], generator)), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        cosine.step()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  loss of the last batch {loss.item():.4f}", flush=True)


def measure(network: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Measured:
    """Accuracy and cross-entropy with the batch norms' running statistics."""
    with torch.inference_mode():
        logits = network.eval()(images)
    right = (logits.argmax(1) == labels).float().mean()
    return Measured(accuracy=float(right), loss=float(functional.cross_entropy(logits, labels)))


def rounded(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Symmetric integers, one scale for each output channel: s = max|w| / (2^(bits-1) - 1), w' = s * round(w / s)."""
    top = 2 ** (bits - 1) - 1
    channels = weight.flatten(1)
    scale = (channels.abs().amax(1, keepdim=True) / top).clamp_min(torch.finfo(weight.dtype).tiny)
    codes: torch.Tensor = (channels / scale).round().clamp(-top, top)
    return torch.reshape(scale * codes, weight.shape)


def weighted_layers(network: nn.Module) -> list[nn.Conv2d | nn.Linear]:
    """Every convolution and linear layer, the first and the last included."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]


def table(module: ModuleType) -> list[tuple[str, Measured]]:
    """Reload the written files and measure them as stored, then with the weights rounded."""
    evaluation = Digits.load(HERE / "evaluation.npz")
    images, labels = module.preprocess(evaluation.images), torch.from_numpy(evaluation.labels).long()
    rows: list[tuple[str, Measured]] = []
    for bits in (None, 8, 4, 3, 2):
        network: nn.Module = module.build()
        network.load_state_dict(load_file(HERE / "weights.safetensors"))
        if bits is not None:
            for layer in weighted_layers(network):
                layer.weight.data = rounded(layer.weight.data, bits)
        name = "float32, as stored" if bits is None else f"int{bits}, output channel"
        rows.append((name, measure(network, images, labels)))
        print(f"{name:24s} accuracy {rows[-1][1].accuracy:7.2%}  cross-entropy {rows[-1][1].loss:.4f}")
    return rows


CARD = """# Demo classifier

A small convolutional network for trying the workbench on: handwritten digits of 8 x 8 pixels, ten classes. Meant for
nothing but demonstrations and tests of quantization.

| | |
|---|---|
| architecture | convolution 3x3 (16), 3x3 (32), depthwise 3x3 with stride 2, 1x1 (64), 3x3 (64), \
each with batch norm and ReLU; mean over the image; linear head |
| parameters | {parameters:,}, in {layers} convolution and linear layers and {norms} batch norms |
| stored as | float32 safetensors, the state dict of `network.build()` |
| training | {epochs} epochs of AdamW (rate {rate}, weight decay {weight_decay}, batch {batch}), cosine schedule, \
images shifted by up to one pixel |
| made by | `python resources/demo/train_classifier.py` with Python {python}, torch {torch} |

## Data and licence

Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998,
<https://doi.org/10.24432/C50P49>, licence CC BY 4.0 (<https://creativecommons.org/licenses/by/4.0/>), as bundled with
scikit-learn (`sklearn.datasets.load_digits`). Changes made: stored as uint8 and shuffled, then cut into {train:,}
images for training, {calibration} in `calibration.npz` and {evaluation} in `evaluation.npz`. No image is in two parts,
but a writer may be.

## Measured

On the {evaluation} images of `evaluation.npz`, float32 arithmetic. Rounded rows: the weights of all {layers}
convolution and linear layers, symmetric integers to nearest, one scale for each output channel,
scale = max |w| / (2^(bits-1) - 1); biases, batch norms and activations stay as they are. 95 % confidence interval of
the first accuracy (Wilson): {low:.1%} to {high:.1%}.

| weights | accuracy | cross-entropy (nats) |
|---|---:|---:|
{rows}
"""


def wilson(share: float, samples: int) -> tuple[float, float]:
    """95 % confidence interval of a share measured on `samples` images."""
    z = 1.96
    centre = share + z * z / (2 * samples)
    half = z * math.sqrt(share * (1.0 - share) / samples + z * z / (4 * samples * samples))
    return (centre - half) / (1 + z * z / samples), (centre + half) / (1 + z * z / samples)


def card(module: ModuleType, train: int, options: argparse.Namespace) -> str:
    """The model card, measured on the files as written."""
    network, rows = module.build(), table(module)
    low, high = wilson(rows[0][1].accuracy, EVALUATION)
    return CARD.format(
        parameters=sum(p.numel() for p in network.parameters()), layers=len(weighted_layers(network)),
        norms=sum(isinstance(m, nn.BatchNorm2d) for m in network.modules()), train=train, calibration=CALIBRATION,
        evaluation=EVALUATION, epochs=options.epochs, rate=options.rate, weight_decay=options.weight_decay,
        batch=options.batch, python=platform.python_version(), torch=torch.__version__.split("+")[0],
        low=low, high=high,
        rows="\n".join(f"| {name} | {m.accuracy:.2%} | {m.loss:.4f} |" for name, m in rows),
    )  # fmt: skip


def arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Data, training, files, measurements."""
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    module = network_module()
    train, calibration, evaluation = split(options.seed)
    network: nn.Module = module.build()
    fit(network, module.preprocess(train.images), torch.from_numpy(train.labels).long(), options)
    save_file(network.state_dict(), HERE / "weights.safetensors")
    calibration.save(HERE / "calibration.npz")
    evaluation.save(HERE / "evaluation.npz")
    (HERE / "README.md").write_text(card(module, len(train.labels), options), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
