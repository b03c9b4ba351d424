import numpy as np
import torch

from veilkit.synthetic.photoreal.network import StyleMapping, Synthesis, haar_doubled


def haar_matrix(side: int) -> np.ndarray:
    """Rows: sums, then differences of neighbours, orthonormal."""
    matrix = np.zeros((side, side))
    for index in range(side // 2):
        matrix[index, 2 * index : 2 * index + 2] = 0.5**0.5
        matrix[side // 2 + index, 2 * index : 2 * index + 2] = 0.5**0.5, -(0.5**0.5)
    return matrix


def test_haar_doubled_undoes_the_transform_by_its_matrix() -> None:
    picture = np.random.default_rng(0).normal(size=(2, 3, 8, 12))
    bands = haar_matrix(8) @ picture @ haar_matrix(12).T
    low, across, down, both = bands[..., :4, :6], bands[..., :4, 6:], bands[..., 4:, :6], bands[..., 4:, 6:]
    high = np.stack([down, across, both], 2).reshape(2, 9, 4, 6)
    again = haar_doubled(torch.from_numpy(np.concatenate([low, high], 1)))
    np.testing.assert_allclose(again.numpy(), picture, atol=1e-12)


def small() -> Synthesis:
    torch.manual_seed(0)
    network = Synthesis((8, 8, 4)).double().eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return network


def test_a_face_depends_on_its_own_style_alone() -> None:
    network, styles = small(), torch.randn(3, 512, dtype=torch.float64)
    with torch.no_grad():
        faces = network(styles)
        torch.testing.assert_close(faces[1:2], network(styles[1:2]))
    assert faces.shape == (3, 3, 64, 64)
    assert not torch.allclose(faces[0], faces[1])


def test_one_style_for_all_layers_is_that_style_in_each() -> None:
    network, style = small(), torch.randn(1, 512, dtype=torch.float64)
    each = style[:, None].repeat(1, 11, 1)
    with torch.no_grad():
        torch.testing.assert_close(network(each), network(style))
        for layer in range(11):
            other = each.clone()
            other[:, layer] += torch.randn(512, dtype=torch.float64)
            assert not torch.allclose(network(other), network(style)), f"layer {layer} has no say"


def test_gradients_reach_every_style() -> None:
    network, styles = small(), torch.randn(1, 11, 512, dtype=torch.float64, requires_grad=True)
    network(styles).square().sum().backward()
    assert styles.grad is not None
    assert (styles.grad.abs().sum(2) > 0).all()


def test_noise_is_taken_at_unit_length_before_the_first_layer() -> None:
    mapping, noise = StyleMapping(2), torch.randn(2, 512)
    torch.testing.assert_close(mapping(noise), mapping(3 * noise))
