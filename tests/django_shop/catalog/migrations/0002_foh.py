from django.db import migrations

from foh_pg.django.operations import InstallFoh


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [InstallFoh()]
