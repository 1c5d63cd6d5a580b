#!/usr/bin/env python3
# ruff: noqa: UP006, UP031, UP035, UP045, PTH100, PTH110, PTH114, PTH115, PTH116, PTH117, PTH118, PTH123, PTH208, EXE001
"""Tell what a Kafka node's log directories hold, as JSON on stdout.  Changes nothing; opens no network connection.

    python3 collect_disks.py --properties /etc/kafka/server.properties > node-1.json
    python3 collect_disks.py --node 1 /data/d0 /data/d1 > node-1.json

One file, Python 3.6 or newer: copy it to the host, read it, run it as Kafka's own user.  It imports only what Debian's
python3-minimal has, which is less than the standard library: no json and no hmac.
What it reads: the properties file; of each log directory the names in it, `meta.properties`, and of each folder
`partition.metadata` and the sizes of `*.log`.  It never opens a segment, and never follows a link.
With --probe it writes a file of six bytes into each directory, fsyncs it and removes it: the one honest test of a disk.
Without --probe the answer says that the health was not tested.
Secrets of the properties file never leave the host.  Values of keys that Kafka defines and that are no passwords stay,
and so do numbers and booleans; all others, those of other people's classes too, are left out, or, with --key-file,
replaced by HMAC-SHA-256 under that file's bytes, so that files of several hosts made with one key can be compared.
"""

import argparse
import base64
import errno
import hashlib
import os
import re
import socket
import stat
import sys
import threading
import time
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

FORMAT = "kraft-migrate-disks"
VERSION = 1
PROBE_SECONDS = 10.0
SMALL_FILE = 64 * 1024
CONFIG_LIMIT = 8 * 1024 * 1024
DEFAULT_LOG_DIR = "/tmp/kafka-logs"  # noqa: S108 - Kafka's own default
OURS = ".kraft-migrate-"  # in the names of what we set beside a file
PROBE_PREFIX = OURS + "probe-"
NOT_REPLICAS = ("remote-log-index-cache",)  # tiered storage: Kafka skips it too (LogManager)


