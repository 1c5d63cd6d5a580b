"""What is written onto the hosts of a bed before their first boot."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from migrate.lab import kdc
from tests.bed.shape import Shape

NETWORK: Final = "10.80.0"
DOMAIN: Final = "example.test"
CHROOT: Final = "/prod/kafka"
START: Final = """#!/bin/sh
exec java $KAFKA_HEAP_OPTS -XX:+UseSerialGC -XX:TieredStopAtLevel=1 $KAFKA_OPTS \\
  -Dlog4j.configuration=file:{home}/log4j.properties -cp "{home}/libs/*" {main} "$@"
"""
MAINS: Final = {
    "kafka-server-start.sh": "kafka.Kafka",
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "zookeeper-server-start.sh": "org.apache.zookeeper.server.quorum.QuorumPeerMain",
}
LOG4J: Final = """log4j.rootLogger=INFO, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
UNIT: Final = """[Unit]
Description={what}
After=network.target

[Service]
Type=simple
User=kafka
Group=kafka
EnvironmentFile=-/etc/default/{environment}
ExecStart={start}
Restart=on-failure
RestartSec=5
TimeoutStopSec={stop}
SuccessExitStatus=143
LimitNOFILE=100000

[Install]
WantedBy=multi-user.target
"""
RUNIT: Final = """[Unit]
Description=runit
After=network.target

[Service]
ExecStart=/usr/bin/runsvdir -P /etc/service
KillMode=process

[Install]
WantedBy=multi-user.target
"""
RUN: Final = """#!/bin/sh
exec 2>&1
. /etc/default/kafka
export KAFKA_HEAP_OPTS
ulimit -n 100000
exec chpst -u kafka:kafka /opt/kafka/bin/kafka-server-start.sh /etc/kafka/server.properties
"""
STATUS: Final = """#!/bin/sh
said=$(sv status /etc/service/kafka) || exit 4
printf '%s\\n' "$said"
case $said in run:*) exit 0 ;; down:*) exit 3 ;; *) exit 4 ;; esac
"""
COMMANDS: Final = {  # what an inventory says of it
    "user": "kafka",
    "start": ["/usr/bin/sv", "start", "/etc/service/kafka"],
    "stop": ["/usr/bin/sv", "-w", "330", "stop", "/etc/service/kafka"],
    "status": ["/usr/local/sbin/kafka-status"],
    "timeout": "330s",
}
ONCE: Final = """[Unit]
Description={what}
DefaultDependencies=no
After=systemd-remount-fs.service
Before=sysinit.target shutdown.target
Conflicts=shutdown.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={start}
[Install]
WantedBy=sysinit.target
"""
LISTENERS: Final = """listeners=CLIENTS://:9092,INTERNAL://:9091
advertised.listeners=CLIENTS://kafka-{n}.{domain}:9092,INTERNAL://kafka-{n}:9091
listener.security.protocol.map=CLIENTS:PLAINTEXT,INTERNAL:PLAINTEXT
"""
OPERATORS: Final = ("ops", "ops-s3cr3t-canary")  # user and password at that listener of the host that is unlike
WITH_LOGIN: Final = f"""listener.name.clients.sasl.enabled.mechanisms=PLAIN
listener.name.clients.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    user_{OPERATORS[0]}="{OPERATORS[1]}";
"""
BY_KERBEROS: Final = """listeners=CLIENTS://:9092,LOAD://:9091,INTERNAL://:9093
advertised.listeners=CLIENTS://kafka-{n}.{domain}:9092,LOAD://kafka-{n}:9091,INTERNAL://kafka-{n}.{domain}:9093
listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,LOAD:PLAINTEXT,INTERNAL:SASL_PLAINTEXT
sasl.enabled.mechanisms=GSSAPI
sasl.mechanism.inter.broker.protocol=GSSAPI
sasl.kerberos.service.name=kafka
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:kafka;User:admin
zookeeper.set.acl=true
"""
ZOOKEEPER_BY_KERBEROS: Final = """authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
kerberos.removeHostFromPrincipal=true
kerberos.removeRealmFromPrincipal=true
"""
BROKER: Final = """# Managed by hand since 2019 -- broker {n}
broker.id={n}
{listeners}inter.broker.listener.name = INTERNAL

log.dirs = {first},\\
    {others}
zookeeper.connect=kafka-1:2181{chroot}
zookeeper.session.timeout.ms=9000
zookeeper.connection.timeout.ms=18000
num.partitions=3
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
group.initial.rebalance.delay.ms=0
log.segment.bytes=1048576
auto.create.topics.enable=false
unclean.leader.election.enable=false
inter.broker.protocol.version=3.9
controlled.shutdown.enable=true
broker.rack=rack{n}
"""
ZOOKEEPER: Final = """dataDir=/srv/zookeeper
clientPort=2181
admin.enableServer=false
maxClientCnxns=0
tickTime=2000
4lw.commands.whitelist=srvr,ruok
"""
SSHD: Final = """Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
Subsystem sftp /usr/lib/openssh/sftp-server
MaxSessions 20
UseDNS no
"""
BANNER: Final = "*** Authorised access only. All sessions are logged. ***\n"


