"""DGL through its one door: beside any torch, silent, and the same module that users import.

What an import does to a process can be seen only in a fresh one.
"""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from paths import ROOT

PACKAGE = ROOT / "user_dgl"

# A finder that finds all but DGL, as where it is not installed.
WITHOUT_DGL = """
import sys
from importlib.machinery import PathFinder

class AllButDGL:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.split(".")[0] == "dgl" else PathFinder.find_spec(name, path, target)

sys.meta_path = [AllButDGL if finder is PathFinder else finder for finder in sys.meta_path]
"""

MESSAGE_IF_REFUSED = """
from user_dgl.errors import InputError
try:
    import user_dgl._dgl
except InputError as error:
    print(error)
"""


def _run(code, **settings):
    """Finished process of ``python -c code`` that imports this package."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DGL")}
    path = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    environment |= {"PYTHONPATH": os.pathsep.join(path), **settings.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        **settings,
    )


def _output(code, **settings):
    done = _run(code, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _graphbolt_library():
    folder = Path(importlib.util.find_spec("dgl").origin).parent / "graphbolt"
    return folder / f"libgraphbolt_pytorch_{torch.__version__.split('+')[0]}.so"


@pytest.fixture(scope="module")
def plain_import_works():
    """Whether ``import dgl`` works by itself beside this torch."""
    return _run("import dgl", env={"DGLBACKEND": "pytorch"}).returncode == 0


@pytest.fixture(scope="module")
def imported():
    """What a process finds after importing DGL here, then as a user does; one process for all."""
    code = """
import json, os, sys
import user_dgl._dgl as door
finders = [str(finder) for finder in sys.meta_path]
import dgl
import dgl.function
import torch

# 0 -> 1, 0 -> 2, 1 -> 2, 3 alone
graph = dgl.graph((torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2])), num_nodes=4)
feat = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0], [7.0, 7.0]], requires_grad=True)
weight = torch.tensor([2.0, 3.0, 0.5], requires_grad=True)
with graph.local_scope():
    graph.ndata["h"] = feat
    graph.edata["w"] = weight
    graph.update_all(dgl.function.u_mul_e("h", "w", "m"), dgl.function.sum("m", "h"))
    total = graph.ndata["h"]
total.sum().backward()
print(json.dumps({
    "guarded": door.guarded,
    "same": dgl is door.dgl is sys.modules["dgl"],
    "version": dgl.__version__,
    "backend": os.environ["DGLBACKEND"],
    "finders": finders,
    "sum": total.tolist(),
    "feat_grad": feat.grad.tolist(),
    "weight_grad": weight.grad.tolist(),
    "unweighted": dgl.ops.copy_u_sum(graph, feat.detach()).tolist(),
}))
"""
    return json.loads(_output(code))


@pytest.fixture(scope="module")
def guarded(imported):
    return imported["guarded"]


def test_guard_only_where_dgl_fails_by_itself(plain_import_works, guarded):
    assert guarded is not plain_import_works


def test_guard_beside_a_torch_without_graphbolt(guarded):
    if not _graphbolt_library().exists():
        assert guarded
    elif guarded:
        # The library is there, so something that its Python side imports must be missing.
        names = ("torchdata.datapipes.iter", "pydantic")
        tries = [_run(f"import {name}").returncode for name in names]
        assert any(tries)


def test_silent_and_leaves_the_home_folder_alone(tmp_path):
    # DGL by itself prints how it chose a backend and writes ~/.dgl/config.json.
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    done = _run("import user_dgl._dgl", env={"HOME": str(home)}, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(home.iterdir()) == []


def test_the_same_module_that_users_import_later(imported):
    assert imported["same"]
    assert imported["version"]
    assert not any("Graphbolt" in finder for finder in imported["finders"])  # ours is gone again


def test_the_same_module_that_users_imported_before(plain_import_works):
    # Where DGL fails by itself, users have an empty GraphBolt of their own.
    own_guard = "sys.modules['dgl.graphbolt'] = types.ModuleType('dgl.graphbolt')"
    code = f"""
import os, sys, types
os.environ["DGLBACKEND"] = "pytorch"
{"" if plain_import_works else own_guard}
import dgl
import user_dgl._dgl as door
assert dgl is door.dgl
print(door.guarded)
"""
    assert _output(code).strip() == str(not plain_import_works)


def test_backend(imported, tmp_path):
    assert imported["backend"] == "pytorch"
    # What users chose is kept; an empty package in DGL's place, which has only PyTorch here.
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl" / "__init__.py").touch()
    code = "import os, user_dgl._dgl; print(os.environ['DGLBACKEND'])"
    assert _output(code, cwd=tmp_path, env={"DGLBACKEND": "mine"}) == "mine\n"


def test_message_passing(imported):
    assert imported["sum"] == [[0, 0], [2, 4], [3 + 5, 6 + 10], [0, 0]]
    assert imported["feat_grad"] == [[5, 5], [0.5, 0.5], [0, 0], [0, 0]]
    assert imported["weight_grad"] == [3, 3, 30]
    assert imported["unweighted"] == [[0, 0], [1, 2], [11, 22], [0, 0]]


@pytest.mark.parametrize(
    "hide",
    [WITHOUT_DGL, "import sys; sys.modules['dgl'] = None\n"],
    ids=["not-installed", "blocked"],
)
def test_missing_dgl(tmp_path, hide):
    message = _output(hide + MESSAGE_IF_REFUSED, cwd=tmp_path)
    assert len(message.splitlines()) == 1
    assert "DGL is not installed" in message
    assert "`pip install dgl`" in message


def test_a_folder_named_dgl_is_no_dgl(tmp_path):
    # Without an __init__.py it would count as a namespace package.
    (tmp_path / "dgl").mkdir()
    hide = WITHOUT_DGL.replace(
        "return None if",
        f"return PathFinder.find_spec(name, [{str(tmp_path)!r}]) if",
    )
    message = _output(hide + MESSAGE_IF_REFUSED, cwd=tmp_path)
    assert "`pip install dgl`" in message


def test_nothing_else_in_the_package_imports_dgl():
    files = sorted(PACKAGE.rglob("*.py"))
    assert PACKAGE / "_dgl.py" in files
    importing = set()
    for file in files:
        text = file.read_text(encoding="utf-8")
        # Examples in docstrings too: a reader who copies one should get the guard as well.
        if re.search(r"(?m)^\s*(>>> |\.\.\. )?(import|from) dgl\b", text):
            importing.add(file.name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Call) and node.args:
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                first = getattr(node.args[0], "value", None)
                names = [first] if called in ("import_module", "__import__") else []
            else:
                continue
            if any(isinstance(name, str) and name.split(".")[0] == "dgl" for name in names):
                importing.add(file.name)
    assert importing == {"_dgl.py"}
