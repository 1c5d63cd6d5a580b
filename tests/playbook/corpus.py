"""Documents that must be refused: text, the error's class, the line and column, and a word of the message."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.errors import DocumentInvalid, DocumentUnreadable, InputError, NotSupportedYet, YamlRefused

HEAD = "apiVersion: kraft-migrate/v1\nkind: MigrationPlaybook\nmetadata: {name: p}\n"
SPEC = HEAD + "spec:\n  cluster: {inventory: inventory.yaml}\n"
INVENTORY = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {name: lab}
spec:
  zookeeper: zk1:2181,zk2:2181/kafka
  controller_listener: CTL
  executor: {kind: manual, inbox: state}
  brokers:
    nodes:
      - {id: 0, host: b0, address: 'b0:9092', config: /etc/kafka/b0.properties}
      - {id: 1, host: b1, address: 'b1:9092', config: /etc/kafka/b1.properties, rack: r1}
  controllers:
    nodes:
      - {id: 3000, host: c0, address: 'c0:9090', config: /etc/kafka/c0.properties, metadata_directory: /data/c0}
"""
SSH = "ssh, kafka_home: /opt/kafka"


def with_commands(more: str = "", kind: str = SSH, **words: str) -> str:
    """An inventory whose first broker has commands, and the others units."""
    own = {
        "user": "kafka",
        "start": "[/usr/bin/sv, start, kafka]",
        "stop": "[/usr/bin/sv, -w, '330', stop, kafka]",
        "status": "[/opt/ops/status, kafka]",
        "timeout": "330s",
    }
    service = ", ".join(f"{name}: {value}" for name, value in (own | words).items())
    first, *others = [line for line in INVENTORY.splitlines() if "- {id: " in line]
    text = INVENTORY.replace("manual, inbox: state", kind)
    text = text.replace(first, first.replace("}", f"{more}, service: {{{service}}}}}"))
    for line in others if kind == SSH else ():
        text = text.replace(line, line.replace("}", ", unit: kafka.service}"))
    return text


@dataclass(frozen=True, slots=True)
class Bad:
    """`at` is line:column, "" where the whole file is meant."""

    name: str
    text: str | bytes
    error: type[InputError]
    at: str
    says: str

    @property
    def raw(self) -> bytes:
        """The file's bytes."""
        return self.text if isinstance(self.text, bytes) else self.text.encode()


def stages(*lines: str) -> str:
    """A playbook whose stages are these lines."""
    return SPEC + "  stages:\n" + "".join(f"    - {line}\n" for line in lines)


def policy(*lines: str) -> str:
    """A playbook whose policy is these lines."""
    return SPEC + "  policy:\n" + "".join(f"    {line}\n" for line in lines)


