"""The record store on PostgreSQL beyond its port: isolation, migrations, misuse, replicas."""
