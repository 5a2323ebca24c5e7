"""The privileges that SHOW GRANTS tells, in the forms of MySQL and MariaDB."""

from __future__ import annotations

import pytest

from replicator.mysql.server.privileges import ANY_TABLE, privileges_on


@pytest.mark.parametrize(
    ("grants", "held"),
    [
        (["GRANT USAGE ON *.* TO `r`@`%`"], {"USAGE"}),
        # MariaDB names the role that has them, MySQL the account; both only what is active.
        (["GRANT `all` TO `r`@`%`", "GRANT EVENT, TRIGGER ON `s_x`.* TO `all`"], None),
        (["GRANT EVENT, TRIGGER ON `s_x`.* TO `r`@`%` WITH GRANT OPTION"], None),
        (["GRANT EVENT, TRIGGER ON `s\\_x`.* TO 'r'@'%'"], None),
        (["GRANT EVENT, TRIGGER ON `s%`.* TO 'r'@'%'"], None),
        (["GRANT EVENT, TRIGGER ON `%_y`.* TO 'r'@'%'"], set()),
        (["GRANT EVENT, TRIGGER ON `s\\_y`.* TO 'r'@'%'"], set()),
        (["GRANT EVENT ON *.* TO `r`@`%`", "GRANT TRIGGER ON `s_x`.`t` TO `r`@`%`"], None),
        (["GRANT EVENT ON *.* TO `r`@`%`", "GRANT TRIGGER ON `sax`.`t` TO `r`@`%`"], {"EVENT"}),
        (["GRANT TRIGGER ON TABLE `sax`.`t` TO `r`@`%`"], set()),
        (["GRANT ALL PRIVILEGES ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*1' WITH"], None),
        (
            ["GRANT ALL ON *.* TO `r`@`%`", "REVOKE TRIGGER ON `s_x`.* FROM `r`@`%`"],
            {"EVENT", "EXECUTE", "SELECT"},
        ),
        (["GRANT SELECT (`a,b`, `c`), TRIGGER ON `s_x`.`t` TO `r`@`%`"], {"SELECT", "TRIGGER"}),
        (["GRANT PROXY ON ''@'' TO 'root'@'localhost'"], set()),
        (["GRANT BINLOG_ADMIN,ROLE_ADMIN ON *.* TO `r`@`%`"], {"BINLOG_ADMIN", "ROLE_ADMIN"}),
    ],
)
def test_the_privileges_on_a_schema(grants: list[str], held: set[str] | None) -> None:
    found = privileges_on("s_x", grants, ANY_TABLE)
    if held is None:
        assert found >= {"EVENT", "TRIGGER"}
    else:
        assert found == held


@pytest.mark.parametrize(("table", "held"), [("", False), ("u", False), ("t", True)])
def test_a_privilege_on_one_table(table: str, held: bool) -> None:
    grants = ["GRANT TRIGGER ON `s_x`.`t` TO `r`@`%`", "GRANT TRIGGER ON `s_`.* TO `r`@`%`"]
    assert ("TRIGGER" in privileges_on("s_x", grants, table)) is held
