"""Edits of configuration over any operator's file: idempotent, in any order of lines, and of nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrate.checks.principals import ACL_AUTHORIZERS
from migrate.hosts.properties import parse
from migrate.model import config_keys
from migrate.model.broker_modes import FLAG, node_mode
from migrate.model.config_keys import Moment
from migrate.model.listeners import DEFAULT_PROTOCOL_MAP, PROTOCOL_MAP, protocols
from migrate.steps import configuration
from tests.testing.worlds import inventory

KNOWN = inventory()
BROKER, CONTROLLER = KNOWN.brokers[1], KNOWN.controllers[1]
OURS = {"process.roles", "node.id", "controller.quorum.voters", "controller.listener.names", PROTOCOL_MAP}

values = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\"), max_size=12)
maps = st.sampled_from(["", "INTERNAL:PLAINTEXT", "A:SSL,B:SASL_SSL", "CTL:SSL,A:SSL", " ctl : SSL ,A:SSL"])
own = st.dictionaries(
    st.sampled_from(["num.io.threads", "custom.key", "log.dirs", "listeners", "ssl.key.password", "metadata.x"]), values
)
theirs = st.fixed_dictionaries(
    {"zookeeper.connect": st.just("zk1:2181/kafka")},
    optional={
        "broker.id": st.just("1"),
        "inter.broker.protocol.version": st.just("3.9"),
        "zookeeper.session.timeout.ms": values,
        "broker.id.generation.enable": st.sampled_from(["true", "false"]),
        "control.plane.listener.name": values,
        "authorizer.class.name": st.sampled_from([ACL_AUTHORIZERS[0], "com.example.Own"]),
        "super.users": values,
        PROTOCOL_MAP: maps.filter(bool),
    },
)
noise = st.lists(st.sampled_from(["# a comment", "", "! another", "   # indented"]), max_size=4)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """An operator's file in ZooKeeper mode: keys in any order, comments and empty lines between them."""
    keys = list({**draw(own), **draw(theirs)}.items())
    lines = [f"{key}={value}" for key, value in draw(st.permutations(keys))]
    for line in draw(noise):
        lines.insert(draw(st.integers(0, len(lines))), line)
    return draw(st.sampled_from(["\n", "\r\n"])).join([*lines, ""]).encode()


def comments(raw: bytes) -> list[bytes]:
    """Lines that are no settings."""
    return [line for line in raw.splitlines() if not line.strip() or line.strip()[:1] in (b"#", b"!")]


@given(files())
def test_edits_are_idempotent_and_lead_through_the_modes(raw: bytes) -> None:
    """ZooKeeper, migration, KRaft: each told by the file alone."""
    first = configuration.migration_mode(raw, KNOWN)
    second = configuration.kraft_mode(first, KNOWN, BROKER)
    assert [node_mode(parse(entry)) for entry in (raw, first, second)] == ["zookeeper", "migration", "kraft"]
    assert configuration.migration_mode(first, KNOWN) == first
    assert configuration.kraft_mode(second, KNOWN, BROKER) == second


@given(files())
def test_the_first_edit_adds_and_the_second_leaves_nothing_of_zookeeper(raw: bytes) -> None:
    """Everything else is the operator's, and stays as it is."""
    before, first = parse(raw), parse(configuration.migration_mode(raw, KNOWN))
    assert {key for key in before if first.get(key) != before[key]} <= {PROTOCOL_MAP}
    assert set(first) - set(before) <= OURS | {FLAG}
    second = parse(configuration.kraft_mode(configuration.migration_mode(raw, KNOWN), KNOWN, BROKER))
    gone = {key for key in before if key not in second}
    assert gone == {*config_keys.removed(before, Moment.SECOND_ROLL)}
    assert {key for key in before if key.startswith("zookeeper.")} <= gone
    changed = {key for key in second if key in before and second[key] != before[key]}
    assert changed <= {PROTOCOL_MAP, "authorizer.class.name"}
    assert second.get("authorizer.class.name") != ACL_AUTHORIZERS[0]


@given(files())
def test_comments_and_line_ends_are_kept(raw: bytes) -> None:
    """An operator's words are not ours."""
    for edited in (
        configuration.migration_mode(raw, KNOWN),
        configuration.kraft_mode(configuration.migration_mode(raw, KNOWN), KNOWN, BROKER),
    ):
        assert comments(edited) == comments(raw)
        if b"\r\n" in raw:
            assert edited.count(b"\n") == edited.count(b"\r\n")


@given(files())
def test_skipping_the_first_edit_ends_in_the_same_file_but_for_the_order_of_lines(raw: bytes) -> None:
    """The second does not lean on what the first wrote."""
    through = configuration.kraft_mode(configuration.migration_mode(raw, KNOWN), KNOWN, BROKER)
    assert parse(configuration.kraft_mode(raw, KNOWN, BROKER)) == parse(through)


@given(files())
def test_the_protocol_map_names_the_controller_listener_once(raw: bytes) -> None:
    """Both sides need it, with the inventory's protocol; the other entries stay as they are, in their order."""
    for edited in (configuration.migration_mode(raw, KNOWN), configuration.kraft_mode(raw, KNOWN, BROKER)):
        entries = parse(edited)[PROTOCOL_MAP].split(",")
        names = [entry.partition(":")[0].strip().upper() for entry in entries]
        assert names.count("CTL") == 1
        assert protocols(parse(edited))["CTL"] == "PLAINTEXT"
        before = parse(raw).get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP).split(",")
        others = [entry.strip() for entry in before if entry.partition(":")[0].strip().upper() != "CTL"]
        assert [entry.strip() for entry in entries if entry.partition(":")[0].strip().upper() != "CTL"] == others


@given(files())
def test_a_controllers_file_is_the_same_whichever_roll_the_broker_is_in(raw: bytes) -> None:
    """It may be rendered again later: what the rolls write into a broker's file is not taken from it."""
    early = configuration.controller(parse(raw), KNOWN, CONTROLLER)
    late = configuration.controller(parse(configuration.migration_mode(raw, KNOWN)), KNOWN, CONTROLLER)
    assert early == late
    assert node_mode(parse(early)) == "controller"
    assert ("authorizer.class.name" in parse(early)) is ("authorizer.class.name" in parse(raw))


@given(files())
def test_a_controller_never_gets_a_brokers_identity_and_is_finalized_by_leaving_zookeeper(raw: bytes) -> None:
    """And finalizing twice changes nothing more."""
    found = configuration.controller(parse(raw), KNOWN, CONTROLLER)
    here = parse(found)
    assert not {"broker.id", "advertised.listeners", "inter.broker.protocol.version"} & set(here)
    with_own_class = parse(raw).get("authorizer.class.name") == "com.example.Own"
    assert here.get("custom.key") == (parse(raw).get("custom.key") if with_own_class else None)
    assert (here["node.id"], here["listeners"]) == ("3001", "CTL://c3001:9090")
    assert here["log.dirs"] == here["metadata.log.dir"] == CONTROLLER.metadata_directory
    final = configuration.finalized_controller(found)
    assert parse(final) == {key: value for key, value in here.items() if not key.startswith("zookeeper.")}
    assert configuration.finalized_controller(final) == final
    assert node_mode(parse(final)) == "finalized"
