"""A LangChain vector store on PostgreSQL with a FOH index. Needs the extra ``foh_pg[langchain]``."""

from __future__ import annotations

from foh_pg.langchain.store import FOHVectorStore

__all__ = ["FOHVectorStore"]
