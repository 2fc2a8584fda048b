"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import REALDATA


@pytest.fixture
def realdata() -> Path:
    """Real responses; they stay outside the project, so the test is skipped where they are not present."""
    if not REALDATA.exists():
        pytest.skip("shared/realdata is not present")
    return REALDATA
