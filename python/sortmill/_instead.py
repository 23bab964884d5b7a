"""What others call what is here, and what is not here: said where it is asked for."""

from __future__ import annotations

_AGGREGATES = "a group's aggregates have names: agg(n=sm.count(), s=sm.sum('x'))"

_INSTEAD: dict[str, dict[str, str]] = {
    "Table": {
        "alias": "with_columns(new=sm.col('old'))",
        "assign": "with_columns(x=sm.col('a') * 2)",
        "concat": "two tables cannot be put behind one another yet: read their files as one, or join what they are in pyarrow or DuckDB",
        "count": "agg(n=sm.count()) makes a record of it",
        "drop": "select names the columns that stay",
        "drop_duplicates": "distinct(), or of the records that are equal in some columns the first one: distinct('x', 'y')",
        "dropna": "filter(~sm.col('x').is_null())",
        "explain": "Pipeline.explain() tells what would be done",
        "groupby": "group_by('x')",
        "join": "there are no joins yet: collect_arrow() and pyarrow, Polars or DuckDB have them",
        "limit": "head(n) has the first records; top(n, by=...) those that are first in an order",
        "merge": "there are no joins yet: collect_arrow() and pyarrow, Polars or DuckDB have them",
        "rename": "with_columns(new=sm.col('old')), and select without the old one",
        "run": "Pipeline.run() does all that is written; collect() has the records",
        "sort_values": "sort('x', descending=True)",
        "sum": "agg(s=sm.sum('x')) makes a record of it",
        "take": "head(n) has the first records",
        "to_arrow": "collect_arrow()",
        "to_csv": "write_csv(path), and then Pipeline.run()",
        "to_pandas": "pyarrow.table(table.collect_arrow()).to_pandas()",
        "union": "two tables cannot be put behind one another yet: read their files as one, or join what they are in pyarrow or DuckDB",
        "unique": "distinct(), or of the records that are equal in some columns the first one: distinct('x', 'y')",
        "where": "filter(sm.col('x') > 3)",
        "with_column": "with_columns(x=sm.col('a') * 2)",
        "write_parquet": "write_arrow(path), or collect_arrow() and pyarrow.parquet",
    },
    "Expr": {
        **{name: f"numpy.{name} of a batch, in map_batches(..., batch_format='numpy')" for name in ("exp", "log", "log10", "sin", "cos")},
        **{name: f"of the records of a group, or of all, agg(x=sm.{name}('column')) makes one" for name in ("sum", "mean", "min", "max", "count", "first")},
        "abs": "abs(sm.col('x'))",
        "alias": "with_columns(name=...) and agg(name=...) give names",
        "astype": "cast(float)",
        "between": "(sm.col('x') >= a) & (sm.col('x') <= b)",
        "contains": "sm.matches('text', 'a pattern')",
        "dt": "truncate('1h') cuts a time, sm.micros('time') is one as a number, and a time less another is microseconds",
        "strftime": "cast(str) is a time as RFC 3339 has it",
        "strptime": "sm.timestamp('text', format='%d/%b/%Y:%H:%M:%S %z')",
        "fillna": "fill_null(0)",
        "isin": "is_in([1, 2, 3])",
        "isna": "is_null()",
        "isnull": "is_null()",
        "is_not_null": "~sm.col('x').is_null()",
        "notna": "~sm.col('x').is_null()",
        "notnull": "~sm.col('x').is_null()",
        "to_string": "cast(str)",
        "round": "(sm.col('x') * 100).cast(int) / 100 cuts off behind two digits",
        "str": "sm.matches, sm.extract, sm.fields and sm.words look into text; other functions of yours go through map",
    },
    "Groups": {name: _AGGREGATES for name in ("count", "sum", "min", "max", "mean", "median", "size", "nunique", "first", "aggregate")},
    "sort": {
        "ascending": "reverse=True sorts downwards",
        "descending": "reverse=True sorts downwards",
        "delimiter": "field_separator='\\t' of lines; of CSV format='csv' and by=",
        "sep": "field_separator='\\t' of lines; of CSV format='csv' and by=",
        "columns": "by='city,-price:num' with format='csv', 'tsv' or 'jsonl'",
    },
    "Pipeline": {
        "read_parquet": "from_arrow(pyarrow.parquet.ParquetFile(path).iter_batches() as a reader, or pyarrow.dataset.dataset(path).scanner().to_reader())",
        "read_json": "read_jsonl(paths)",
        "read_arrow": "from_arrow(pyarrow.ipc.open_stream(path)), a file each",
        "read_ipc": "from_arrow(pyarrow.ipc.open_stream(path)), a file each",
        "from_pandas": "from_arrow(frame)",
        "from_polars": "from_arrow(frame)",
        "from_dicts": "from_iter(records, {'city': str, 'price': float})",
        "from_dict": "from_iter(records, {'city': str, 'price': float})",
        "collect": "a table has collect(); Pipeline.run() does all that is written",
    },
}


def instead_of(kind: str, name: str) -> str | None:
    """What to write instead of `name`, which something of this kind has not."""
    return _INSTEAD.get(kind, {}).get(name)


def hinted(of: object, name: str) -> AttributeError:
    """The error of an attribute that is not there, with what to write instead."""
    kind = type(of).__name__
    instead = instead_of(kind, name)
    told = f"{kind!r} object has no attribute {name!r}"
    return AttributeError(f"{told}: {instead}" if instead else told, name=name, obj=of)
