"""tools/reproduction/code_digest.py: which code a cell's digest is of, and what changes it."""

import inspect
import sys
from pathlib import Path

import pytest
from cells_of_tables import TINY
from paths import CONFIGS
from reproduction import code_digest as module
from reproduction import defence, inputs
from reproduction.code_digest import code_digest, reader_digest, symbols

import user_dgl
from user_dgl.baselines import resolve_baseline
from user_dgl.config import load_config
from user_dgl.pipeline.train import train

PACKAGE = Path(user_dgl.__file__).parent


def config_of(*overrides, name="quickstart.yaml"):
    return resolve_baseline(load_config(CONFIGS / name, [*TINY, *overrides]))[0]


def calls_of(run) -> set[tuple[str, str]]:
    """Definitions at the top of the package's modules that are called, as (module, name)."""
    called = set()

    def note(frame, event, argument):
        code = frame.f_code
        # The body of a class runs when its module is imported, and is not optimised.
        is_function = code.co_flags & inspect.CO_OPTIMIZED
        if event == "call" and is_function and code.co_filename.startswith(str(PACKAGE)):
            name = code.co_qualname.split(".")[0]
            called.add((frame.f_globals["__name__"], name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    # Settings have a digest of their own; the package itself only imports on first access.
    return {
        (where, name)
        for where, name in called
        if where != "user_dgl" and not where.startswith("user_dgl.config")
        if not name.startswith("<")
    }


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("default.yaml", ["data.kind=synthetic", "model.num_clusters=3", "eval.floors=true"]),
        ("quickstart.yaml", ["eval.floors=true", "loss.davies_bouldin_weight=1"]),
        ("quickstart.yaml", ["task=link_prediction", "structure.prior=link_critic"]),
        ("quickstart.yaml", ["model.kind=arga", "baseline.epochs=2"]),
        (
            "quickstart.yaml",
            ["train.mode=partition", "train.partition.num_parts=2", "model.observed_mix=0"],
        ),
        ("quickstart.yaml", ["model.encoder=dgi", "structure.candidates.k_hop=2"]),
    ],
)
def test_all_that_a_training_calls_is_in_the_digest(tmp_path, name, overrides):
    config = config_of(*overrides, name=name)
    called = calls_of(lambda: train(config, tmp_path / "run", lambda line: None))
    assert len(called) > 50
    assert called <= symbols("user-dgl", "default", config)


def test_all_that_floors_rivals_and_cleaning_call_is_in_the_digest(tmp_path):
    file, settings = CONFIGS / "quickstart.yaml", [*TINY, "data.noise.kind=random_flip"]
    config = load_config(file, settings)
    out = tmp_path / "floors.json"
    called = calls_of(lambda: inputs.write_floors(out, file, settings))
    assert called <= symbols("floors", "floors", config)
    called = calls_of(lambda: inputs.write_graph(tmp_path / "graph.npz", file, settings))
    assert called <= symbols("rival", "louvain", config)
    called = calls_of(lambda: defence.clean(tmp_path / "cleaned.npz", 0, file, settings))
    assert called <= symbols("defence", "GCN on A'", config)


def test_cells_have_only_the_code_that_they_need():
    def modules(by, method, config):
        return {where for where, _ in symbols(by, method, config)}

    user, gae = config_of(), config_of("model.kind=gae")
    assert "user_dgl.baselines.gae" not in modules("user-dgl", "default", user)
    assert "user_dgl.baselines.gae" in modules("user-dgl", "GAE", gae)
    assert "user_dgl.baselines.dgi" not in modules("user-dgl", "GAE", gae)
    assert "user_dgl.links.split" not in {w for w, n in symbols("user-dgl", "x", user) if n}
    assert "user_dgl.output.report.report" not in modules("user-dgl", "default", user)
    assert "user_dgl.training.trainer" not in modules("floors", "floors", user)
    flips = config_of("data.noise.kind=random_flip")
    assert ("user_dgl.perturb.metattack", "best_pairs") not in symbols("rival", "louvain", flips)
    leiden, louvain = (symbols("rival", name, flips) for name in ("leiden", "louvain"))
    assert ("reproduction.rivals", "leiden") in leiden - louvain
    assert "user_dgl.data.sets.planetoid" in modules(
        "rival", "louvain", config_of("data.kind=planetoid", "data.name=cora")
    )


def test_what_is_read_counts_in_place_of_the_code_that_reads_it():
    config = config_of("data.kind=edge_list", "data.edges=edges.csv")
    by_content = code_digest("user-dgl", "default", config, "one")
    assert by_content == code_digest("user-dgl", "default", config, "one")
    assert by_content != code_digest("user-dgl", "default", config, "another")
    assert by_content != code_digest("user-dgl", "default", config)
    reader = ("user_dgl.data.edge_list.edges", "load_edge_list")
    ends = (module._READER,)
    rules = module._rules("user-dgl", "default", config)
    assert reader in module._reached(module._ENTRIES["user-dgl"], *rules)
    after = module._reached(module._ENTRIES["user-dgl"], *rules, ends)
    assert not {where for where, _ in after if ".edge_list." in where}
    assert ("user_dgl.training.trainer", "Trainer") in after


