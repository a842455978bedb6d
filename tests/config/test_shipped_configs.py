"""The configs of the repository."""

import pytest
from paths import CONFIGS

from configs import round_trip
from user_dgl.config import (
    config_name,
    default_config,
    load_config,
)

SHIPPED = sorted((CONFIGS).rglob("*.yaml"))


def test_configs_are_shipped():
    assert SHIPPED


def test_default_config_is_found():
    assert default_config().samefile(CONFIGS / "default.yaml")
    assert load_config(default_config(), ["model.num_clusters=3"]).model.encoder == "smooth"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: config_name(path))
def test_shipped_config(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    if text.startswith("extends: "):
        _, _, text = text.partition("\n")
    assert text.startswith("# ")  # its measured result and how it was measured, or what it is for
    config = load_config(path)
    round_trip(config, tmp_path)
    assert config.inert_settings() == []
    assert config.output_dir is None
    assert config.overwrite is False
