"""A long wire between a host and the bridge: `python -m tests.bed.wire INTERFACE TAP BRIDGE MILLISECONDS`.

Every frame from INTERFACE comes out of TAP, which is put into the bridge in its place, that many milliseconds later,
and every frame to TAP goes the other way as late.  Kernels without netem can have links that are slow by it.  Ends with
SIGTERM; the interface is put back into the bridge by whoever ends it.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

TUNSETIFF: Final = 0x400454CA
TUNSETVNETHDRSZ: Final = 0x400454D8
IFF_TAP: Final = 0x0002
IFF_NO_PI: Final = 0x1000
IFF_VNET_HDR: Final = 0x4000
TUNSETOFFLOAD: Final = 0x400454D0
TUN_F_CSUM: Final = 0x01
TUN_F_TSO4: Final = 0x02
TUN_F_TSO6: Final = 0x04
SOL_PACKET: Final = 263
PACKET_VNET_HDR: Final = 15
ETH_P_ALL: Final = 3
PACKET_OUTGOING: Final = 4
FRAME: Final = 1 << 17
HEADER: Final = 10  # struct virtio_net_hdr: what of a frame is left for a network card to do, passed on as it is


def tap(name: str) -> int:
    """A new tap device's descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(descriptor, TUNSETVNETHDRSZ, struct.pack("i", HEADER))
    fcntl.ioctl(descriptor, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)
    return descriptor


def raw(interface: str) -> socket.socket:
    """All frames of an interface."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    packets.bind((interface, ETH_P_ALL))
    packets.setblocking(False)
    return packets


def carry(packets: socket.socket, end: int, delay: float) -> None:
    """Pass frames on, each `delay` seconds late, for ever."""
    waiting: list[tuple[float, int, bool, bytes]] = []
    number = 0
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready = select.select([packets.fileno(), end], [], [], left)[0]
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, to_tap, frame = heapq.heappop(waiting)
            try:
                os.write(end, frame) if to_tap else packets.send(frame)
            except OSError:
                continue  # a full queue, a link that is down: a wire loses frames, too
        for source in ready:
            try:
                if source != end:
                    frame, where = packets.recvfrom(FRAME)
                    if where[2] == PACKET_OUTGOING:
                        continue
                else:
                    frame = os.read(end, FRAME)
            except OSError:
                continue
            number += 1
            heapq.heappush(waiting, (now + delay, number, source != end, frame))


def main(interface: str, name: str, bridge: str, milliseconds: str) -> None:
    """Put the wire in, say so, and carry."""
    end, packets = tap(name), raw(interface)
    Path(f"/proc/sys/net/ipv4/conf/{interface}/arp_ignore").write_text("1")  # this end is nobody's address
    for words in (("set", interface, "nomaster", "up", "promisc", "on"), ("set", name, "master", bridge, "up")):
        subprocess.run(["ip", "link", *words], check=True)
    print("ready", flush=True)
    carry(packets, end, float(milliseconds) / 1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
