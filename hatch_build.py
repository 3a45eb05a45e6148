"""Metadata that depends on who publishes: the addresses of the project, and links of README.md that work on an index.

The release workflow sets ``PROJECT_URL``, as https://HOST/OWNER/NAME. Without it the package has no addresses, and
README.md is taken as it is.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGES = {
    "Documentation": "docs",
    "Changelog": "CHANGELOG.md",
    "Deprecation policy": "docs/upgrading.md",
    "Security policy": "SECURITY.md",
}
_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)\s]+)\)")


class ReleaseMetadata(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        url = os.environ.get("PROJECT_URL", "").rstrip("/")
        tag = f"v{metadata['version']}"
        metadata["urls"] = addresses(url, tag) if url else {}
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, url, tag) if url else text}


def addresses(url: str, tag: str) -> dict[str, str]:
    pages = {label: f"{url}/blob/{tag}/{path}" for label, path in _PAGES.items()}
    return {"Repository": url, "Issues": f"{url}/issues", **pages}


def absolute_links(readme: str, url: str, tag: str) -> str:
    """An index shows README.md and has none of the files that it links to."""
    return _RELATIVE_LINK.sub(rf"]({url}/blob/{tag}/\1)", readme)