# -- secrets of a properties file ----------------------------------------------------------------------------------
HIDDEN = "${kraft-migrate:hidden}"  # stands where a secret was left out; spelled like a configuration provider's
# A value is shown by what is known of its key, for nobody can list the secrets of other people's classes: what
# Kafka 3.9 defines and does not hold for a password (KafkaConfig, LogConfig, authorizers, ...), numbers, booleans.
KEYS_OF_TYPE_HIDDEN = """
delegation.token.master.key delegation.token.secret.key password.encoder.old.secret password.encoder.secret
sasl.jaas.config ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.password
ssl.truststore.certificates ssl.truststore.password zookeeper.ssl.keystore.password zookeeper.ssl.truststore.password
"""
KEYS_OF_OTHER_TYPES = """
advertised.listeners allow.everyone.if.no.acl.found alter.config.policy.class.name
alter.config.policy.kraft.compatibility.enable alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds authorizer.class.name auto.create.topics.enable
auto.include.jmx.reporter auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms broker.id
broker.id.generation.enable broker.rack broker.session.timeout.ms cleanup.policy client.quota.callback.class
compression.gzip.level compression.lz4.level compression.type compression.zstd.level config.providers
connection.failed.authentication.delay.ms connections.max.idle.ms connections.max.reauth.ms
control.plane.listener.name controlled.shutdown.enable controlled.shutdown.max.retries
controlled.shutdown.retry.backoff.ms controller.listener.names controller.quorum.append.linger.ms
controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
controller.quorum.voters controller.quota.window.num controller.quota.window.size.seconds controller.socket.timeout.ms
create.topic.policy.class.name default.replication.factor delegation.token.expiry.check.interval.ms
delegation.token.expiry.time.ms delegation.token.max.lifetime.ms delete.records.purgatory.purge.interval.requests
delete.retention.ms delete.topic.enable early.start.listeners eligible.leader.replicas.enable fetch.max.bytes
fetch.purgatory.purge.interval.requests file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas group.consumer.assignors group.consumer.heartbeat.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
group.consumer.migration.policy group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
group.consumer.session.timeout.ms group.coordinator.append.linger.ms group.coordinator.new.enable
group.coordinator.rebalance.protocols group.coordinator.threads group.initial.rebalance.delay.ms
group.max.session.timeout.ms group.max.size group.min.session.timeout.ms group.share.delivery.count.limit
group.share.enable group.share.heartbeat.interval.ms group.share.max.groups group.share.max.heartbeat.interval.ms
group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.size
group.share.min.heartbeat.interval.ms group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms
index.interval.bytes initial.broker.registration.timeout.ms inter.broker.listener.name inter.broker.protocol.version
interval.ms kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
leader.imbalance.per.broker.percentage leader.replication.throttled.replicas listener.security.protocol.map listeners
local.retention.bytes local.retention.ms log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy log.dir log.dir.failure.timeout.ms log.dirs
log.flush.interval.messages log.flush.interval.ms log.flush.offset.checkpoint.interval.ms
log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
log.message.downconversion.enable log.message.format.version log.message.timestamp.after.max.ms
log.message.timestamp.before.max.ms log.message.timestamp.difference.max.ms log.message.timestamp.type log.preallocate
log.retention.bytes log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms
log.roll.hours log.roll.jitter.hours log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
match max.compaction.lag.ms max.connection.creation.rate max.connections max.connections.per.ip
max.connections.per.ip.overrides max.incremental.fetch.session.cache.slots max.message.bytes
max.request.partition.size.limit message.downconversion.enable message.format.version message.max.bytes
message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.difference.max.ms
message.timestamp.type metadata.log.dir metadata.log.max.record.bytes.between.snapshots
metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.min.bytes
metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
metric.reporters metrics metrics.num.samples metrics.recording.level metrics.sample.window.ms
min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas node.id num.io.threads num.network.threads
num.partitions num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
offset.metadata.max.bytes offsets.commit.required.acks offsets.commit.timeout.ms offsets.load.buffer.size
offsets.retention.check.interval.ms offsets.retention.minutes offsets.topic.compression.codec
offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
password.encoder.keyfactory.algorithm preallocate principal.builder.class process.roles
producer.id.expiration.check.interval.ms producer.id.expiration.ms producer.purgatory.purge.interval.requests
queued.max.request.bytes queued.max.requests quota.window.num quota.window.size.seconds remote.fetch.max.wait.ms
remote.log.copy.disable remote.log.delete.on.disable remote.log.index.file.cache.total.size.bytes
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
remote.log.storage.system.enable remote.storage.enable replica.fetch.backoff.ms replica.fetch.max.bytes
replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
replication.quota.window.size.seconds request.timeout.ms reserved.broker.max.id retention.bytes retention.ms
sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
sasl.mechanism.inter.broker.protocol sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class sasl.server.max.receive.size
security.inter.broker.protocol security.providers segment.bytes segment.index.bytes segment.jitter.ms segment.ms
server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
socket.listen.backlog.size socket.receive.buffer.bytes socket.request.max.bytes socket.send.buffer.bytes
ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm ssl.keystore.location
ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.location ssl.truststore.type super.users telemetry.max.bytes
transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.state.log.num.partitions
transaction.state.log.replication.factor transaction.state.log.segment.bytes transactional.id.expiration.ms
unclean.leader.election.enable unclean.leader.election.interval.ms unstable.api.versions.enable
unstable.feature.versions.enable zookeeper.clientCnxnSocket zookeeper.connect zookeeper.connection.timeout.ms
zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable zookeeper.metadata.migration.min.batch.size
zookeeper.session.timeout.ms zookeeper.set.acl zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable
zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
zookeeper.ssl.keystore.location zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol
zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
"""
PASSWORDS, PUBLIC = frozenset(KEYS_OF_TYPE_HIDDEN.split()), frozenset(KEYS_OF_OTHER_TYPES.split())
PROVIDER = re.compile(r"config\.providers\.[^.]+\.class")  # AbstractConfig
OF_LISTENER = "listener.name."
PLAIN = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?|true|false", re.IGNORECASE)
SUSPECT = re.compile(  # of a key that Kafka does not define: a number may be a secret, too
    r"pass|pwd|pw$|pin$|secret|cred|jaas|token|licen[cs]e|key|auth(?!or)|sign|hmac|salt|user.?info", re.IGNORECASE
)
SECRET_INSIDE = re.compile(  # in a value that Kafka holds for public
    r"(passw|pwd|secret|token|credential|key|sig)[\w.-]*\s*=|://[^/\s,]*@|-----BEGIN|\b(basic|bearer)\s", re.IGNORECASE
)
TRIMMED = "".join(map(chr, range(33)))  # what Java's String.trim takes away
COMMA = re.compile(r"\s*,\s*", re.ASCII)
REFERENCE = re.compile(r"\$\{[\w.-]+:[^${}]*\}")  # to a configuration provider
DIGEST = re.compile(r"hmac-[0-9a-f]{8}:[0-9a-f]{32}")
MALFORMED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
JAAS = re.compile(
    r"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)(?:\s+[\w.-]+\s*=\s*(?:\"[^\"]*\"|[^\s;\"]+))*\s*;\s*"
)
JAAS_OPTION = re.compile(r"(?<![\w.-])([\w.-]+)(\s*=\s*)(\"[^\"]*\"|[^\s;\"]+)")
JAAS_PUBLIC = ("username", "serviceName", "principal", "useKeyTab", "storeKey", "keyTab", "useTicketCache", "debug")

