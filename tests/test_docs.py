"""The documentation does what it says: every code block in it is run."""

import re
import runpy
from pathlib import Path

import pytest

from tests.doc_runner import Runner, sections

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SECTIONS = [(page, section) for page in PAGES for section in sections(page.read_text(encoding="utf-8"))]
SETUP = [block for _, section in SECTIONS for block in section.blocks if block.kind == "sh"]


@pytest.mark.parametrize(
    "section", [pytest.param(section, id=f"{page.stem}: {section.title}") for page, section in SECTIONS]
)
def test_blocks_of_section_run_as_shown(section, pytester):
    with Runner(pytester, section) as runner:
        for block in section.blocks:
            if block not in SETUP:
                runner.run(block)


def test_setup_is_what_continuous_integration_does():
    # not run as a block: it would install the project inside its own tests
    (setup,) = SETUP
    demo, tests = setup.text.splitlines()
    assert demo.endswith("memmock demo")
    assert tests in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["rules", "scenarios"])
def test_page_that_is_made_is_up_to_date(name):
    made = runpy.run_path(str(ROOT / "docs" / f"make_{name}.py"))["page"]()
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert page == made, f"run python docs/make_{name}.py"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_map_of_the_code_names_every_module():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    modules = [path.stem for path in (ROOT / "memmock").glob("[!_]*.py")]
    assert [name for name in modules if f"`{name}`" not in text] == []
