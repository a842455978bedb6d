"""Messages are one line, whatever they quote."""

import pickle

from user_dgl.errors import InputError


def test_what_a_message_quotes_stays_on_its_line():
    error = InputError("a.csv:3: node 'x\ny\x1b[31m\u2028' is not in the graph: check the id")
    expected = r"a.csv:3: node 'x\ny\x1b[31m\u2028' is not in the graph: check the id"
    assert str(error) == expected
    assert str(InputError("west-ñ 東 ok")) == "west-ñ 東 ok"


def test_long_messages_keep_their_ends():
    text = str(InputError(f"a.csv:3: node {'x' * 10**6!r} is not in the graph: check the id"))
    assert len(text) < 1100
    assert text.startswith("a.csv:3: node 'xx")
    assert text.endswith("xx' is not in the graph: check the id")


def test_messages_survive_a_process():
    error = InputError("a\nb")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