Digest = Callable[[str], str]


def hmac_sha256(key: bytes, message: bytes) -> str:
    """HMAC-SHA256 in hex (RFC 2104)."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()


def keyed(key: bytes) -> Digest:
    """Secret -> its digest under that key; the eight digits in front name the key."""
    name = hmac_sha256(key, b"name of this key")[:8]

    def digest(value: str) -> str:
        return "hmac-" + name + ":" + hmac_sha256(key, value.encode("utf-8", "surrogatepass"))[:32]

    return digest


def in_table(name: str, table: FrozenSet[str]) -> bool:
    """Is that key in the table, also behind `listener.name.<listener>.[<mechanism>.]`?"""
    parts = name.split(".")
    starts = range(3, min(len(parts), 5)) if name.startswith(OF_LISTENER) else ()
    return name in table or any(".".join(parts[start:]) in table for start in starts)


def is_sensitive(name: str) -> bool:
    """Is the value of that key a secret whatever it says: Kafka's type PASSWORD, or an unknown key named like one?"""
    return in_table(name, PASSWORDS) or (not is_public(name) and SUSPECT.search(name) is not None)


def is_public(name: str) -> bool:
    """Does Kafka define that key, and not as a password?"""
    return in_table(name, PUBLIC) or PROVIDER.fullmatch(name) is not None


def redacted_value(name: str, value: str, digest: Digest) -> str:
    """The value as it may leave the host: of a JAAS login the names, of what may be a secret its digest."""
    if not value.strip() or REFERENCE.fullmatch(value.strip()) or DIGEST.fullmatch(value.strip()):
        return value
    if not (name.endswith("sasl.jaas.config") and JAAS.fullmatch(value)):
        plain = PLAIN.fullmatch(value.strip()) is not None and not is_sensitive(name)
        known = is_public(name) and SECRET_INSIDE.search(value) is None
        return value if plain or known else digest(value.strip())

    def option(found: Any) -> str:
        secret = str(found.group(3).strip('"'))
        public = found.group(1) in JAAS_PUBLIC or DIGEST.fullmatch(secret)
        return str(found.group(0) if public else found.group(1) + found.group(2) + '"' + digest(secret) + '"')

    return JAAS_OPTION.sub(option, value)


