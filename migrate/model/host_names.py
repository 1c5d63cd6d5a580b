"""How things on hosts may be named: one rule for what stands in files and for what stands in commands."""

from __future__ import annotations

import re
from typing import Final

# systemd.unit(5): the characters of a unit's name; ours must name a service, and never begins like an option
UNIT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:_.@\\-]{0,246}\.service")
USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")  # useradd(8)
