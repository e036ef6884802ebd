"""What makemigrations finds: a renamed field keeps its index, which Django would remove and create again."""

from __future__ import annotations

from typing import Any

from django.db.migrations.autodetector import MigrationAutodetector

from foh_pg.django.index import FohIndex
from foh_pg.django.operations import RefreshFohIndex


class FohAutodetector(MigrationAutodetector):
    """Writes RefreshFohIndex where nothing of an index has changed but the names of its fields.

    RemoveIndex and AddIndex would leave an index that has learned nothing and must be built.
    """

    def create_altered_indexes(self) -> None:
        super().create_altered_indexes()
        self.followed: list[tuple[str, str, FohIndex]] = []
        for (app_label, model_name), altered in self.altered_indexes.items():
            for old in list(altered["removed_indexes"]):
                for new in list(altered["added_indexes"]):
                    if self._is_followed(app_label, model_name, old, new):
                        altered["removed_indexes"].remove(old)
                        altered["added_indexes"].remove(new)
                        self.followed.append((app_label, model_name, new))

    def generate_added_indexes(self) -> None:
        super().generate_added_indexes()
        for app_label, model_name, index in self.followed:
            operation = RefreshFohIndex(
                model_name, index.name, embedding=index.embedding, labels=index.labels
            )
            dependencies = self._get_dependencies_for_model(app_label, model_name)
            self.add_operation(app_label, operation, dependencies=dependencies)

    def _is_followed(self, app_label: str, model_name: str, old: Any, new: Any) -> bool:
        if not (isinstance(old, FohIndex) and isinstance(new, FohIndex)):
            return False

        def before(name: Any) -> Any:
            return self.renamed_fields.get((app_label, model_name, name), name)

        as_it_was = new.clone()
        as_it_was.fields = [before(new.embedding)]
        as_it_was.fields_orders = [(as_it_was.fields[0], "")]
        as_it_was.labels = before(new.labels)
        return bool(as_it_was == old)