def redact(raw: bytes, digest: Digest) -> bytes:
    """A properties file without comments and what may be a secret; all other lines stay byte by byte."""
    redacted = []
    for line in logical_lines(raw.decode("latin-1")):
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if is_comment(body):
            redacted.append("# (left out)" + end if body.strip() else line)
            continue
        name, value = key_and_value(body)
        if MALFORMED.search(joined(body)):  # Kafka loads no such file: what is told of it is not to be loaded either
            redacted.append(escaped(name, key=True) + "=\\u(left out)" + end)
            continue
        shown = redacted_value(name, value, digest)
        same = shown == value and not stands_for_secret(value)
        redacted.append(line if same else escaped(name, key=True) + "=" + escaped(shown) + end)
    return "".join(redacted).encode("latin-1")


def is_comment(line: str) -> bool:
    return line.lstrip(" \t\f")[:1] in ("#", "!", "")


def logical_lines(text: str) -> List[str]:
    """Lines as java.util.Properties joins them: one continues after an odd number of backslashes; ends are kept."""
    found = []  # type: List[str]
    going_on = False
    for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
        if going_on:
            found[-1] += line
        else:
            found.append(line)
        body = line.rstrip("\r\n")
        comment = not going_on and is_comment(body)
        going_on = not comment and (len(body) - len(body.rstrip("\\"))) % 2 == 1
    return found


def stands_for_secret(value: str) -> bool:
    """Is something of ours in that value, in place of a secret?"""
    return HIDDEN in value or DIGEST.search(value) is not None


def placeholders(text: str) -> List[str]:
    """Keys whose values stand for secrets, however they are spelled."""
    lines = [line.rstrip("\r\n") for line in logical_lines(text)]
    pairs = [key_and_value(line) for line in lines if not is_comment(line)]
    return [name for name, value in pairs if stands_for_secret(value)]


def joined(body: str) -> str:
    """A logical line in one piece: without the backslashes at line ends, the last one too where nothing follows it."""
    text = re.sub(r"\\(?:\r\n|\r|\n)[ \t\f]*", "", body.lstrip(" \t\f"))
    return text[:-1] if (len(text) - len(text.rstrip("\\"))) % 2 else text


def key_and_value(body: str) -> Tuple[str, str]:
    """Key and value of one logical line, unescaped by java.util.Properties' rules."""
    found = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", joined(body), re.DOTALL)
    assert found is not None  # every part of the pattern may be empty
    return unescaped(found.group(1)), unescaped(found.group(2))


def unescaped(text: str) -> str:
    def one(found: Any) -> str:
        escape = str(found.group(1))
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.|$)", one, text, flags=re.DOTALL)


def escaped(text: str, key: bool = False) -> str:
    """The opposite, for what is written anew."""
    special = "\\=: #!" if key else "\\"
    named = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    written = [named.get(char) or ("\\" + char if char in special else char) for char in text]
    if written and written[0] == " ":
        written[0] = "\\ "
    return "".join(char if ord(char) < 256 else "\\u%04x" % ord(char) for char in "".join(written))


