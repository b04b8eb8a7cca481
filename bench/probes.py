"""What the kubelet's probe of /healthz takes, alone and beside clients that mean harm: 1,000 that hold connections to the pages, and 240 that
flood the local socket with requests."""
import contextlib
import http.client
import socket
import threading

from bed import Bed, now
from figures import Bench

PAGES, FLOOD = 1000, 240
PROBER = "127.0.0.9"


def port_of(bed: Bed) -> int:
    return int(bed.log.wait(lambda line: " pages at=" in line, what="the pages")[1].rpartition(":")[2])


def probe(port: int) -> float:
    begin = now()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=(PROBER, 0))) as connection:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    if status != 200:
        raise RuntimeError(f"/healthz: {status}")
    return (now() - begin) / 1e6


def occupy(stack: contextlib.ExitStack, port: int):
    """Every second one asks for a page and reads nothing, the others send half a request."""
    for turn in range(PAGES):
        one = stack.enter_context(socket.socket())
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind((f"127.0.1.{turn % 250 + 1}", 0))
        one.connect(("127.0.0.1", port))
        with contextlib.suppress(ConnectionError):
            one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" if turn % 2 else b"GET /metrics HTTP/1.1\r\nX-Slow: ")


def flood(stack: contextlib.ExitStack, bed: Bed):
    ended = threading.Event()
    lines = b'{"op":"version"}\n' * 500

    def send(one: socket.socket):
        with contextlib.suppress(OSError):
            while not ended.is_set():
                one.sendall(lines)
                one.recv(65536)

    threads = []
    for _ in range(FLOOD):
        one = stack.enter_context(socket.socket(socket.AF_UNIX))
        one.connect(str(bed.run_dir / "penstock.sock"))
        one.settimeout(0.2)
        threads.append(threading.Thread(target=send, args=(one,), daemon=True))
        threads[-1].start()

    def end():
        ended.set()
        for thread in threads:
            thread.join()
    stack.callback(end)


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("probes", f"/healthz beside {PAGES:,} connections to the pages that mean harm, and {FLOOD} to the local socket")
    times = 5 if smoke else 200
    with Bed(programs, kubelet=False, config="http: {deadline: 10m}\n") as bed:
        bed.start_agent("--listen", "127.0.0.1:0")
        bed.logged("looked devices=8")
        port = port_of(bed)
        bench.add("baseline: alone", "ms", [probe(port) for _ in range(times)], detail=True)
        with contextlib.ExitStack() as stack:
            occupy(stack, port)
            bench.add("beside the connections to the pages", "ms", [probe(port) for _ in range(times)], goal=100)
            flood(stack, bed)
            bench.add("and beside the flood", "ms", [probe(port) for _ in range(times)], goal=100)
    return bench
