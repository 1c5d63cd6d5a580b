#!/usr/bin/python3 -IS
# ruff: noqa: B905, UP006, UP031, UP035, UP045, PTH100, PTH102, PTH108, PTH112, PTH115, PTH116, PTH123, PTH208, EXE001
# ruff: noqa: TRY301
"""What kraft-migrate may do on this host: a fixed list of verbs, and a configuration file that root wrote.

One file, Python 3.6 or newer, importing only what python3-minimal has.  Root installs it (`doctor --host-setup` prints
the script), sudo lets one account run it, and nothing else of that account's is run as root.  Three rules hold:

- Only nodes, units and paths of the configuration are acted on as root, and only commands of it are run.  Everything
  else is done as the user that the node's unit runs as, with that user's groups, and cannot become root again.
- Folders are opened one by one from "/".  A link is followed only where root alone can have made it.  The last name of
  a path is never followed, and a file with a second hard link is not touched.  A node's file that is itself a link is
  one of the configuration's `links`, which root's script wrote: what it leads to is opened, and only while it does.
- A file is replaced whole or not at all.  Owner, mode, SELinux context and ACL are set before it has its name.

Exit codes: 0 done; 1 an error of the operating system; 2 the command that it gave refused; 3 tar saw a file change;
64 words not understood; 65 not in the configuration; 74 a file's new content has its name, and is not proven; 75 the
lock is held; 78 the installation is not sound.
"""

import ast
import contextlib
import errno
import fcntl
import grp
import hashlib
import os
import pwd
import re
import selectors
import signal
import stat
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

CONFIGURATION = "/etc/kraft-migrate/host.json"
INSTALLED = "/etc/kraft-migrate/host.json"  # what the line above says in the released text
FIRST_LINE = "#!/usr/bin/python3 -IS"
NAME = "kraft-migrate-host: "  # before what went wrong: the caller knows by it that this program ran
COLLECTOR = "collect_disks.py"
SAFE_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
UNITS_PATH = "/usr/local/sbin:/usr/local/bin:" + SAFE_PATH  # what systemd gives a unit that names none
LIMIT = 8 * 1024 * 1024  # bytes of a file that is read or written; configuration files are thousands of times smaller
LOCK_TEXT = 4096  # bytes that a lock's holder may leave in the file
LINES = 100000
IDLE = 120  # seconds without a question, after which `looks` ends
NAMES = 200  # names of one folder that `places` tells: one is enough to refuse it
FAILED, REFUSED_BY, CHANGED, NOT_UNDERSTOOD, NOT_CONFIGURED, NOT_PROVEN, HELD, NOT_SOUND = 1, 2, 3, 64, 65, 74, 75, 78

BACKUP = re.compile(r"\.kraft-migrate-backup(-[0-9a-f]{8})?")
ASIDE = re.compile(r"\.kraft-migrate-set-aside-[0-9]{8}T[0-9]{6}(-[0-9]{1,4})?")
INNER_ASIDE = re.compile(r"kraft-migrate-aside-[0-9]{8}T[0-9]{6}(-[0-9]{1,4})?")
LOCK = ".kraft-migrate-lock"
NEW = ".kraft-migrate-new"
META = "meta.properties"
LOG = "__cluster_metadata-0"
ENTRIES = ("bootstrap.checkpoint", ".lock", LOG, META)  # what Kafka writes into a metadata directory
CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")
VOTER = re.compile(r"([0-9]{1,10})@[A-Za-z0-9_.:\[\]-]{1,300}:[0-9]{1,5}:([A-Za-z0-9_][A-Za-z0-9_-]{21})")
RELEASE = re.compile(r"[0-9]{1,2}\.[0-9]{1,3}(-IV[0-9]{1,3})?")
NUMBER = re.compile(r"[0-9]{1,9}")
NOT_PLAIN = re.compile(r"[^ !#-\[\]-~]")
ASSIGNMENT = re.compile(r"""(?<![\w.-])(JAVA_HOME|PATH)=("[^"]*"|'[^']*'|[^\s"']*)""")  # a whole name, not CLASSPATH
MAIN_CLASSES = ("kafka.Kafka", "io.confluent.support.metrics.SupportedKafka")
START_SECONDS, STATUS_SECONDS = 60, 20  # how long commands of services are waited for; a stop has its own time
SAID, SHOWN = 4000, 1024 * 1024  # bytes at the end of what they say; a status command may print a log
SHA256 = re.compile(r"[0-9a-f]{64}")
UNIT_PROPERTIES = (
    "LoadState,ActiveState,SubState,MainPID,ExecMainStartTimestampMonotonic,ExecMainStatus,Restart,TimeoutStopUSec,"
    "RestartPreventExitStatus,SendSIGKILL,User,FragmentPath,DropInPaths,EnvironmentFiles,WantedBy,RequiredBy,"
    "NeedDaemonReload,Type,RemainAfterExit,KillMode,KillSignal,Group,ExecStart,ExecStop,RefuseManualStart,"
    "RefuseManualStop,DynamicUser,ProtectHome,ProtectSystem,PrivateTmp,RootDirectory,RootImage,InaccessiblePaths,"
    "ReadOnlyPaths,ReadWritePaths,TemporaryFileSystem,BindPaths,BindReadOnlyPaths,StateDirectory,LogsDirectory,"
    "InactiveEnterTimestampMonotonic,Id"
)
USER_PROPERTIES = "LoadState,User,Group,SupplementaryGroups,DynamicUser,Environment,EnvironmentFiles"
KEPT_ATTRIBUTES = ("security.selinux", "system.posix_acl_access")

KINDS = (
    (stat.S_ISLNK, "symbolic link"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISBLK, "block special file"),
    (stat.S_ISCHR, "character special file"),
)
CALLER = os.environ.get("SUDO_UID", "")  # who called sudo; "" where nobody did
HOME = os.environ.get("HOME", "/") if os.geteuid() else "/root"  # some releases of sudo keep the caller's
OTHERS = 0o002 if os.geteuid() else 0o022  # without root nothing is to be had here: a user's own group may write
Act = Callable[[], int]


class RefusedError(Exception):
    """Why nothing was done, with the exit code that says so."""

    def __init__(self, code: int, where: str, text: str) -> None:
        super().__init__(text)
        self.code, self.where, self.text = code, where, text


class Service(NamedTuple):
    """How a node that is no unit is started and stopped: commands that root wrote into the configuration."""

    user: str
    java_home: str
    timeout: int
    commands: Dict[str, List[str]]


class Node(NamedTuple):
    """One node of this host; `metadata` is "" for a broker, `unit` where it has commands of its own.

    `target` is "" where `config` is no link that is known.
    """

    id: int
    role: str
    unit: str
    config: str
    metadata: str
    kafka_home: str
    service: Optional[Service]
    target: str

    @property
    def supervised_name(self) -> str:
        return self.unit or "node %d" % self.id


class User(NamedTuple):
    """Who a unit runs as, and what its processes have in their environment."""

    name: str
    uid: int
    gid: int
    groups: Tuple[int, ...]
    home: str
    environment: Dict[str, str]


class Host(NamedTuple):
    account: str
    nodes: Tuple[Node, ...]
    given: Dict[str, Any]
    path: str

    def node(self, text: str) -> Node:
        for node in self.nodes:
            if str(node.id) == text:
                return node
        raise refused("node %s" % shown(text), "it is no node of this host")

    def unit(self, verb: str, text: str) -> str:
        if text not in [node.unit for node in self.nodes if node.unit]:
            raise refused(shown(text), "it is no unit of this host that %s may act on" % verb)
        return text


def refused(where: str, text: str) -> RefusedError:
    return RefusedError(
        NOT_CONFIGURED, where, text + " (%s, made by kraft-migrate doctor --host-setup)" % CONFIGURATION
    )


def shown(text: str) -> str:
    """A word of the caller's as it may be printed."""
    return text if text.isprintable() and len(text) < 300 else ascii(text)[:300]


