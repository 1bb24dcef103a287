"""`mltriton migrate`: block-pointer kernels rewritten to tensor descriptors or masked pointers, source to source.

Level: source text. `migrate_source` rewrites one file's text; formatting and comments of everything else survive. It
guarantees that no descriptor is written that breaks a rule of descriptors, and that what cannot be decided stays as it
is, with a note that says why.
"""

from mltriton.tools.migrate.migration import migrate_source, migrate_sources
from mltriton.tools.migrate.result import Note, Options, Result

__all__ = ["Note", "Options", "Result", "migrate_source", "migrate_sources"]
