"""Settings written as YAML and read again."""

import dataclasses
import random

import numpy as np
import pytest

from configs import LEAVES, round_trip
from user_dgl.config import (
    CandidatesConfig,
    Config,
    DataConfig,
    FeaturesConfig,
    LossConfig,
    ModelConfig,
    NoiseConfig,
    StructureConfig,
    SyntheticConfig,
    TrainConfig,
)
from user_dgl.config.schema import to_plain

ODD_TEXT = [
    *(
        "yes",
        "no",
        "on",
        "True",
        "false",
        "null",
        "Null",
        "~",
        "none",
        "nan",
        "",
        " ",
        "  a",
        "a  ",
    ),
    *("1e-3", "1e5", "010", "0x10", "0o7", "1_000", "1:30", "12", "-3", "+1", ".5", "1.", "-.5"),
    *(".inf", "-.inf", ".nan", "=", "<<", "2020-01-01", "2020-01-01 00:00:00", "---", "...", "- a"),
    *("a: b", "a:b", "a #b", "#a", "[1]", "{a: b}", "%x", "@x", "`x`", "&a", "*a", "!x", "|", ">"),
    *("? a", "?a", "'", '"', "'a", "it's", '"q"', "a\\b", "a\nb", "\n", "a\n\n b\n", "\t", "a\tb"),
    *(
        "é",
        "中文/路径",
        "😀",
        "\u2028",
        "a\u2029b",
        "a\x85b",
        "\ufeffa",
        "\x07",
        "\x1b[0m",
        "\udcff",
        "\xa0",
    ),
    *("x" * 300, "some words " * 40, "a " * 60 + "\n" + "b " * 60, "user: {x}", "C:\\data\\x"),
]


def test_round_trip_of_the_defaults(tmp_path):
    text = round_trip(Config(), tmp_path)
    assert list(to_plain(Config())) == [f.name for f in dataclasses.fields(Config)]
    assert text.startswith("seed: 0\n")
    for param in LEAVES:
        assert f"{param.values[1].name}:" in text


@pytest.mark.parametrize("text", ODD_TEXT, ids=ascii)
def test_round_trip_of_text(tmp_path, text):
    data = DataConfig(name=text, path=text, noise=NoiseConfig(kind="file", file=text))
    round_trip(Config(output_dir=text, data=data), tmp_path)


def test_round_trip_of_numbers(tmp_path):
    draw = random.Random(0)
    numbers = [1e-05, 0.1 + 0.2, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
    numbers += [1e16, 1e22, 123456789.0, 3.0, 1e-7, 100000000000000000000.0]
    numbers += [draw.random() * 10 ** draw.randint(-300, 300) for _ in range(40)]
    for number in numbers:
        config = Config(
            train=TrainConfig(weight_decay=number),
            data=DataConfig(noise=NoiseConfig(rate=number)),
        )
        round_trip(config, tmp_path)


def test_round_trip_of_everything_else(tmp_path):
    config = Config(
        seed=2**31 - 1,
        overwrite=True,
        device="cuda",
        data=DataConfig(synthetic=SyntheticConfig(seed=2**70), noise=NoiseConfig(seed=0)),
        features=FeaturesConfig(weighting="tf_idf", row_norm="l2"),
        structure=StructureConfig(
            learnable=False, candidates=CandidatesConfig(same_cluster=3, refresh_every=2)
        ),
        model=ModelConfig(num_clusters=7, hidden_feats=(512, 256, 64), dropout=0),
        loss=LossConfig(npsi_observed=False),
    )
    text = round_trip(config, tmp_path)
    assert "&" not in text
    assert "!!" not in text
    round_trip(Config(model=ModelConfig(hidden_feats=(1,))), tmp_path)


def test_to_plain_is_plain():
    def check(value):
        if isinstance(value, dict):
            assert all(type(key) is str for key in value)
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                check(item)
        else:
            assert value is None or type(value) in (bool, int, float, str)

    check(to_plain(Config(model=ModelConfig(hidden_feats=(2, 3), num_clusters=np.int64(3)))))
