"""Adopt foh_pg: one migration."""

from __future__ import annotations

from alembic import op

revision = "a2"
down_revision = "a1"


def upgrade() -> None:
    op.foh_migrate()
    op.create_foh_index("products", "embedding", name="products_foh", labels="tags", bits=64, probes=5)
    op.create_foh_index(
        "articles",
        "embedding",
        name="articles_foh",
        labels="topic",
        labels_from="article_topics",
        labels_key="article_id",
        bits=32,
        distance="l2",
        label_weight=0.5,
        probes=4,
    )


def downgrade() -> None:
    op.drop_foh_index("articles_foh")
    op.drop_foh_index("products_foh")
    op.foh_migrate("base")
