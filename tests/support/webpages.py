"""A client of the agent's HTTP pages that uses no code of Penstock."""
import urllib.error
import urllib.request

from node import PATIENCE


def where(log: str) -> str:
    """The address from the agent's log, like "http://127.0.0.1:41234"."""
    return next(line.rpartition("at=")[2].strip().strip('"') for line in log.splitlines() if " pages " in line)


def answer(url: str, **fields) -> tuple[int, str]:
    """The status and the body of the response."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=fields), timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def fetch(url: str, **fields) -> str:
    status, body = answer(url, **fields)
    assert status == 200, (url, status, body)
    return body