# -- files ---------------------------------------------------------------------------------------------------------
def read_small(name: str, folder: Optional[int] = None, limit: int = SMALL_FILE) -> bytes:
    """A regular file's bytes; OSError for a link, for what is no regular file, and above the limit."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        raw = b""
        while len(raw) <= limit:
            part = os.read(descriptor, limit + 1 - len(raw))
            if not part:
                return raw
            raw += part
        raise OSError(errno.EFBIG, "larger than %d bytes" % limit, name)
    finally:
        os.close(descriptor)


def read_or_problem(name: str, folder: int) -> Dict[str, Any]:
    """{"raw": base64} or {"error": [number, text]} or {} where there is no such file."""
    try:
        return {"raw": base64.b64encode(read_small(name, folder)).decode()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        return {"error": problem_of(error)}


def problem_of(error: OSError) -> List[Any]:
    """[errno, text]."""
    return [error.errno or 0, error.strerror or str(error)]


# -- one log directory ---------------------------------------------------------------------------------------------
def probe(folder: int) -> None:
    """Write, fsync and remove a tiny file; OSError says what the disk will not do."""
    name = PROBE_PREFIX + os.urandom(6).hex()
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        os.write(descriptor, b"probe\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        os.unlink(name, dir_fd=folder)


def look(path: str, with_probe: bool, tried: Callable[[], None]) -> Dict[str, Any]:
    """One directory: what it is, what it holds, and, when asked, whether it stores a block."""
    found = {"path": path, "absolute": os.path.isabs(path), "link": None, "own": False}  # type: Dict[str, Any]
    found.update(mount_of(path))
    found["unmounted"] = unmounted(os.path.realpath(path), found["mount"])
    try:
        here = os.stat(path)
        found["own"] = here.st_uid == os.geteuid()
        found["is_folder"] = stat.S_ISDIR(here.st_mode)
        if os.path.islink(path):
            found["link"] = os.path.realpath(path)
        space = os.statvfs(path)
        found["free_bytes"] = space.f_bavail * space.f_frsize  # without what ext4 keeps for root
        found["free_files"] = space.f_favail if space.f_files else -1  # btrfs counts none
        if not found["absolute"] or not found["is_folder"]:
            return found
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        found["unreachable"] = problem_of(error)
        return found
    try:
        if with_probe:
            try:
                probe(folder)
            except OSError as error:
                found["not_written"] = problem_of(error)
        tried()
        found["meta"] = read_or_problem("meta.properties", folder)
        found["entries"] = entries(folder)
        found["gone"] = gone(folder, path)
    except OSError as error:
        found["not_read"] = problem_of(error)
    finally:
        os.close(folder)
    return found


def gone(folder: int, path: str) -> str:
    """Why the path no longer leads to the folder that was listed, "" where it does: a disk may die meanwhile."""
    listed = os.fstat(folder)
    try:
        here = os.stat(path)
    except OSError as error:
        return "went away while it was looked at: " + str(problem_of(error)[1])
    same = (here.st_dev, here.st_ino) == (listed.st_dev, listed.st_ino)
    return "" if same else "was replaced while it was looked at"


def entries(folder: int) -> List[Dict[str, Any]]:
    """Links and folders in a log directory, by name; plain files are Kafka's checkpoints and are not listed."""
    owner = os.fstat(folder).st_uid
    found = []
    for name in sorted(os.listdir(folder)):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                found.append(linked(name, folder))
            elif stat.S_ISDIR(mode) and name not in NOT_REPLICAS:
                found.append(replica(name, folder, owner))
        except FileNotFoundError:
            continue  # renamed or deleted since the listing: a living broker does that
    return found


def linked(name: str, parent: int) -> Dict[str, Any]:
    """A link.  To Kafka one to a folder is that folder, on another disk perhaps: told as one that was not read."""
    try:
        followed = stat.S_ISDIR(os.stat(name, dir_fd=parent).st_mode) and name not in NOT_REPLICAS
    except OSError:
        followed = False
    unread = {"error": [errno.ELOOP, os.strerror(errno.ELOOP)]}
    as_folder = {"other_owner": False, "bytes": 0, "links": [], "metadata": unread} if followed else {}
    return dict({"name": name, "link": True}, **as_folder)


