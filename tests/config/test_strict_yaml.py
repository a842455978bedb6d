"""YAML without its surprises: each one gives one line that says where and what."""

import pytest

from user_dgl.config import (
    Config,
    load_config,
)
from user_dgl.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-3", 1e-3),
        ("1E-3", 1e-3),
        ("1e+2", 100.0),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("2.", 2.0),
        ("+0.25", 0.25),
        ("3", 3.0),
        ("5e-324", 5e-324),
    ],
)
def test_every_way_to_write_a_number(write, text, expected):
    # Plain PyYAML reads most of these as text.
    value = load_config(write(f"train:\n  lr: {text}\n")).train.lr
    assert value == expected
    assert type(value) is float
    assert load_config(None, [f"train.lr={text}"]).train.lr == expected


@pytest.mark.parametrize(
    "text", ["010", "-010", "0x10", "0o10", "1_000", "1:30", "1.5", ".nan", ".inf", "-.inf", "yes"]
)
def test_what_is_no_whole_number(refused, text):
    # Plain PyYAML reads 010 as 8, 0x10 as 16, 1_000 as 1000 and 1:30 as 90.
    assert refused(f"seed: {text}\n").startswith("some.yaml:1: seed: expected a whole number, got ")


@pytest.mark.parametrize("text", ["010.5", "1:30", "1_0.5", "1e", "e3", "yes", "'0.1'", "true", ""])
def test_what_is_no_number(refused, text):
    message = refused(f"train:\n  lr: {text}\n")
    assert message.startswith("some.yaml:2: train.lr: expected a number, got ")


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.inf", "+.INF", "1e400"])
def test_numbers_are_finite(refused, text):
    message = refused(f"# a\nloss:\n  npsi_weight: {text}\n")
    assert message.startswith("some.yaml:3: loss.npsi_weight: expected a finite number")


@pytest.mark.parametrize("key", ["seed", "train.lr"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_too_long_for_a_float(refused, key, digits):
    # float() raises OverflowError at the first, int() ValueError at the second.
    section, _, leaf = key.rpartition(".")
    text = "9" * digits
    message = refused(f"{section}:\n  {leaf}: {text}\n" if section else f"{leaf}: {text}\n")
    assert message.startswith(f"some.yaml:{2 if section else 1}: ")
    assert "number" in message


def test_whole_floats_are_whole_numbers(write):
    seed = load_config(write("seed: 2e3\n")).seed
    assert seed == 2000
    assert type(seed) is int
    exact = load_config(write(f"data: {{synthetic: {{seed: {2**53 + 1}}}}}\n"))
    assert exact.data.synthetic.seed == 2**53 + 1


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "y", "'true'", "1", "0", "null", "[]"])
def test_what_is_no_boolean(refused, text):
    message = refused(f"overwrite: {text}\n")
    assert message.startswith("some.yaml:1: overwrite: expected true or false, got ")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_booleans(write, text, value):
    assert load_config(write(f"overwrite: {text}\n")).overwrite is value


def test_a_boolean_is_no_number(refused):
    assert "seed: expected a whole number, got True" in refused("seed: true\n")
    assert "train.lr: expected a number, got False" in refused("train: {lr: false}\n")


@pytest.mark.parametrize("key", ["train.structure_lr", "data.noise.seed", "data.name"])
def test_none_is_not_null(refused, key):
    message = refused("seed: 1\n", f"{key}=None")
    assert message == f"{key}=None: {key}: None is text in YAML: write null"
    *sections, leaf = key.split(".")
    lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(sections)]
    lines.append(f"{'  ' * len(sections)}{leaf}: None")
    message = refused("\n".join(lines))
    assert message == f"some.yaml:{len(lines)}: {key}: None is text in YAML: write null"


@pytest.mark.parametrize("text", ["null", "~", "Null", "NULL", ""])
def test_null(write, text):
    assert load_config(write(f"data:\n  name: {text}\n")).data.name is None
    assert load_config(write("data:\n  name: cora\n"), [f"data.name={text}"]).data.name is None


@pytest.mark.parametrize("text", ["null", ""])
def test_null_where_there_must_be_a_value(refused, text):
    assert "data.kind: expected text, got null" in refused(f"data:\n  kind: {text}\n")
    assert "train.epochs: expected a whole number, got None" in refused(
        f"train:\n  epochs: {text}\n"
    )


@pytest.mark.parametrize("text", ["yes", "no", "1:30", "010", "2020-01-01", "1e", "0x10", "1_000"])
def test_text_that_plain_yaml_reads_as_something_else(write, text):
    assert load_config(write(f"data: {{name: {text}}}\n")).data.name == text


@pytest.mark.parametrize("text", ["10", "1e-3", "true", ".nan", "[a]", "{a: b}"])
def test_what_is_no_text(refused, text):
    assert "data.name: expected text or null, got " in refused(f"data: {{name: {text}}}\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed: 1\n# two\nseed: 2\n", 3),
        ("train:\n  lr: 1\n  epochs: 5\n  'lr': 1\n", 4),
        ("train: {epochs: 1}\nseed: 2\ntrain: {lr: 1}\n", 3),
    ],
)
def test_repeated_keys(refused, text, line):
    message = refused(text)
    assert message.startswith(f"some.yaml:{line}: ")
    assert "is given twice" in message


