"""Folders that nobody else may enter, and sockets at whose other end nobody else may be."""

from __future__ import annotations

import os
import socket
import stat

import pytest

from dtfctl.errors import NotPrivate
from dtfctl.storage.ownership import check_private, make_private, stranger


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_folder_is_made_private_whatever_the_umask(tmp_path):
    former = os.umask(0)
    try:
        make_private(tmp_path / "state" / "trial")
    finally:
        os.umask(former)
    assert mode_of(tmp_path / "state") == mode_of(tmp_path / "state" / "trial") == 0o700


def test_one_that_is_there_and_private_is_taken(tmp_path):
    make_private(tmp_path / "trial")
    make_private(tmp_path / "trial")


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o777])
def test_one_that_lets_others_in_is_refused(tmp_path, mode):
    (tmp_path / "trial").mkdir()
    os.chmod(tmp_path / "trial", mode)
    with pytest.raises(NotPrivate, match=rf"trial is readable by other users \(mode {mode:04o}\).*chmod 700"):
        make_private(tmp_path / "trial")


def test_one_in_whose_place_others_could_put_another_is_refused(tmp_path):
    make_private(tmp_path / "state" / "trial")
    os.chmod(tmp_path / "state", 0o777)
    with pytest.raises(NotPrivate, match="other users may replace .*chmod go-w"):
        make_private(tmp_path / "state" / "trial")
    os.chmod(tmp_path / "state", 0o1777)  # as /tmp: there nobody can
    make_private(tmp_path / "state" / "trial")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_refused(tmp_path):
    make_private(tmp_path / "trial")
    os.chown(tmp_path / "trial", 65534, 65534)
    with pytest.raises(NotPrivate, match=r"belongs to another user \(uid 65534\)"):
        check_private(tmp_path / "trial")


def test_the_same_user_is_no_stranger():
    near, far = socket.socketpair()
    assert stranger(near) == ""
    near.close()
    far.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_a_stranger():
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        listener.bind("\0dtfctl-test-" + os.urandom(8).hex())
        listener.listen()
        pid = os.fork()
        if pid == 0:
            try:
                os.setuid(65534)
                other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                other.connect(listener.getsockname())
                other.recv(1)
            finally:
                os._exit(0)
        connection, _ = listener.accept()
        with connection:
            assert stranger(connection) == f"pid {pid} of uid 65534"
    os.waitpid(pid, 0)
