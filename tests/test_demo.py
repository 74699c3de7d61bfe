"""The demonstration: it learns, it repeats itself for the same seed, it leaves its pictures behind."""

from xml.etree import ElementTree

import pytest

from rushlight import cli, demo

SVG = "{http://www.w3.org/2000/svg}"


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
    assert "1350/1350" in output.err  # the progress bar
    names = set()
    for name in ("loss.svg", "graph.svg"):
        root = ElementTree.parse(tmp_path / "pictures" / name).getroot()
        names |= {element.text for element in root.iter(SVG + "text")}
    assert {"epoch", "training images", "held-out images", "0.weight", "2.bias", "loss"} <= names


def test_a_seed_decides_everything(tmp_path):
    runs = [demo.main(out=str(tmp_path / str(run)), epochs=2, seed=seed) for run, seed in enumerate((3, 3, 4))]
    curves = [(tmp_path / str(run) / "loss.svg").read_text() for run in range(3)]
    assert runs[0] == runs[1]
    assert curves[0] == curves[1] != curves[2]


def test_a_residual_network_reads_most_of_them_after_one_epoch(tmp_path, capsys):
    share = demo.main(model="resnet18", out=str(tmp_path), epochs=1)
    assert share > 0.8
    assert "45/45" in capsys.readouterr().err
    texts = {element.text for element in ElementTree.parse(tmp_path / "graph.svg").getroot().iter(SVG + "text")}
    assert {"fc.weight", "loss"} <= texts


def test_held_out_images_are_shown_with_what_was_read(tmp_path):
    demo.main(out=str(tmp_path), epochs=1)
    root = ElementTree.parse(tmp_path / "digits.svg").getroot()
    assert len(list(root.iter(SVG + "image"))) == demo.SHOWN
    read = [element for element in root.iter(SVG + "text") if element.get("text-anchor") == "middle"]
    assert len(read) == demo.SHOWN
    assert {element.text for element in read} <= set("0123456789")


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="expected a model among mlp, resnet18, found 'vgg'"):
        demo.main(model="vgg", out=str(tmp_path / "pictures"))
    assert not (tmp_path / "pictures").exists()
