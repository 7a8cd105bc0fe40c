"""Where rows are read: DuckDB, PostgreSQL, Spark, and a plain-Python reference."""
