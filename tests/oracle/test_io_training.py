"""Training begun in one library goes on in the other: a residual network with momentum, a transformer with AdamW."""

import io

import numpy as np
import pytest

import rushlight
import rushlight.optim
import rushlight.vision.models

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

BOTH = [pytest.param((torch, rushlight), id="to_us"), pytest.param((rushlight, torch), id="to_them")]


def residual_network(library):
    """ResNet-18, written once for both libraries, with the names that torchvision and `rushlight.vision` give it."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.downsample = None
            if stride != 1 or inputs != outputs:
                shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
                self.downsample = nn.Sequential(*shortcut)

        def forward(self, x):
            shortcut = x if self.downsample is None else self.downsample(x)
            return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + shortcut)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
            self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
            self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
            self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
            self.avgpool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(512, 5)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(self.avgpool(x).flatten(1))

    return ResNet()


def transformer(library):
    nn = library.nn
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return nn.Sequential(nn.Linear(6, 16), encoder, nn.LayerNorm(16), nn.Flatten(), nn.Linear(16 * 7, 5))


def momentum(library, model):
    """With a rate at which a few steps do not yet blow roundings up."""
    return library.optim.SGD(model.parameters(), lr=5e-4, momentum=0.9, weight_decay=1e-4, nesterov=True)


def adamw(library, model):
    return library.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, amsgrad=True)


CASES = {
    "resnet_sgd": (residual_network, momentum, (6, 3, 64, 64)),
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


@pytest.mark.parametrize("ways", BOTH)
def test_the_resnet18_of_vision(ways):
    """The published network's names and shapes: state that either library writes fits, and computes the same."""
    writer, reader = ways
    built = {torch: residual_network(torch), rushlight: rushlight.vision.models.resnet18(num_classes=5)}
    stream = io.BytesIO()
    writer.save(built[writer].state_dict(), stream)
    stream.seek(0)
    assert str(built[reader].load_state_dict(reader.load(stream))) == "<All keys matched successfully>"
    x = np.random.default_rng(1).standard_normal((2, 3, 64, 64), dtype=np.float32)
    outputs = []
    for library, model in built.items():
        model.eval()
        with library.no_grad():
            outputs.append(model(library.tensor(x)).numpy())
    assert np.allclose(*outputs, rtol=1e-4, atol=1e-5)
