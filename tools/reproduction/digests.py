"""Short digests of what a cell was made with: its settings, and the code that computes it."""

import hashlib
import json
from dataclasses import replace
from functools import cache

from reproduction.code_digest import code_digest
from user_dgl.config import Config, load_config
from user_dgl.config.schema import to_plain


def cell_digests(cell, config: Config, content: str | None = None) -> tuple[str, str]:
    """Return the digests of a cell: of the settings that can change its scores, and of its code.

    Parameters
    ----------
    cell : Cell
    config : Config
        Its settings.
    content : str, optional
        Of `reproduction.input_digest.content_digests`. The digest of the code is of it too.
    """
    if config.model.kind != "user":
        # Imported here because it imports torch, which takes seconds that other tables do not need.
        from user_dgl.baselines import resolve_baseline

        config, _ = resolve_baseline(config)
    code = code_digest(cell.by, cell.method, config, content)
    if cell.by == "user-dgl":
        return settings_digest(config), code
    return _read_settings_digest(cell, config), code


def settings_digest(config: Config) -> str:
    """A digest of the settings of a training that differ from their default.

    A setting that is added later, with a default that changes nothing, therefore leaves finished
    cells as they are; a change of a default changes the digest of the code. For a baseline,
    ``config`` has the settings that it is trained with, as `resolve_baseline` returns them.
    """
    config = replace(
        config,
        output_dir=None,
        overwrite=False,
        data=replace(config.data, root=None),
        train=replace(config.train, resume=False, log_every=1, checkpoint_every=1),
    )
    return _digest(_changed(to_plain(config), _defaults()))


def _read_settings_digest(cell, config: Config) -> str:
    """A digest of the settings that floors and rivals read."""
    plain = to_plain(replace(config, data=replace(config.data, root=None)))
    changed = _changed(plain, _defaults())
    read = {"method": cell.method, "seed": config.seed, "data": changed.get("data", {})}
    read["num_clusters"] = config.model.num_clusters
    if cell.by == "floors":
        read["features"] = changed.get("features", {})
    return _digest(read)


@cache
def _defaults() -> dict:
    return to_plain(load_config(None))


def _digest(settings: dict) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def _changed(plain: dict, default: dict) -> dict:
    """Return the nested settings that differ from the default."""
    changed = {}
    for name, value in plain.items():
        if isinstance(value, dict):
            value = _changed(value, default[name])
            if value:
                changed[name] = value
        elif value != default[name]:
            changed[name] = value
    return changed
