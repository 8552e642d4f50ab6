"""The pages, each made anew for a browser that opens it."""

from nicegui import ui
from starlette.requests import Request

from zveil.console.audit import AuditPage
from zveil.console.live import Live
from zveil.console.plan import PlanPage
from zveil.console.shell import frame
from zveil.console.view import View


def make_pages(view: View, *, may_leave: bool) -> None:
    """Say what there is under which path.

    Parameters
    ----------
    view
        What the pages look at.
    may_leave
        Whether there is a login to log out from.
    """

    @ui.page("/")
    def live(request: Request) -> None:
        with frame(request, "/", "Live", may_leave=may_leave):
            Live(view, str(request.base_url).rstrip("/"))

    @ui.page("/plan")
    def plan(request: Request) -> None:
        with frame(request, "/plan", "Plan", may_leave=may_leave):
            PlanPage(view)

    @ui.page("/audit")
    def audit(request: Request) -> None:
        with frame(request, "/audit", "Audit", may_leave=may_leave):
            AuditPage(view)
