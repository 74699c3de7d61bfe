"""torch.grid_sampler takes the words of grid_sample by their numbers."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F


@pytest.mark.parametrize(("mode", "word"), list(enumerate(["bilinear", "nearest", "bicubic"])))
@pytest.mark.parametrize(("padding", "border"), list(enumerate(["zeros", "border", "reflection"])))
def test_numbers_are_the_words(mode, word, padding, border):
    torch.manual_seed(0)
    x, grid = torch.randn(1, 2, 4, 3), torch.randn(1, 2, 2, 2)
    expected = F.grid_sample(x, grid, word, border, align_corners=True)
    assert torch.equal(torch.grid_sampler(x, grid, mode, padding, True), expected)
    assert torch.equal(torch.grid_sampler_2d(x, grid, mode, padding, True), expected)


def test_other_numbers():
    with pytest.raises(ValueError, match="expected modes from 0 to 2, but got interpolation_mode=3"):
        torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 2), 3, 0, False)
