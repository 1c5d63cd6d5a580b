"""Files, log directories and processes of the nodes' hosts."""
