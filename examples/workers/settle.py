#!/usr/bin/env python3
"""Settles orders: a worker that writes to the database itself, in fenced transactions.

Rota keeps this program running. Each line of stdin is a batch, and each line of stdout the reply to it. What it prints
to stderr is in the log of the worker. SHOP is the SQLite file of the orders, which is the roster's, too.
"""

import json
import os
import sqlite3
import sys


class Fenced(Exception):
    """Another worker owns the queue of the batch by now."""


def settle(order):
    """Returns why an order cannot be settled, or None."""
    if order["amount"] < 0:
        return "the amount is negative"
    return None


def execute(db, batch):
    """Settles the orders of a batch in one transaction, and returns a result for each."""
    db.execute("BEGIN IMMEDIATE")
    try:
        fence = batch["fence"]
        if db.execute(fence["sql"], fence["args"]).rowcount != 1:
            raise Fenced
        results = []
        for item in batch["items"]:
            order = item["row"]
            error = settle(order)
            if error:
                results.append({"key": item["key"], "result": "failed", "error": error, "permanent": True})
                continue
            # The condition on the state: an earlier transaction may have settled the order after all.
            done = db.execute("UPDATE orders SET state = 'SETTLED' WHERE id = ? AND state = 'NEW'", [order["id"]])
            if done.rowcount == 1:
                db.execute("INSERT INTO payments (order_id, amount) VALUES (?, ?)", [order["id"], order["amount"]])
            results.append({"key": item["key"], "result": "done"})
        db.execute("COMMIT")
        return results
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def reply(db, batch):
    """Returns the reply to a request."""
    if batch["op"] != "execute":
        return {"error": f"unknown op {batch['op']}"}
    try:
        return {"items": execute(db, batch)}
    except Fenced:
        return {"fenced": True}
    except sqlite3.Error as e:
        return {"error": str(e)}


def main():
    db = sqlite3.connect(os.environ["SHOP"], timeout=30, isolation_level=None)
    for line in sys.stdin:
        batch = json.loads(line)
        print(json.dumps({"batch": batch["batch"]} | reply(db, batch)), flush=True)


if __name__ == "__main__":
    main()
