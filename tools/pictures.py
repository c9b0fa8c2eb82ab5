"""Takes the pictures in docs/pictures/: the first two screens of the site, on a desktop and a phone, light and dark."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "index.html#lane=amd-epyc-family-26-model-2-2-cores-release-py3-11&from=v2.3.1&to=v2.15.0"
SCREENS = {"first": "#headline", "second": "#questions-title"}
"""Name of a screen -> what stands in it; the first begins at the top of the page."""

SIZES = {1400: (1000, 0.5), 390: (844, 0.8)}
"""Width in pixels -> height, and how many pixels of a picture stand for one: they are kept small."""


def main(site: Path) -> None:
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for width, (height, scale) in SIZES.items():
            for scheme in ("light", "dark"):
                size = {"width": width, "height": height}
                page = browser.new_page(viewport=size, device_scale_factor=scale, color_scheme=scheme, bypass_csp=True)
                page.goto(f"{(site / 'index.html').resolve().parent.as_uri()}/{ADDRESS}")
                page.wait_for_function("document.body.dataset.ready")
                for screen, place in SCREENS.items():
                    top = 0 if screen == "first" else page.locator(place).bounding_box()["y"]
                    page.evaluate("top => window.scrollTo(0, top)", top)
                    page.wait_for_timeout(300)
                    page.screenshot(path=folder / f"{screen}-{width}-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
