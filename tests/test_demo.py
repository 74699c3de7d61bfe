"""The demonstration: it learns, it repeats itself for the same seed, it leaves its pictures behind."""

from xml.etree import ElementTree

import pytest

from rushlight import cli, demo


def test_the_images_are_the_published_ones():
    images, labels = demo.load_digits()
    assert images.shape == (1797, 64)
    assert (images.min().item(), images.max().item()) == (0.0, 1.0)
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    first = (images[0].reshape(8, 8) * 16).tolist()
    assert first[0] == [0, 0, 5, 13, 9, 1, 0, 0]
    assert int(labels[0]) == 0


def test_it_reads_more_than_95_percent_of_the_held_out_images(tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path / "pictures")]) == 0
    output = capsys.readouterr()
    share = float(output.out.split("held-out accuracy: ")[1].split("%")[0])
    assert share > 95.0
    assert "30/30" in output.err  # the progress bar
    names = set()
    for name in ("loss.svg", "graph.svg"):
        root = ElementTree.parse(tmp_path / "pictures" / name).getroot()
        names |= {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"epoch", "training images", "held-out images", "0.weight", "2.bias", "loss"} <= names


def test_a_seed_decides_everything(tmp_path):
    runs = [demo.main(out=str(tmp_path / str(run)), epochs=2, seed=seed) for run, seed in enumerate((3, 3, 4))]
    curves = [(tmp_path / str(run) / "loss.svg").read_text() for run in range(3)]
    assert runs[0] == runs[1]
    assert curves[0] == curves[1] != curves[2]


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModuleNotFoundError, match="'resnet18' needs 'torchvision'"):
        demo.main(model="resnet18", out=str(tmp_path / "pictures"))
    assert not (tmp_path / "pictures").exists()
