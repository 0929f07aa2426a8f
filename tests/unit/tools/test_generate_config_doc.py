from dataclasses import fields

import pytest

from dataplane.config import ADAPTERS
from tools.generate_config_doc import DOCUMENT, SECTIONS, Section, document, meanings


def test_the_document_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run tools/generate_config_doc.py"


def test_every_adapter_of_every_backend_is_told() -> None:
    told = {(section.name, section.adapter) for section in SECTIONS if section.adapter}
    assert told == {(backend, adapter) for backend, adapters in ADAPTERS.items() for adapter in adapters}


def test_the_default_adapter_is_told_first() -> None:
    first = {section.name: section.adapter for section in reversed(SECTIONS) if section.adapter}
    assert first == {backend: adapters[0] for backend, adapters in ADAPTERS.items()}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: f"{section.name}-{section.adapter}")
def test_every_key_has_its_meaning_and_nothing_else_has(section: Section) -> None:
    assert set(meanings(section.options)) == {field.name for field in fields(section.options)}
