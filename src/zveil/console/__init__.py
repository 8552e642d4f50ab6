"""The console: pages in the browser, on the same server as the events."""

from zveil.console.site import mount

__all__ = ["mount"]