def raw(text: str) -> bytes:
    """A name as the kernel has it, whatever the locale."""
    return text.encode("utf-8", "surrogateescape")


def text_of(name: bytes) -> str:
    """The opposite."""
    return name.decode("utf-8", "surrogateescape")


def words_of(arguments: Sequence[str]) -> List[str]:
    """The caller's words, as UTF-8 whatever the locale."""
    return [text_of(os.fsencode(word)) for word in arguments]


def told(code: int, where: str) -> OSError:
    """An error of the operating system, in its own words."""
    return OSError(code, os.strerror(code), where)


# -- folders, opened one by one ---------------------------------------------------------------------------------------
def trusted(uid: int) -> bool:
    """Root, or who runs this where that is not root."""
    return uid in (0, os.geteuid())


def only_ours(status: os.stat_result) -> bool:
    """Can nobody else write there?  An ACL that lets others write shows in the group's bits."""
    return trusted(status.st_uid) and not status.st_mode & OTHERS


def sound(status: os.stat_result) -> bool:
    """The same, or sticky: nobody else can replace what we have there."""
    return trusted(status.st_uid) and (not status.st_mode & OTHERS or bool(status.st_mode & stat.S_ISVTX))


def open_folder(path: str, ours: bool = False) -> int:
    """A descriptor of a folder, for names in it; with `ours` every folder on the way must be nobody else's."""
    return walk(path, ours)[0]


