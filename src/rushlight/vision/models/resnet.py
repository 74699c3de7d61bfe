"""Residual networks for images."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor, nn

from ..transforms._presets import ImageClassification
from ._api import Weights, WeightsEnum, model_builder

__all__ = [
    "ResNet",
    "ResNet18_Weights",
    "ResNet34_Weights",
    "ResNet50_Weights",
    "ResNet101_Weights",
    "ResNet152_Weights",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
]

Norm = Callable[..., nn.Module]


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A 3x3 convolution without bias, padded so that stride 1 keeps the size."""
    return nn.Conv2d(
        in_planes, out_planes, 3, stride=stride, padding=dilation, groups=groups, bias=False, dilation=dilation
    )


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A 1x1 convolution without bias."""
    return nn.Conv2d(in_planes, out_planes, 1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around which the input is added to their result."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Applies the block."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(out)
        return result


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, around which the input is added to their result.

    The stride is the 3x3 convolution's, unlike in the paper: "ResNet v1.5", which is more accurate.
    """

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Applies the block."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(out)
        return result


class ResNet(nn.Module):
    """A residual network: images of shape (N, 3, H, W) to scores of shape (N, num_classes).

    ``layers`` is the number of blocks in each of four stages. ``groups`` and ``width_per_group`` give ResNeXt and wide
    networks; ``replace_stride_with_dilation`` says of the last three stages whether they dilate instead of striding.
    ``zero_init_residual`` begins with blocks that pass their input on.

    He et al., "Deep residual learning for image recognition" (2016).
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        dilate = replace_stride_with_dilation if replace_stride_with_dilation is not None else (False, False, False)
        if len(dilate) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialise(zero_init_residual)

    def _initialise(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, (BasicBlock, Bottleneck)):
                    last = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                    if last.weight is not None:
                        nn.init.constant_(last.weight, 0)

    def _make_layer(
        self, block: type[BasicBlock | Bottleneck], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        first_dilation = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride), self._norm_layer(planes * block.expansion)
            )
        same = functools.partial(
            block, planes=planes, groups=self.groups, base_width=self.base_width, norm_layer=self._norm_layer
        )
        stage = [same(self.inplanes, stride=stride, downsample=downsample, dilation=first_dilation)]
        self.inplanes = planes * block.expansion
        stage += [same(self.inplanes, dilation=self.dilation) for _ in range(1, blocks)]
        return nn.Sequential(*stage)

    def forward(self, x: Tensor) -> Tensor:
        """Computes the scores of images."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        result: Tensor = self.fc(rushlight.flatten(self.avgpool(x), 1))
        return result


def _resnet(
    block: type[BasicBlock | Bottleneck], layers: list[int], weights: WeightsEnum | None, progress: bool, **kwargs: Any
) -> ResNet:
    if weights is not None:
        classes = weights.meta["num_classes"]
        if kwargs.setdefault("num_classes", classes) != classes:
            raise ValueError(
                f"The parameter 'num_classes' expected value {classes} but got {kwargs['num_classes']} instead."
            )
    model = ResNet(block, layers, **kwargs)
    if weights is not None:
        model.load_state_dict(weights.get_state_dict(progress=progress, check_hash=True))
    return model


class _Facts(dict[str, Any]):
    """Facts about weights, among which the names of the thousand classes are not."""

    def __missing__(self, key: str) -> Any:
        raise KeyError(f"rushlight knows {', '.join(self)} of these weights, not {key!r}")


def _imagenet(file: str, num_params: int, top1: float, top5: float, resize_size: int = 256) -> Weights:
    """Weights trained on the thousand classes of ImageNet; the digits in the file's name begin its SHA-256."""
    facts = _Facts(
        num_classes=1000,
        min_size=(1, 1),
        num_params=num_params,
        _metrics={"ImageNet-1K": {"acc@1": top1, "acc@5": top5}},
    )
    transforms = functools.partial(ImageClassification, crop_size=224, resize_size=resize_size)
    return Weights(f"https://download.pytorch.org/models/{file}.pth", transforms, facts)


class ResNet18_Weights(WeightsEnum):
    """Weights of :func:`resnet18`."""

    IMAGENET1K_V1 = _imagenet("resnet18-f37072fd", 11689512, 69.758, 89.078)
    DEFAULT = IMAGENET1K_V1


class ResNet34_Weights(WeightsEnum):
    """Weights of :func:`resnet34`."""

    IMAGENET1K_V1 = _imagenet("resnet34-b627a593", 21797672, 73.314, 91.420)
    DEFAULT = IMAGENET1K_V1


class ResNet50_Weights(WeightsEnum):
    """Weights of :func:`resnet50`."""

    IMAGENET1K_V1 = _imagenet("resnet50-0676ba61", 25557032, 76.130, 92.862)
    IMAGENET1K_V2 = _imagenet("resnet50-11ad3fa6", 25557032, 80.858, 95.434, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNet101_Weights(WeightsEnum):
    """Weights of :func:`resnet101`."""

    IMAGENET1K_V1 = _imagenet("resnet101-63fe2227", 44549160, 77.374, 93.546)
    IMAGENET1K_V2 = _imagenet("resnet101-cd907fc2", 44549160, 81.886, 95.780, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNet152_Weights(WeightsEnum):
    """Weights of :func:`resnet152`."""

    IMAGENET1K_V1 = _imagenet("resnet152-394f9c45", 60192808, 78.312, 94.046)
    IMAGENET1K_V2 = _imagenet("resnet152-f82ba261", 60192808, 82.284, 96.002, resize_size=232)
    DEFAULT = IMAGENET1K_V2


@model_builder(legacy=ResNet18_Weights.IMAGENET1K_V1)
def resnet18(*, weights: ResNet18_Weights | str | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """A residual network of 18 layers; the other arguments are those of :class:`ResNet`."""
    return _resnet(BasicBlock, [2, 2, 2, 2], ResNet18_Weights.verify(weights), progress, **kwargs)


@model_builder(legacy=ResNet34_Weights.IMAGENET1K_V1)
def resnet34(*, weights: ResNet34_Weights | str | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """A residual network of 34 layers; the other arguments are those of :class:`ResNet`."""
    return _resnet(BasicBlock, [3, 4, 6, 3], ResNet34_Weights.verify(weights), progress, **kwargs)


@model_builder(legacy=ResNet50_Weights.IMAGENET1K_V1)
def resnet50(*, weights: ResNet50_Weights | str | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """A residual network of 50 layers; the other arguments are those of :class:`ResNet`."""
    return _resnet(Bottleneck, [3, 4, 6, 3], ResNet50_Weights.verify(weights), progress, **kwargs)


@model_builder(legacy=ResNet101_Weights.IMAGENET1K_V1)
def resnet101(*, weights: ResNet101_Weights | str | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """A residual network of 101 layers; the other arguments are those of :class:`ResNet`."""
    return _resnet(Bottleneck, [3, 4, 23, 3], ResNet101_Weights.verify(weights), progress, **kwargs)


@model_builder(legacy=ResNet152_Weights.IMAGENET1K_V1)
def resnet152(*, weights: ResNet152_Weights | str | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """A residual network of 152 layers; the other arguments are those of :class:`ResNet`."""
    return _resnet(Bottleneck, [3, 8, 36, 3], ResNet152_Weights.verify(weights), progress, **kwargs)
