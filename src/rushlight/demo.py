"""`rushlight demo`: a small network learns to read handwritten digits, and its graph is drawn.

It is written as any program for PyTorch would be; apart from `draw`, it runs under PyTorch too.
"""

from pathlib import Path

import numpy as np

import rushlight as torch
from rushlight import nn, optim
from rushlight._chart import line_chart
from rushlight.autograd.graph import draw
from rushlight.nn import functional as F

DIGITS = Path(__file__).parent / "data" / "digits.npz"
HELD_OUT = 360  # of 1,797 images
BATCH = 32
EPOCHS = 30
NOISE = 0.1  # added to the pixels in training, so that the images cannot be learnt by heart


def load_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """1,797 images as rows of 64 numbers from 0 to 1, and the digits that they show; data/digits.txt says whence."""
    with np.load(DIGITS) as archive:
        images = torch.from_numpy(archive["images"]).reshape(-1, 64).float() / 16
        labels = torch.from_numpy(archive["labels"]).long()
    return images, labels


def main(model: str = "mlp", out: str = "rushlight-demo", epochs: int | None = None, seed: int = 0) -> float:
    """Trains the network, writes `loss.svg` and `graph.svg` into the folder `out`, and returns the share of held-out
    images that it reads right.

    The same seed gives the same result.  ModuleNotFoundError for a model whose part of rushlight is not there.
    """
    if model != "mlp":
        raise ModuleNotFoundError(f"the model {model!r} needs 'torchvision', which rushlight does not have")
    from tqdm import tqdm

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    images, labels = load_digits()
    held_out, training = torch.randperm(len(images)).split([HELD_OUT, len(images) - HELD_OUT])

    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = optim.Adam(network.parameters(), lr=2e-3)
    training_curve: list[tuple[float, float]] = []
    held_out_curve: list[tuple[float, float]] = []

    progress = tqdm(range(1, (epochs or EPOCHS) + 1), desc="training", unit="epoch")
    for epoch in progress:
        losses = []
        for batch in training[torch.randperm(len(training))].split(BATCH):
            noisy = images[batch] + NOISE * torch.randn(len(batch), 64)
            loss = F.cross_entropy(network(noisy), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            scores = network(images[held_out])
            held_out_curve.append((epoch, F.cross_entropy(scores, labels[held_out]).item()))
            correct = int((scores.argmax(1) == labels[held_out]).sum().item())
        training_curve.append((epoch, sum(losses) / len(losses)))
        progress.set_postfix(loss=f"{training_curve[-1][1]:.3f}", held_out=f"{correct / HELD_OUT:.1%}")

    curves = {"training images": training_curve, "held-out images": held_out_curve}
    (folder / "loss.svg").write_text(line_chart(curves, "Reading handwritten digits", "epoch", "cross-entropy"))
    loss = F.cross_entropy(network(images[:BATCH]), labels[:BATCH])
    draw(loss, [*network.named_parameters(), ("loss", loss)]).save(folder / "graph.svg")
    print(f"held-out accuracy: {correct / HELD_OUT:.1%} ({correct} of {HELD_OUT} images)")
    print(f"loss curve: {folder / 'loss.svg'}")
    print(f"graph: {folder / 'graph.svg'}")
    return correct / HELD_OUT