def names_of(path: str) -> List[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def walk(path: str, ours: bool = False) -> Tuple[int, str]:
    """A folder's descriptor, and its path without links: they are followed where we alone can have made them."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(b"/", flags)
    here, links, names = "", 0, names_of(path)
    try:
        while names:
            name = names.pop()
            inner = os.open(raw(name), flags, dir_fd=folder)
            try:
                status = os.fstat(inner)
                if stat.S_ISLNK(status.st_mode):
                    links += 1
                    if links > 40 or not roots_link(folder, status):
                        raise told(errno.ELOOP, "%s/%s (%s)" % (here, name, OTHERS_LINK))
                    target = text_of(os.readlink(b"", dir_fd=inner))
                    names.extend(names_of(target))
                    if target.startswith("/"):
                        here = ""
                        os.dup2(os.open(b"/", flags), folder, inheritable=False)
                    continue
                here = here.rpartition("/")[0] if name == ".." else here + "/" + name  # it has no links: `..` is above
                if not stat.S_ISDIR(status.st_mode):
                    raise told(errno.ENOTDIR, here)
                if ours and not sound(status):
                    raise RefusedError(
                        NOT_SOUND, here, "it must belong to root, and nobody else may write it: chown root, chmod go-w"
                    )
                os.dup2(inner, folder, inheritable=False)
            finally:
                os.close(inner)
    except BaseException:
        os.close(folder)
        raise
    return folder, here


OTHERS_LINK = "a link in a folder that others may write"
UNKNOWN_LINK = "a link that was not there when root ran the setup script: for a node's file run it again"


def roots_link(folder: int, link: os.stat_result) -> bool:
    """Can nobody but us have made that link in that folder?"""
    return trusted(link.st_uid) and only_ours(os.fstat(folder))


def resolve(path: str) -> Tuple[str, int]:
    """A file's path without links, and when the newest of the links that it is itself was made (0: it is none).

    What it leads to need not be there; the folder must be.
    """
    newest = 0
    for _ in range(40):
        where, name = split(path)
        folder, here = walk(where)
        try:
            real, link = here + "/" + name, found(folder, name) if name else None
            if link is None or not stat.S_ISLNK(link.st_mode):
                return real, newest
            if not roots_link(folder, link):
                raise told(errno.ELOOP, "%s (%s)" % (real, OTHERS_LINK))
            newest = max(newest, link.st_ctime_ns)
            target = text_of(os.readlink(raw(name), dir_fd=folder))
            path = target if target.startswith("/") else here + "/" + target
        finally:
            os.close(folder)
    raise told(errno.ELOOP, path)


def target_of(node: Node) -> Tuple[str, int]:
    """The file that a node's link leads to, which must be the one that root's script found, and the link's time."""
    real, newest = resolve(node.config)
    if real != node.target:
        raise told(
            errno.ELOOP,
            "%s (the link led to %s when root ran the setup script, and leads to %s now: see why, and run it again)"
            % (node.config, node.target, real),
        )
    return real, newest


def plain_folder(path: str) -> int:
    """A descriptor of a folder as the kernel finds it: for what is done as the unit's user."""
    return os.open(raw(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def split(path: str) -> Tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder or "/", name


def look(folder: int, name: str) -> os.stat_result:
    """What is there, a link itself too."""
    return os.stat(raw(name), dir_fd=folder, follow_symlinks=False)


def found(folder: int, name: str) -> Optional[os.stat_result]:
    """The same, None where nothing is."""
    try:
        return look(folder, name)
    except FileNotFoundError:
        return None


def regular(status: os.stat_result, path: str, strict: bool) -> None:
    """Raise what a file that is none, or has a second name, is refused with."""
    if stat.S_ISLNK(status.st_mode):
        raise told(errno.ELOOP, path + (" (%s)" % UNKNOWN_LINK if strict else ""))
    if stat.S_ISDIR(status.st_mode):
        raise told(errno.EISDIR, path)
    if not stat.S_ISREG(status.st_mode):
        raise told(errno.EINVAL, path)
    if strict and status.st_nlink != 1:
        raise told(errno.EMLINK, "%s (a file with more than one hard link)" % path)


def open_file(folder: int, name: str, path: str, strict: bool) -> int:
    regular(look(folder, name), path, strict)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(raw(name), flags, dir_fd=folder)
    try:
        regular(os.fstat(file), path, strict)
    except BaseException:
        os.close(file)
        raise
    return file


def content_of(file: int, limit: int) -> bytes:
    parts, left = [], limit
    while left:
        part = os.read(file, min(left, 1 << 20))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def sync(folder: int) -> None:
    """Make names in a folder durable."""
    again = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(again)
    finally:
        os.close(again)


def own_text(path: str) -> bytes:
    """A file of this installation; every folder on the way is root's alone."""
    folder, name = split(path)
    try:
        file = open_file(open_folder(folder, ours=True), name, path, strict=True)
    except OSError as error:
        raise RefusedError(NOT_SOUND, path, "it cannot be read: %s" % error.strerror) from error
    if not only_ours(os.fstat(file)):
        raise RefusedError(NOT_SOUND, path, "it must belong to root, and nobody else may write it")
    return content_of(file, LIMIT)


# -- the configuration ------------------------------------------------------------------------------------------------
def load() -> Host:
    """The configuration, from an installation that nobody but root can change."""
    own_text(os.path.abspath(__file__))
    try:
        given = from_json(own_text(CONFIGURATION))
        if given["format"] != 2:
            raise ValueError("it is of another format: install this release again")
        links = given.get("links", {})
        nodes = tuple(
            Node(int(node["id"]), str(node["role"]), str(node["unit"]), absolute(node["config"]),
                 absolute(node["metadata_directory"]) if node["metadata_directory"] else "", str(node["kafka_home"]),
                 service_of(node["service"]) if "service" in node else None,
                 absolute(links[node["config"]]) if node["config"] in links else "")
            for node in given["nodes"]
        )  # fmt: skip
        extra = str(given.get("path", "")) if CONFIGURATION != INSTALLED else ""
        account = str(given["account"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(NOT_SOUND, CONFIGURATION, "it is not understood: %r" % error) from error
    return Host(account, nodes, given, (extra + ":" if extra else "") + SAFE_PATH)


def service_of(given: Dict[str, Any]) -> Service:
    """The commands of a node; each program by its absolute path."""
    commands = {}
    for name in ("start", "stop", "status"):
        words = [str(word) for word in given[name]]
        if not words:
            raise ValueError("no command for " + name)
        commands[name] = [absolute(words[0]), *words[1:]]
    home = str(given["java_home"])
    return Service(str(given["user"]), absolute(home) if home else "", int(given["timeout"]), commands)


def from_json(text: bytes) -> Any:
    """Texts, numbers, lists and objects of a JSON text: what json.dumps writes of them is Python, too."""
    try:
        return ast.literal_eval(text.decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError("no JSON of texts, numbers, lists and objects") from error


def as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(as_json(key) + ": " + as_json(value[key]) for key in value) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(as_json(entry) for entry in value) + "]"
    if isinstance(value, str):
        return '"' + NOT_PLAIN.sub(in_json, value) + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(int(value))


def in_json(found_char: Any) -> str:
    units = found_char.group(0).encode("utf-16-be", "surrogatepass")
    return "".join("\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2))


def absolute(path: str) -> str:
    """An absolute path in its shortest form, without control characters."""
    parts = path.split("/")
    if parts[0] or "" in parts[1:] or "." in parts or ".." in parts:
        raise refused(shown(path), "a path must be absolute, without '.', '..' and empty names")
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in path) or len(path) > 4000:
        raise refused(shown(path), "a path of control characters, or too long")
    return path


# -- the unit's user --------------------------------------------------------------------------------------------------
def program(host: Host, name: str) -> str:
    for folder in host.path.split(":"):
        if os.access(folder + "/" + name, os.X_OK):
            return folder + "/" + name
    raise RefusedError(REFUSED_BY, name, "command not found")


def clean(path: str, home: str = "") -> Dict[str, str]:
    """The environment of what is run."""
    return {"PATH": path, "HOME": home or HOME, "LC_ALL": "C", "SYSTEMD_COLORS": "0"}


def run(host: Host, words: Sequence[str], **given: Any) -> Any:
    """A command of this host, run to its end, without input."""
    argv = [program(host, words[0]), *words[1:]]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, env=clean(host.path), check=False, **given)


def unit_values(host: Host, unit: str, properties: str) -> Dict[str, str]:
    """What systemd says of a unit."""
    words = ("systemctl", "show", "--no-pager", "-p", properties, "--", unit)
    done = run(host, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[-500:]
        raise RefusedError(REFUSED_BY, unit, "systemctl show: " + said)
    values = {}  # type: Dict[str, str]
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        values[name] = values[name] + "\n" + value if name in values else value  # EnvironmentFiles: a line each
    return values


def user_of(host: Host, node: Node) -> User:
    """Who the node's unit runs as: root wrote the unit, or the configuration that names the user of a service."""
    if node.service is not None:
        home = node.service.java_home
        values = {"User": node.service.user, "Environment": 'JAVA_HOME="%s"' % home}
    else:
        values = unit_values(host, node.unit, USER_PROPERTIES)
    if values.get("LoadState", "loaded") != "loaded":
        raise RefusedError(REFUSED_BY, node.supervised_name, "systemd says that this unit is %s" % values["LoadState"])
    if values.get("DynamicUser") == "yes":
        raise refused(node.supervised_name, "a unit with DynamicUser=yes has no user that could be acted as")
    name = values.get("User", "") or "root"
    entry = None
    try:
        entry = pwd.getpwuid(int(name)) if NUMBER.fullmatch(name) else pwd.getpwnam(name)
    except KeyError:
        if not NUMBER.fullmatch(name):
            raise RefusedError(REFUSED_BY, node.supervised_name, "its user %s does not exist" % shown(name)) from None
    uid = entry.pw_uid if entry else int(name)
    group = values.get("Group", "")
    gid = group_of(node, group) if group else entry.pw_gid if entry else uid
    more = [group_of(node, word) for word in values.get("SupplementaryGroups", "").split()]
    groups = os.getgrouplist(entry.pw_name, gid) if entry else [gid]
    return User(
        entry.pw_name if entry else name, uid, gid, tuple(dict.fromkeys([gid, *groups, *more])),
        entry.pw_dir if entry else "/", environment_of(values),
    )  # fmt: skip


def group_of(node: Node, name: str) -> int:
    try:
        return int(name) if NUMBER.fullmatch(name) else grp.getgrnam(name).gr_gid
    except KeyError:
        raise RefusedError(REFUSED_BY, node.supervised_name, "its group %s does not exist" % shown(name)) from None


def environment_of(values: Dict[str, str]) -> Dict[str, str]:
    """Where the unit's processes find Java: JAVA_HOME and PATH of its environment and of its environment files."""
    texts = [values.get("Environment", "")]
    for line in values.get("EnvironmentFiles", "").splitlines():
        path = line.rpartition(" (")[0] or line
        folder, name = split(path)
        with contextlib.suppress(OSError):
            text = content_of(open_file(open_folder(folder), name, path, strict=True), LIMIT)
            texts += [
                entry for entry in text.decode("utf-8", "replace").splitlines() if entry.lstrip()[:1] not in ("#", ";")
            ]
    known = {"PATH": UNITS_PATH}
    for text_of_it in texts:
        known.update((name, value.strip("\"'")) for name, value in ASSIGNMENT.findall(text_of_it) if value.strip("\"'"))
    return known


def may_act_as(node: Node, user: User) -> None:
    """Refuse a unit of root's where sudo brought us here: who writes its configuration would be root."""
    if user.uid == 0 and os.geteuid() == 0 and CALLER not in ("", "0"):
        raise refused(
            node.supervised_name,
            "it runs as root: who may write its configuration or its storage is root; give it another user (User=)",
        )


def become(host: Host, node: Node, user: Optional[User] = None) -> User:
    """Become the unit's user for good: root cannot be regained."""
    user = user or user_of(host, node)
    may_act_as(node, user)
    if user.uid == os.geteuid():
        return user
    if os.geteuid() != 0:
        raise refused(node.supervised_name, "it runs as %s, and this is neither root nor that user" % user.name)
    drop_to(user)
    return user


def drop_to(user: User) -> None:
    os.setgroups(list(user.groups))
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)


def become_if_root(host: Host, node: Node) -> None:
    """The same for what only looks: without root it is done as who we are."""
    if os.geteuid() == 0:
        become(host, node)


# -- looking ----------------------------------------------------------------------------------------------------------
def lines_of(status: os.stat_result, link: int = 0) -> bytes:
    """Kind (as stat(1) names it), size, mode, owner and change time (a newer link's to it), a line each."""
    plain = "regular file" if status.st_size else "regular empty file"
    kind = next((word for is_kind, word in KINDS if is_kind(status.st_mode)), plain)
    seconds, nanos = divmod(max(status.st_ctime_ns, link), 10**9)
    numbers = (kind, status.st_size, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, seconds, nanos)
    return ("%s\n%d\n%o\n%d:%d\n%d.%09d\n" % numbers).encode()


def say(content: bytes) -> int:
    """The answer, and that all is done."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    return 0


def family(node: Node, path: str) -> str:
    """What a path is to a node: `config`, `backup`, `aside`, `lock`, `metadata`, or `other`."""
    if path == node.config:
        return "config"
    beside = node.target or node.config  # a lock is beside the name that every release knows
    if path.startswith(beside):
        rest = path[len(beside) :]
        if BACKUP.fullmatch(rest):
            return "backup"
        if ASIDE.fullmatch(rest):
            return "aside"
    if path == node.config + LOCK:
        return "lock"
    if node.metadata and path == node.metadata:
        return "metadata"
    return "other"


def followed(node: Node, path: str) -> str:
    """The path, of a node's file that is a known link the one that it leads to."""
    return target_of(node)[0] if node.target and path == node.config else path


def opened(host: Host, node: Node, path: str) -> Tuple[int, str, bool]:
    """A folder's descriptor, a name in it, and whether we are still root: what is not the node's own is its user's."""
    if family(node, path) != "other":
        where, name = split(followed(node, path))
        return open_folder(where), name, True
    become_if_root(host, node)
    where, name = split(path)
    return plain_folder(where), name, False


def status(host: Host, node: Node, path: str) -> int:
    if path.endswith("/"):
        raise refused(path, "it is no path of a node")
    link = target_of(node)[1] if node.target and path == node.config else 0
    folder, name, _ = opened(host, node, path)
    return say(lines_of(look(folder, name), link))


def read(host: Host, node: Node, path: str) -> int:
    folder, name, strict = opened(host, node, path)
    file = open_file(folder, name, path, strict)
    return say(content_of(theirs(host, node, file, path), LIMIT + 1))


def theirs(host: Host, node: Node, file: int, path: str) -> int:
    """The same file; refused where others may write a folder on its way, and the node's user cannot read the file.

    He could have put a file of root's, or a folder with it, in that place: what he cannot read is no file of the node.
    """
    owner = others_folder(split(followed(node, path))[0]) if os.geteuid() == 0 else None
    if owner is None:
        return file
    user = may_write_as(host, node)
    if user is None:  # of a unit that is not there yet: whoever the folder belongs to
        user = User("its folder's owner", owner.st_uid, owner.st_gid, (owner.st_gid,), "/", {})
    if not readable(file, user):
        os.close(file)
        raise refused(
            path,
            "%s cannot read it, and could have put it there: others may write its folder, or one above" % user.name,
        )
    return file


def others_folder(path: str) -> Optional[os.stat_result]:
    """That folder, or the first one on the way to it, that others may write; None where none is."""
    try:
        folder = open_folder(path, ours=True)
    except RefusedError as error:
        return os.stat(raw(error.where))
    status = os.fstat(folder)
    os.close(folder)
    return None if only_ours(status) else status


def target(host: Host, node: Node) -> int:  # noqa: ARG001 - one shape for all
    """`target`: the node's file and what it leads to, where it is a known link; else nothing."""
    return say(raw(node.config) + b"\0" + raw(target_of(node)[0]) if node.target else b"")


def names(host: Host, node: Node, path: str) -> int:
    """`names`: of a configuration's folder those that begin with its name, of others all."""
    where, config = split(node.target or node.config)
    if path == where:
        folder, begin = open_folder(where), config
    else:
        become_if_root(host, node)
        folder, begin = plain_folder(path), ""
    listed = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    found_names = [raw(name) for name in words_of(os.listdir(listed)) if name.startswith(begin)]
    return say(b"".join(name + b"\0" for name in found_names))


# -- replacing a file -------------------------------------------------------------------------------------------------
def write(host: Host, node: Node, path: str, sha256: str) -> int:
    """`write`: all of the content, or nothing."""
    content = sys.stdin.buffer.read(LIMIT + 1)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise OSError(0, "the content did not arrive whole", path)
    if family(node, path) == "other":
        become(host, node)
        where, name = split(path)
        return say(lines_of(replace(plain_folder(where), name, path, content, [], None)))
    user = may_write_as(host, node)
    folder, name, _ = opened(host, node, path)
    if found(folder, name) is not None:
        os.close(theirs(host, node, open_file(folder, name, path, strict=True), path))
    models = [other for other in host.nodes if other.role == "broker"]
    return say(lines_of(replace(folder, name, path, content, models, user)))


def keep(host: Host, node: Node, copies: Sequence[Tuple[str, str, str]]) -> int:
    """`keep`: copies of files beside them, each of a content that the caller knows; none is put over another one.

    What root owns first: who becomes the unit's user for a log directory's file stays that user.
    """
    user = None  # type: Optional[User]  # asked for once: who became it may not be allowed to ask again
    for path, copy, sha256 in sorted(copies, key=lambda entry: family(node, entry[0]) == "other"):
        own = family(node, path) != "other"
        if own:
            may_write_as(host, node)
        else:
            user = become(host, node, user)
        (folder, name, _), copy_name = opened(host, node, path), split(copy)[1]
        file = theirs(host, node, open_file(folder, name, path, strict=own), path)
        content = content_of(file, LIMIT + 1)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise OSError(0, "it is not what was looked at: another hand wrote it since", path)
        if found(folder, copy_name) is None:
            replace(folder, copy_name, copy, content, [node] if own else [], None)
            continue
        there = theirs(host, node, open_file(folder, copy_name, copy, strict=own), copy)
        if content_of(there, LIMIT + 1) != content:
            raise told(errno.EEXIST, copy)
    return 0


def may_write_as(host: Host, node: Node) -> Optional[User]:
    """Who the unit runs as, where its configuration may be written; None: a unit that is not there starts nothing."""
    try:
        user = user_of(host, node)
    except RefusedError as error:
        if error.code != REFUSED_BY:
            raise
        return None
    may_act_as(node, user)
    return user


def replace(
    folder: int, name: str, path: str, content: bytes, models: Sequence[Node], reader: Optional[User]
) -> os.stat_result:
    """Put a file of that content in the place of what is there; who must read a new one can."""
    old = found(folder, name)
    if old is not None:
        regular(old, path, strict=True)
    fresh = "." + name + NEW
    with contextlib.suppress(FileNotFoundError):  # of a call that was killed; a link itself goes, not what it leads to
        os.unlink(raw(fresh), dir_fd=folder)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(raw(fresh), flags, 0o600, dir_fd=folder)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(file, view) :]
            like(file, open_file(folder, name, path, strict=True) if old is not None else model_of(models))
            if old is None and reader is not None and not readable(file, reader):
                with contextlib.suppress(OSError):
                    os.removexattr(file, "system.posix_acl_access")
                os.fchown(file, 0, reader.gid)  # root's file, that the unit's group may read
                os.fchmod(file, 0o640)
            os.fsync(file)
            os.rename(raw(fresh), raw(name), src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(raw(fresh), dir_fd=folder)
            raise
        try:
            sync(folder)
            now, mine = look(folder, name), os.fstat(file)
            os.lseek(file, 0, os.SEEK_SET)
            if (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino) or content_of(file, LIMIT + 1) != content:
                raise OSError(0, "what is there now is not what was written: another hand wrote it at this moment")
        except OSError as error:
            raise RefusedError(NOT_PROVEN, path, error.strerror or str(error)) from error
        return now
    finally:
        os.close(file)


def model_of(models: Sequence[Node]) -> Optional[int]:
    """The first file of these nodes that can be opened: a new file gets its owner and mode."""
    for node in models:
        try:
            where, name = split(followed(node, node.config))
            return open_file(open_folder(where), name, node.config, strict=True)
        except OSError:
            continue
    return None


def like(file: int, model: Optional[int]) -> None:
    """Owner, mode, SELinux context and ACL of another file."""
    if model is None:
        return
    given, mine = os.fstat(model), os.fstat(file)
    if (given.st_uid, given.st_gid) != (mine.st_uid, mine.st_gid):
        os.fchown(file, given.st_uid, given.st_gid)
    os.fchmod(file, stat.S_IMODE(given.st_mode) & 0o777)
    for attribute in KEPT_ATTRIBUTES:
        try:
            value = os.getxattr(model, attribute)
        except OSError:  # it has none, or the file system knows none: nor has the file what its folder gave it
            with contextlib.suppress(OSError):
                os.removexattr(file, attribute)
            continue
        os.setxattr(file, attribute, value)
    os.close(model)


def readable(file: int, reader: User) -> bool:
    """Can that user open the file, by its owner, mode and ACL?  Tried by a child that is that user."""
    if os.geteuid() != 0:
        return True
    child = os.fork()
    if child == 0:
        code = 1
        try:
            drop_to(reader)
            os.open("/proc/self/fd/%d" % file, os.O_RDONLY)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


# -- names and folders ------------------------------------------------------------------------------------------------
def rename(host: Host, node: Node, old: str, new: str) -> int:
    """`rename`: nothing where something is at the new name."""
    source, old_name, root = opened(host, node, old)
    (old_where, _), (new_where, new_name) = split(old), split(new)
    goal = source if old_where == new_where else plain_folder(new_where) if not root else open_folder(new_where)
    look(source, old_name)
    if found(goal, new_name) is not None:
        raise told(errno.EEXIST, new)
    os.rename(raw(old_name), raw(new_name), src_dir_fd=source, dst_dir_fd=goal)
    for folder in dict.fromkeys((source, goal)):
        sync(folder)
    return 0


def remove(host: Host, node: Node, path: str) -> int:
    """`remove`: a copy, or what was set aside; never a file that a node uses."""
    folder, name, strict = opened(host, node, path)
    regular(look(folder, name), path, strict)
    os.unlink(raw(name), dir_fd=folder)
    sync(folder)
    return 0


def make_directory(host: Host, node: Node, path: str) -> int:
    """`make-directory`: in a folder that is root's alone as root, for the unit's user; elsewhere as that user."""
    if family(node, path) != "metadata":
        become(host, node)
        if not os.path.isdir(raw(path)):
            os.mkdir(raw(path), 0o750)
            sync(plain_folder(split(path)[0]))
        return 0
    missing, where = [], path
    while where != "/":
        folder, name = split(where)
        try:
            if found(open_folder(folder), name) is not None:
                break
        except FileNotFoundError:
            pass
        missing.append(name)
        where = folder
    if not missing:
        return 0
    user, above = user_of(host, node), open_folder(where)
    as_user = not only_ours(os.fstat(above))
    if as_user:
        become(host, node, user)
    else:
        may_act_as(node, user)
    while missing:
        name = missing.pop()
        fresh = "." + name + NEW
        with contextlib.suppress(FileNotFoundError):  # of a call that was killed
            os.rmdir(raw(fresh), dir_fd=above)
        os.mkdir(raw(fresh), 0o700, dir_fd=above)
        made = os.open(raw(fresh), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        os.fchmod(made, 0o755 if missing else 0o750)
        if not as_user and not missing and os.geteuid() == 0:
            os.fchown(made, user.uid, user.gid)
        os.fsync(made)
        os.rename(raw(fresh), raw(name), src_dir_fd=above, dst_dir_fd=above)
        sync(above)
        above = made
    return 0


# -- locks ------------------------------------------------------------------------------------------------------------
def lock_file(host: Host, node: Node, path: str, make: bool) -> Optional[int]:
    """The lock's file, open and locked; None where another holds it."""
    where, name = split(path)
    folder = open_folder(where)
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_CREAT if make else 0)
    here = found(folder, name)
    if here is not None:
        regular(here, path, strict=True)
    file = os.open(raw(name), flags, 0o644, dir_fd=folder)
    regular(os.fstat(file), path, strict=True)
    theirs(host, node, file, path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    now, mine = look(folder, name), os.fstat(file)
    return file if (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino) else None


def lock(host: Host, node: Node, path: str) -> int:
    """`lock`: held until the input ends; each part of it is kept in the file, and then given back."""
    file = lock_file(host, node, path, make=True)
    if file is None:
        raise RefusedError(HELD, path, "another process holds the lock")
    os.ftruncate(file, 0)
    left = LOCK_TEXT
    while True:
        part = os.read(0, 65536)
        if not part:
            return 0
        left -= os.write(file, part[:left]) if left else 0
        say(part)


def try_lock(host: Host, node: Node, path: str) -> int:
    """`try-lock`: could it be locked?  It is given back at once."""
    try:
        file = lock_file(host, node, path, make=False)
    except FileNotFoundError:
        return 0
    if file is None:
        raise RefusedError(HELD, path, "another process holds the lock")
    return 0


# -- units ------------------------------------------------------------------------------------------------------------
def pass_on(host: Host, *words: str) -> int:
    """A command of this host; what it says passes through."""
    return REFUSED_BY if run(host, words).returncode else 0


def unit_is_enabled(host: Host, unit: str) -> int:
    """`unit-is-enabled`: one word, whatever the exit code: disabled units end with 1."""
    done = run(host, ("systemctl", "is-enabled", "--", unit), stdout=subprocess.PIPE)
    say(done.stdout)
    return 0 if done.stdout.strip() else REFUSED_BY


def process(host: Host, unit: str, pid: str) -> int:
    """`process`: the words of a unit's main process, each ended by a zero byte."""
    if unit_values(host, unit, "MainPID").get("MainPID") != pid:
        raise refused("process " + pid, "it is not the main process of %s now" % unit)
    with open("/proc/%s/cmdline" % pid, "rb") as file:
        return say(file.read(LIMIT))


def clock() -> int:
    """`clock`: seconds since 1970 by the clock that stamps files, and seconds since the boot, taken in this order."""
    now = time.clock_gettime(5)  # CLOCK_REALTIME_COARSE, which Python does not name
    return say(("%.9f %.9f\n" % (now, time.clock_gettime(7))).encode())  # CLOCK_BOOTTIME: named from Python 3.7 on


def sockets(table: str) -> int:
    """`sockets`: as the kernel lists them."""
    with open("/proc/net/" + table, "rb") as file:
        while True:
            part = file.read(1 << 20)
            if not part:
                return 0
            say(part)


# -- services: what is seen in /proc, and the commands of the configuration -----------------------------------------
def same_file(path: str, seen: str) -> bool:
    """Is it one file, here and as a process sees it?"""
    try:
        here, there = os.stat(raw(path)), os.stat(raw(seen))
    except PermissionError:
        raise
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def apart(process: str) -> bool:
    """Has it mounts or a root of its own?  OSError where that cannot be seen."""
    mounts = os.readlink(process + "/ns/mnt") != os.readlink("/proc/self/ns/mnt")
    return mounts or os.readlink(process + "/root") != "/"


def plain(path: str) -> str:
    return os.path.normpath(path)


def waits_for_java(words: Sequence[str]) -> bool:
    """Do the words before the class belong to what runs Java, as those of `runuser` and `sudo` do?"""
    names_there = [word.rpartition("/")[2] for word in words]
    return "java" in names_there[1:] and names_there[0] != "java"


def what_it_is(node: Node, uid: int, process: str) -> Optional[Dict[str, Any]]:
    """What a process is to a node; None: nothing.

    `kafka` runs a class of Kafka's with the node's file.  `apart` does so with mounts of its own, `doubt` names
    the file and is no Kafka (yet): while only such are there, nobody knows whether the node runs.
    """
    with open(process + "/cmdline", "rb") as file:
        words = [text_of(word) for word in file.read(LIMIT).split(b"\0")]
    owner = os.stat(process).st_uid  # the effective user
    at = next((place for place, word in enumerate(words) if word in MAIN_CLASSES), None)
    waits = at is not None and waits_for_java(words[:at])
    if at is None or waits:
        if not (owner == uid or waits) or node.config not in map(plain, words[1:]):
            return None
        kind, why = "doubt", "it names the file, and is no Kafka: it may be starting it"
    else:
        config = words[at + 1] if len(words) > at + 1 else ""
        spelled = config if config.startswith("/") else os.readlink(process + "/cwd") + "/" + config
        try:
            is_apart = apart(process)
            same = same_file(node.config, process + ("/root/" if config.startswith("/") else "/cwd/") + config)
        except PermissionError:
            is_apart, same = True, False
        if not same and plain(spelled) != node.config:
            return None
        kind, why = "kafka", ""
        if is_apart:
            kind, why = "apart", "it has mounts or a root of its own: what it sees at the node's paths is not known"
    with open(process + "/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    return {"pid": int(process.rpartition("/")[2]), "ticks": ticks, "uid": owner, "kind": kind, "why": why}


def service_look(node: Node, service: Service) -> int:
    """`service-look`: every process that is the node, or may be; the boot since which they are counted."""
    uid = pwd_of(node, service).pw_uid
    seen = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                seen.append(what_it_is(node, uid, "/proc/" + name))
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    found_ones = [one for one in seen if one is not None]
    answer = {"boot": boot, "hertz": os.sysconf("SC_CLK_TCK"), "uid": uid, "processes": found_ones}
    return say(as_json(answer).encode())


def pwd_of(node: Node, service: Service) -> Any:
    try:
        return pwd.getpwnam(service.user)
    except KeyError:
        raise RefusedError(
            REFUSED_BY, node.supervised_name, "its user %s does not exist" % shown(service.user)
        ) from None


def the_process(node: Node, service: Service, pid: str) -> str:
    """The folder of the node's Kafka with that number."""
    process = "/proc/" + pid
    try:
        what = what_it_is(node, pwd_of(node, service).pw_uid, process)
    except (FileNotFoundError, ProcessLookupError):
        what = None
    if what is None or what["kind"] != "kafka":
        raise refused("process " + pid, "it is not the process of %s now" % node.supervised_name)
    return process


def service_process(node: Node, service: Service, pid: str) -> int:
    """`service-process`: the words of the node's process, each ended by a zero byte."""
    with open(the_process(node, service, pid) + "/cmdline", "rb") as file:
        return say(file.read(LIMIT))


AS_USER = ("runuser", "setpriv", "su")  # what stands behind these runs as the user that they name


def pinned(command: Sequence[str], user: User) -> List[str]:
    """A command that runs nothing and reads nothing as root that anybody but root can change.

    Each word that is a path of this host, or has one behind `=`, is held to that: `env FILE` runs the file.  Behind
    `runuser` and the like with the node's own user the words are that user's.
    """
    held(command[0], command[0], program=True)
    theirs = any(user.name in (word, word.partition("=")[2]) for word in command[1:])
    if not (theirs and command[0].rpartition("/")[2] in AS_USER):
        for word in (*command[1:], *(word.partition("=")[2] for word in command[1:])):
            path = "/" + word.lstrip("/")  # commands begin in /
            if "/" in word and os.path.lexists(path):
                held(os.path.normpath(path), word, program=False)
    return list(command)


def held(path: str, word: str, program: bool) -> None:
    """Refused where somebody else than root can change what the path leads to."""
    folder, name = split(path)
    try:
        if os.path.isdir(path) and not program:
            os.close(open_folder(path, ours=True))
            return
        file = open_file(open_folder(folder, ours=True), name, word, strict=False)
        status, runs = os.fstat(file), os.access("/proc/self/fd/%d" % file, os.X_OK)
        os.close(file)
    except OSError as error:
        raise refused(
            word, "this %s cannot be used: %s" % ("program" if program else "path", error.strerror)
        ) from error
    except RefusedError as error:
        raise refused(error.where, error.text) from error
    if not only_ours(status) or (program and not runs):
        what = "the program must belong to root, be writable by nobody else, and be executable"
        raise refused(word, what if program else "as an argument of root's command it must be root's to change alone")


def give(host: Host, command: Sequence[str], seconds: float, most: int = SAID) -> int:
    """Run one of the node's commands, and tell how it went; that says nothing of the process.

    It has a session of its own and is never killed: it may have become the process.  Its output is a file without a
    name, for a pipe would break under what it leaves behind.
    """
    name = "/tmp/.kraft-migrate-" + os.urandom(12).hex()  # noqa: S108 - made here, by a name that nobody guesses
    output = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.unlink(name)
    try:
        running = subprocess.Popen(
            [raw(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env=clean(host.path), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise RefusedError(REFUSED_BY, command[0], str(error.strerror)) from error
    code = None  # type: Optional[int]
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = running.wait(seconds)
    size = os.fstat(output).st_size
    said = os.pread(output, most, max(0, size - most))
    return say(as_json({"code": code, "said": said.decode("utf-8", "replace")}).encode())


# -- as the unit's user -----------------------------------------------------------------------------------------------
def storage_tool(node: Node) -> str:
    return node.kafka_home.rstrip("/") + "/bin/kafka-storage.sh"


def run_as(user: User, words: Sequence[str], text: Optional[bytes] = None) -> int:
    """A command in a session of its own, without a terminal; what it says passes through.  Its exit code.

    Of the unit's environment it gets only what finds Java.
    """
    environment = clean(SAFE_PATH, user.home)
    environment.update(user.environment, USER=user.name, LOGNAME=user.name)
    given = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}  # type: Dict[str, Any]
    given.update(env=environment, start_new_session=True, check=False)
    try:
        return subprocess.run([raw(word) for word in words], **given).returncode  # noqa: PLW1510 - check is given
    except OSError as error:
        raise RefusedError(REFUSED_BY, words[0], str(error.strerror)) from error


def format_storage(host: Host, node: Node, words: Sequence[str]) -> int:
    """`format`: Kafka's own tool with the node's file."""
    given = ("format", "--cluster-id=" + words[0], "-c", node.config, "--release-version", *words[1:])
    return REFUSED_BY if run_as(become(host, node), (storage_tool(node), *given)) else 0


def collect(host: Host, node: Node, paths: Sequence[str]) -> int:
    """`collect`: the collector's text is given to Python on stdin, for the user need not reach this folder."""
    text = own_text(split(os.path.abspath(__file__))[0] + "/" + COLLECTOR)
    words = (sys.executable, "-IS", "-", "--probe", "--node", str(node.id), *paths)
    return REFUSED_BY if run_as(become(host, node), words, text) else 0


def places(host: Host, node: Node, paths: Sequence[str]) -> int:
    """`places`: each path with its links resolved, and the names in it, [] where it cannot be listed."""
    become(host, node)
    found_places = {}
    for path in paths:
        listed = []  # type: List[bytes]
        with contextlib.suppress(OSError):
            listed = sorted(os.listdir(raw(path)))[:NAMES]
        found_places[path] = {"real": text_of(os.path.realpath(raw(path))), "names": [text_of(name) for name in listed]}
    return say(as_json(found_places).encode())


def archive(host: Host, node: Node) -> int:
    """`archive`: the metadata log of a controller, and whose it is."""
    tar = program(host, "tar")
    code = run_as(become(host, node), (tar, "-C", node.metadata, "-cf", "-", "--", META, LOG))
    return {0: 0, 1: CHANGED}.get(code, REFUSED_BY)


# -- facts ------------------------------------------------------------------------------------------------------------
def facts(host: Host, node: Node) -> int:
    """`facts`: what would stop a run at this node, seen as the user that its unit runs as."""
    user, real = user_of(host, node), node.target or node.config
    has_config, has_metadata = is_there(real), bool(node.metadata) and is_there(node.metadata)
    root_makes = bool(node.metadata) and os.geteuid() == 0 and is_roots_alone(above(node.metadata, is_there))
    become(host, node, user)
    tool = storage_tool(node)
    answer = {
        "user": user.name,
        "config": {
            "exists": has_config,
            "path_readable_by_user": all(allowed_to(split(path)[0], os.X_OK) for path in (node.config, real)),
            "readable_by_user": allowed_to(node.config, os.R_OK),
        },
        "metadata_directory": {
            "exists": has_metadata,
            "writable_by_user": allowed_to(node.metadata, os.R_OK | os.W_OK | os.X_OK),
            "can_be_made": root_makes or allowed_to(above(node.metadata, is_folder), os.W_OK | os.X_OK),
        } if node.metadata else None,
        "kafka_home": {
            "storage_tool": tool, "exists": allowed_to(tool, os.F_OK), "executable_by_user": allowed_to(tool, os.X_OK),
        },
        "java": java_of(user),
    }  # fmt: skip
    return say(as_json(answer).encode() + b"\n")


def above(path: str, there: Callable[[str], bool]) -> str:
    """The nearest folder above that is there."""
    path = split(path)[0]
    while path != "/" and not there(path):
        path = split(path)[0]
    return path


def is_roots_alone(path: str) -> bool:
    """Is it a folder in which nobody else can write?"""
    try:
        return only_ours(os.fstat(open_folder(path)))
    except OSError:
        return False


def is_folder(path: str) -> bool:
    return os.path.isdir(raw(path))


def is_there(path: str) -> bool:
    """Is anything at that path?"""
    folder, name = split(path)
    try:
        return not name or found(open_folder(folder), name) is not None
    except OSError:
        return False


def allowed_to(path: str, mode: int) -> bool:
    return os.access(raw(path), mode)


def java_of(user: User) -> str:
    """The Java that Kafka's scripts would find, "" where there is none."""
    if "JAVA_HOME" in user.environment:
        places = [user.environment["JAVA_HOME"] + "/bin"]
    else:
        places = user.environment["PATH"].split(":")
    return next((place + "/java" for place in places if allowed_to(place + "/java", os.X_OK)), "")


# -- the verbs --------------------------------------------------------------------------------------------------------
def about(host: Host) -> int:
    """`about`: which release is installed, for what, and which nodes' own commands it refuses."""
    here = os.path.abspath(__file__)
    texts = {"host": released(own_text(here)), COLLECTOR: own_text(split(here)[0] + "/" + COLLECTOR)}
    sums = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    answer = {
        "format": 2, "programs": sums, "account": host.account, "nodes": host.given["nodes"],
        "links": host.given.get("links", {}), "python": sys.version.split()[0],
        "uid": os.geteuid(), "refuses": dict(refusals(host)),
    }  # fmt: skip
    return say(as_json(answer).encode() + b"\n")


def refusals(host: Host) -> Iterator[Tuple[str, str]]:
    """(node, why): programs that another than root may change, or a user that would be root."""
    for node in host.nodes:
        for verb in ("service-start", "service-stop", "service-status") if node.service else ():
            try:
                service_act(host, verb, node, ())
            except RefusedError as error:
                yield str(node.id), error.where + ": " + error.text
                break


def links(host: Host) -> int:
    """`links`: the configuration with what each node's file that is a link leads to now; root's script writes it."""
    known = {}
    for node in host.nodes:
        try:
            folder, name = split(node.config)
            here = found(open_folder(folder), name)
            if here is not None and stat.S_ISLNK(here.st_mode):
                known[node.config] = absolute(resolve(node.config)[0])
        except (OSError, RefusedError) as error:  # what cannot be followed is no known link, and refused later, too
            said = error.text if isinstance(error, RefusedError) else "%s: %s" % (error.filename, error.strerror)
            sys.stderr.write(
                "WARNING: the file of node %d, %s, cannot be used: %s\n" % (node.id, shown(node.config), shown(said))
            )
    return say(as_json(dict(host.given, links=known)).encode() + b"\n")


def released(text: bytes) -> bytes:
    """This program's text before its first line and the place of its configuration were put in."""
    _, _, rest = text.partition(b"\n")
    place = b'CONFIGURATION = "' + INSTALLED.encode() + b'"'
    return FIRST_LINE.encode() + b"\n" + re.sub(rb'(?m)^CONFIGURATION = ".*"$', lambda _line: place, rest, count=1)


def lists_in(text: bytes, verb: str) -> List[List[str]]:
    """The word lists of a JSON text."""
    try:
        given = from_json(text)
        return [[word.encode("utf-16", "surrogatepass").decode("utf-16") for word in words] for words in given]
    except (ValueError, TypeError, AttributeError) as error:
        raise RefusedError(NOT_UNDERSTOOD, verb, "stdin is no JSON list of word lists: %s" % error) from error


def looks() -> int:
    """`looks`: verbs that change nothing, one after another until the input ends, or asks nothing for a while.

    A line is a JSON list of questions, each a list of words.  They are answered in their order, each by a process of
    its own, as it would have answered the words of a command: lines `o LENGTH` and `e LENGTH` with so many bytes of its
    output and its errors behind them, as they come, and at the end `x CODE`.
    """
    while True:
        signal.alarm(IDLE)  # ends this process: whoever asks again starts another
        line = b""
        while not line.endswith(b"\n"):
            part = os.read(0, 65536)
            if not part or len(line) > LIMIT:
                return 0
            line += part
        signal.alarm(0)
        try:
            questions = lists_in(line, "looks") or [[]]
        except RefusedError:
            questions = [[]]
        for words in questions:
            answer(words)


def answer(question: Sequence[str]) -> None:
    """Answer one, by a child: what becomes another user there is root here."""
    pipes = {b"o": os.pipe(), b"e": os.pipe()}
    child = os.fork()
    if not child:
        code = FAILED
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for name, target in ((b"o", 1), (b"e", 2)):
                os.dup2(pipes[name][1], target)
                os.close(pipes[name][0])
                os.close(pipes[name][1])
            code = obey(lambda: look_of(question))
        finally:
            os._exit(code)
    with selectors.DefaultSelector() as ready:
        for name, (reads, writes) in pipes.items():
            os.close(writes)
            ready.register(reads, selectors.EVENT_READ, name)
        while ready.get_map():
            for key, _ in ready.select():
                part = os.read(key.fd, 65536)
                if part:
                    say(b"%s %d\n%s" % (key.data, len(part), part))
                else:
                    ready.unregister(key.fd)
                    os.close(key.fd)
    status = os.waitpid(child, 0)[1]
    say(b"x %d\n" % (os.WEXITSTATUS(status) if os.WIFEXITED(status) else FAILED))


def look_of(words: Sequence[str]) -> Sequence[str]:
    """The words of a question, where they change nothing."""
    if not words or words[0] not in LOOKS:
        raise RefusedError(NOT_UNDERSTOOD, "looks", "it is no verb that changes nothing")
    return words


def only(pattern: Any, word: str, what: str) -> str:
    """The word, where it is of that form."""
    if not pattern.fullmatch(word):
        raise refused(shown(word), "it is no " + what)
    return word


def only_family(node: Node, path: str, *kinds: str) -> str:
    """The path, where it is one of these to the node."""
    if family(node, absolute(path)) not in kinds:
        raise refused(shown(path), "it is no path of node %d for this" % node.id)
    return path


def is_meta(name: str) -> bool:
    """meta.properties or a copy of it, beside it."""
    rest = name[len(META) :]
    return name.startswith(META) and (not rest or bool(BACKUP.fullmatch(rest) or ASIDE.fullmatch(rest)))


def may_write(node: Node, path: str) -> str:
    """A node's file, or a directory's meta.properties."""
    if family(node, absolute(path)) == "other" and split(path)[1] == META:
        return path
    return only_family(node, path, "config")


def may_keep(node: Node, words: Sequence[str]) -> List[Tuple[str, str, str]]:
    """Files of a node, or its directories' meta.properties, each with a copy's name beside it and its content's sum."""
    copies = list(zip(words[::3], words[1::3], words[2::3]))
    if len(words) % 3:
        raise RefusedError(NOT_UNDERSTOOD, "keep", "it takes NODE, and for each file PATH COPY SHA256")
    for path, copy, sha256 in copies:
        only(SHA256, sha256, "SHA-256")
        beside = node.target if node.target and path == node.config else path
        if not (copy.startswith(beside) and BACKUP.fullmatch(copy[len(beside) :])):
            raise refused(shown(copy), "it is no name of a copy of %s" % shown(path))
        if family(node, absolute(path)) != "config" and split(path)[1] != META:
            raise refused(shown(path), "it is no file of node %d to be kept" % node.id)
    return copies


def may_remove(node: Node, path: str) -> str:
    """A copy of a node's file or of a directory's meta.properties, never what a node uses."""
    if split(absolute(path))[1] != META and family(node, path) == "other" and is_meta(split(path)[1]):
        return path
    return only_family(node, path, "backup", "aside")


def may_rename(node: Node, old: str, new: str) -> None:
    """Setting aside: a node's file, what Kafka wrote into its metadata directory, or a directory's meta.properties."""
    (old_where, old_name), (new_where, new_name) = split(absolute(old)), split(absolute(new))
    kinds = (family(node, old), family(node, new))
    metas = kinds == ("other", "other") and is_meta(old_name) and is_meta(new_name) and old_where == new_where
    above, folder = split(new_where)
    inner = old_where == above == node.metadata and INNER_ASIDE.fullmatch(folder) and old_name == new_name
    if kinds == ("config", "aside") or metas or (inner and old_name in ENTRIES):
        return
    raise refused(shown(old), "it is not renamed to %s" % shown(new))


def may_make(node: Node, path: str) -> str:
    """A metadata directory, or a folder in it for what is set aside."""
    where, name = split(absolute(path))
    if node.metadata and where == node.metadata and INNER_ASIDE.fullmatch(name):
        return path
    return only_family(node, path, "metadata")


COUNTS = {  # of each verb, how many words it takes; None: a node, and one or more
    "about": 0, "looks": 0, "links": 0, "clock": 0, "boot-units": 0, "sockets": 1, "facts": 1,
    "archive": 1, "target": 1,
    "unit-show": 1, "unit-start": 1, "unit-stop": 1, "unit-is-enabled": 1,
    "unit-log": 2, "process": 2, "status": 2, "read": 2, "names": 2, "lock": 2, "try-lock": 2, "make-directory": 2,
    "remove": 2, "write": 3, "rename": 3, "format": None, "collect": None, "places": None, "service-look": 1,
    "service-start": 1, "service-stop": 1, "service-status": 1, "service-process": 2,
    "keep": None,
}  # type: Dict[str, Optional[int]]  # fmt: skip
LOOKS = (  # what changes nothing; `about` tells of files, and this process may be older than they are
    "clock", "boot-units", "sockets", "facts", "unit-show", "unit-is-enabled", "unit-log", "process", "status", "read",
    "target", "names", "try-lock", "collect", "places", "service-look", "service-process",
)  # fmt: skip
UNIT_COMMANDS = {
    "unit-show": ("show", "--no-pager", "-p", UNIT_PROPERTIES),
    "unit-start": ("start", "--no-block"),
    "unit-stop": ("stop", "--no-block"),
}  # type: Dict[str, Tuple[str, ...]]
LISTING = ("systemctl", "list-dependencies", "--plain", "--no-pager", "--", "default.target")


def act_of(host: Host, words: Sequence[str]) -> Act:
    """What these words ask for; RefusedError where they are not understood, or not in the configuration."""
    verb, given = (words[0] if words else ""), list(words[1:])
    if verb not in COUNTS:
        raise RefusedError(NOT_UNDERSTOOD, shown(verb), "it is no verb of this program")
    count = COUNTS[verb]
    fits = len(given) == count if count is not None else len(given) >= 2
    if not fits:
        raise RefusedError(NOT_UNDERSTOOD, verb, "it does not take %d words" % len(given))
    for word in given:
        if "\0" in word or len(word) > 4096:
            raise RefusedError(NOT_UNDERSTOOD, verb, "a word with a zero byte, or too long")
    if not given:
        return {
            "about": lambda: about(host), "looks": looks, "clock": clock,
            "links": lambda: links(host), "boot-units": lambda: pass_on(host, *LISTING),
        }[verb]  # fmt: skip
    if verb == "sockets":
        if given[0] not in ("tcp", "tcp6"):
            raise refused(shown(given[0]), "it is no table of sockets")
        return lambda: sockets(given[0])
    if not verb.startswith("unit-") and verb != "process":
        return node_act(host, verb, host.node(given[0]), given[1:])
    unit = host.unit(verb, given[0])
    if verb == "unit-is-enabled":
        return lambda: unit_is_enabled(host, unit)
    if verb == "process":
        pid = only(NUMBER, given[1], "process")
        return lambda: process(host, unit, pid)
    if verb == "unit-log":
        lines = only(NUMBER, given[1], "number of lines")
        if int(lines) > LINES:
            raise refused(lines, "more lines than are given")
        return lambda: pass_on(host, "journalctl", "-u", unit, "-n", lines, "-o", "cat", "--no-pager")
    return lambda: pass_on(host, "systemctl", *UNIT_COMMANDS[verb], "--", unit)


def service_act(host: Host, verb: str, node: Node, given: Sequence[str]) -> Act:
    service = node.service
    if service is None:
        raise refused(node.supervised_name, "it is a unit, and has no commands of its own")
    if verb == "service-look":
        return lambda: service_look(node, service)
    if verb == "service-process":
        pid = only(NUMBER, given[0], "process")
        return lambda: service_process(node, service, pid)
    name = verb.partition("-")[2]
    command = pinned(service.commands[name], user_of(host, node))
    seconds = {"start": START_SECONDS, "stop": service.timeout, "status": STATUS_SECONDS}[name]
    may_act_as(node, user_of(host, node))
    return lambda: give(host, command, seconds, SHOWN if name == "status" else SAID)


def may_vote(node: Node, voters: str) -> None:
    """The voters of a dynamic quorum: a controller's, with the controller among them, no id twice, none reserved."""
    found = [VOTER.fullmatch(entry) for entry in voters.split(",")]
    ids = [entry.group(1) for entry in found if entry] + [entry.group(2) for entry in found if entry]
    reserved = any(entry.group(2).startswith("A" * 20) for entry in found if entry)
    if not node.metadata or None in found or len(ids) != len(set(ids)) or reserved or str(node.id) not in ids:
        raise refused(shown(voters), "these are not the voters of this controller's quorum")


def node_act(host: Host, verb: str, node: Node, given: Sequence[str]) -> Act:
    if verb.startswith("service-"):
        return service_act(host, verb, node, given)
    if verb in ("facts", "target"):
        return lambda: (facts if verb == "facts" else target)(host, node)
    if verb == "archive":
        if not node.metadata:
            raise refused("node %d" % node.id, "it has no metadata directory")
        return lambda: archive(host, node)
    if verb == "format":
        if len(given) == 4 and given[2] == "--initial-controllers":
            may_vote(node, given[3])
        elif len(given) not in (2, 3) or (len(given) == 3 and given[2] != "--ignore-formatted"):
            takes = "it takes NODE CLUSTER_ID RELEASE [--ignore-formatted | --initial-controllers LIST]"
            raise RefusedError(NOT_UNDERSTOOD, verb, takes)
        only(CLUSTER_ID, given[0], "cluster id"), only(RELEASE, given[1], "release")
        return lambda: format_storage(host, node, given)
    if verb in ("collect", "places"):
        paths = [absolute(word) for word in given]
        return lambda: (places if verb == "places" else collect)(host, node, paths)
    if verb == "keep":
        copies = may_keep(node, given)
        return lambda: keep(host, node, copies)
    path = absolute(given[0])
    if verb == "write":
        may_write(node, path)
        sha256 = only(SHA256, given[1], "SHA-256")
        return lambda: write(host, node, path, sha256)
    if verb == "rename":
        may_rename(node, path, given[1])
        return lambda: rename(host, node, path, given[1])
    if verb == "make-directory":
        may_make(node, path)
    if verb == "remove":
        may_remove(node, path)
    if verb in ("lock", "try-lock"):
        only_family(node, path, "lock")
    looking = {
        "status": status, "read": read, "names": names, "make-directory": make_directory, "remove": remove,
        "lock": lock, "try-lock": try_lock,
    }  # fmt: skip
    return lambda: looking[verb](host, node, path)


def obey(told_words: Callable[[], Sequence[str]]) -> int:
    """Do what the words ask for; what went wrong is one line on stderr."""
    words = ()  # type: Sequence[str]
    try:
        words = told_words()
        return act_of(load(), words)()
    except RefusedError as error:
        code, where, text = error.code, error.where, error.text
    except BrokenPipeError:
        return FAILED  # nobody reads the answer
    except OSError as error:
        name = os.fsdecode(error.filename or "-")
        if not name.startswith("/"):  # a name in a folder: the caller knows the path
            name = next((word for word in words if word.startswith("/")), name)
        code, where, text = FAILED, shown(name), error.strerror or str(error)
    sys.stderr.buffer.write(("%s%s: %s\n" % (NAME, where, text)).encode("utf-8", "backslashreplace"))
    sys.stderr.flush()
    return code


def main(arguments: Sequence[str]) -> int:
    """One verb, in an environment of its own."""
    os.environ.clear()
    os.environ.update(clean(SAFE_PATH))
    os.umask(0o022)
    os.chdir("/")
    return obey(lambda: words_of(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
