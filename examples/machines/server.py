"""The tools of two examples, as a small MCP server on standard input and output.

Usage: server.py ops | server.py db

`ops` watches one service that is out of memory until it is restarted. `db` keeps tables of orders in memory.
"""

import json
import sqlite3
import sys

TEXT = {"type": "string", "minLength": 1}


class Ops:
    """A service that is ill."""

    tools = {
        "search_logs": ({"service": TEXT, "text": TEXT}, "Searches the logs of a service."),
        "get_metrics": ({"service": TEXT}, "Reads how much memory a service uses."),
        "service_status": ({"service": TEXT}, "Says whether a service is healthy."),
        "restart_service": ({"service": TEXT, "reason": TEXT}, "Restarts a service."),
    }

    def __init__(self):
        self.healthy = False

    def search_logs(self, service, text):
        lines = ["started", "out of memory: killed", "started"]
        return {"service": service, "lines": [line for line in lines if text in line]}

    def get_metrics(self, service):
        return {"service": service, "memory": [0.2] if self.healthy else [0.4, 0.7, 0.99]}

    def service_status(self, service):
        return {"service": service, "healthy": self.healthy}

    def restart_service(self, service, reason):
        self.healthy = True
        return {"service": service, "restarted": True, "reason": reason}


class Db:
    """Tables in memory. Names are checked, since SQL takes none as a parameter."""

    tools = {
        "count_rows": ({"table": TEXT}, "Counts the rows of a table."),
        "table_exists": ({"table": TEXT}, "Says whether there is such a table."),
        "create_table": ({"table": TEXT}, "Makes an empty table."),
        "drop_table": ({"table": TEXT}, "Drops a table."),
        "empty_table": ({"table": TEXT}, "Deletes all rows of a table."),
        "copy_rows": ({"from": TEXT, "to": TEXT}, "Copies every row that is not there yet."),
        "switch_table": ({"from": TEXT, "to": TEXT}, "Lets the application use another table."),
        "drop_old_table": ({"table": TEXT}, "Drops the table that is no longer used."),
    }

    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.used = "orders"
        self.db.execute("create table orders (id integer primary key)")
        self.db.executemany("insert into orders values (?)", [(n,) for n in range(1000)])

    def name(self, table):
        if not table.isidentifier():
            raise ValueError(f"`{table}` is no name of a table")
        return table

    def count_rows(self, table):
        return {"rows": self.db.execute(f"select count(*) from {self.name(table)}").fetchone()[0]}

    def table_exists(self, table):
        found = self.db.execute("select count(*) from sqlite_master where name = ?", (table,)).fetchone()
        return {"exists": found[0] == 1}

    def create_table(self, table):
        self.db.execute(f"create table {self.name(table)} (id integer primary key)")
        return {"made": True}

    def drop_table(self, table):
        self.db.execute(f"drop table if exists {self.name(table)}")
        return {"dropped": True}

    drop_old_table = drop_table

    def empty_table(self, table):
        self.db.execute(f"delete from {self.name(table)}")
        return {"emptied": True}

    def copy_rows(self, **args):
        old, new = self.name(args["from"]), self.name(args["to"])
        self.db.execute(f"insert or ignore into {new} select * from {old}")
        return self.count_rows(new)

    def switch_table(self, **args):
        self.used = self.name(args["to"])
        return {"switched": True}


def entry(name, properties, description):
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "inputSchema": schema}


def handle(side, method, params):
    if method == "initialize":
        info = {"name": "example", "version": "1"}
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [entry(name, *told) for name, told in side.tools.items()]}
    if method == "tools/call" and params.get("name") in side.tools:
        try:
            given = getattr(side, params["name"])(**params.get("arguments", {}))
        except (TypeError, ValueError, sqlite3.Error) as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        return {"content": [{"type": "text", "text": json.dumps(given)}], "structuredContent": given}
    return None


def main():
    side = {"ops": Ops, "db": Db}[sys.argv[1]]()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        result = handle(side, message["method"], message.get("params", {}))
        if result is None:
            answer["error"] = {"code": -32601, "message": "there is no such method or tool"}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


main()