def test_settings_beside_the_data_leave_the_digest_of_the_reader():
    data = ["data.kind=edge_list", "data.edges=edges.csv"]
    reader = reader_digest(config_of(*data))
    assert reader == reader_digest(config_of(*data, "model.encoder=dgi", "data.noise.rate=0.3"))
    assert reader != reader_digest(config_of("data.kind=planetoid", "data.name=cora"))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package of two modules whose function ``run`` is the entry of a cell."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").write_text("")
    monkeypatch.setattr(module, "_PACKAGES", {"toy": tmp_path})
    monkeypatch.setattr(module, "_ENTRIES", {"toy": (("toy.entry", "run"),)})
    monkeypatch.setattr(module, "_SETTINGS", "none")

    def digest_of(entry: str, parts: str = "") -> str:
        (tmp_path / "toy" / "entry.py").write_text(entry)
        (tmp_path / "toy" / "parts.py").write_text(parts)
        _forget()
        return code_digest("toy", "", load_config(None))

    yield digest_of
    _forget()


def _forget():
    for cached in (module._digest, module._definition, module._read, module._file):
        cached.cache_clear()


ENTRY = '''"""Text."""
from toy.parts import used, unused

FACTOR = 2


def run():
    """Text."""
    # A comment.
    if FACTOR > 9:
        raise ValueError(f"it is {FACTOR}")
    return FACTOR * used(1)


def other():
    return unused()
'''
PARTS = "def used(x):\n    return x\n\n\ndef unused():\n    return 0\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda entry, parts: (entry.replace("Text.", "Other text."), parts),
        lambda entry, parts: (entry.replace("# A comment.", "# Another."), parts),
        lambda entry, parts: (entry.replace("FACTOR * used(1)", "(FACTOR\n    *  used(1))"), parts),
        lambda entry, parts: (entry, parts.replace("return 0", "return 1")),
        lambda entry, parts: (entry + "\n\ndef more():\n    return 3\n", parts),
        lambda entry, parts: (entry.replace("is {FACTOR}", "is too large: {FACTOR}"), parts),
    ],
)
def test_what_leaves_the_digest(toy, change):
    assert toy(*change(ENTRY, PARTS)) == toy(ENTRY, PARTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry, parts: (entry.replace("FACTOR = 2", "FACTOR = 3"), parts),
        lambda entry, parts: (entry.replace("FACTOR *", "FACTOR +"), parts),
        lambda entry, parts: (entry, parts.replace("return x", "return -x")),
        lambda entry, parts: (entry + "\nprint()\n", parts),
        lambda entry, parts: (entry.replace("ValueError", "TypeError"), parts),
        lambda entry, parts: (entry.replace("used(1)", "__import__('os') and used(1)"), parts),
    ],
)
def test_what_changes_the_digest(toy, change):
    assert toy(*change(ENTRY, PARTS)) != toy(ENTRY, PARTS)


def test_a_default_counts_where_the_code_reads_its_key(toy, monkeypatch):
    entry = "def run(config):\n    return config.plateau_factor\n"
    digests = {}
    for name in ("plateau_factor", "never_read"):
        for value in (1, 2):
            monkeypatch.setattr(module, "_defaults", lambda k=name, v=value: [(f"train.{k}", v)])
            digests[name, value] = toy(entry)
    assert digests["plateau_factor", 1] != digests["plateau_factor", 2]
    assert digests["never_read", 1] == digests["never_read", 2]


def test_entries_of_registries_count_where_the_settings_name_them(toy, monkeypatch):
    monkeypatch.setattr(
        module, "_REGISTRIES", {("toy.entry", "PARTS"): lambda by, method, config: {"a"}}
    )
    entry = 'PARTS = {"a": 1, "b": 2}\n\n\ndef run(name):\n    return PARTS[name]\n'
    assert toy(entry) == toy(entry.replace("2", "3"))
    assert toy(entry) != toy(entry.replace("1", "3"))


def test_a_cell_under_attack_reads_the_attacked_graph_from_a_file():
    attacked = config_of("data.noise.kind=metattack", "data.noise.rate=0.1")
    reads = ("user_dgl.perturb.stored", "stored_graph")
    assert reads in symbols("user-dgl", "default", attacked)
    assert reads not in symbols("perturb", "default", attacked)
    assert ("user_dgl.perturb.metattack", "attack_steps") in symbols("perturb", "default", attacked)


def test_labels_made_from_communities_count():
    made = ("reproduction.inputs", "write_labels")
    for labels, counts in (("x.json.gz", True), ("x.csv", False)):
        config = config_of("data={kind: edge_list, edges: x.csv}", f"data.labels={labels}")
        assert (made in symbols("user-dgl", "default", config)) == counts
