"""Training that may be killed at any moment: started again, it goes on as if nothing had happened.

    python examples/resume.py run.pt --steps 600

Kill it (Ctrl-C, `kill -9`, a reboot), start it again with the same arguments, as often as you like: the last line, a
digest of everything that was trained, is the one of a run that was never disturbed.

A checkpoint holds all that the next step depends on: the numbers of the model, of the optimizer and of the scheduler;
the state of the random numbers, which dropout draws from; and the place in the data, which is the state of the loader's
own generator before the epoch, and how many batches of the epoch are done. Writing it is atomic: whoever is killed while
writing still has the checkpoint before.
"""

import argparse
import hashlib
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import rushlight as torch
from rushlight import nn
from rushlight.demo import load_digits
from rushlight.utils.data import DataLoader, TensorDataset

BATCH = 32


class Training:
    """A classifier of handwritten digits, and all that its training needs to go on."""

    def __init__(self, steps: int, workers: int = 0, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.steps, self.step, self.batch = steps, 0, 0
        self.model = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=1e-2, total_steps=steps)
        self.order = torch.Generator().manual_seed(seed + 1)  # of the batches; only the loader draws from it
        self.epoch_order = self.order.get_state()
        self.loader = DataLoader(
            TensorDataset(*load_digits()), BATCH, shuffle=True, generator=self.order, num_workers=workers
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "random": torch.get_rng_state(),
            "order": self.epoch_order,
            "batch": self.batch,
            "step": self.step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch_order, self.batch, self.step = state["order"], state["batch"], state["step"]
        torch.set_rng_state(state["random"])

    def run(self, checkpoint: str, every: int) -> None:
        while self.step < self.steps:
            for images, labels in self.rest_of_epoch():
                loss = self.train(images, labels)
                print(f"step {self.step} loss {loss:.6f}", flush=True)
                if self.step % every == 0 or self.step == self.steps:
                    torch.save(self.state_dict(), checkpoint)
                if self.step == self.steps:
                    return
            self.epoch_order, self.batch = self.order.get_state(), 0

    def rest_of_epoch(self) -> Iterator[list[torch.Tensor]]:
        """The batches of this epoch that have not been trained on."""
        random = torch.get_rng_state()
        self.order.set_state(self.epoch_order)
        batches = iter(self.loader)
        next(islice(batches, self.batch, self.batch), None)  # those before the checkpoint
        torch.set_rng_state(random)  # fetching them may have drawn from it
        return batches

    def train(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.batch += 1
        self.step += 1
        return loss.item()

    def digest(self) -> str:
        """A number that differs if a single bit of the model does."""
        numbers = b"".join(tensor.numpy().tobytes() for tensor in self.model.state_dict().values())
        return hashlib.sha256(numbers).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train, be killed, go on.")
    parser.add_argument("checkpoint", help="file to go on from, if it is there, and to save to")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data (default: %(default)s)")
    arguments = parser.parse_args()

    training = Training(arguments.steps, arguments.workers)
    if os.path.exists(arguments.checkpoint):
        training.load_state_dict(torch.load(arguments.checkpoint))
        print(f"going on from step {training.step}", flush=True)
    training.run(arguments.checkpoint, arguments.every)
    print("digest", training.digest())


if __name__ == "__main__":
    main()