def replica(name: str, parent: int, owner: int) -> Dict[str, Any]:
    """One folder: bytes of its segments, its partition.metadata, links in it."""
    found = {"name": name}  # type: Dict[str, Any]
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        found["error"] = problem_of(error)
        return found
    try:
        found["other_owner"] = os.fstat(folder).st_uid != owner
        total, links = 0, []
        for inner in os.listdir(folder):
            try:
                entry = os.stat(inner, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue  # retention removes segments as we look
            if stat.S_ISLNK(entry.st_mode):
                links.append(inner)
            elif inner.endswith(".log"):
                total += entry.st_size
        found.update(bytes=total, links=links, metadata=read_or_problem("partition.metadata", folder))
    except OSError as error:
        found["error"] = problem_of(error)
    finally:
        os.close(folder)
    return found


def mount_of(path: str, table: str = "/proc/self/mountinfo") -> Dict[str, str]:
    """Mount point and file system, the innermost and latest mounted; both "" where not known (proc(5))."""
    real, point, kind = os.path.realpath(path), "", ""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                before, dash, after = line.partition(" - ")
                fields, kinds = before.split(), after.split()
                if not dash or len(fields) < 5 or not kinds:
                    continue
                here = unquoted(fields[4])
                if (real == here or real.startswith(here.rstrip("/") + "/")) and len(here) >= len(point):
                    point, kind = here, kinds[0]
    except OSError:
        pass
    return {"mount": point, "filesystem": kind}


def unquoted(point: str) -> str:
    """A mount point as the kernel and fstab(5) write it: blanks as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), point)


def unmounted(real: str, mount: str, tables: Tuple[str, str] = ("/etc/fstab", "/etc/systemd/system")) -> List[str]:
    """The mount point over a path where this host wants a file system and has none, and who wants it; [] for none."""
    wanted = {}  # type: Dict[str, str]
    try:
        with open(tables[0], encoding="utf-8", errors="surrogateescape") as lines:
            found = [line.split() for line in lines if not is_comment(line)]
        wanted.update((unquoted(line[1]), tables[0]) for line in found if len(line) > 2)
        for name in os.listdir(tables[1]):
            if name.endswith(".mount"):
                with open(os.path.join(tables[1], name), encoding="utf-8", errors="surrogateescape") as lines:
                    wanted.update((line[6:].strip(), name) for line in lines if line.startswith("Where="))
    except OSError:
        pass  # a host without such tables, or that keeps them for itself
    over = [point for point in wanted if point[:1] == "/" != point and (real + "/").startswith(point.rstrip("/") + "/")]
    deepest = max(over, key=len, default="")
    there = (mount + "/").startswith(deepest.rstrip("/") + "/")
    return [] if not deepest or not mount or there else [deepest, wanted[deepest]]


def look_at_all(paths: List[str], with_probe: bool) -> List[Dict[str, Any]]:
    """All directories at once, each in a thread: a dead disk never answers, and the others must not wait for it.

    An error of the collector itself is raised: it says nothing about a disk.
    """
    found = {}  # type: Dict[str, Dict[str, Any]]
    faults = []  # type: List[Exception]
    events, threads = {}, {}
    for path in paths:
        events[path] = threading.Event()

        def work(path: str = path) -> None:
            try:
                found[path] = look(path, with_probe, events[path].set)
            except Exception as error:  # noqa: BLE001 - raised below, by who waits
                faults.append(error)
            finally:
                events[path].set()

        threads[path] = threading.Thread(target=work, daemon=True)
        threads[path].start()
    deadline = time.monotonic() + PROBE_SECONDS
    answers = []
    for path in paths:
        if events[path].wait(max(0.001, deadline - time.monotonic())):
            threads[path].join()
        answers.append(found.get(path) or {"path": path, "late": True})
    if faults:
        raise faults[0]
    return answers


# -- what an instruction asks for besides ---------------------------------------------------------------------------
def watched(path: str, digest: Digest) -> Dict[str, Any]:
    """A file or folder by its path: what it is, the SHA-256 of a file's bytes, and its text without secrets.

    `near` are the names in its folder that begin with its own.  `placeholders` counts values that stand for secrets.
    """
    folder, name = os.path.split(path)
    found = {"path": path, "kind": "nothing", "near": None}  # type: Dict[str, Any]
    try:
        found["near"] = sorted(entry for entry in os.listdir(folder) if entry.startswith(name))
        here = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        found["near"] = found["near"] or []
        return found
    except OSError as error:
        found.update(kind="error", error=problem_of(error))
        return found
    if stat.S_ISDIR(here.st_mode):
        found["kind"] = "folder"
    elif not stat.S_ISREG(here.st_mode):
        found["kind"] = "other"
    else:
        found.update(file_of(path, digest))
    return found


def with_copies(paths: List[str]) -> List[str]:
    """Those paths, and the copies of ours that stand beside them."""
    found = list(paths)
    for path in paths:
        folder, name = os.path.split(path)
        try:
            near = sorted(entry for entry in os.listdir(folder) if entry.startswith(name + OURS))
        except OSError:
            continue
        found.extend(folder + "/" + entry for entry in near)
    return list(dict.fromkeys(found))


def file_of(path: str, digest: Digest) -> Dict[str, Any]:
    """A regular file; where it changed while it was read that is an error."""
    try:
        before = os.lstat(path)
        raw = read_small(path, limit=CONFIG_LIMIT)
        after = os.lstat(path)
    except OSError as error:
        return {"kind": "error", "error": problem_of(error)}
    if (before.st_ctime_ns, before.st_ino) != (after.st_ctime_ns, after.st_ino):
        return {"kind": "error", "error": [errno.EAGAIN, "it changed while it was read"]}
    text = raw.decode("latin-1")
    return {
        "kind": "file",
        "sha256": hashlib.sha256(raw).hexdigest(),
        "changed": after.st_ctime_ns,
        "lines": text.count("\n"),
        "placeholders": len(placeholders(text)),
        "raw": base64.b64encode(redact(raw, digest)).decode(),
    }


def waits_for_java(words: List[str]) -> bool:
    """Do the words before the class belong to what runs Java, as `runuser` and a container's init do?"""
    names = [word.rpartition("/")[2] for word in words]
    return "java" in names[1:] and names[0] != "java"


def processes_of(config: str) -> Optional[List[Dict[str, Any]]]:
    """Kafka's processes with that file: pid, start in nanoseconds since 1970, words behind it.

    None where that is unknown: this user does not see the processes of others, or not from where one was started.
    """
    if not os.path.exists("/proc/1/stat"):
        return None  # hidepid
    with open("/proc/uptime", encoding="ascii") as lines:
        boot = time.time() - float(lines.read().split()[0])
    found = []  # type: List[Dict[str, Any]]
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/cmdline" % name, "rb") as line:
                words = line.read().decode("utf-8", "surrogateescape").split("\0")
            if "kafka.Kafka" not in words or waits_for_java(words[: words.index("kafka.Kafka")]):
                continue
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as fields:
                ticks = int(fields.read().rpartition(")")[2].split()[19])
            given = words[words.index("kafka.Kafka") + 1 :]
            file = given[0] if os.path.isabs(given[0]) else os.path.join(os.readlink("/proc/%s/cwd" % name), given[0])
        except PermissionError:
            return None
        except (OSError, ValueError, IndexError):
            continue  # it ended as we looked
        if os.path.realpath(file) == os.path.realpath(config):
            started = boot + ticks / float(os.sysconf("SC_CLK_TCK"))
            more = len([word for word in given[1:] if word])
            found.append({"pid": int(name), "started": int(started * 1e9), "more": more})
    return found


# -- the answer ----------------------------------------------------------------------------------------------------
def properties_of(raw: bytes) -> Dict[str, str]:
    """Key to value; the last of duplicate keys wins, as in Kafka."""
    lines = (line.rstrip("\r\n") for line in logical_lines(raw.decode("latin-1")))
    return dict(key_and_value(line) for line in lines if not is_comment(line) and joined(line))


def collect(
    properties: Optional[str], directories: List[str], node: Optional[int], with_probe: bool, key: Optional[bytes]
) -> Dict[str, Any]:
    """The body of the answer."""
    raw, values = b"", {}  # type: bytes, Dict[str, str]
    if properties is not None:
        raw = read_small(properties, limit=CONFIG_LIMIT)
        values = properties_of(raw)
    listed = values.get("log.dirs") or values.get("log.dir") or DEFAULT_LOG_DIR
    log_dirs = directories or [part for part in COMMA.split(listed.strip(TRIMMED)) if part]
    metadata_dir = values.get("metadata.log.dir", "").strip() or None
    known = [os.path.normpath(path) for path in log_dirs]
    apart = metadata_dir if metadata_dir and os.path.normpath(metadata_dir) not in known else None
    if node is None:
        text = (values.get("node.id") or values.get("broker.id") or "").strip()
        node = int(text) if re.match(r"[0-9]{1,10}\Z", text) else None
    paths = list(dict.fromkeys(log_dirs + ([apart] if apart else [])))
    looked = look_at_all(paths, with_probe)
    names = [entry["name"] for directory in looked for entry in directory.get("entries", ())]
    if len(names) > len(set(names)):  # a move may have ended, and its copies been swapped, between two listings
        looked = look_at_all(paths, with_probe)
    config = None
    if properties is not None:
        digest = keyed(key) if key is not None else lambda _value: HIDDEN
        shown = base64.b64encode(redact(raw, digest)).decode()
        config = {"path": os.path.abspath(properties), "raw": shown, "keyed": key is not None}
    return {
        "host": socket.gethostname(),
        "taken": int(time.time()),
        "python": sys.version.split()[0],
        "node": node,
        "probed": with_probe,
        "config": config,
        "log_dirs": log_dirs,
        "metadata_dir": apart,
        "directories": looked,
    }


def as_json(value: Any, indent: str = "") -> str:
    """As json.dumps writes it: keys sorted, ASCII alone; with `indent`, one entry a line, else without blanks."""
    if isinstance(value, str):
        return '"' + NOT_PLAIN.sub(_json_escape, value) + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, (dict, list, tuple)):
        return repr(value)
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    deeper = indent + " " if indent else ""
    if isinstance(value, dict):
        colon = ": " if indent else ":"
        parts = [as_json(key) + colon + as_json(value[key], deeper) for key in sorted(value)]
    else:
        parts = [as_json(entry, deeper) for entry in value]
    if not indent or not parts:
        return begin + ",".join(parts) + end
    return begin + indent + ("," + indent).join(parts) + indent[:-1] + end


