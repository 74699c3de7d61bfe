"""Residual networks: names, shapes, initial values, weights from files."""

import hashlib
import itertools
import math
import warnings

import pytest

import rushlight as torch
from rushlight import hub, nn, vision
from rushlight.vision import models
from rushlight.vision.models import ResNet18_Weights, ResNet50_Weights, resnet

NUM_PARAMS = {18: 11689512, 34: 21797672, 50: 25557032, 101: 44549160, 152: 60192808}
STATE = {18: 122, 34: 218, 50: 320, 101: 626, 152: 932}


@pytest.mark.parametrize("layers", [18, 34, 50])
def test_parameters(layers):
    model = getattr(models, f"resnet{layers}")()
    assert sum(p.numel() for p in model.parameters()) == NUM_PARAMS[layers]
    assert len(model.state_dict()) == STATE[layers]
    names = list(model.state_dict())
    assert names[:3] == ["conv1.weight", "bn1.weight", "bn1.bias"]
    assert names[-2:] == ["fc.weight", "fc.bias"]
    assert "layer2.0.downsample.0.weight" in names
    assert names.index("layer2.0.downsample.0.weight") > names.index("layer2.0.bn2.weight")


@pytest.mark.parametrize(("layers", "blocks"), [(101, [3, 4, 23, 3]), (152, [3, 8, 36, 3])])
def test_deeper_networks_have_more_blocks(layers, blocks, monkeypatch):
    made = []
    monkeypatch.setattr(resnet, "ResNet", lambda block, layers, **options: made.append((block, layers, options)))
    getattr(models, f"resnet{layers}")(num_classes=7)
    assert made == [(resnet.Bottleneck, blocks, {"num_classes": 7})]


def test_printed_block():
    assert repr(models.resnet18().layer2[0]) == (
        "BasicBlock(\n"
        "  (conv1): Conv2d(64, 128, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)\n"
        "  (bn1): BatchNorm2d(128, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "  (relu): ReLU(inplace=True)\n"
        "  (conv2): Conv2d(128, 128, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
        "  (bn2): BatchNorm2d(128, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "  (downsample): Sequential(\n"
        "    (0): Conv2d(64, 128, kernel_size=(1, 1), stride=(2, 2), bias=False)\n"
        "    (1): BatchNorm2d(128, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "  )\n"
        ")"
    )


@pytest.mark.parametrize("build", [models.resnet18, models.resnet50])
def test_forward_and_backward(build):
    model = build(num_classes=5)
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    scores = model(x)
    assert scores.shape == (2, 5)
    scores.sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
    assert x.grad.abs().sum().item() > 0


def test_stages():
    model = models.resnet18()
    x = model.maxpool(model.relu(model.bn1(model.conv1(torch.randn(1, 3, 64, 64)))))
    shapes = []
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        x = stage(x)
        shapes.append(tuple(x.shape[1:]))
    assert shapes == [(64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]


def test_dilation_instead_of_stride():
    model = models.resnet50(replace_stride_with_dilation=[False, True, True])
    assert model.layer4(model.layer3(torch.randn(1, 512, 8, 8))).shape == (1, 2048, 8, 8)
    assert model.layer4[1].conv2.dilation == (4, 4)
    with pytest.raises(ValueError, match="replace_stride_with_dilation should be None or a 3-element tuple, got"):
        models.resnet50(replace_stride_with_dilation=[True])
    with pytest.raises(NotImplementedError, match="Dilation > 1 not supported in BasicBlock"):
        models.resnet18(replace_stride_with_dilation=[False, True, True])


def test_width_and_groups():
    block = models.resnet50(groups=4, width_per_group=8).layer1[0]
    assert block.conv2.weight.shape == (32, 8, 3, 3)
    with pytest.raises(ValueError, match="BasicBlock only supports groups=1 and base_width=64"):
        models.resnet18(width_per_group=128)


def test_norm_layer():
    model = models.resnet18(norm_layer=lambda width: nn.GroupNorm(8, width))
    assert not any(isinstance(m, nn.BatchNorm2d) for m in model.modules())


def test_initial_values():
    torch.manual_seed(0)
    model = models.resnet18()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
            assert module.weight.std().item() == pytest.approx(math.sqrt(2 / fan_out), rel=0.1)
        elif isinstance(module, nn.BatchNorm2d):
            assert torch.equal(module.weight, torch.ones_like(module.weight))
            assert torch.equal(module.bias, torch.zeros_like(module.bias))
    torch.manual_seed(0)
    assert torch.equal(models.resnet18().fc.weight, model.fc.weight)


# What PyTorch 2.13 gives after manual_seed(0): layers draw in the order of their construction, convolutions again.
SEEDED = {
    "resnet18": [[0.0241097, 0.0075288, 0.0466584], [0.0732458, -0.0062246, -0.0803734], [-0.0173277, -0.0431646]],
    "resnet50": [[-0.0585507, 0.0245902, 0.0291172], [0.0001409, -0.068288, -0.0961237], [-0.013495, 0.0190061]],
}


@pytest.mark.parametrize("name", SEEDED)
def test_initial_values_are_pytorchs(name):
    torch.manual_seed(0)
    model = getattr(models, name)()
    values = [
        model.conv1.weight[0, 0, 0, :3].tolist(),
        model.layer2[0].downsample[0].weight[5, :3, 0, 0].tolist(),
        model.fc.bias[:2].tolist(),
    ]
    for got, expected in zip(values, SEEDED[name], strict=True):
        assert got == pytest.approx(expected, abs=1e-6)


def test_residuals_that_begin_at_zero():
    model = models.resnet18(zero_init_residual=True)
    blocks = [m for m in model.modules() if isinstance(m, resnet.BasicBlock)]
    assert len(blocks) == 8
    assert all(not block.bn2.weight.any() and block.bn1.weight.all() for block in blocks)
    bottleneck = models.resnet50(zero_init_residual=True).layer1[0]
    assert not bottleneck.bn3.weight.any()
    assert bottleneck.bn2.weight.all()


# --- weights --------------------------------------------------------------------------------------------------------


def test_sets_of_weights():
    v1, v2 = ResNet50_Weights.IMAGENET1K_V1, ResNet50_Weights.IMAGENET1K_V2
    assert ResNet50_Weights.DEFAULT is v2
    assert v1 is not v2
    assert v1.url == "https://download.pytorch.org/models/resnet50-0676ba61.pth"
    assert repr(v1) == "ResNet50_Weights.IMAGENET1K_V1"
    assert v1.meta["num_params"] == NUM_PARAMS[50]
    with pytest.raises(KeyError, match="categories"):
        v1.meta["categories"]
    assert v2.transforms().resize_size == [232]
    assert v1.transforms().resize_size == [256]
    assert models.get_weight("ResNet50_Weights.IMAGENET1K_V2") is v2
    assert models.get_model_weights("resnet50") is models.get_model_weights(models.resnet50) is ResNet50_Weights


@pytest.mark.parametrize("layers", [18, 34, 50, 101, 152])
def test_every_file_has_a_checksum_in_its_name(layers):
    weights = models.get_model_weights(f"resnet{layers}")
    for member in weights:
        assert member.url.startswith(f"https://download.pytorch.org/models/resnet{layers}-")
        assert len(hub.HASH_REGEX.search(member.url).group(1)) == 8


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A cache with the file of resnet18's weights in it: our own, made by chance."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(hub, "_hub_dir", None)
    torch.manual_seed(1)
    model = models.resnet18()
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(model.state_dict(), folder / "resnet18-f37072fd.pth")
    return model


@pytest.mark.parametrize(
    "weights", [ResNet18_Weights.DEFAULT, "DEFAULT", "IMAGENET1K_V1", "ResNet18_Weights.IMAGENET1K_V1"]
)
def test_weights_come_from_the_cache(cached, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = models.resnet18(weights=weights)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), cached.parameters(), strict=True))


