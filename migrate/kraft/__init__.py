"""The KRaft view: metadata log and snapshots, from files or live, replayed to an image at one offset."""