NOT_PLAIN = re.compile(r"[^ !#-\[\]-~]")
SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}


def _json_escape(found: Any) -> str:
    char = str(found.group(0))
    units = char.encode("utf-16-be", "surrogatepass")
    words = ["\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2)]
    return SHORT.get(char) or "".join(words)


def body_sha256(body: Any) -> str:
    return hashlib.sha256(as_json(body).encode()).hexdigest()


def document(body: Dict[str, Any], for_people: bool = False) -> str:
    """The answer: an entry a line for people, else without a second pass over some thousand folders."""
    if for_people:
        return as_json({"format": FORMAT, "version": VERSION, "sha256": body_sha256(body), "body": body}, "\n ") + "\n"
    text = as_json(body)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return '{"body":%s,"format":%s,"sha256":"%s","version":%s}\n' % (text, as_json(FORMAT), sha256, as_json(VERSION))


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Tell what a Kafka node's log directories hold, as JSON.")
    parser.add_argument("--properties", metavar="FILE", help="the node's properties file: its log.dirs are looked at")
    parser.add_argument("--node", type=int, help="the node's id, where no properties file says it")
    parser.add_argument("--probe", action="store_true", help="write, fsync and remove a tiny file in each directory")
    parser.add_argument("--key-file", metavar="FILE", help="secrets become digests under the bytes of this file")
    parser.add_argument("--instruction", metavar="ID", help="echoed in the answer: it was made after that instruction")
    parser.add_argument("--watch", metavar="FILE", action="append", default=[], help="report this file or folder, too")
    parser.add_argument("--process", metavar="FILE", help="report the Kafka process that runs with this file, too")
    parser.add_argument("directories", metavar="DIR", nargs="*", help="log directories, instead of those of the file")
    given = parser.parse_args(words)
    if given.properties is None and not given.directories:
        parser.error("give --properties FILE, or the directories")
    try:
        key = None if given.key_file is None else read_small(given.key_file)
        if key is not None and len(key.strip()) < 16:
            parser.error("--key-file: the key must have 16 bytes or more")
        body = collect(given.properties, given.directories, given.node, given.probe, key)
        if given.instruction or given.watch or given.process:
            digest = keyed(key) if key is not None else lambda _value: HIDDEN
            metas = [entry["path"].rstrip("/") + "/meta.properties" for entry in body["directories"]]
            body["told"] = {
                "instruction": given.instruction or "",
                "watched": [watched(path, digest) for path in with_copies(given.watch + metas)],
                "processes": None if given.process is None else processes_of(given.process),
            }
    except OSError as error:
        sys.stderr.write("collect_disks: %s: %s\n" % (error.filename, error.strerror or error))
        return 1
    sys.stdout.write(document(body, for_people=given.properties is not None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
