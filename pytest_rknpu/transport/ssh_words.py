"""What OpenSSH's client, and sudo behind it, say when no link comes about, and what to do then: data.

A regular expression to look for, and a sentence: ``{1}`` in it is the expression's first group, ``{accept}``
the command that shows and accepts a host key. The first that is found counts, so causes stand before what
follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping

_FINGERPRINT = "on the board: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"

SSH_REMEDIES: Mapping[str, str] = {
    "REMOTE HOST IDENTIFICATION HAS CHANGED": (
        "the board's host key is not the one that is known: it was installed anew, or another machine "
        f"answers. Compare the fingerprint ({_FINGERPRINT}), then forget the old key with ssh-keygen -R"
    ),
    r"host key is known for (\S+) and you have requested strict checking": (
        f"the host key of {{1}} is not known yet. Compare the fingerprint ({_FINGERPRINT}) with the one that "
        "`{accept}` shows, and answer yes; or, where nobody can come between, set "
        'host_key = "accept-new" in boards.toml'
    ),
    "Host key verification failed": "the host key was refused; `{accept}` shows it and asks",
    "UNPROTECTED PRIVATE KEY FILE": "ssh ignores a key file that others can read; chmod 600 it",
    r"Load key \"?(.+?)\"?: (?:error in libcrypto|invalid format)": (
        "{1} is no private key; key names the private one, without .pub"
    ),
    r"Identity file (.+) not accessible": "the key {1} cannot be read; set key in boards.toml",
    r"(?s)Permission denied \(.*UNKNOWN port 65535": (
        "the jump host takes none of the keys; see jump and key in boards.toml"
    ),
    r"Permission denied \(": (
        "the board takes none of the keys. Put one there with ssh-copy-id, name it by key in boards.toml, "
        "and unlock a key that has a passphrase with ssh-add: nobody is asked"
    ),
    "Too many authentication failures": (
        "ssh offered other keys first, too many of them; name the right one by key in boards.toml"
    ),
    "sudo: .*must have a tty": (
        "sudo on the board wants a terminal, which no link has: add `Defaults !requiretty` by visudo, log in "
        "as root, or remove sudo from boards.toml"
    ),
    "sudo: .*(?:password|terminal) is required": (
        "sudo on the board asks for a password. Allow it without one (a line `USER ALL=(root) NOPASSWD: "
        "ALL`, or for this Python alone, by visudo), log in as root, or remove sudo from boards.toml"
    ),
    r"is not in the sudoers|is not allowed to (?:execute|run)|may not run sudo": (
        "the user may not use sudo for this Python; change that on the board by visudo, or remove sudo from "
        "boards.toml"
    ),
    r"sudo: (?:command )?not found|sudo: No such": (
        "there is no sudo on the board; log in as root, and remove sudo from boards.toml"
    ),
    r"Could not resolve hostname (\S+?):": "no address is known for {1}; see host (and jump) in boards.toml",
    r"stdio forwarding failed|open failed: (?:connect|administratively)": (
        "the jump host is reached, but it cannot reach the board; see host and port in boards.toml as seen "
        "from there"
    ),
    "UNKNOWN port 65535": "the jump host could not be reached or refused; see jump in boards.toml",
    "Connection refused": "nothing listens there: is sshd running on the board, and on this port?",
    "Connection timed out|Operation timed out": "no answer: is the board on, and this its address?",
    "No route to host|Network is unreachable": "there is no way to that address; see host in boards.toml",
    "kex_exchange_identification|Connection (?:closed|reset) by": (
        "the connection was closed before anybody logged in: another service on that port, too many sessions "
        "at once (MaxStartups), or the board is going down"
    ),
    r"no matching (\w+(?: \w+)*?)(?: method)? found": (
        "board and host have no {1} in common; allow an older one in ssh_config"
    ),
    "Can't open user config file": "ssh_config in boards.toml names a file that is not there",
    "[Bb]ad configuration option|Bad owner or permissions on": "the ssh configuration is wrong",
    "account is currently not available": "the user has no login shell on the board",
}
