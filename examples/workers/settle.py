#!/usr/bin/env python3
"""Settles orders: a worker that writes to the database itself, in fenced transactions.

Rota keeps this program running. Each line of stdin is a batch, and each line of stdout the reply to it. What it prints
to stderr is in the log of the worker. SHOP is the URL of the database of the orders, which is the roster's, too.
PostgreSQL needs psycopg2, MariaDB and MySQL need PyMySQL.
"""

import json
import os
import re
import sys
from urllib.parse import urlsplit


class Fenced(Exception):
    """Another worker owns the queue of the batch by now."""


def settle(order):
    """Returns why an order cannot be settled, or None."""
    if order["amount"] < 0:
        return "the amount is negative"
    return None


def connect(url):
    """Returns a driver and a connection, on which the first statement that writes begins a transaction."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        import sqlite3

        return sqlite3, sqlite3.connect(parts.path, timeout=30, isolation_level="IMMEDIATE")
    if parts.scheme in ("postgres", "postgresql"):
        import psycopg2

        return psycopg2, psycopg2.connect(url)
    import pymysql

    return pymysql, pymysql.connect(
        host=parts.hostname, port=parts.port or 3306, user=parts.username, password=parts.password or "", database=parts.path[1:]
    )


class Shop:
    """The database of the orders."""

    def __init__(self, url):
        self.driver, self.db = connect(url)

    def run(self, sql, args):
        """Runs a statement, whose marks are $1, $2 or ?, and returns how many rows it has changed."""
        if self.driver.paramstyle != "qmark":
            sql = re.sub(r"\$\d+|\?", "%s", sql.replace("%", "%%"))
        cursor = self.db.cursor()
        cursor.execute(sql, args)
        return cursor.rowcount

    def execute(self, batch):
        """Settles the orders of a batch, and returns a result for each."""
        fence = batch["fence"]
        if self.run(fence["sql"], fence["args"]) != 1:
            raise Fenced
        results = []
        for item in batch["items"]:
            order = item["row"]
            error = settle(order)
            if error:
                results.append({"key": item["key"], "result": "failed", "error": error, "permanent": True})
                continue
            # The condition on the state: an earlier transaction may have settled the order after all.
            if self.run("UPDATE orders SET state = 'SETTLED' WHERE id = ? AND state = 'NEW'", [order["id"]]) == 1:
                self.run("INSERT INTO payments (order_id, amount) VALUES (?, ?)", [order["id"], order["amount"]])
            results.append({"key": item["key"], "result": "done"})
        return results

    def reply(self, batch):
        """Executes a batch in one transaction, and returns the reply to it."""
        if batch["op"] != "execute":
            return {"error": f"unknown op {batch['op']}"}
        try:
            results = self.execute(batch)
            self.db.commit()
            return {"items": results}
        except Fenced:
            reply = {"fenced": True}
        except self.driver.Error as e:
            reply = {"error": str(e)}
        self.db.rollback()  # fails if the connection is lost: the program ends, and the worker starts it again
        return reply


def main():
    shop = Shop(os.environ["SHOP"])
    for line in sys.stdin:
        batch = json.loads(line)
        print(json.dumps({"batch": batch["batch"]} | shop.reply(batch)), flush=True)


if __name__ == "__main__":
    main()
