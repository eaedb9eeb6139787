"""`python -m tests.public`: write the stub files of dtf's public packages, and the page of the most used names."""

from tests.public import documented, stubs

stubs.write()
documented.write()