def test_pretrained_is_deprecated_but_works(cached):
    with pytest.warns(UserWarning) as caught:
        model = models.resnet18(pretrained=True)
    assert torch.equal(model.fc.weight, cached.fc.weight)
    messages = [str(w.message) for w in caught]
    assert messages[0].startswith("The parameter 'pretrained' is deprecated since 0.13")
    assert "passing `weights=ResNet18_Weights.IMAGENET1K_V1`" in messages[1]
    with pytest.warns(UserWarning, match="passing `weights=None`"):
        model = models.resnet18(pretrained=False)
    assert not torch.equal(model.fc.weight, cached.fc.weight)
    with pytest.warns(UserWarning, match="Using 'weights' as positional parameter"):
        model = models.resnet18(True)
    assert torch.equal(model.fc.weight, cached.fc.weight)


def test_refused_weights(cached):
    with pytest.raises(TypeError, match="expected ResNet18_Weights but received ResNet50_Weights"):
        models.resnet18(weights=ResNet50_Weights.DEFAULT)
    with pytest.raises(KeyError, match="NOTHING"):
        models.resnet18(weights="NOTHING")
    with pytest.raises(ValueError, match="The parameter 'num_classes' expected value 1000 but got 5 instead"):
        models.resnet18(weights="DEFAULT", num_classes=5)


def test_downloaded_weights_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", str(tmp_path / "hub"))
    source = tmp_path / "resnet18-f37072fd.pth"
    source.write_bytes(b"something else")
    monkeypatch.setattr(ResNet18_Weights, "url", source.as_uri())
    digest = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(RuntimeError, match=f'expected "f37072fd", got "{digest}"'):
        models.resnet18(weights="DEFAULT")


def test_models_by_name():
    assert models.list_models() == ["resnet101", "resnet152", "resnet18", "resnet34", "resnet50"]
    assert models.get_model("resnet18", num_classes=3).fc.out_features == 3
    assert models.get_model_builder("ResNet18") is models.resnet18
    with pytest.raises(ValueError, match="Unknown model vgg16"):
        models.get_model("vgg16")
    with pytest.raises(ValueError, match="Invalid weight name provided: 'x'"):
        models.get_weight("x")
    with pytest.raises(ValueError, match="The weight enum 'VGG16_Weights'"):
        models.get_weight("VGG16_Weights.DEFAULT")


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match=r"torchvision\.models\.vgg16"):
        models.vgg16()
    with pytest.raises(AttributeError, match=r"torchvision\.ops"):
        vision.ops  # noqa: B018


def test_preset():
    preset = ResNet18_Weights.DEFAULT.transforms()
    image = torch.randint(0, 256, (3, 300, 400), dtype=torch.uint8)
    prepared = preset(image)
    assert prepared.shape == (3, 224, 224)
    assert prepared.dtype == torch.float32
    assert preset(image[None].repeat(2, 1, 1, 1)).shape == (2, 3, 224, 224)
    flat = preset(torch.full((3, 300, 400), 255, dtype=torch.uint8))
    for channel, mean, std in zip(flat, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True):
        assert channel.flatten().tolist() == pytest.approx([(1 - mean) / std] * 224**2, rel=1e-5)
    assert list(itertools.islice(repr(preset).splitlines(), 2)) == ["ImageClassification(", "    crop_size=[224]"]
