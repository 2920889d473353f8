"""Hooks of mkdocs, which make the site of the Markdown as it is in the repository.

README.md is the first page, and what it says to read on is the navigation. Links to other files of the repository lead to
its host. Headings get the anchors that they have there. The build fails if a link of a built page leads nowhere.
"""

import pathlib
import posixpath
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s:#][^)\s:]*)(\))")
CODE = re.compile(r"(^```.*?^```$)", re.M | re.S)


def slug(text, separator):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def on_config(config):
    """Takes the navigation from the last part of README.md, which must have each page."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    pages = re.findall(r"\]\(docs/([\w-]+\.md)\)", (ROOT / "README.md").read_text().split("\n## Read on\n")[1])
    config["nav"] = ["README.md", *dict.fromkeys(pages)]
    missing = {p.name for p in (ROOT / "docs").glob("*.md")} - set(pages)
    if missing:
        raise PluginError(f"README.md does not say when to read {', '.join(sorted(missing))}")
    return config


def on_files(files, config):
    """Adds README.md and the style, and leaves out what is no page and no picture."""
    site = config["site_dir"]
    kept = [f for f in files if f.src_path.endswith((".md", ".png")) or not f.abs_src_path.startswith(config["docs_dir"])]
    style = File("wide.css", str(ROOT / "packaging/site"), site, False)
    return Files([File("README.md", str(ROOT), site, False), style, *kept])


def on_page_markdown(markdown, page, config, files):
    """Leads the links to pages of the site, or to the host of the repository."""
    folder = "" if page.file.src_path == "README.md" else "docs"

    def lead(match):
        path, anchor = urldefrag(match[2])
        path = posixpath.normpath(posixpath.join(folder, path))
        if path != "README.md":
            if re.fullmatch(r"docs/(img/)?[\w-]+\.(md|png)", path):
                path = path[len("docs/"):]
            elif (ROOT / path).exists():
                path = config["repo_url"] + "/blob/main/" + path
            else:
                raise PluginError(f"{page.file.src_path}: no file {path}")
        return match[1] + path + ("#" + anchor if anchor else "") + match[3]

    parts = CODE.split(markdown)  # code blocks have the odd numbers
    return "".join(part if i % 2 else LINK.sub(lead, part) for i, part in enumerate(parts))


class Anchors(HTMLParser):
    """The ids and the links of a built page, and what it fetches from other hosts."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        source = attrs.get("src") or (tag == "link" and attrs.get("rel") == "stylesheet" and attrs.get("href")) or ""
        if re.match(r"(https?:)?//", source):
            self.fetched.append(source)


def on_post_build(config):
    """Follows each link of each page."""
    site = pathlib.Path(config["site_dir"])
    pages = {p.relative_to(site).as_posix(): Anchors(p.read_text()) for p in sorted(site.rglob("*.html"))}
    faults = []
    for name, page in pages.items():
        faults += [f"{name} fetches {source}" for source in page.fetched]
        if name == "404.html":  # its links begin at the root of a server
            continue
        for link in page.links:
            path, anchor = urldefrag(link)
            if re.match(r"\w+:|//", path):
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))) if path else name
            target = "index.html" if target == "." else target
            if not (site / target).is_file():
                faults.append(f"{name}: no page {link}")
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                faults.append(f"{name}: no heading {link}")
    if faults:
        raise PluginError("\n".join(faults))
