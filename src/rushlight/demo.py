"""`rushlight demo`: a network learns to read handwritten digits, and its graph is drawn.

It is written as any program for PyTorch would be; apart from `draw`, it runs under PyTorch too.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import rushlight as torch
from rushlight import nn, optim
from rushlight._chart import line_chart
from rushlight._gallery import gallery
from rushlight.autograd.graph import draw
from rushlight.nn import functional as F

if TYPE_CHECKING:
    from rushlight.autograd.draw import Drawing

DIGITS = Path(__file__).parent / "data" / "digits.npz"
HELD_OUT = 360  # of 1,797 images
SHOWN = 48  # of them
BATCH = 32
BOXES = 200  # in the picture of the graph: enough for each parameter to have its own, with its name
NOISE = 0.1  # added to the pixels in training, so that the images cannot be learnt by heart


@dataclass(frozen=True)
class Course:
    """A network, how it sees the images, and how it is trained."""

    build: Callable[[], nn.Module]
    view: Callable[[torch.Tensor], torch.Tensor]  # of rows of 64 numbers
    optimizer: Callable[[Iterable[nn.Parameter]], optim.Optimizer]
    epochs: int


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))


def _resnet18() -> nn.Module:
    from rushlight.vision.models import resnet18

    return resnet18(num_classes=10)


def _as_photographs(rows: torch.Tensor) -> torch.Tensor:
    """The images as colour photographs of 32 x 32 pixels."""
    large = F.interpolate(rows.reshape(-1, 1, 8, 8), scale_factor=4, mode="bilinear", align_corners=False)
    return large.expand(-1, 3, -1, -1)


COURSES = {
    "mlp": Course(_perceptron, lambda rows: rows, lambda parameters: optim.Adam(parameters, lr=2e-3), epochs=30),
    "resnet18": Course(_resnet18, _as_photographs, lambda parameters: optim.Adam(parameters, lr=1e-3), epochs=3),
}


def load_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """1,797 images as rows of 64 numbers from 0 to 1, and the digits that they show; data/digits.txt says whence."""
    with np.load(DIGITS) as archive:
        images = torch.from_numpy(archive["images"]).reshape(-1, 64).float() / 16
        labels = torch.from_numpy(archive["labels"]).long()
    return images, labels


class Digits:
    """The images, in a random part for training and one held out."""

    def __init__(self) -> None:
        self.images, self.labels = load_digits()
        count = len(self.images)
        self.held_out, self.training = torch.randperm(count).split([HELD_OUT, count - HELD_OUT])

    def batches(self) -> tuple[torch.Tensor, ...]:
        """The training images' numbers in random order."""
        return self.training[torch.randperm(len(self.training))].split(BATCH)


def train(course: Course, network: nn.Module, digits: Digits, epochs: int) -> dict[str, list[tuple[float, float]]]:
    """Trains the network and returns the loss after each epoch, on the training images and on the held-out ones."""
    from tqdm import tqdm

    optimizer = course.optimizer(network.parameters())
    curves: dict[str, list[tuple[float, float]]] = {"training images": [], "held-out images": []}
    steps = math.ceil(len(digits.training) / BATCH)
    # to smaller and smaller steps: the running statistics of normalisation have to catch up with the weights
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
    with tqdm(total=epochs * steps, desc="training", unit="batch") as progress:
        for epoch in range(1, epochs + 1):
            losses = []
            network.train()
            for batch in digits.batches():
                noisy = digits.images[batch] + NOISE * torch.randn(len(batch), 64)
                loss = F.cross_entropy(network(course.view(noisy)), digits.labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                progress.update()
            read, held_out_loss = examine(course, network, digits)
            curves["training images"].append((epoch, sum(losses) / len(losses)))
            curves["held-out images"].append((epoch, held_out_loss))
            progress.set_postfix(loss=f"{curves['training images'][-1][1]:.3f}", held_out=f"{share(read, digits):.1%}")
    return curves


@torch.no_grad()
def examine(course: Course, network: nn.Module, digits: Digits) -> tuple[torch.Tensor, float]:
    """What the network reads in the held-out images, and its loss."""
    network.eval()
    scores = network(course.view(digits.images[digits.held_out]))
    return scores.argmax(1), F.cross_entropy(scores, digits.labels[digits.held_out]).item()


def share(read: torch.Tensor, digits: Digits) -> float:
    """The share of held-out images that were read right."""
    return float((read == digits.labels[digits.held_out]).float().mean().item())


def pictures(course: Course, network: nn.Module, digits: Digits, read: torch.Tensor) -> tuple[str, "Drawing"]:
    """Some held-out images with what was read, and the graph of one batch."""
    shown, answers = digits.held_out[:SHOWN], read[:SHOWN].tolist()
    wrong = [answer != label for answer, label in zip(answers, digits.labels[shown].tolist(), strict=True)]
    images = digits.images[shown].reshape(-1, 8, 8).tolist()
    loss = F.cross_entropy(network(course.view(digits.images[:BATCH])), digits.labels[:BATCH])
    graph = draw(loss, [*network.named_parameters(), ("loss", loss)], max_boxes=BOXES)
    return gallery(images, [str(answer) for answer in answers], wrong, "Held-out images, as read"), graph


def main(model: str = "mlp", out: str = "rushlight-demo", epochs: int | None = None, seed: int = 0) -> float:
    """Trains the network, writes `loss.svg`, `digits.svg` and `graph.svg` into the folder `out`, and returns the share
    of held-out images that it reads right.

    The same seed gives the same result.  ValueError for an unknown model.
    """
    if model not in COURSES:
        raise ValueError(f"expected a model among {', '.join(COURSES)}, found {model!r}")
    course = COURSES[model]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    digits = Digits()
    network = course.build()
    curves = train(course, network, digits, epochs or course.epochs)
    read, _ = examine(course, network, digits)
    (folder / "loss.svg").write_text(line_chart(curves, "Reading handwritten digits", "epoch", "cross-entropy"))
    images, graph = pictures(course, network, digits, read)
    (folder / "digits.svg").write_text(images)
    graph.save(folder / "graph.svg")
    right = share(read, digits)
    print(f"held-out accuracy: {right:.1%} ({round(right * HELD_OUT)} of {HELD_OUT} images)")
    for name, file in (("loss curve", "loss.svg"), ("images", "digits.svg"), ("graph", "graph.svg")):
        print(f"{name}: {folder / file}")
    return right
