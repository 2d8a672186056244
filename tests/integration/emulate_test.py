"""`isthmus emulate` as a process: readiness, relaying, the end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import environment

HANG = 60  # Seconds; only ends a test that hangs.


class Echo:
    """Sends back what it gets, on a port of its own."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    @staticmethod
    def _serve(client):
        with client, contextlib.suppress(OSError):  # A cut, or the relay's end.
            while data := client.recv(65536):
                client.sendall(data)


def emulate(*arguments, **options):
    return subprocess.Popen([environment.isthmus, "emulate", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def end(process, number=signal.SIGTERM):
    """Its exit code, output and errors."""
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG)
    return process.returncode, out, err


def round_trip(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=HANG) as client:
        client.sendall(data)
        back = b""
        while len(back) < len(data):
            part = client.recv(65536)
            if not part:
                break
            back += part
        return back


class EmulateTest(unittest.TestCase):
    def test_prints_a_free_port_relays_and_ends_on_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Echo() as echo:
                process = emulate("--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{echo.port}",
                                  "--rate", "8Mbps", "--rtt", "20ms")
                port = int(process.stdout.readline())
                begin = time.monotonic()
                self.assertEqual(round_trip(port, b"x" * 100_000), b"x" * 100_000)
                self.assertGreaterEqual(time.monotonic() - begin, 0.1 + 0.02)
                code, out, err = end(process, number)
                self.assertEqual((code, out), (0, ""))
                self.assertIn(f"127.0.0.1:{port} -> 127.0.0.1:{echo.port}\n", err)
                self.assertIn("8Mbps each way, 20ms round trip", err)
                # What came back was read by the client perhaps before it was counted.
                self.assertRegex(err, r"97.7 KiB there, [\d.]+ KiB back, 1 connections")
                self.assertNotIn("\r", err)  # Not a terminal.

    def test_tells_a_parent_when_it_is_ready(self):
        reader, writer = os.pipe()
        with Echo() as echo:
            target = f"127.0.0.1:{echo.port}"
            process = emulate("--listen", "127.0.0.1:0", "--to", target, "--map", f"127.0.0.1:0={target}", "--quiet",
                              "--ready-fd", str(writer), pass_fds=[writer])
            os.close(writer)
            with os.fdopen(reader) as ready:
                ports = [int(line) for line in ready.read().split()]  # It closes its end.
            self.assertEqual(len(ports), 2)
            for port in ports:
                self.assertEqual(round_trip(port, b"hello"), b"hello")
            code, out, err = end(process)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual([int(line) for line in out.split()], ports)

    def test_cuts_the_link_and_mends_it(self):
        with Echo() as echo:
            process = emulate("--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{echo.port}", "--rate", "8Mbps",
                              "--outage", "after=50kB,for=200ms,cut")
            port = int(process.stdout.readline())
            try:
                broken = round_trip(port, b"x" * 200_000) != b"x" * 200_000
            except OSError:
                broken = True
            self.assertTrue(broken)
            deadline = time.monotonic() + HANG
            back = b""
            while back != b"hello" and time.monotonic() < deadline:
                try:
                    back = round_trip(port, b"hello")
                except OSError:
                    pass
            self.assertEqual(back, b"hello")
            self.assertEqual(end(process)[0], 0)

    def test_follows_a_trace(self):
        trace = environment.build_dir / "emulate_test_trace.txt"
        trace.write_text("0 800kbps\n")
        try:
            with Echo() as echo:
                process = emulate("--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{echo.port}", "--trace", trace)
                port = int(process.stdout.readline())
                begin = time.monotonic()
                round_trip(port, b"x" * 20_000)
                self.assertGreaterEqual(time.monotonic() - begin, 0.2)
                self.assertEqual(end(process)[0], 0)
        finally:
            trace.unlink()

    def test_dies_with_its_parent_if_asked(self):
        script = ("import subprocess, sys\n"
                  "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n"
                  "print(child.stdout.readline().strip(), flush=True)\n"
                  "sys.stdin.read()\n")
        command = [sys.executable, "-c", script, environment.isthmus, "emulate", "--die-with-parent", "--quiet",
                   "--listen", "127.0.0.1:0", "--to"]
        with Echo() as echo, subprocess.Popen([*command, f"127.0.0.1:{echo.port}"], stdin=subprocess.PIPE,
                                              stdout=subprocess.PIPE, text=True) as parent:
            port = int(parent.stdout.readline())
            self.assertEqual(round_trip(port, b"hello"), b"hello")
            parent.kill()
        deadline = time.monotonic() + HANG
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=HANG).close()
            except ConnectionRefusedError:
                return
            except OSError:
                pass
        self.fail("still listens")

    def test_says_what_is_wrong(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            cases = [
                ([], 4, "--listen and --to"),
                (["--listen", "127.0.0.1:0"], 4, "belong together"),
                (["--listen", "127.0.0.1:0", "--to", "127.0.0.1"], 4, "--to"),
                (["--map", "127.0.0.1:0"], 4, "LISTEN=TARGET"),
                (["--map", "127.0.0.1:0=127.0.0.1:1", "--rate", "10"], 4, "--rate: '10' has no unit"),
                (["--map", "127.0.0.1:0=127.0.0.1:1", "--outage", "at=5s"], 4, "--outage: 'at=5s'"),
                (["--map", "127.0.0.1:0=127.0.0.1:1", "--trace", "no/such/file"], 4, "no/such/file"),
                (["--map", "127.0.0.1:0=127.0.0.1:1", "--ready-fd", "99"], 4, "--ready-fd"),
                (["--map", f"127.0.0.1:{port}=127.0.0.1:1"], 2, f"listen on 127.0.0.1:{port}: Address already in use"),
            ]
            for arguments, code, text in cases:
                done = subprocess.run([environment.isthmus, "emulate", *arguments], capture_output=True, text=True,
                                      timeout=HANG, check=False)
                self.assertEqual(done.returncode, code, (arguments, done.stderr))
                self.assertRegex(done.stderr, "(?m)^isthmus: ")
                self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