def kdc_of(folder: Path) -> kdc.Kdc:
    """Of the bed in that folder: it listens on the bridge, and is beside the hosts."""
    return kdc.Kdc(folder / "kdc", 88, host=f"{NETWORK}.1")


def node_principal(number: int) -> str:
    """Whom broker and controller of a host log in as; the host is called by its whole name."""
    return f"kafka/kafka-{number}.{DOMAIN}"


def keytabs(folder: Path, shape: Shape) -> dict[Path, tuple[str, ...]]:
    """Each host's, ZooKeeper's, and the operator's: who they are at Kafka, and at ZooKeeper the same as a broker."""
    nodes = {folder / f"h{n}" / "kafka.keytab": (node_principal(n),) for n in range(1, shape.all_hosts + 1)}
    return nodes | {
        folder / "h1" / "zookeeper.keytab": ("zookeeper/kafka-1",),
        folder / "tool.keytab": ("admin", "kafka/tool"),
    }


def address(number: int) -> str:
    """Of a host on the bed's bridge."""
    return f"{NETWORK}.{10 + number}"


def names(shape: Shape) -> str:
    """Lines of /etc/hosts."""
    numbers = range(1, shape.all_hosts + 1)
    return "".join(f"{address(n)} kafka-{n} kafka-{n}.{DOMAIN}\n" for n in numbers)


def names_and_own(shape: Shape, own: str) -> str:
    """Those lines, and the machine's own ones but for the same names: these may stand there for something else."""
    ours = names(shape)
    taken = set(ours.split())
    kept = (line for line in own.splitlines() if not taken & set(line.partition("#")[0].split()[1:]))
    return ours + "".join(f"{line}\n" for line in kept)


def ssh_config(folder: Path, shape: Shape) -> str:
    """Of the client: `h1` and so on log in as the shape's account, `h1-root` as root."""
    lines: list[str] = []
    for n in range(1, shape.all_hosts + 1):
        for host, user in ((f"h{n}", shape.login), (f"h{n}-root", "root")):
            lines += [f"Host {host}", f"  HostName {address(n)}", f"  User {user}", f"  HostKeyAlias kafka-{n}"]
            if shape.jump and n > 1 and user != "root":
                lines += [f"  ProxyCommand ssh -F {folder}/ssh_config -W %h:%p h1"]
    lines += ["Host *", "  Port 22", f"  IdentityFile {folder}/id_ed25519", "  IdentitiesOnly yes"]
    lines += [f"  UserKnownHostsFile {folder}/known_hosts", "  StrictHostKeyChecking yes", ""]
    return "\n".join(lines)


