from django.db import migrations

from foh_pg.django.operations import AlterFohIndex


class Migration(migrations.Migration):
    dependencies = [("catalog", "0003_search")]
    operations = [AlterFohIndex("product", "products", {"probes": 8, "shortlist": None})]
