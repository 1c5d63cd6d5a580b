"""World to findings, pure; one file an area, one function a code."""
