"""CFG: how the brokers' processes were started: what in command line, environment or unit decides too."""

from __future__ import annotations

import os
from typing import Final

from migrate.checks.config_words import READ_BY_US, edited_by_us
from migrate.checks.registry import Blind, Hit, Result, check
from migrate.checks.sight import both, broker_launches, controller_launches
from migrate.checks.zookeeper import JUTE_DEFAULT
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World

Launches = dict[NodeId, Launch]
NAMED: Final = 6  # variables in one message


def _ours(key: str) -> bool:
    return key in READ_BY_US or edited_by_us(key)


@check(
    CodeDoc(
        "B-CFG-23",
        "a broker's command line overrides a key that the migration changes or reads",
        "--override stands over the file: the tool would judge and edit a value that is not the broker's, and the "
        "broker would come back from a roll as it was.",
        "The unit's ExecStart, a drop-in of it or a start script has --override words.",
        "Move those keys into the broker's file, take the words out, and restart the broker.",
        "kafka.Kafka.getPropsFromArgs",
    ),
    sees=broker_launches,
    blocks_from=Stage.PREPARE,
    proof=True,
)
def no_override_of_ours(seen: Launches, world: World) -> Result:
    """--override words of keys that some stage edits, or that the tool decides by."""
    for node, launch in seen.items():
        keys = sorted(key for key in launch.overrides if _ours(key))
        if keys:
            yield Hit(f"broker {node}", f"its command line overrides {', '.join(keys)}")


@check(
    CodeDoc(
        "W-CFG-24",
        "a broker's command line overrides other keys of its file",
        "They go on holding on that broker through every stage; the controllers' files are rendered from the file and "
        "do not have them.",
        "The unit's ExecStart, a drop-in of it or a start script has --override words.",
        "Move those keys into the broker's file; where controllers need them, also into controllers.overrides.",
        "kafka.Kafka.getPropsFromArgs",
    ),
    sees=broker_launches,
)
def other_overrides(seen: Launches, world: World) -> Result:
    """All other --override words."""
    for node, launch in seen.items():
        found = sorted(f"{key}={value}" for key, value in launch.overrides.items() if not _ours(key))
        if found:
            yield Hit(f"broker {node}", f"its command line overrides {', '.join(found)}")


@check(
    CodeDoc(
        "W-CFG-25",
        "a broker's command line sets up the client of ZooKeeper",
        "Kafka takes ZooKeeper's TLS and SASL settings from -Dzookeeper.* and a JAAS file too. Controllers that lack "
        "them cannot call ZooKeeper: they wait for ever, and no log line says for what.",
        "KAFKA_OPTS, the unit or a start script sets them.",
        "Give the controllers' processes the same words (a JAAS file with the section Client of the brokers' "
        "identity), until finalize.",
        "KafkaConfig.zkClientConfigViaSystemProperties; seen on 3.9.2",
    ),
    sees=broker_launches,
)
def zookeeper_on_command_line(seen: Launches, world: World) -> Result:
    """-Dzookeeper.* and -Djava.security.auth.login.config; values are not shown."""
    for node, launch in seen.items():
        words = [f"-D{name}" for name in launch.zookeeper_properties]
        words += ["-Djava.security.auth.login.config"] if launch.jaas_file is not None else []
        if words:
            yield Hit(f"broker {node}", f"its command line has {', '.join(words)}", launch.jaas_file or "")


@check(
    CodeDoc(
        "B-CFG-26",
        "a broker's file is made from environment variables at each start",
        "Images of containers write server.properties anew: what the tool edits is gone with the restart that "
        "should read it.",
        "The process's environment has variables of which such images make configuration; or the unit starts Docker "
        "or Podman.",
        "Change those variables in place of the file, by the platform that sets them; or start Kafka with a file "
        "of its own. Over SSH the environment is not read (it may hold secrets), and says so as a blind spot: look at "
        "the unit's Environment= and EnvironmentFile= lines for KAFKA_CFG_* and the like.",
        "docker images of Apache, Bitnami and Confluent",
    ),
    sees=broker_launches,
    blocks_from=Stage.PREPARE,
    proof=True,
)
def file_is_no_product(seen: Launches, world: World) -> Result:
    """Names of variables, whose values are never read; and a unit that runs a container, wherever its host is."""
    for node, launch in seen.items():
        if launch.container:
            yield Hit(
                f"broker {node}",
                f"its process is {launch.container}: Kafka runs in a container, and the image writes its file",
                launch.container,
            )
        elif isinstance(launch.environment, Unknown):
            yield Blind(f"the environment of broker {node}", launch.environment.reason)
        elif launch.environment:
            more = "" if len(launch.environment) <= NAMED else f" and {len(launch.environment) - NAMED} more"
            yield Hit(f"broker {node}", f"its environment has {', '.join(launch.environment[:NAMED])}{more}")


