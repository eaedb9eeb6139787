"""`python -m tests.public`: write the stub files of dtf's public packages."""

from tests.public import stubs

stubs.write()
