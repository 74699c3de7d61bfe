"""Training begun in one library goes on in the other: a residual network with momentum, a transformer with AdamW."""

import io

import numpy as np
import pytest

import rushlight
import rushlight.optim

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

BOTH = [pytest.param((torch, rushlight), id="to_us"), pytest.param((rushlight, torch), id="to_them")]


def residual_network(library):
    """ResNet-18 for small pictures, written once for both libraries."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            changes = stride != 1 or inputs != outputs
            shortcut = (nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) if changes else ()
            self.downsample = nn.Sequential(*shortcut)

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.downsample(x))

    widths, layers, inputs = (8, 16, 32, 64), [], 8
    for i, width in enumerate(widths):
        layers.append(nn.Sequential(Block(inputs, width, 1 if i == 0 else 2), Block(width, width, 1)))
        inputs = width
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 5))


def transformer(library):
    nn = library.nn
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return nn.Sequential(nn.Linear(6, 16), encoder, nn.LayerNorm(16), nn.Flatten(), nn.Linear(16 * 7, 5))


def momentum(library, model):
    return library.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4, nesterov=True)


def adamw(library, model):
    return library.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, amsgrad=True)


CASES = {
    "resnet_sgd": (residual_network, momentum, (6, 3, 32, 32)),
    "transformer_adamw": (transformer, adamw, (6, 7, 6)),
}


class Run:
    """A model in training, in one of the libraries."""

    def __init__(self, library, case):
        build, optimize, self.shape = CASES[case]
        library.manual_seed(0)
        self.library, self.model = library, build(library)
        self.optimizer = optimize(library, self.model)
        self.scheduler = library.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.step_number = 0

    def step(self):
        rng = np.random.default_rng(self.step_number)
        x = self.library.tensor(rng.standard_normal(self.shape, dtype=np.float32))
        target = self.library.tensor(rng.integers(0, 5, self.shape[0]))
        self.optimizer.zero_grad()
        loss = self.library.nn.functional.cross_entropy(self.model(x), target)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.step_number += 1
        return loss.item()

    def outputs(self):
        x = np.random.default_rng(99).standard_normal(self.shape, dtype=np.float32)
        self.model.eval()
        with self.library.no_grad():
            result = self.model(self.library.tensor(x)).numpy()
        self.model.train()
        return result

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "step": self.step_number,
        }

    def restore(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step_number = state["step"]


@pytest.mark.parametrize("zipped", [pytest.param(True, id="zip"), pytest.param(False, id="legacy")])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ways", BOTH)
def test_training_goes_on(ways, case, zipped):
    writer, reader = ways
    begun = Run(writer, case)
    for _ in range(3):
        begun.step()
    stream = io.BytesIO()
    writer.save(begun.state(), stream, _use_new_zipfile_serialization=zipped)
    stream.seek(0)
    continued = Run(reader, case)
    continued.restore(reader.load(stream, weights_only=True))
    assert np.allclose(begun.outputs(), continued.outputs(), rtol=1e-4, atol=1e-5)
    for _ in range(3):
        assert begun.step() == pytest.approx(continued.step(), rel=1e-3)
    assert np.allclose(begun.outputs(), continued.outputs(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_changes_no_bit(case):
    """State that went to PyTorch and came back is the same, bit for bit, and so is the run that goes on with it."""
    here = Run(rushlight, case)
    for _ in range(2):
        here.step()
    first, second = io.BytesIO(), io.BytesIO()
    rushlight.save(here.state(), first)
    first.seek(0)
    torch.save(torch.load(first), second)
    second.seek(0)
    again = Run(rushlight, case)
    again.restore(rushlight.load(second))
    assert [here.step() for _ in range(2)] == [again.step() for _ in range(2)]
    for a, b in zip(here.model.state_dict().values(), again.model.state_dict().values(), strict=True):
        assert a.tolist() == b.tolist()