NO_YAML = (
    Bad("empty", "", YamlRefused, "1:1", "empty"),
    Bad("comment only", "# nothing\n", YamlRefused, "1:1", "empty"),
    Bad("too large", HEAD + "#" * (256 * 1024), DocumentUnreadable, "", "256 KiB"),
    Bad("latin-1", HEAD.encode() + "# größer\n".encode("latin-1"), DocumentUnreadable, "", "not UTF-8"),
    Bad("utf-16", HEAD.encode("utf-16"), DocumentUnreadable, "", "not UTF-8"),
    Bad("NUL", HEAD + "a: \x00\n", YamlRefused, "4:", "character"),
    Bad("escaped control character", HEAD + 'a: "\\x1b[2J"\n', YamlRefused, "4:4", "U+001B"),
    Bad("surrogate", HEAD + 'a: "\\uD800"\n', YamlRefused, "", ""),
    Bad("beyond Unicode", HEAD + 'a: "\\UFFFFFFFF"\n', YamlRefused, "", "YAML"),
    Bad("tab indentation", "a:\n\tb: 1\n", YamlRefused, "2:", "a tab in the indentation"),
    Bad("word behind a value", HEAD + 'spec: "x" y\n', YamlRefused, "4:", "invalid YAML"),
    Bad("less indented", "a:\n    b: 1\n  c: 2\n", YamlRefused, "3:", "indented otherwise"),
    Bad("open bracket", HEAD + "spec: [1, 2\n", YamlRefused, "5:", "YAML"),
    Bad("open quote", HEAD + "spec: 'x\n", YamlRefused, "", "YAML"),
    Bad("alias", "a: &x 1\nb: *x\n", YamlRefused, "1:4", "anchor"),
    Bad("alias bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", YamlRefused, "1:4", "anchor"),
    Bad("undefined alias", "a: *x\n", YamlRefused, "1:4", "alias"),
    Bad("anchored key", "&k a: 1\n", YamlRefused, "1:1", "anchor"),
    Bad("python tag", "a: !!python/object/apply:os.system [id]\n", YamlRefused, "1:4", "tag"),
    Bad("harmless tag", "a: !!str 1\n", YamlRefused, "1:4", "tag"),
    Bad("non-specific tag", "a: ! 1\n", YamlRefused, "1:4", "tag"),
    Bad("merge key", "a:\n  <<: {b: 1}\n", YamlRefused, "2:3", "merge"),
    Bad("duplicate key", HEAD + "kind: Inventory\n", YamlRefused, "4:1", "twice"),
    Bad("duplicate nested key", SPEC + "  policy:\n    lock: {path: /a/b, path: /c/d}\n", YamlRefused, "7:24", "twice"),
    Bad("duplicate by quotes", '{a: 1, "a": 2}\n', YamlRefused, "1:8", "twice"),
    Bad("two documents", HEAD + "---\na: 1\n", YamlRefused, "4:1", "second document"),
    Bad("directive", "%YAML 1.1\n---\na: 1\n", YamlRefused, "", "directive"),
    Bad("mapping as key", "? {a: 1}\n: 2\n", YamlRefused, "1:3", "key"),
    Bad("sequence as key", "[1, 2]: 3\n", YamlRefused, "1:1", "key"),
    Bad("empty key", ": 1\n", YamlRefused, "", "key"),
    Bad("deep in brackets", "a: " + "[" * 200, YamlRefused, "1:36", "deeper"),
    # PyYAML before 6.0.4 has no limit of its own, and the place is where ours is met
    Bad("very deep in brackets", "a: " + "[" * 20_000, YamlRefused, "1:", "deeper"),
    Bad("deep in blocks", "".join(" " * n + "- \n" for n in range(100)), YamlRefused, "", ""),
    Bad("deep mappings", "{a: " * 200, YamlRefused, "", "deeper"),
)


def windows(window: str) -> str:
    """A playbook with that default window."""
    return SPEC + f"  windows:\n    default: {{{window}}}\n"


ACTING = (  # when a run may act
    Bad("no allow", windows("timezone: UTC"), DocumentInvalid, "7:5", "spec.windows.default.allow is missing"),
    Bad("nothing allowed", windows("allow: []"), DocumentInvalid, "7:15", "at least 1"),
    Bad("unknown zone", windows("allow: [always], timezone: Europe/Atlantis"), DocumentInvalid, "7:32", "IANA"),
    Bad("a zone as a path", windows("allow: [always], timezone: ../../etc/passwd"), DocumentInvalid, "7:32", "IANA"),
    Bad("an abbreviation", windows("allow: [always], timezone: XYZT"), DocumentInvalid, "7:32", "IANA"),
    Bad("a day misspelled", windows("allow: [Mo-Thu 21:00-05:00]"), DocumentInvalid, "7:23", "Mon-Thu 21:00"),
    Bad("an hour too many", windows("allow: ['Mon 21:00-25:00']"), DocumentInvalid, "7:23", "no time of a day"),
    Bad("no length", windows("allow: ['Mon 21:00-21:00']"), DocumentInvalid, "7:23", "no length"),
    Bad("a day twice", windows("allow: ['Mon,Mon-Tue 21:00-22:00']"), DocumentInvalid, "7:23", "twice"),
    Bad("no such day", windows("allow: [always], deny: [2026-02-30]"), DocumentInvalid, "7:39", "no day"),
    Bad(
        "backwards", windows("allow: [always], deny: [2026-02-03..2026-02-01]"), DocumentInvalid, "7:39", "ends before"
    ),
    Bad("a moment alone", windows("allow: ['2026-02-03T10:00']"), DocumentInvalid, "7:23", "no end"),
    Bad("always denied", windows("allow: [always], deny: [always]"), DocumentInvalid, "7:39", "never opens"),
    Bad("only denies", windows("allow: [last-business-day-of-month]"), DocumentInvalid, "7:23", "only denies"),
    Bad("never opens", windows("allow: [Mon 21:00-22:00], deny: [Mon]"), DocumentInvalid, "7:5", "never opens"),
    Bad(
        "dated, all denied",
        windows("allow: ['2026-12-20T10:00..2026-12-20T12:00'], deny: [2026-12-15..2027-01-04]"),
        DocumentInvalid,
        "7:5",
        "never opens",
    ),
    Bad("calendar files", windows("allow: [always], calendar: x.ics"), DocumentInvalid, "7:32", "unknown key"),
    Bad(
        "a calendar", windows("allow: [always], deny: [calendar x.ics]"), DocumentInvalid, "7:39", "a span is expected"
    ),
    Bad("holidays", windows("allow: [always], deny: [holidays DE]"), DocumentInvalid, "7:39", "a span is expected"),
    Bad("no such window", stages("{name: prepare, window: night}"), DocumentInvalid, "7:23", "there is no window"),
    Bad(
        "rollback's window",
        SPEC + "  rollback: {window: night}\n",
        DocumentInvalid,
        "6:14",
        "there is no window 'night'",
    ),
    Bad("copy with a window", stages("{name: copy, window: default}"), DocumentInvalid, "7:20", "takes no window"),
    Bad("approvals", SPEC + "  approvals: {groups: {}}\n", DocumentInvalid, "6:3", "unknown key spec.approvals"),
    Bad("an approval", stages("{name: prepare, approval: {min: 1}}"), DocumentInvalid, "7:23", "unknown key"),
)

