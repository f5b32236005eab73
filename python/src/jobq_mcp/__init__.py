"""Tools for assistants by the Model Context Protocol: look at queues and jobs, and act."""

from jobq_mcp.serve import serve
from jobq_mcp.site import McpSite

__all__ = ["McpSite", "serve"]
