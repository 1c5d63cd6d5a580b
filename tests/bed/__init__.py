"""A bed of real hosts: systemd, sshd, sudo and Kafka in containers on one machine (README.md)."""
