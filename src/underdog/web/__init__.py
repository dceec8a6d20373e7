"""The page: what is in a store, in a browser, while it happens."""
