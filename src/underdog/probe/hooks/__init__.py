"""One file per framework, named like the module whose import triggers it.

A hook is a module of this package with

    WATCHES = "torch"                      # the module whose import triggers it
    def attach(module, recorder) -> None   # called once, right after that import

It uses the standard library and this package only (relative imports: in the user's process the
package has another name), keeps to the syntax of Python 3.8, and never raises into the user's
program: what ``attach`` raises is caught and noted, what it leaves in the user's calls must guard
itself. To hook a module that is imported later: ``importing.when_imported(name, callback)``.

A file with ``_`` in its name is a helper of a hook.
"""
