"""A board over ssh, with a real sshd on this host."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback_sshd import Sshd, free_port, make_key, needs_sshd, running_sshd

from pytest_rknpu.errors import BoardLost, ConfigurationError
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.session import BoardSession, Program
from pytest_rknpu.transport import Gateway

pytestmark = needs_sshd
MODEL = b"FAKE model for the fake runtime"
Opened = Callable[..., BoardSession]
Reached = Callable[..., Gateway]


@pytest.fixture
def config(sshd: Sshd, tmp_path: Path) -> Callable[..., str]:
    """``config(text)``: an ssh configuration of its own whose host "desk-board" is the sshd."""

    def write(text: str = "", known_hosts: Path | str = sshd.known_hosts) -> str:
        file = tmp_path / "ssh_config"
        file.write_text(
            f"Host desk-board\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {getpass.getuser()}\n"
            f"Host *\n  UserKnownHostsFile {known_hosts}\n  GlobalKnownHostsFile /dev/null\n{text}"
        )
        return str(file)

    return write


def test_programs_run_over_ssh(opened: Opened, sshd: Sshd, fake_runtime: str) -> None:
    session = opened(host="desk-board", ssh_config=str(sshd.config))
    model = session.store_model(MODEL)
    program = Program()
    program.init("a", model)
    program.create_mem("m", "a", 256)
    program.write("m", bytes(range(256)))
    program.read("m", "read", length=256)
    assert session.execute(program)["values"]["read"] == bytes(range(256))
    assert session.facts["runtime_library"]["value"]["path"] == fake_runtime
    assert sorted(session.reset()["left_behind"])


class TestKeys:
    def test_a_key_that_is_named(self, reached: Reached, sshd: Sshd, config) -> None:
        assert reached(host="desk-board", ssh_config=config(), key=str(sshd.key))

    def test_a_key_in_a_path_that_ssh_and_shells_would_take_apart(
        self, reached: Reached, sshd: Sshd, config, tmp_path: Path
    ) -> None:
        folder = tmp_path / "my keys %h %% $(touch x) 'quoted'"
        folder.mkdir()
        shutil.copy(sshd.key, folder / "id")
        assert reached(host="desk-board", ssh_config=config(), key=str(folder / "id"))

    def test_relative_paths_start_at_the_folder_of_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "boards.toml").write_text(
            '[[board]]\nname = "a"\nsoc = "rk3588"\nhost = "h"\nkey = "keys/id"\nssh_config = "ssh"\n'
            '[[board]]\nname = "b"\nsoc = "rk3588"\nhost = "h"\nkey = "/keys/id"\n'
        )
        one, other = load_boards(tmp_path / "boards.toml").boards
        assert (one.key, one.ssh_config) == (f"{tmp_path}/keys/id", f"{tmp_path}/ssh")
        assert (other.key, other.ssh_config) == ("/keys/id", None)

    def test_no_key_that_the_board_takes(self, reached: Reached, config, tmp_path: Path) -> None:
        make_key(tmp_path / "stranger")
        with pytest.raises(BoardLost, match=r"takes none of the keys.*ssh-copy-id.*Permission denied"):
            reached(host="desk-board", ssh_config=config(), key=str(tmp_path / "stranger"))

    def test_the_key_that_is_named_is_the_only_one(
        self, reached: Reached, sshd: Sshd, config, tmp_path: Path
    ) -> None:
        make_key(tmp_path / "stranger")
        right = f"  IdentityFile {sshd.key}\n"
        with pytest.raises(BoardLost, match="takes none of the keys"):
            reached(host="desk-board", ssh_config=config(), key=str(tmp_path / "stranger"))
        assert reached(host="desk-board", ssh_config=config(right))

    @pytest.mark.parametrize(
        ("content", "words"),
        [(None, "cannot be read; set key in"), ("no key", "is no private key; key names the private one")],
    )
    def test_a_key_file_that_is_none(
        self, reached: Reached, config, tmp_path: Path, content: str | None, words: str
    ) -> None:
        if content is not None:
            (tmp_path / "id").write_text(content)
            (tmp_path / "id").chmod(0o600)
        with pytest.raises(BoardLost, match=words):
            reached(host="desk-board", ssh_config=config(), key=str(tmp_path / "id"))

    def test_a_key_that_others_can_read(self, reached: Reached, sshd: Sshd, config, tmp_path: Path) -> None:
        shutil.copy(sshd.key, tmp_path / "id")
        (tmp_path / "id").chmod(0o644)
        with pytest.raises(BoardLost, match="chmod 600"):
            reached(host="desk-board", ssh_config=config(), key=str(tmp_path / "id"))


class TestHostKeys:
    @pytest.fixture
    def keys(self, sshd: Sshd) -> dict[str, object]:
        return {"host": "desk-board", "key": str(sshd.key)}

    def test_an_unknown_one_is_refused_with_the_command_that_shows_it(
        self, reached: Reached, keys, config, tmp_path: Path
    ) -> None:
        """Whatever the user's own configuration says."""
        known = tmp_path / "known_hosts"
        text = "  StrictHostKeyChecking no\n"
        with pytest.raises(BoardLost, match=r"the host key of \S+ is not known yet") as caught:
            reached(**keys, ssh_config=config(text, known))
        assert re.search(r"`ssh -o StrictHostKeyChecking=ask .*desk-board true`", str(caught.value))
        assert 'host_key = "accept-new"' in str(caught.value)
        assert not known.exists()

    def test_a_changed_one_is_refused(
        self, reached: Reached, keys, config, sshd: Sshd, tmp_path: Path
    ) -> None:
        make_key(tmp_path / "other")
        known = tmp_path / "known_hosts"
        known.write_text(f"[127.0.0.1]:{sshd.port} {(tmp_path / 'other.pub').read_text()}")
        for policy in ("check", "accept-new"):
            with pytest.raises(BoardLost, match=r"host key is not the one that is known.*ssh-keygen -R"):
                reached(**keys, ssh_config=config("", known), host_key=policy)
        assert reached(**keys, ssh_config=config("", known), host_key="unchecked")

    def test_a_new_one_is_remembered_if_the_file_says_so(
        self, reached: Reached, keys, config, sshd: Sshd, tmp_path: Path
    ) -> None:
        known = tmp_path / "known_hosts"
        assert reached(**keys, ssh_config=config("", known), host_key="accept-new")
        assert f"[127.0.0.1]:{sshd.port}" in known.read_text()
        assert reached(**keys, ssh_config=config("", known))

    def test_unchecked_remembers_nothing(self, reached: Reached, keys, config, tmp_path: Path) -> None:
        known = tmp_path / "known_hosts"
        assert reached(**keys, ssh_config=config("", known), host_key="unchecked")
        assert not known.exists()

    @pytest.mark.parametrize("policy", ["accept-new", "unchecked"])
    def test_a_run_warns_of_it(self, tmp_path: Path, policy: str) -> None:
        file = tmp_path / "boards.toml"
        table = '[[board]]\nname = "a"\nsoc = "rk3588"\nhost = "h"\n'
        file.write_text(table)
        assert load_boards(file).warnings == ()
        file.write_text(f'{table}host_key = "{policy}"\n')
        (warning,) = load_boards(file).warnings
        assert f'[[board]] "a", key "host_key": {policy}: ' in warning

    def test_other_words_are_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "boards.toml"
        file.write_text('[[board]]\nname = "a"\nsoc = "rk3588"\nhost = "h"\nhost_key = "no"\n')
        with pytest.raises(ConfigurationError, match='key "host_key": must be "check", "accept-new" or'):
            load_boards(file)


