"""What the names of columns say: which are ends of edges, weights, ids, labels or row numbers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Words for the first and the second end of an edge. A row of this table is one vocabulary:
# `source` goes with `target` and not with `tail`.
_STRONG: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(first.split()), frozenset(second.split()))
    for first, second in (
        ("source src", "target dst destination dest sink tgt"),
        ("from", "to"),
        ("u", "v"),
        ("i", "j"),
        ("head", "tail"),
        ("sender giver", "receiver recipient"),
        ("origin orig", "destination dest"),
        ("subject", "object"),
        ("citing", "cited"),
        ("follower", "followee followed"),
        ("parent", "child"),
        ("ego", "alter"),
        ("caller", "callee"),
        ("nominator", "nominee"),
        ("payer buyer", "payee seller"),
        ("user", "friend"),
        ("node", "neighbor neighbour"),
        ("predecessor", "successor"),
    )
)
# Words that name ends only if no other column could: `start` and `end` may be times.
_WEAK = tuple(
    (frozenset((first,)), frozenset((second,)))
    for first, second in (
        ("start", "end"),
        ("a", "b"),
        ("x", "y"),
        ("s", "t"),
        ("s", "o"),
        ("h", "t"),
        ("row", "col"),
        ("row", "column"),
        ("left", "right"),
        ("first", "second"),
    )
)
# Words beside an end that still name its id: `source_id`, `node_from`.
_OF_AN_ID = frozenset(("id", "ids", "node", "nodeid", "node_id", "id_node", "vertex", "key", "idx"))
# The ends of a numbered pair: protein1 and protein2, nodeA and nodeB.
_NUMBERED = (("1", "2"), ("a", "b"))
_LETTERED = re.compile(r"(id|ids|node|vertex|user|gene|protein|person|entity|actor|author)([ab])")
_WEIGHTS = frozenset(("weight", "weights", "w", "edge_weight", "value", "strength"))
_TIMES = frozenset(
    ("time", "times", "timestamp", "date", "datetime", "year", "month", "day", "t", "ts", "since")
)
# Columns that describe an edge, and are neither an end nor a number of its own.
_ATTRIBUTES = frozenset(
    ("type", "relation", "rel", "predicate", "interaction", "label", "sign", "layer", "kind", "p")
) | frozenset(("r", "id", "edge_id", "score", "count", "rating", "directed", "distance"))
ID_NAMES = frozenset(
    ("id", "ids", "node", "nodes", "node_id", "nodeid", "node_ids", "vertex", "vertex_id", "name")
) | frozenset(("node_name", "uid", "user_id", "userid", "nid", "vid"))
LABEL_NAMES = frozenset(
    ("label", "labels", "class", "classes", "y", "target", "targets", "cluster", "clusters")
) | frozenset(
    ("group", "groups", "community", "communities", "category", "ground_truth", "truth", "gt")
) | frozenset(
    ("groundtruth", "lbl", "cls", "y_pred")
) | frozenset(("membership", "partition", "club", "module"))  # fmt: skip
_LABEL_ENDS = ("_label", "_labels", "_class", "_community", "_cluster", "_ground_truth")
# Names of labels with a word beside them, in a table of nodes: true_class, y_true, cluster_id. A
# group_id may be a feature, or an end of an edge.
_TRUE = re.compile(r"^(true|gold)_|_(true|gold)$")
_NUMBERED_LABEL = re.compile(
    r"(label|labels|class|cluster|community|category|partition|membership|ground_?truth)_?"
    r"(id|ids|idx|index|code|no|num|number|name|int|enc|encoded)"
    # Columns of 0 and 1 for each class, and what pandas makes where two tables have a name. The
    # columns class_1 and category_1 are often features.
    r"|(label|labels|cluster|community|partition|membership|ground_?truth)_?[0-9]+|label_[xy]"
)
# What Neo4j writes behind a name: `weight:float`.
_TYPE = re.compile(r"(?<=.):(int|long|float|double|short|byte|string|boolean)$", re.IGNORECASE)
_GROUP = re.compile(r":(?:START_ID|END_ID)\(([^()]+)\)$")
_ROW_NUMBERS = frozenset(("", "index", "unnamed_0", "row", "rownames", "row_names", "row_number"))


def words(name: str) -> str:
    """Return the words of a name in lower case, joined by ``_``.

    >>> words("sourceId"), words(":START_ID(Person)"), words("From Node"), words("nodeA")
    ('source_id', 'start_id', 'from_node', 'node_a')
    """
    name = name.strip().lstrip("#%").strip()
    if ":" in name:  # Neo4j: a name, then the role of the column
        name = re.sub(r"^.*:(?=(START_ID|END_ID|ID|TYPE|LABEL)\b)", "", name)
        name = _TYPE.sub("", name)
    name = re.sub(r"\([^()]*\)$", "", name)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", name).strip("_").lower()


def groups_of_ids(ends: Sequence[str]) -> tuple[str, str] | None:
    """The groups in which Neo4j counts the ids of the two ends, if it counts them apart.

    >>> groups_of_ids([":START_ID(Person)", ":END_ID(Movie)"])
    ('Person', 'Movie')
    >>> groups_of_ids([":START_ID(Person)", ":END_ID(Person)"])
    """
    found = [match[1] for name in ends if (match := _GROUP.search(name.strip()))]
    return (found[0], found[1]) if len(found) == 2 and found[0] != found[1] else None


def is_id(name: str) -> bool:
    """Whether a column of this name holds the ids of nodes."""
    return words(name) in ID_NAMES


def is_label(name: str) -> bool:
    """Whether a column of this name holds labels."""
    name = words(name)
    return name in LABEL_NAMES or name.endswith(_LABEL_ENDS)


def is_label_of_table(name: str) -> bool:
    """Whether a column of this name holds labels in a table of features or labels."""
    name = words(name)
    return is_label(_TRUE.sub("", name)) or _NUMBERED_LABEL.fullmatch(name) is not None


def labels_or_ids(names: Iterable[str]) -> list[str]:
    """Names of the columns of a table that hold labels or ids of nodes by their names."""
    names = list(names)
    has_x = "x" in map(words, names)  # then y is a coordinate
    return [
        name
        for name in names
        if is_id(name) or (is_label_of_table(name) and not (has_x and words(name) == "y"))
    ]


def is_own_name(name: str) -> bool:
    """Whether a column of this name is unlikely to be another one in a second table.

    >>> is_own_name("department"), is_own_name("V2"), is_own_name("0"), is_own_name("value")
    (True, False, False, False)
    """
    letters = re.sub(r"[\W\d_]", "", name)
    return len(letters) > 2 and words(name) not in _WEIGHTS and not is_row_number(name)


def is_row_number(name: str) -> bool:
    """Whether a column of this name numbers the rows, as pandas and R write it."""
    name = words(name)
    return name in _ROW_NUMBERS or name.startswith("unnamed_")


def is_weight(name: str) -> bool:
    """Whether a column of this name holds the weights of edges."""
    return weight_rank(name) is not None


def weight_rank(name: str) -> int | None:
    """How plainly a name says that a column holds weights of edges, from 0; None if it does not.

    The last rank, 4, is for names that may say the weight of a node.

    >>> weight_rank("weight"), weight_rank("Value"), weight_rank("source_weight")
    (0, 2, 4)
    """
    name = words(name)
    if name in _WEIGHTS:
        return {"weight": 0, "weights": 1, "edge_weight": 1}.get(name, 2)
    end = name.removesuffix("_weight")
    if end == name:
        return None
    return 4 if any(role.rank < 3 for role in _roles(end)) else 3


@dataclass(frozen=True)
class Ends:
    """Columns of the two ends of an edge, as the names tell them.

    Attributes
    ----------
    columns : tuple of int, or None
        The two columns; None if the names do not tell them.
    rivals : tuple of tuple of int
        Pairs of columns of which each could hold the ends. Names alone cannot decide.
    known : int
        Number of columns whose name is a usual word for an end.
    stem : str or None
        For a numbered pair such as protein1 and protein2: the word before the number.
    beside : tuple of int
        If the ends have any other word in their names, as in valid_from: two or more other columns
        whose names say nothing, so that they may be the ends.
    """

    columns: tuple[int, int] | None = None
    rivals: tuple[tuple[int, int], ...] = ()
    known: int = 0
    stem: str | None = None
    beside: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Role:
    vocabulary: int
    second: bool
    stem: str
    rank: int


def find_ends(names: Sequence[str]) -> Ends:
    """Find the columns of the ends by their names.

    A plain name (``source``) comes before a name with ``id`` or ``node`` (``source_id``), and that
    before a name with any other word (``source_label``). Both ends must have the same other words.

    >>> find_ends(["source", "source_label", "target", "target_label"]).columns
    (0, 2)
    >>> find_ends(["from_name", "from_email", "to_name", "to_email"]).rivals
    ((0, 2), (1, 3))
    >>> find_ends(["i", "source", "target"]).columns
    (1, 2)
    """
    plain = [words(name) for name in names]
    roles = [_roles(name) for name in plain]
    found: dict[tuple[int, int], int] = {}
    for c, own in enumerate(roles):
        for d, other in enumerate(roles):
            ranks = [
                first.rank
                for first in own
                for second in other
                if c != d
                and (first.vocabulary, first.stem) == (second.vocabulary, second.stem)
                and not first.second
                and second.second
            ]
            if ranks:
                pair = (min(c, d), max(c, d))
                found[pair] = min(min(ranks), found.get(pair, 9))
    numbered = {}
    for pair, stem in _numbered(plain):
        found[pair] = min(1, found.get(pair, 9))
        numbered[pair] = stem
    known = sum(any(role.rank <= 1 for role in own) for own in roles)
    if found:
        best = min(found.values())
        rivals = tuple(sorted(pair for pair, rank in found.items() if rank == best))
        if len(rivals) > 1:
            return Ends(None, rivals, max(known, 2 if best < 3 else 0))
        rest = _unexplained(plain, rivals[0])
        if best < 3 or not rest:
            beside = tuple(rest) if best == 2 and len(rest) > 1 else ()
            sure = max(known, 2 if best < 3 else 0)
            return Ends(rivals[0], (), sure, numbered.get(rivals[0]), beside)
        return Ends(None, (), known)
    firsts = [c for c, own in enumerate(roles) if any(r.rank <= 1 and not r.second for r in own)]
    seconds = [c for c, own in enumerate(roles) if any(r.rank <= 1 and r.second for r in own)]
    if len(firsts) == len(seconds) == 1 and firsts != seconds:
        return Ends((min(firsts[0], seconds[0]), max(firsts[0], seconds[0])), (), known)
    return Ends(None, (), known)


def _roles(name: str) -> list[_Role]:
    """Return every role that a name may have, with 0 for the plainest one."""
    found = []
    for number, (vocabulary, rank) in enumerate(
        [(pair, 0) for pair in _STRONG] + [(pair, 3) for pair in _WEAK]
    ):
        for second, ends in enumerate(vocabulary):
            for end in ends:
                stem = _beside(name, end)
                if stem is None or (stem and not stem.strip("_")):
                    continue
                if not stem:
                    found.append(_Role(number, bool(second), "", rank))
                elif stem in _OF_AN_ID:
                    found.append(_Role(number, bool(second), stem, 1))
                elif rank == 0 and len(end) > 1 and not set(stem.split("_")) & _TIMES:
                    found.append(_Role(number, bool(second), stem, 2))
    return found


def _beside(name: str, end: str) -> str | None:
    """Return the words of a name beside the word of an end, or None if the end is not in it."""
    if name == end:
        return ""
    if name.startswith(end + "_"):
        return name[len(end) + 1 :]
    if name.endswith("_" + end):
        return name[: -len(end) - 1]
    # srcid, targetnode, fromnodeid
    return name[len(end) :] if name.startswith(end) and name[len(end) :] in _OF_AN_ID else None


def _numbered(names: list[str]) -> list[tuple[tuple[int, int], str]]:
    """Return the numbered pairs, such as protein1 and protein2, with their common word."""
    stems: dict[tuple[str, int], dict[str, int]] = {}
    for column, name in enumerate(names):
        match = (
            re.fullmatch(r"(.*?[^\W\d_])_?([0-9]+)", name)
            or re.fullmatch(r"(.*[^\W_])_([a-z])", name)
            or _LETTERED.fullmatch(name)
            or re.fullmatch(r"(?P<last>[a-z]|[0-9]+)_(.*[^\W\d_])", name)
        )
        if match:
            stem, mark = match[1], match[2]
            if match.re.groupindex:
                stem, mark = mark, stem
            stems.setdefault((stem, mark.isdigit()), {})[mark] = column
    pairs = []
    for (stem, _), marks in stems.items():
        # x1, x2 and x3 are coordinates and no ends.
        for first, second in _NUMBERED:
            if set(marks) == {first, second} and stem not in _TIMES:
                ends = sorted((marks[first], marks[second]))
                pairs.append(((ends[0], ends[1]), stem))
    return pairs


def _unexplained(names: list[str], pair: tuple[int, int]) -> list[int]:
    """Return the columns beside the pair that could be an end as well."""
    explained = _WEIGHTS | _TIMES | _ATTRIBUTES
    rest = [c for c in range(len(names)) if c not in pair]
    return [c for c in rest if names[c] not in explained and not is_row_number(names[c])]
