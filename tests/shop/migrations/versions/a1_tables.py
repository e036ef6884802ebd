"""The application before it had an index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "a1"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "brands", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String, nullable=False)
    )
    op.create_table(
        "products",
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("name", sa.String(10), nullable=False),
        sa.Column("price", sa.Numeric(10, 2), nullable=False),
        sa.Column("tags", ARRAY(sa.Text), nullable=False),
        sa.Column("details", JSONB, server_default="{}", nullable=False),
        sa.Column("brand_id", sa.Integer, sa.ForeignKey("brands.id")),
        sa.Column("embedding", Vector(8)),
    )
    op.create_table("articles", sa.Column("id", sa.Text, primary_key=True), sa.Column("embedding", Vector(8)))
    op.create_table(
        "article_topics",
        sa.Column("article_id", sa.Text, sa.ForeignKey("articles.id"), primary_key=True),
        sa.Column("topic", sa.Text, primary_key=True),
    )


def downgrade() -> None:
    for table in ("article_topics", "articles", "products", "brands"):
        op.drop_table(table)
