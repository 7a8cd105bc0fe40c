"""DuckDB, the default engine: answers, one pass over large tables, releases as databases."""