@check(
    CodeDoc(
        "B-CFG-27",
        "a broker runs with another file than the inventory names",
        "The tool would edit a file that the process does not read: the broker comes back from a roll as it was.",
        "The inventory is wrong, or the unit was changed; a link and its target count as two files.",
        "Write the path into the inventory as the process's command line spells it.",
        "kafka.Kafka.getPropsFromArgs",
    ),
    sees=broker_launches,
    blocks_from=Stage.PREPARE,
    proof=True,
)
def runs_with_its_file(seen: Launches, world: World) -> Result:
    """The first word behind Kafka's class."""
    for node, launch in seen.items():
        wanted, about = world.inventory.node(node).config, f"broker {node}"
        if launch.main_class is None:
            yield Blind(f"the command line of {about}", "it names no class of Kafka's")
        elif launch.config is None:
            yield Hit(about, "its command line names no properties file", wanted)
        elif not launch.config.startswith("/"):
            yield Blind(f"the command line of {about}", f"it names its file by a relative path: {launch.config}")
        elif os.path.normpath(launch.config) != os.path.normpath(wanted):
            yield Hit(about, f"it runs with {launch.config}, the inventory says {wanted}")


@check(
    CodeDoc(
        "I-CFG-28",
        "a broker's unit reads environment files or has drop-ins",
        "They may set KAFKA_OPTS, heap or words of the command line. What they made of the running process was looked "
        "at; they stay as they are.",
        "EnvironmentFile= in the unit, or files in UNIT.service.d.",
        "Nothing, unless another finding names what they set; the controllers' units need their like.",
        "systemd.exec(5); systemd.unit(5)",
    ),
    sees=broker_launches,
)
def unit_has_more(seen: Launches, world: World) -> Result:
    """Of units alone."""
    for node, launch in seen.items():
        if launch.unit is not None and (found := (*launch.unit.environment_files, *launch.unit.drop_ins)):
            yield Hit(f"broker {node}", f"its unit is made of {', '.join(found)}, too")


RAISE: Final = (
    "Give every controller's unit the brokers' value before it starts, until finalize: `systemctl edit UNIT`, "
    '`[Service]` and `Environment="KAFKA_OPTS=-Djute.maxbuffer=BYTES"` (with what KAFKA_OPTS has there already), then '
    "`systemctl daemon-reload`."
)


@check(
    CodeDoc(
        "W-CFG-31",
        "the brokers' ZooKeeper client takes larger answers than the default",
        "The controllers read and list the same znodes for the copy and in dual write. Without the same value their "
        "client closes the connection at the first answer that is too long, and tries again for ever: ConnectionLoss, "
        "and the copy never ends.",
        "The cluster has so many topics, or so many ACLs on one resource, that jute.maxbuffer was raised: a list of "
        "20,000 topics with names of 50 characters is above the default of 1,048,575 bytes.",
        RAISE,
        "ZooKeeper 3.8: ClientCnxnSocket 'Packet len ... is out of range!'; ZKClientConfig.JUTE_MAXBUFFER",
    ),
    sees=broker_launches,
)
def large_answers(seen: Launches, world: World) -> Result:
    """-Djute.maxbuffer above the default."""
    for node, launch in seen.items():
        if launch.jute_maxbuffer is not None and launch.jute_maxbuffer > JUTE_DEFAULT:
            yield Hit(f"broker {node}", f"its command line has -Djute.maxbuffer={launch.jute_maxbuffer}")


@check(
    CodeDoc(
        "B-CFG-32",
        "a controller's ZooKeeper client takes smaller answers than the brokers'",
        "The first answer that is too long for it closes its connection, again and again: the copy begins and never "
        "ends, with every broker in migration mode.",
        "The brokers run with -Djute.maxbuffer, the controller without it or with less.",
        RAISE + " Restart the controllers one by one, before the first roll.",
        "ZooKeeper 3.8: ClientCnxnSocket 'Packet len ... is out of range!'; ZKClientConfig.JUTE_MAXBUFFER",
    ),
    sees=both(broker_launches, controller_launches),
    blocks_from=Stage.MIGRATION_MODE,
    proof=True,
)
def controllers_take_as_much(seen: tuple[Launches, Launches], world: World) -> Result:
    """The largest value of any broker against each controller's."""
    brokers, controllers = seen
    wanted = max((launch.jute_maxbuffer or JUTE_DEFAULT for launch in brokers.values()), default=JUTE_DEFAULT)
    for node, launch in controllers.items():
        if (own := launch.jute_maxbuffer or JUTE_DEFAULT) < wanted:
            yield Hit(f"controller {node}", f"its client takes {own} bytes, the brokers' {wanted}")
