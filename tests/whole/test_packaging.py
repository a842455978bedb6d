"""What setup.cfg installs."""

import configparser
import subprocess
import sys

import pytest
from paths import CONFIGS, ROOT

from user_dgl.config import default_config, load_config


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
    found = {path for pattern in patterns for path in (CONFIGS).glob(pattern)}
    assert found == set((CONFIGS).rglob("*.yaml"))


def test_the_default_config_is_found():
    assert load_config(default_config()).model.encoder == "smooth"


def test_installed_packages_hold_all_modules_and_configs(tmp_path):
    pytest.importorskip("setuptools")
    build = "from setuptools import setup; setup()"
    command = [sys.executable, "-c", build, "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60, capture_output=True)
    built = tmp_path / "user_dgl"
    for root, folder, kind in ((ROOT, "configs", "yaml"), (ROOT / "user_dgl", "", "py")):
        names = sorted(str(file.relative_to(root)) for file in (root / folder).rglob(f"*.{kind}"))
        assert names == sorted(
            str(file.relative_to(built)) for file in (built / folder).rglob(f"*.{kind}")
        )
