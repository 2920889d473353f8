#!/usr/bin/env python3
"""Books the payments in the files of a folder: a whole dealer. It selects its items itself, and no database has them.

A file such as alice-0007.txt in INBOX has an amount. The files of one customer are booked in the order of their names.
LEDGER gets a line for each, and the file goes to DONE. A file at fault goes to BROKEN. Write a file under a name that
begins with a dot, and then rename it: so no half of it is read.

Rota keeps this program running. Each line of stdin is a request, and each line of stdout the reply to it.
"""

import json
import os
import sys
import time
import zlib

INBOX, DONE, BROKEN, LEDGER = (os.environ[name] for name in ("INBOX", "DONE", "BROKEN", "LEDGER"))


def customer(name):
    return name.partition("-")[0]


def files(queue):
    """Returns the names of the files of a queue, in their order. A customer has all files in one queue."""
    return sorted(
        name
        for name in os.listdir(INBOX)
        if not name.startswith(".") and zlib.crc32(customer(name).encode()) % queue["queue_total"] == queue["queue_index"]
    )


def select(request):
    held = set(request.get("held", []))
    names = [name for name in files(request) if customer(name) not in held]
    return {"items": [{"key": name, "order_key": customer(name)} for name in names[: request["limit"]]]}


def peek(request):
    return {"queues": [queue["queue"] for queue in request["queues"] if files(queue)]}


def backlog(request):
    names = files(request)
    reply = {"count": len(names)}
    if names:
        oldest = min(os.path.getmtime(os.path.join(INBOX, name)) for name in names)
        reply["oldest_age_ms"] = max(0, int(1000 * (time.time() - oldest)))
    return reply


def book(name):
    """Books a file. If the program is killed before the file has gone, the file is booked again."""
    with open(os.path.join(INBOX, name)) as file:
        amount = file.read().strip()
    if not amount:
        return {"result": "failed", "error": "the amount is not known yet"}
    if not amount.isdecimal():
        return {"result": "failed", "error": "the amount is no number", "permanent": True}
    with open(LEDGER, "a") as ledger:
        ledger.write(f"{name} {amount}\n")
    os.rename(os.path.join(INBOX, name), os.path.join(DONE, name))
    return {"result": "done"}


def discard(name):
    os.rename(os.path.join(INBOX, name), os.path.join(BROKEN, name))
    return {"result": "done"}


def each(items, act):
    """Returns the results of items. A file that is not there any more was done before, and the reply was lost."""
    results = []
    for item in items:
        try:
            result = act(item["key"])
        except FileNotFoundError:
            result = {"result": "done"}
        except OSError as e:
            result = {"result": "failed", "error": str(e)}
        results.append({"key": item["key"]} | result)
    return {"items": results}


def reply(request):
    match request["op"]:
        case "select":
            return select(request)
        case "execute":
            return each(request["items"], book)
        case "discard":
            return each(request["items"], discard)
        case "peek":
            return peek(request)
        case "backlog":
            return backlog(request)
    return {"error": f"unknown op {request['op']}"}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = reply(request)
        except OSError as e:
            answer = {"error": str(e)}
        print(json.dumps({"batch": request["batch"]} | answer), flush=True)


if __name__ == "__main__":
    main()