NO_PLAYBOOK = (
    Bad("a list", "- 1\n", DocumentInvalid, "1:1", "kind is missing"),
    Bad("a word", "hello\n", DocumentInvalid, "1:1", "kind is missing"),
    Bad("other version", SPEC.replace("/v1", "/v2"), DocumentInvalid, "1:1", "kraft-migrate/v1"),
    Bad("other kind", SPEC.replace("MigrationPlaybook", "Deployment"), DocumentInvalid, "2:1", "Deployment"),
    Bad("no kind", "apiVersion: kraft-migrate/v1\n", DocumentInvalid, "1:1", "kind is missing"),
    Bad("missing spec", HEAD, DocumentInvalid, "1:1", "spec is missing"),
    Bad(
        "missing inventory",
        HEAD + "spec:\n  cluster: {}\n",
        DocumentInvalid,
        "5:3",
        "spec.cluster.inventory is missing",
    ),
    Bad("null", HEAD + "spec:\n", DocumentInvalid, "4:1", "mapping"),
    Bad("near miss", SPEC + "  polcy: {}\n", DocumentInvalid, "6:3", "`policy`"),
    Bad(
        "unknown key in a list", stages("{name: assess, colour: red}"), DocumentInvalid, "7:22", "spec.stages[0].colour"
    ),
    *ACTING,
    Bad("notifications", SPEC + "  notifications: n.yaml\n", DocumentInvalid, "6:3", "unknown key"),
    Bad("rehearsal", SPEC + "  rollback: {rehearsed_within: 14d}\n", NotSupportedYet, "6:14", "rehearse"),
    Bad("signing", SPEC + "  reports: {sign: {}}\n", NotSupportedYet, "6:3", "runs"),
    Bad("bootstrap", HEAD + "spec:\n  cluster: {inventory: i, bootstrap: [a]}\n", NotSupportedYet, "5:27", "bootstrap"),
    Bad("yes for text", HEAD.replace("name: p", "name: [p]") + "spec: {}\n", DocumentInvalid, "3:12", "text"),
    Bad("empty name", HEAD.replace("name: p", "name: ''") + "spec: {}\n", DocumentInvalid, "3:12", "missing"),
    Bad("name with a slash", SPEC.replace("name: p", "name: ../x"), DocumentInvalid, "3:12", "short name"),
    Bad("quoted id", SPEC + "  controllers: {ids: ['3000']}\n", DocumentInvalid, "6:23", "without quotes"),
    Bad("octal id", SPEC + "  controllers: {ids: [0755]}\n", DocumentInvalid, "6:23", "whole number"),
    Bad("sexagesimal id", SPEC + "  controllers: {ids: [22:22]}\n", DocumentInvalid, "6:23", "whole number"),
    Bad("float id", SPEC + "  controllers: {ids: [1.0]}\n", DocumentInvalid, "6:23", "whole number"),
    Bad("underscored id", SPEC + "  controllers: {ids: [3_000]}\n", DocumentInvalid, "6:23", "whole number"),
    Bad("negative id", SPEC + "  controllers: {ids: [-1]}\n", DocumentInvalid, "6:23", "whole number"),
    Bad(
        "id of 5,000 digits",
        SPEC + f"  controllers: {{ids: [{'9' * 5000}]}}\n",
        DocumentInvalid,
        "6:23",
        "whole number",
    ),
    Bad("id out of range", SPEC + "  controllers: {ids: [2147483648]}\n", DocumentInvalid, "6:23", "2147483647"),
    Bad("id twice", SPEC + "  controllers: {ids: [1, 2, 1]}\n", DocumentInvalid, "6:29", "twice"),
    Bad("unknown stage", stages("name: asess"), DocumentInvalid, "7:7", "did you mean assess"),
    Bad("stages out of order", stages("name: prepare", "name: assess"), DocumentInvalid, "8:7", "cannot follow"),
    Bad("stage twice", stages("name: assess", "name: assess"), DocumentInvalid, "8:7", "there twice"),
    Bad("stage skipped", stages("name: copy", "name: kraft-mode"), DocumentInvalid, "8:7", "hybrid"),
    Bad(
        "nothing after the last stage",
        stages("name: cleanup", "name: assess"),
        DocumentInvalid,
        "8:7",
        "no further stage",
    ),
    Bad("no stages", SPEC + "  stages: []\n", DocumentInvalid, "6:3", "at least 1"),
    Bad("key of another stage", stages("{name: assess, duration: 1d}"), DocumentInvalid, "7:22", "soak"),
    Bad("duration without unit", policy("no_progress_timeout: 15"), DocumentInvalid, "7:5", "15m"),
    Bad("duration of a bad unit", policy("no_progress_timeout: 15 minutes"), DocumentInvalid, "7:5", "15m"),
    Bad("impatient", policy("no_progress_timeout: 1s"), DocumentInvalid, "7:5", "10"),
    Bad("accept all", policy("availability: {accept_unavailable: ['.*']}"), DocumentInvalid, "7:41", "every topic"),
    Bad("bad pattern", policy("availability: {accept_unavailable: ['a(']}"), DocumentInvalid, "7:41", "missing )"),
    Bad(
        "endless pattern",
        policy("availability: {accept_unavailable: ['(?:x+x*)*?(?=y)']}"),
        DocumentInvalid,
        "7:41",
        "invalid perl operator",
    ),
    Bad("bad policy", policy("directories: {default: steer}"), DocumentInvalid, "7:19", "observe or drive"),
    Bad("yes is no broker", policy("directories: {brokers: {yes: drive}}"), DocumentInvalid, "7:29", "broker id"),
    Bad("leading zero broker", policy("directories: {brokers: {01: drive}}"), DocumentInvalid, "7:29", "broker id"),
    Bad("relative lock", policy("lock: {path: a/b}"), DocumentInvalid, "7:12", "znode"),
    Bad("Kafka's lock", policy("lock: {path: /brokers/x}"), DocumentInvalid, "7:12", "belongs to Kafka"),
    Bad("dots in lock", policy("lock: {path: /a/../b}"), DocumentInvalid, "7:12", "znode"),
    Bad(
        "bad cluster id",
        HEAD + "spec:\n  cluster: {inventory: i, expect: {cluster_id: short}}\n",
        DocumentInvalid,
        "5:36",
        "Kafka UUID",
    ),
)
NO_INVENTORY = (
    *(
        Bad(f"metadata in {path}", INVENTORY.replace("/data/c0", path), DocumentInvalid, "", "belongs to the system")
        for path in ("/", "//", "/etc", "/etc/kafka/../ssl", "/dev/sda", "/var/lib", "/proc/1", "/data/..", "/tmp/")
    ),
    Bad("same id", INVENTORY.replace("id: 3000", "id: 1"), DocumentInvalid, "14:10", "node id 1 appears twice"),
    Bad("same address", INVENTORY.replace("b1:9092", "b0:9092"), DocumentInvalid, "11:27", "b0:9092 appears twice"),
    Bad("no port", INVENTORY.replace("b1:9092", "b1"), DocumentInvalid, "11:27", "host:port"),
    Bad("port too high", INVENTORY.replace("b1:9092", "b1:70000"), DocumentInvalid, "11:27", "65535"),
    Bad(
        "host is an option",
        INVENTORY.replace("host: b1", "host: -oProxyCommand=x"),
        DocumentInvalid,
        "11:17",
        "host name",
    ),
    Bad("listener with a blank", INVENTORY.replace(": CTL", ": 'C T'"), DocumentInvalid, "6:3", "listener"),
    Bad("bad chroot", INVENTORY.replace("/kafka", "/ka//fka"), DocumentInvalid, "5:3", "chroot"),
    Bad("empty chroot", INVENTORY.replace("/kafka", "/kafka/"), DocumentInvalid, "5:3", "chroot"),
    Bad(
        "no brokers",
        INVENTORY.replace("\n    nodes:\n      - {id: 0", "\n    nodes: []\n    x:\n      - {id: 0"),
        DocumentInvalid,
        "",
        "",
    ),
    Bad("executor", INVENTORY.replace("kind: manual", "kind: telnet"), DocumentInvalid, "7:14", "manual"),
    Bad(
        "the executor of earlier labs",
        INVENTORY.replace("manual, inbox: state", "supervisor, state: state"),
        DocumentInvalid,
        "7:14",
        "'supervisor'",
    ),
    Bad(
        "ssh without units",
        INVENTORY.replace("kind: manual, inbox: state", "kind: ssh, kafka_home: /opt/kafka"),
        DocumentInvalid,
        "",
        "has no unit",
    ),
    *(
        Bad(name, with_commands(more, kind, **words), DocumentInvalid, "", said)
        for name, more, kind, words, said in (
            ("commands for people", "", "manual, inbox: state", {}, "commands for executor manual"),
            ("a unit and commands", ", unit: kafka.service", SSH, {}, "has a unit and commands"),
            ("a program that is not absolute", "", SSH, {"stop": "[sv, stop, kafka]"}, "no absolute path"),
            ("a path of detours", "", SSH, {"stop": "[/usr/../sv]"}, "no absolute path in its shortest form"),
            ("no command", "", SSH, {"start": "[]"}, "service.start"),
            ("a text for a command", "", SSH, {"start": "/usr/bin/sv start kafka"}, "service.start"),
            ("a shell's text", "", SSH, {"start": "[/bin/sh, -ec, 'kafka &']"}, "text for a shell is no command"),
            ("systemctl", "", SSH, {"stop": "[/bin/systemctl, stop, kafka]"}, "systemctl is not given as a command"),
            ("no time", "", SSH, {"timeout": "330"}, "a duration is expected"),
            ("no account", "", SSH, {"user": "'-o'"}, "the name of an account is expected"),
        )
    ),
    Bad(
        "manual without its inbox",
        INVENTORY.replace("manual, inbox: state", "manual"),
        DocumentInvalid,
        "",
        "inbox is missing",
    ),
    Bad(
        "manual with another's key",
        INVENTORY.replace("inbox: state", "inbox: in, sudo: true"),
        DocumentInvalid,
        "",
        "sudo is not for executor manual",
    ),
    Bad(
        "a user of earlier releases",
        INVENTORY.replace("kind: manual, inbox: state", "kind: ssh, kafka_home: /opt/kafka, files_as: root"),
        DocumentInvalid,
        "",
        "spec.executor.files_as is no key any more",
    ),
    Bad(
        "inline secret",
        INVENTORY + "  password_encoder_secret: hunter2\n",
        DocumentInvalid,
        "15:3",
        "mapping",
    ),
    Bad(
        "an old secret alone",
        INVENTORY + "  password_encoder_old_secret: {file: old}\n",
        DocumentInvalid,
        "15:3",
        "without password_encoder_secret",
    ),
    Bad(
        "secret from a command in one string",
        INVENTORY + "  password_encoder_secret: {command: cat x}\n",
        DocumentInvalid,
        "15:29",
        "password_encoder_secret.command is a value of its own: ",
    ),
    Bad(
        "secret from a command that is looked for",
        INVENTORY + "  password_encoder_secret: {command: [cat, x]}\n",
        DocumentInvalid,
        "15:3",
        "absolute path",
    ),
    Bad(
        "secret from a command of no word",
        INVENTORY + "  password_encoder_secret: {command: []}\n",
        DocumentInvalid,
        "15:29",
        "at least 1 item",
    ),
    Bad(
        "secret from two places",
        INVENTORY + "  password_encoder_secret: {file: x, env: X}\n",
        DocumentInvalid,
        "15:3",
        "exactly one of file, env and command",
    ),
    Bad(
        "secret from nowhere",
        INVENTORY + "  password_encoder_secret: {}\n",
        DocumentInvalid,
        "15:3",
        "exactly one of file, env and command",
    ),
    Bad(
        "secret from a variable of no name",
        INVENTORY + "  password_encoder_secret: {env: $PW}\n",
        DocumentInvalid,
        "15:29",
        "the name of an environment variable",
    ),
    Bad(
        "SASL without user",
        INVENTORY.replace("  brokers:\n", "  brokers:\n    access: {protocol: SASL_PLAINTEXT}\n"),
        DocumentInvalid,
        "9:5",
        "mechanism is missing",
    ),
    Bad(
        "user without SASL",
        INVENTORY.replace("  brokers:\n", "  brokers:\n    access: {username: a}\n"),
        DocumentInvalid,
        "9:14",
        "without SASL",
    ),
)
