from __future__ import annotations

import pytest
import torch

from veilkit.errors import CheckpointError, ConfigError
from veilkit.experts import load_expert
from veilkit.experts.names import weights_folder
from veilkit.experts.registry import experts

folder = weights_folder()


def test_without_the_weights_the_networks_of_others_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VEILKIT_WEIGHTS", "VEILKIT_DATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("retail-0277", "osnet-0.25"):
        with pytest.raises(CheckpointError, match="VEILKIT_WEIGHTS"):
            load_expert(name)
        assert "VEILKIT_WEIGHTS" in experts()[name]["licence"]
    with pytest.raises(ConfigError, match="without flip"):
        load_expert("retail-0277", flip=True)


@pytest.mark.skipif(
    folder is None or not (folder / "person-reidentification-retail-0277.xml").is_file(),
    reason="needs Intel's network in VEILKIT_WEIGHTS",
)
def test_retail_embeds_each_picture_by_itself() -> None:
    pytest.importorskip("openvino")
    expert = load_expert("retail-0277")
    images = torch.rand(3, 3, 128, 64, generator=torch.Generator().manual_seed(0))
    features = expert.embed(images)
    assert features.shape == (3, expert.dim)
    assert torch.allclose(expert.embed(images[1:2]), features[1:2], atol=1e-4)
    assert not torch.allclose(features[0], features[1], atol=1e-2)
