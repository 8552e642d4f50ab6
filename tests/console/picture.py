"""Makes the picture of the console in the documents: `make picture`.

A service is fed a made-up stream for a minute and a half; then the page Live in light and the page
Plan in dark are put together in one picture.
"""

import base64
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from chromium import CHROMIUM, FLAGS, PATIENCE_MS
from playwright.sync_api import expect, sync_playwright
from service import Service

FIELDS = ("--time", "ts", "--user", "uid", "--attribute", "site")
FED_S = 90
SIZE = {"width": 1280, "height": 880}
BOTH = """
<body style="margin: 0; background: #dfe6ee">
<div style="position: relative; width: 1900px; height: 1240px">
<img style="position: absolute; left: 40px; top: 40px; border-radius: 14px;
  box-shadow: 0 18px 50px rgb(20 40 70 / .28)" src="data:image/png;base64,{live}">
<img style="position: absolute; left: 580px; top: 320px; border-radius: 14px;
  box-shadow: 0 18px 60px rgb(20 40 70 / .45)" src="data:image/png;base64,{plan}">
</div>
</body>
"""


def feed(service: Service) -> None:
    """Send a made-up stream: few sites that many visit, many that few do."""
    draw = random.Random(11)
    until = time.time() + FED_S
    while time.time() < until:
        now = time.time()
        count = round(1_500 + 600 * (now % 40 < 20) + draw.gauss(0, 120))
        lines = []
        for _ in range(count // 4):
            site = f"site-{int(draw.paretovariate(0.55)) % 4000}.example"
            user = f"user-{draw.randrange(6_000)}"
            late = 4_000 if draw.random() < 0.004 else 0
            lines.append(json.dumps({"ts": now - late, "uid": user, "site": site}))
        service.post("\n".join(lines).encode())
        time.sleep(max(0.25 - (time.time() - now), 0))


def shots(service: Service, browser: Any) -> dict[str, str]:
    """Give both pages as pictures."""
    found = {}
    for name, path, scheme in (("live", "/", "light"), ("plan", "/plan", "dark")):
        page = browser.new_page(viewport=SIZE, color_scheme=scheme)
        page.goto(service.url + path)
        if name == "plan":
            expect(page.get_by_label("Outcome")).to_contain_text("of visible users")
            page.get_by_role("slider", name="z", exact=True).focus()
            for _ in range(46):
                page.keyboard.press("ArrowRight")
            expect(page.get_by_label("Outcome")).to_contain_text("as you want")
            page.evaluate("document.activeElement.blur()")
        else:
            expect(page.get_by_text("events are coming in")).to_be_visible()
        page.wait_for_timeout(1_500)
        found[name] = base64.b64encode(page.screenshot()).decode()
        page.close()
    return found


def main(file: Path) -> None:
    """Make the picture."""
    expect.set_options(timeout=PATIENCE_MS)
    with tempfile.TemporaryDirectory() as folder:
        rule = (*FIELDS, "-z", "20", "--window", "1h", "--state", folder)
        with Service(console=True, rule=rule) as service, sync_playwright() as driver:
            feed(service)
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            both = BOTH.format(**shots(service, browser))
            page = browser.new_page(viewport={"width": 1900, "height": 1240})
            page.set_content(both)
            page.wait_for_timeout(500)
            file.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=file)
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
