"""A few thousand mutated requests and frames at a real server; an honest client notices none of them."""

from __future__ import annotations

import pytest

from tests.fuzz.sockets import campaign, grown


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_an_honest_client_must_get_every_step_right_beside_strangers(is_tls, tmp_path, monkeypatch):
    variables = {}
    if is_tls:
        from tests.certificates import environment

        variables = environment(tmp_path, hosts=("localhost", "127.0.0.1"))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    report = campaign(requests=300, frames=3000, tls=variables)
    assert report.wrong == () and report.steps > 0
    assert grown(report) == []