@pytest.fixture(scope="module")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Another sshd, to go through."""
    with running_sshd(tmp_path_factory.mktemp("jump")) as running:
        yield running


class TestJumpHosts:
    @pytest.fixture
    def both(self, sshd: Sshd, jump: Sshd, config, tmp_path: Path) -> dict[str, object]:
        """Keys of a board behind ``jump``; one key and one file of known hosts serve both."""
        known = tmp_path / "known both"
        known.write_text(sshd.known_hosts.read_text() + jump.known_hosts.read_text())
        with (jump.folder / "authorized_keys").open("a") as file:
            file.write((sshd.folder / "user.pub").read_text())
        settings = config("", f'"{known}"')
        target = f"{getpass.getuser()}@127.0.0.1:{jump.port}"
        return {"host": "desk-board", "ssh_config": settings, "key": str(sshd.key), "jump": target}

    def test_a_board_behind_one(self, reached: Reached, both, jump: Sshd) -> None:
        assert reached(**both)
        assert "Accepted publickey" in (jump.folder / "sshd.log").read_text()

    def test_its_own_host_key_is_checked_whatever_the_boards_may_be(
        self, reached: Reached, both, sshd: Sshd, config
    ) -> None:
        settings = config("  StrictHostKeyChecking no\n")  # which knows the board alone
        with pytest.raises(BoardLost, match=r"the host key of .* is not known yet"):
            reached(**{**both, "ssh_config": settings}, host_key="unchecked")

    def test_one_that_is_down(self, reached: Reached, both) -> None:
        with pytest.raises(BoardLost, match=r"jump.*Connection refused"):
            reached(**{**both, "jump": f"127.0.0.1:{free_port()}"})

    def test_one_that_does_not_reach_the_board(self, reached: Reached, both) -> None:
        with pytest.raises(BoardLost, match="the jump host is reached, but it cannot reach the board"):
            reached(**{**both, "host": "127.0.0.1"}, port=free_port())

    @pytest.mark.parametrize(
        "text", ["host", "me@host", "me@host:22", "[::1]:22", "a@[fe80::1%eth0]", "10.0.0.1"]
    )
    def test_words_that_are_taken(self, described, text: str) -> None:
        assert described(host="h", jump=text).jump == text

    @pytest.mark.parametrize(
        "text",
        ["-oProxyCommand=x", "a b", "h;x", "a@-h", "$(x)", "h:", "h:x", "a,b", "::1", "`x`", "h\n", "a@b@c"],
    )
    def test_words_that_are_refused(self, described, text: str) -> None:
        with pytest.raises(ValueError, match="jump"):
            described(host="h", jump=text)


class TestSudo:
    @pytest.fixture
    def as_user(self, tmp_path_factory: pytest.TempPathFactory):
        """``as_user(command)``: an sshd whose sessions run ``command`` with the one asked for behind it."""
        from contextlib import ExitStack

        with ExitStack() as resources:
            yield lambda command: resources.enter_context(
                running_sshd(
                    tmp_path_factory.mktemp("sudo"), f'ForceCommand {command} "$SSH_ORIGINAL_COMMAND"'
                )
            )

    @pytest.fixture(autouse=True)
    def _real(self) -> None:
        if shutil.which("sudo") is None:
            pytest.skip("no sudo here; install it with: apt-get install sudo")
        if os.geteuid() != 0:
            pytest.skip("only root can log in as somebody whom sudo knows, or does not")

    def test_python_runs_under_it(self, opened: Opened, as_user) -> None:
        running = as_user("env RKNPU_MARK=1 sh -c")
        session = opened(host="desk-board", ssh_config=str(running.config), sudo=True)
        environment = Path(f"/proc/{session.agent['pid']}/environ").read_bytes()
        assert b"SUDO_COMMAND=" in environment
        assert b"RKNPU_MARK" not in environment  # sudo gave it a clean one

    def test_one_that_asks_for_a_password(self, reached: Reached, as_user) -> None:
        running = as_user("setpriv --reuid=65534 --clear-groups sh -c")
        with pytest.raises(
            BoardLost, match=r"sudo on the board asks for a password.*NOPASSWD.*by hand: .*sudo -n"
        ):
            reached(host="desk-board", ssh_config=str(running.config), sudo=True)

    def test_there_is_none(self, reached: Reached, as_user) -> None:
        running = as_user("env PATH=/nowhere /bin/sh -c")
        with pytest.raises(BoardLost, match="there is no sudo on the board"):
            reached(host="desk-board", ssh_config=str(running.config), sudo=True)


class TestThingsInTheWay:
    def test_a_users_configuration(self, reached: Reached, sshd: Sshd, config) -> None:
        text = (
            "  RequestTTY force\n  RemoteCommand tmux attach\n  ForwardX11 yes\n  ForwardAgent yes\n"
            "  LogLevel DEBUG2\n  Compression yes\n  PermitLocalCommand no\n  SendEnv *\n"
        )
        assert reached(host="desk-board", ssh_config=config(text), key=str(sshd.key))

    def test_connections_that_are_shared_and_stay(self, reached: Reached, sshd: Sshd, config) -> None:
        """ssh's master process keeps stderr open for longer than the link lasts."""
        with tempfile.TemporaryDirectory() as short:  # a socket's path may not be long
            text = f"  ControlMaster auto\n  ControlPersist 60\n  ControlPath {short}/%C\n"
            file = config(text)
            for _ in range(2):
                reached(host="desk-board", ssh_config=file, key=str(sshd.key)).close()
            subprocess.run(["ssh", "-F", file, "-O", "exit", "desk-board"], check=True, capture_output=True)

    def test_a_forwarding_that_cannot_be_set_up(self, reached: Reached, sshd: Sshd, config) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            text = (
                f"  ExitOnForwardFailure yes\n  LocalForward 127.0.0.1:{taken.getsockname()[1]} 127.0.0.1:9\n"
            )
            assert reached(host="desk-board", ssh_config=config(text), key=str(sshd.key))

    def test_a_terminal_that_the_board_insists_on(
        self, opened: Opened, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        forced = 'ForceCommand script -qc "$SSH_ORIGINAL_COMMAND" /dev/null'
        with running_sshd(tmp_path_factory.mktemp("terminal"), forced) as running:
            session = opened(host="desk-board", ssh_config=str(running.config))
            assert session.store_model(MODEL + bytes(range(256)) * 1000)

    def test_banner_and_greeting(self, reached: Reached, tmp_path_factory: pytest.TempPathFactory) -> None:
        folder = tmp_path_factory.mktemp("greeting")
        (folder / "banner").write_text("Authorised use only\n" * 50)
        greeting = 'ForceCommand cat %s; exec sh -c "$SSH_ORIGINAL_COMMAND"' % (folder / "banner")
        with running_sshd(folder, f"Banner {folder}/banner", greeting) as running:
            assert reached(host="desk-board", ssh_config=str(running.config))


class TestErrors:
    def test_a_name_that_is_not_known(self, reached: Reached, sshd: Sshd) -> None:
        with pytest.raises(
            BoardLost,
            match=r"^board desk: no connection: no address is known for nowhere\.invalid; see host.*"
            r"Try the same by hand: ssh .*-F .*nowhere\.invalid .*--version'$",
        ):
            reached(host="nowhere.invalid", ssh_config=str(sshd.config))

    def test_a_port_where_nobody_listens(self, reached: Reached) -> None:
        with pytest.raises(BoardLost, match=r"nothing listens there: is sshd running.*by hand: ssh .*-p"):
            reached(host="127.0.0.1", port=free_port())

    def test_a_port_of_another_service(self, reached: Reached) -> None:
        import threading

        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
            with pytest.raises(BoardLost, match="closed before anybody logged in: another service"):
                reached(host="127.0.0.1", port=server.getsockname()[1])

    def test_a_configuration_that_is_not_there(self, reached: Reached, tmp_path: Path) -> None:
        with pytest.raises(BoardLost, match=r"ssh_config in boards.toml names a file that is not there"):
            reached(host="h", ssh_config=str(tmp_path / "missing"))

    def test_a_configuration_that_is_wrong(self, reached: Reached, config) -> None:
        with pytest.raises(BoardLost, match="the ssh configuration is wrong"):
            reached(host="h", ssh_config=config("  Strict yes\n"))

    def test_a_python_that_is_not_there(self, reached: Reached, sshd: Sshd) -> None:
        with pytest.raises(BoardLost, match=r"there is no /opt/python3\.9; install Python 3\.8 or newer"):
            reached(host="desk-board", ssh_config=str(sshd.config), python="/opt/python3.9")

    def test_a_python_that_is_a_folder(self, reached: Reached, sshd: Sshd) -> None:
        with pytest.raises(BoardLost, match=r"exit code 126: /opt cannot be executed there"):
            reached(host="desk-board", ssh_config=str(sshd.config), python="/opt")

    def test_an_account_without_a_shell(
        self, reached: Reached, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        folder = tmp_path_factory.mktemp("nologin")
        with (
            running_sshd(folder, "ForceCommand /usr/sbin/nologin") as running,
            pytest.raises(BoardLost, match="the user has no login shell on the board"),
        ):
            reached(host="desk-board", ssh_config=str(running.config))
