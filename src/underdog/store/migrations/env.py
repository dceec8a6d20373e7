"""What Alembic runs: the migrations, on the connection that the store hands over."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], version_table="underdog_version"
)
context.run_migrations()