def write(up: Path, shape: Shape, n: int) -> None:
    """Every file of host `n`, below `up`."""

    def put(path: str, text: str, mode: int = 0o644) -> None:
        target = up / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    put("/etc/hostname", f"kafka-{n}\n")
    put("/etc/hosts", "127.0.0.1 localhost\n" + names(shape))
    put("/etc/ssh/sshd_config", SSHD + ("Banner /etc/issue.net\n" if shape.banner else ""))
    put("/etc/issue.net", BANNER)
    for script, main in MAINS.items():
        put(f"{shape.home(n)}/bin/{script}", START.format(main=main, home=shape.home(n)), 0o755)
    put(f"{shape.home(n)}/log4j.properties", LOG4J)
    configuration = "/opt/kafka/config" if shape.linked_configuration else "/etc/kafka"
    fstab = [f"/dev/bed/{disk.rpartition('/')[2]} {disk} ext4 errors=remount-ro,nofail 0 0" for disk in mounts(shape)]
    put("/etc/fstab", "\n".join([*fstab, ""]))
    network = f"ip link set lo up; ip address replace {address(n)}/24 dev host0; ip link set host0 up"
    put("/etc/systemd/system/bed-network.service", ONCE.format(what="Network", start=f'/bin/sh -c "{network}"'))
    put("/etc/systemd/system/bed-disks.service", ONCE.format(what="Disks", start="/bin/mount --all"))
    if n <= shape.hosts:
        first, *others = shape.log_directories
        listeners = LISTENERS.format(n=n, domain=DOMAIN)
        if shape.kerberos:
            listeners = BY_KERBEROS.format(n=n, domain=DOMAIN)
        if shape.is_unlike(n):
            listeners = listeners.replace("CLIENTS:PLAINTEXT", "CLIENTS:SASL_PLAINTEXT") + WITH_LOGIN
        text = BROKER.format(n=n, listeners=listeners, first=first, others=", ".join(others), chroot=CHROOT)
        put(f"{configuration}/server.properties", text)
        unit = shape.unit.replace("@1", "@")
        if not shape.is_unit(n):
            _put_runit(up, put)
    if n <= shape.hosts and shape.is_unit(n):
        put(f"/etc/systemd/system/{unit}", _unit("Apache Kafka broker", "kafka", shape, n))
        put(f"/etc/systemd/system/{unit}.d/limits.conf", "[Service]\nLimitNPROC=65536\nNice=1\n")
    if n in shape.controllers.values():
        text = _unit("Apache Kafka controller", "kafka-controller", shape, n)
        put("/etc/systemd/system/kafka-controller.service", text)
        (up / configuration.lstrip("/")).mkdir(parents=True, exist_ok=True)
    if n == 1:
        put(f"{configuration}/zookeeper.properties", ZOOKEEPER + (ZOOKEEPER_BY_KERBEROS if shape.kerberos else ""))
        start = f"{shape.home(n)}/bin/zookeeper-server-start.sh /etc/kafka/zookeeper.properties"
        text = UNIT.format(what="ZooKeeper", environment="zookeeper", start=start, stop=shape.stop_seconds)
        put("/usr/lib/systemd/system/zookeeper.service", text)  # as a package puts it: it can be masked
    logins = {"kafka": "kafka", "kafka-controller": "kafka", "zookeeper": "zookeeper"} if shape.kerberos else {}
    for name, megabytes in (("kafka", 320), ("kafka-controller", 200), ("zookeeper", 128)):
        login = f"-Djava.security.auth.login.config=/etc/kafka/{logins[name]}.jaas" if name in logins else ""
        put(f"/etc/default/{name}", f'KAFKA_HEAP_OPTS="-Xmx{megabytes}m -Xms64m"\nKAFKA_OPTS="{login}"\n')


def write_logins(up: Path, place: Path, shape: Shape, n: int, client_file: Path) -> None:
    """Keytabs and login files of host `n`, which has its keytabs in `place`, and where its programs find the KDC."""
    configuration = up / ("opt/kafka/config" if shape.linked_configuration else "etc/kafka")
    shutil.copy(client_file, up / "etc" / "krb5.conf")
    (up / "etc" / "krb5.conf").chmod(0o644)
    for keytab in place.glob("*.keytab"):
        shutil.copy(keytab, configuration)
    there = Path("/etc/kafka")
    sections = (kdc.section(name, there / "kafka.keytab", node_principal(n)) for name in ("KafkaServer", "Client"))
    (configuration / "kafka.jaas").write_text("".join(sections))
    if n == 1:
        section = kdc.section("Server", there / "zookeeper.keytab", "zookeeper/kafka-1")
        (configuration / "zookeeper.jaas").write_text(section)


def _put_runit(up: Path, put: Callable[[str, str, int], None]) -> None:
    """This machine's runit, as the package runit-run starts it, and the broker below it."""
    (up / "usr/bin").mkdir(parents=True, exist_ok=True)
    for program in ("runsvdir", "runsv", "sv", "chpst"):
        shutil.copy(f"/usr/bin/{program}", up / "usr/bin")
    put("/etc/systemd/system/runit.service", RUNIT, 0o644)
    put("/etc/service/kafka/run", RUN, 0o755)
    put("/usr/local/sbin/kafka-status", STATUS, 0o755)


def mounts(shape: Shape) -> tuple[str, ...]:
    """Mount points of all disks of a host."""
    return (*shape.disks, "/srv/kafka/metadata")


