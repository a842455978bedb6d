"""What setup.cfg installs."""

import configparser
from pathlib import Path

from user_dgl.config import default_config, load_config

ROOT = Path(__file__).parent.parent


def _setup():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup


def test_every_package_is_installed():
    files = (ROOT / "user_dgl").rglob("__init__.py")
    found = {".".join(file.parent.relative_to(ROOT).parts) for file in files}
    assert set(_setup()["options"]["packages"].split()) == found | {"user_dgl.configs"}


def test_every_config_is_installed():
    patterns = _setup()["options.package_data"]["user_dgl.configs"].split(", ")
    found = {path for pattern in patterns for path in (ROOT / "configs").glob(pattern)}
    assert found == set((ROOT / "configs").rglob("*.yaml"))


def test_the_default_config_is_found():
    assert load_config(default_config()).model.encoder == "smooth"
