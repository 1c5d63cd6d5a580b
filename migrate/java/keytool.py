"""Java key stores (JKS) turned into PKCS12 by the JDK's own keytool: their format has keys that only Java opens."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from migrate.errors import JavaToolFailed
from migrate.java.find import find_java
from migrate.java.run import child_environment

SECONDS: Final = 60.0
LAST: Final = 300  # characters of what keytool said


def to_pkcs12(path: str, password: str, kind: str = "JKS") -> tuple[bytes, str]:
    """The store as PKCS12, and the password it has now; passwords travel in files of a folder that only we can enter.

    Raises:
        NoJava, JavaVersionUnsupported: there is no Java to do it with.
        JavaToolFailed: keytool refused (another password, another format) or did not end.
    """
    java = find_java()
    fresh = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        given, wanted, target = Path(folder, "given"), Path(folder, "wanted"), Path(folder, "store.p12")
        for file, text in ((given, password), (wanted, fresh)):
            file.touch(mode=0o600)
            file.write_text(text + "\n", encoding="utf-8")
        argv = [str(java.keytool), "-importkeystore", "-noprompt", "-srckeystore", path, "-srcstoretype", kind]
        argv += ["-srcstorepass:file", str(given), "-destkeystore", str(target), "-deststoretype", "PKCS12"]
        argv += ["-deststorepass:file", str(wanted)]
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
                env=child_environment(),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JavaToolFailed("keytool did not run to its end", where=str(java.keytool)) from error
        if done.returncode or not target.exists():
            said = (done.stdout + done.stderr).strip().replace(password, "(password)")
            raise JavaToolFailed("keytool does not open the store", where=path, why=said[-LAST:])
        return target.read_bytes(), fresh
