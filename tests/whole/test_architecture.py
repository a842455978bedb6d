"""Imports go one way: from the folders on top down to the ones below."""

import ast
from pathlib import Path

import user_dgl

PACKAGE = Path(user_dgl.__file__).parent
# From the bottom up, as in user_dgl/README.md.
LAYERS = (
    "errors", "_dgl", "config", "runtime", "graph", "features", "data", "losses", "perturb",
    "structure", "clustering", "cleaning", "encoders", "evaluation", "model", "training",
    "baselines", "output", "links", "pipeline", "distributed", "cleaner", "estimator", "cli",
    "__main__", "__init__",
)  # fmt: skip
MOST_LINES = 500


def _modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        yield name, path, ast.parse(path.read_text())


def _imported(tree, every):
    """Modules of the package that a module imports, wherever it does."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped |= {id(child) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("user_dgl."):
                    yield alias.name.removeprefix("user_dgl.")
        if not isinstance(node, ast.ImportFrom) or id(node) in skipped:
            continue
        assert node.level == 0, "relative imports hide where a name comes from"
        assert node.module is not None
        if node.module.split(".")[0] == "user_dgl":
            base = node.module.removeprefix("user_dgl").removeprefix(".")
            for alias in node.names:
                below = f"{base}.{alias.name}".removeprefix(".")
                yield below if below in every else base


def test_every_folder_is_in_the_order():
    assert {name.split(".")[0] for name, _, _ in _modules()} == set(LAYERS)


def test_no_import_runs_back_up():
    every = {name for name, _, _ in _modules()}
    wrong = []
    for name, _, tree in _modules():
        layer = LAYERS.index(name.split(".")[0])
        for other in _imported(tree, every):
            if other and LAYERS.index(other.split(".")[0]) > layer:
                wrong.append(f"{name} imports {other}")
    assert not wrong


def test_no_circle_among_the_modules():
    every = {name for name, _, _ in _modules()}
    # A folder's own __init__ hands on what its modules define; they do not import it.
    below = {
        name: {
            other
            for other in _imported(tree, every)
            if other in every and other != name and not name.startswith(other + ".")
        }
        for name, _, tree in _modules()
    }
    done = set()

    def visit(name, path):
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for other in sorted(below[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in below:
        visit(name, ())


def test_no_code_asks_which_trainer_it_has():
    trainers = {"Trainer", "PartitionTrainer", "ShardTrainer", "BaselineTrainer", "GraphTrainer"}
    for name, _, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "type"):
                named = {part for arg in node.args for part in ast.unparse(arg).split()}
                assert not trainers & named, name


def test_attributes_are_no_file_format():
    # _dgl watches what DGL puts into its modules; unpickle reads an object of somebody else.
    apart = {"_dgl", "data.reading.unpickle"}
    for name, _, tree in _modules():
        called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        assert name in apart or not called & {"vars", "setattr"}, name


def test_theta_and_its_optimiser_group_are_known_in_one_place():
    for name, path, _ in _modules():
        text = path.read_text()
        if name != "structure.learned_adjacency":
            assert "param_groups[1]" not in text, name
            assert "softplus(theta" not in text, name
            assert "softplus(self.theta" not in text, name


def test_files_can_be_read_at_a_sitting():
    long = {
        name: count
        for name, path, _ in _modules()
        if (count := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert not long
