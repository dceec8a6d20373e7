"""All of underdog that runs inside the user's process. Standard library only; stands alone.

In the user's process this package is called ``underdog_probe``; it is loaded by
``inject/sitecustomize.py`` and brings nothing of underdog's environment with it. Its syntax keeps
to Python 3.8.
"""
