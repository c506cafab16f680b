"""A FastMCP proxy as its documentation shows it: python fastmcp_proxy.py UPSTREAM_URL PORT"""

import sys

from fastmcp.server import create_proxy

create_proxy(sys.argv[1]).run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