BILLION_LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "data:\n  name: &n cora\n  path: *n\n",
        "data: &d\n  name: cora\nmodel: *d\n",
        "data: &d\n  noise: *d\n",
        "a: &a [*a]\n",
        BILLION_LAUGHS,
        "train: &t {epochs: 1}\nmodel: {<<: *t}\n",
    ],
    ids=["scalar", "mapping", "recursive", "recursive-list", "billion-laughs", "merge"],
)
def test_aliases(refused, text):
    message = refused(text)
    assert message.startswith("some.yaml:")
    assert "aliases are not allowed" in message


def test_merge_key_without_alias(refused):
    assert "some.yaml:1: unknown key '<<'" in refused("<<: {seed: 1}\n")


@pytest.mark.parametrize(
    "text",
    [
        "seed: !!python/object/apply:os.system [exit 1]\n",
        "seed: !!python/name:os.system\n",
        "seed: !!python/object:pathlib.Path {}\n",
        "model: {hidden_feats: !!python/tuple [3]}\n",
        "seed: !mine 3\n",
        # The standard tags bring back what the plain reading avoids: octal, sexagesimal, yes. Some
        # make PyYAML raise KeyError, IndexError or AttributeError.
        "seed: !!int 010\n",
        "seed: !!int 1:30\n",
        "seed: !!int ''\n",
        "overwrite: !!bool yes\n",
        "overwrite: !!bool maybe\n",
        "data: {name: !!timestamp x}\n",
        "data: {name: !!binary aGk=}\n",
        "data: {name: !!str 3}\n",
        "data: !!set {kind, name}\n",
        "model: {hidden_feats: !!omap [{a: 1}]}\n",
    ],
)
def test_tags(refused, text):
    message = refused(text)
    assert message.startswith("some.yaml:1: YAML tags are not allowed here")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed:\t3\n", 1),
        ("data:\n\tkind: npz\n", 2),
        ("data:\n  kind: npz\n\tname: x\n", 3),
        ("seed: 1\ntrain: {epochs: 5\n", 3),
        ("seed: 1\ndata: {name: 'a}\n", 3),
        ("seed: 1\n  lr: 2\n", 2),
        ("train:\n  epochs: 5\n lr: 2\n", 3),
        ("seed: 1\ndata: {name: a: b}\n", 2),
        ("seed: *none\n", 1),
        ("seed: 1\n---\nseed: 2\n", 2),
        ("seed: 1\n...\nseed: 2\n", 3),
        ("seed: 1\n# \x00\n", 2),
        ("a: 1\nb: \x07\n", 2),
        ("%YAML 3.0\n---\nseed: 1\n", 1),
    ],
)
def test_not_yaml(refused, text, line):
    assert refused(text).startswith(f"some.yaml:{line}: not YAML: ")


@pytest.mark.parametrize(
    ("text", "line"), [("- seed\n", 1), ("hello\n", 1), ("\n[1]\n", 2), ("# x\n\n3\n", 3)]
)
def test_not_a_mapping(refused, text, line):
    assert refused(text) == f"some.yaml:{line}: expected `key: value` lines"


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "{a: 1}: 2\n"])
def test_keys_that_are_no_words(refused, text):
    assert refused(text) == "some.yaml:1: expected a plain key"


@pytest.mark.parametrize("key", ["1", "true", "null", "'a b'", '"a\\nb"'])
def test_odd_keys_are_unknown(refused, key):
    assert "some.yaml:1: unknown key " in refused(f"{key}: 1\n")


@pytest.mark.parametrize("text", ["[" * 20_000, "{a: " * 5000, "a:\n" + "- " * 20_000 + "x\n"])
def test_deep_nesting(refused, text):
    assert refused(text) == "some.yaml: not a usable YAML value: nested too deeply"


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "{}\n", "null\n"])
def test_empty_file(write, text):
    assert load_config(write(text)) == Config()


def test_byte_order_mark_and_line_ends(write):
    config = load_config(write(b"\xef\xbb\xbfseed: 3\r\ntrain:\r\n  epochs: 7\r\n"))
    assert (config.seed, config.train.epochs) == (3, 7)


def test_byte_order_mark_does_not_move_the_line(refused):
    assert refused(b"\xef\xbb\xbf# x\r\nsead: 3\r\n").startswith("some.yaml:2: unknown key 'sead'")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"seed: 1\n# caf\xe9\n", 2),
        ("seed: 1\n".encode("utf-16"), 1),
        (b"data:\n\n  name: \xed\xa0\x80\n", 3),
    ],
    ids=["latin-1", "utf-16", "surrogate"],
)
def test_not_utf8(refused, data, line):
    assert refused(data).startswith(f"some.yaml:{line}: not UTF-8 text")


def test_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / "none.yaml" / "x.yaml"):
        with pytest.raises(InputError) as caught:
            load_config(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert len(message.splitlines()) == 1
    with pytest.raises(InputError, match="Is a directory"):
        load_config(str(tmp_path))
