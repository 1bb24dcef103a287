"""Names for the variables that a migration introduces.

Level: source text. A new name is one that the file does not contain yet.
"""

from __future__ import annotations

import re

# What a name of a block pointer says about being a pointer; the rest names the tensor.
_DECORATION = re.compile(r"^(p|ptr|desc)_|_(block_ptr|blk_ptr|block_pointer|blockptr|bptr|ptrs?|desc)$")


class Namer:
    """Gives each quantity of each variable one name."""

    def __init__(self, text: str) -> None:
        self._taken = set(re.findall(r"[^\W\d]\w*", text))
        self._given: dict[tuple[object, str], str] = {}

    def name(self, owner: object, variable: str, prefix: str, suffix: str = "") -> str:
        """The name of a quantity of a variable; `owner` tells apart variables that have one name."""
        stem = _DECORATION.sub("", variable) or variable
        wanted = f"{prefix}_{stem}{suffix}"
        key = (owner, f"{variable} {wanted}")
        if key not in self._given:
            self._given[key] = self.fresh(wanted)
        return self._given[key]

    def numbered(self, name: str) -> str:
        """Another name for a variable that there is already: `p_2`, `p_3`."""
        count = 2
        while f"{name}_{count}" in self._taken:
            count += 1
        return self.fresh(f"{name}_{count}")

    def fresh(self, wanted: str) -> str:
        """A name that nobody uses yet."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name
