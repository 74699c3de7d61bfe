"""Datasets of images and pictures of many."""

import gzip
import struct

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import datasets, transforms
from rushlight.vision.utils import make_grid, save_image

Image = pytest.importorskip("PIL.Image", reason="Pillow is an extra")


def test_fake_data_is_the_same_every_time():
    torch.manual_seed(0)
    data = datasets.FakeData(size=5, image_size=(3, 8, 9), num_classes=4, transform=transforms.ToTensor())
    assert len(data) == 5
    state = torch.get_rng_state()
    image, target = data[2]
    assert torch.equal(torch.get_rng_state(), state)
    assert tuple(image.shape) == (3, 8, 9)
    assert isinstance(target, int)
    assert torch.equal(data[2][0], image)
    assert not torch.equal(data[3][0], image)
    torch.manual_seed(2)
    expected = torch.randn(3, 8, 9)
    assert torch.equal(image, (expected * 255).to(torch.uint8).float() / 255)
    assert target == torch.randint(0, 4, (1,)).item()
    with pytest.raises(IndexError, match="FakeData index out of range"):
        data[5]
    assert torch.equal(datasets.FakeData(5, (3, 8, 9), random_offset=1, transform=transforms.ToTensor())[1][0], image)


@pytest.fixture
def folder(tmp_path):
    for name, files in {"dog": ["b.png", "a.PNG", "notes.txt"], "cat": ["x/1.png"], ".": ["ignored.png"]}.items():
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".txt":
                path.write_text("no image")
            else:
                Image.new("L", (4, 3), len(file)).save(path)
    return tmp_path


def test_image_folder(folder):
    data = datasets.ImageFolder(str(folder), transform=transforms.PILToTensor(), target_transform=lambda t: t + 10)
    assert data.classes == ["cat", "dog"]
    assert data.class_to_idx == {"cat": 0, "dog": 1}
    assert [(p.rsplit("/", 1)[1], t) for p, t in data.samples] == [("1.png", 0), ("a.PNG", 1), ("b.png", 1)]
    assert data.imgs is data.samples
    assert data.targets == [0, 1, 1]
    image, target = data[1]
    assert (tuple(image.shape), target) == ((3, 3, 4), 11)
    assert image.unique().tolist() == [5]
    assert repr(data).splitlines()[:3] == [
        "Dataset ImageFolder",
        "    Number of datapoints: 3",
        f"    Root location: {folder}",
    ]
    assert "    StandardTransform" in repr(data).splitlines()


def test_image_folder_with_own_choice_of_files(folder):
    data = datasets.ImageFolder(folder, is_valid_file=lambda path: path.endswith("b.png"), allow_empty=True)
    assert len(data) == 1
    with pytest.raises(FileNotFoundError, match=r"Found no valid file for the classes cat\."):
        datasets.ImageFolder(folder, is_valid_file=lambda path: path.endswith("b.png"))


def test_refused_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder in"):
        datasets.ImageFolder(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"Found no valid file for the classes empty\. Supported extensions are"
    ):
        datasets.ImageFolder(tmp_path)
    with pytest.raises(ValueError, match="Both extensions and is_valid_file cannot be None or not None"):
        datasets.DatasetFolder(tmp_path, loader=open)


def idx(array):
    return struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("train", [False, True])
def test_mnist_from_files(tmp_path, compressed, train):
    images = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    part = "train" if train else "t10k"
    for name, array in {f"{part}-images-idx3-ubyte": images, f"{part}-labels-idx1-ubyte": np.uint8([7, 2])}.items():
        content = idx(array)
        (raw / (name + (".gz" if compressed else ""))).write_bytes(gzip.compress(content) if compressed else content)
    data = datasets.MNIST(str(tmp_path), train=train, transform=transforms.PILToTensor())
    assert len(data) == 2
    assert data.targets.tolist() == [7, 2]
    image, target = data[1]
    assert target == 2
    np.testing.assert_array_equal(image[0].numpy(), images[1])
    assert data.class_to_idx["7 - seven"] == 7
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.MNIST(str(tmp_path), train=not train)
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.FashionMNIST(str(tmp_path), train=train)


@pytest.mark.parametrize("damage", [lambda b: b[:10], lambda b: b[:-1], lambda b: b"\1" + b[1:], lambda b: b""])
def test_damaged_files_are_refused(tmp_path, damage):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte").write_bytes(damage(idx(np.zeros((2, 28, 28), np.uint8))))
    with pytest.raises(RuntimeError, match=r"train-images-idx3-ubyte (is no IDX file|has .* numbers)"):
        datasets.MNIST(str(tmp_path))


def test_transforms_exclude_each_other():
    with pytest.raises(ValueError, match="Only transforms or transform/target_transform can be passed as argument"):
        datasets.VisionDataset(transforms=lambda a, b: (a, b), transform=abs)


# --- pictures of many -----------------------------------------------------------------------------------------------


def test_make_grid():
    images = torch.arange(1.0, 6.0).reshape(5, 1, 1, 1).expand(5, 3, 2, 4)
    grid = make_grid(images, nrow=3, padding=1, pad_value=9.0)
    assert tuple(grid.shape) == (3, 7, 16)
    assert grid[0, 1].tolist() == [9, 1, 1, 1, 1, 9, 2, 2, 2, 2, 9, 3, 3, 3, 3, 9]
    assert grid[0, 4].tolist() == [9, 4, 4, 4, 4, 9, 5, 5, 5, 5, 9, 9, 9, 9, 9, 9]
    assert grid[0, 3].tolist() == [9] * 16


def test_make_grid_of_other_shapes():
    assert tuple(make_grid(torch.zeros(4, 5)).shape) == (3, 4, 5)
    assert tuple(make_grid(torch.zeros(2, 1, 4, 5)).shape) == (3, 8, 16)
    assert tuple(make_grid([torch.zeros(3, 4, 5)] * 10).shape) == (3, 14, 58)


def test_make_grid_normalizes():
    images = torch.stack([torch.full((3, 1, 2), v) for v in (0.0, 10.0)])
    images[0, :, :, 0] = 5.0
    grid = make_grid(images, normalize=True, padding=0)
    assert grid[0].tolist() == [[0.5, 0.0, 1.0, 1.0]]
    assert images.max().item() == 10.0
    assert make_grid(images, normalize=True, scale_each=True, padding=0)[0].tolist() == [[1.0, 0.0, 0.0, 0.0]]
    assert make_grid(images, normalize=True, value_range=(0, 5), padding=0)[0].tolist() == [[1.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_grid(3), "tensor or list of tensors expected, got <class 'int'>"),
        (lambda: make_grid([1]), "tensor or list of tensors expected"),
        (lambda: make_grid(torch.zeros(2, 3, 4, 4), normalize=True, value_range=3), "value_range has to be a tuple"),
    ],
)
def test_refused_grids(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_save_image(tmp_path):
    path = tmp_path / "grid.png"
    images = torch.tensor([0.0, 0.5, 1.0, 2.0]).reshape(4, 1, 1, 1).expand(4, 3, 2, 2)
    save_image(images, path, nrow=2, padding=0)
    pixels = np.asarray(Image.open(path))
    assert pixels.shape == (4, 4, 3)
    assert pixels[0, :, 0].tolist() == [0, 0, 128, 128]
    assert pixels[3, :, 0].tolist() == [255] * 4