def _unit(what: str, environment: str, shape: Shape, n: int) -> str:
    file = "controller.properties" if environment == "kafka-controller" else "server.properties"
    start = f"{shape.home(n)}/bin/kafka-server-start.sh /etc/kafka/{file}"
    if shape.start == "shell":
        start = f"/bin/sh -c 'exec {start}'"
    elif shape.start == "override":
        start += " --override log.retention.hours=240"
    text = UNIT.format(what=what, environment=environment, start=start, stop=shape.stop_seconds)
    if environment != "kafka-controller":
        return text
    # enabled before the first plan, and left alone by a boot until it is formatted
    condition = f"ConditionPathExists={shape.metadata_directory}/meta.properties"
    return text.replace("[Unit]\n", f"[Unit]\n{condition}\n", 1)


def prepare(shape: Shape, n: int) -> str:
    """What root runs once in the root file system of host `n`: accounts, owners, units that a boot starts."""
    configuration = "/opt/kafka/config" if shape.linked_configuration else "/etc/kafka"
    groups = shape.owner.partition(":")[2]
    login = shape.login
    controller = "kafka-controller" if n in shape.controllers.values() else ""
    broker = ("runit" if not shape.is_unit(n) else shape.unit) if n <= shape.hosts else ""
    defaults = "".join(f"Defaults {word}\\n" for word in ("requiretty", "use_pty") if getattr(shape, word))
    rights = f"{login} ALL=(ALL) NOPASSWD: ALL\\n" if shape.rights == "all" else ""
    links = [f"ln -sfn {disk} {link}" for disk, link in zip(shape.disks, shape.log_directories, strict=True)]
    return "\n".join((
        "set -e",
        "groupadd -g 2000 kafka; useradd -u 2000 -g kafka -d /var/lib/kafka -m -s /usr/sbin/nologin kafka",
        f"useradd -u 2001 -U -m -s {shape.login_shell} {login}; usermod -p '*' {login}",  # sshd without PAM: not locked
        f"install -d -m 700 -o {login} -g {login} /home/{login}/.ssh; install -d -m 700 /root/.ssh",
        f"install -m 600 -o {login} -g {login} /bed/key.pub /home/{login}/.ssh/authorized_keys",
        "install -m 600 /bed/key.pub /root/.ssh/authorized_keys",
        f"printf '{defaults}{rights}' > /etc/sudoers.d/{login}; chmod 440 /etc/sudoers.d/{login}; visudo -cq",
        *((f"ln -s {configuration} /etc/kafka",) if shape.linked_configuration else ()),
        f"chown -R {shape.owner} {configuration}; chgrp {groups} {configuration}",
        f"find {configuration} -type f -exec chmod {shape.file_mode:o} {{}} +",
        f"chmod {shape.folder_mode:o} {configuration}",
        *(_linked(configuration) if n == shape.linked_file else ()),
        f"mkdir -p {' '.join(mounts(shape))} /srv/zookeeper",
        "chown kafka:kafka /srv/kafka /srv/zookeeper; chmod 750 /srv/kafka /srv/zookeeper",
        *(links if shape.linked_disks else ()),
        *_python(shape),
        "systemd-machine-id-setup",
        f"systemctl enable bed-network bed-disks ssh {broker} {controller} {'zookeeper' if n == 1 else ''}",
        "systemctl mask systemd-networkd systemd-resolved systemd-timesyncd console-getty",
        "systemctl disable apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer 2>/dev/null || true",
        "rm -rf /bed",
    ))  # fmt: skip


def _linked(configuration: str) -> tuple[str, ...]:
    """The broker's file is elsewhere, under another name."""
    real = "/opt/kafka/config/broker.properties"
    file = f"{configuration}/server.properties"
    return ("mkdir -p /opt/kafka/config", f"mv {file} {real}", f"ln -s ../../opt/kafka/config/broker.properties {file}")


def _python(shape: Shape) -> tuple[str, ...]:
    version = "$(python3 -c \"import sys; print('%d.%d' % sys.version_info[:2])\")"
    purge = "dpkg --purge --force-depends --force-remove-essential"
    library = f"V={version}; {purge} python3 python$V libpython3-stdlib libpython$V-stdlib"
    match shape.python:
        case "full":
            return ()
        case "minimal":
            return (library,)
        case "local":
            return (f"V={version}; cp /usr/bin/python$V /usr/local/bin/python$V; rm /usr/bin/python3*",)
        case "none":
            return (f"{library} python3-minimal python$V-minimal libpython$V-minimal; rm -f /usr/bin/python3*",)
