"""Files of `tidemark series`, with pandas, polars and DuckDB: each reads what is exported, and what each writes is imported. Values
are compared to the bit. Empties the server's database 15.

    python tables.py TIDEMARK PORT
"""

import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import traceback

import duckdb
import numpy as np
import pandas as pd
import polars as pl

BINARY, PORT = sys.argv[1:3]
FORMATS = ["parquet", "csv", "jsonl"]
VALUES = [0.0, -0.0, math.nan, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1e16, 1e22, 1 / 3, -273.15, 20.5]
START = 1_700_000_000_123
NAMES = {"t:hall": "hall", 't:"a, b"': "h\u00e4ll 計 🌊", "t:line\nend": None}
# The table as rows: key, milliseconds, value, room.
ROWS = [(key, START + at * 250, value, room) for key, room in NAMES.items() for at, value in enumerate(VALUES)]


def tidemark(*arguments):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def series(subcommand, *arguments):
    return tidemark("series", subcommand, "-p", PORT, "-n", "15", *arguments)


def flush():
    tidemark("cli", "-p", PORT, "-n", "15", "FLUSHDB")


def bits(value):
    """A value as its bits; NaN is one value, because texts have no payload."""
    return "nan" if value is None or math.isnan(value) else struct.pack("<d", value)


def same(rows, expected=ROWS):
    found, wanted = ([(k, t, bits(v), r or None) for k, t, v, r in table] for table in (rows, expected))
    assert sorted(found, key=repr) == sorted(wanted, key=repr), f"{sorted(found, key=repr)}\n{sorted(wanted, key=repr)}"


def nothing(value):
    """None for what a program has where there is nothing."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA else value


def rows_of_pandas(frame):
    time = frame["time"].dt.as_unit("ms").astype("int64") if "time" in frame else frame["time_ms"]
    columns = (frame["key"], time, frame["value"], frame["label_room"])
    return [(k, int(t), float(v), nothing(r)) for k, t, v, r in zip(*columns)]


def rows_of_polars(frame):
    time = frame["time"].dt.epoch("ms") if "time" in frame.columns else frame["time_ms"]
    return list(zip(frame["key"], time, frame["value"], frame["label_room"]))


def rows_of_duckdb(relation):
    time = "epoch_ms(time)" if "time" in relation.columns else "time_ms"
    return relation.project(f"key, {time}, value, label_room").fetchall()


def exported(folder):
    """Exports the table in every format."""
    source = folder / "source.csv"
    pl.DataFrame(ROWS, schema=["key", "time_ms", "value", "label_room"], orient="row").write_csv(source)
    series("import", str(source))
    paths = {name: str(folder / f"points.{name}") for name in FORMATS}
    for path in paths.values():
        series("export", "--all", "-o", path)
    return paths


def pandas_reads(folder):
    paths = exported(folder)
    frame = pd.read_parquet(paths["parquet"])
    assert str(frame["time"].dtype) == "datetime64[ms, UTC]", frame.dtypes
    same(rows_of_pandas(frame))
    same(rows_of_pandas(pd.read_csv(paths["csv"])))
    # The engine that is its own refuses subnormal numbers.
    same(rows_of_pandas(pd.read_json(paths["jsonl"], lines=True, engine="pyarrow")))


def polars_reads(folder):
    paths = exported(folder)
    frame = pl.read_parquet(paths["parquet"])
    assert frame.schema["time"] == pl.Datetime("ms", "UTC"), frame.schema
    same(rows_of_polars(frame))
    same(rows_of_polars(pl.scan_parquet(paths["parquet"]).filter(pl.col("value") != 20.5).collect()), [row for row in ROWS if row[2] != 20.5])
    same(rows_of_polars(pl.read_csv(paths["csv"])))
    same(rows_of_polars(pl.read_ndjson(paths["jsonl"])))


def duckdb_reads(folder):
    paths = exported(folder)
    relation = duckdb.sql(f"FROM '{paths['parquet']}'")
    assert dict(zip(relation.columns, map(str, relation.types)))["time"] == "TIMESTAMP WITH TIME ZONE", relation.types
    same(rows_of_duckdb(relation))
    same(duckdb.sql(f"SELECT key, epoch_ms(time), value, label_room FROM '{paths['parquet']}' WHERE key = 't:hall'").fetchall(), [row for row in ROWS if row[0] == "t:hall"])
    same(rows_of_duckdb(duckdb.sql(f"FROM read_csv('{paths['csv']}')")))
    same(rows_of_duckdb(duckdb.sql(f"FROM read_json('{paths['jsonl']}', format='newline_delimited')")))


def nanoseconds_and_seconds_are_exact(folder):
    """The ends of what the types hold, and seconds, for which Parquet has no type."""
    tidemark("cli", "-p", PORT, "-n", "15", "TS.ADD", "ns", str(2**63 - 1), "1", "UNIT", "ns")
    tidemark("cli", "-p", PORT, "-n", "15", "TS.ADD", "s", str(2**63 - 1), "1", "UNIT", "s")
    for key, column in [("ns", "time"), ("s", "time_s")]:
        path = str(folder / f"{key}.parquet")
        series("export", key, "-o", path)
        assert pd.read_parquet(path)[column].astype("int64").tolist() == [2**63 - 1], key
        assert pl.read_parquet(path)[column].to_physical().to_list() == [2**63 - 1], key
    assert duckdb.sql(f"SELECT time_s FROM '{folder / 's.parquet'}'").fetchall() == [(2**63 - 1,)]
    assert str(pd.read_parquet(folder / "ns.parquet")["time"].dtype) == "datetime64[ns, UTC]"


def taken(path, *arguments, expected=ROWS):
    """Imports a file and reads the series again."""
    flush()
    series("import", str(path), *arguments)
    out = path.parent / "taken.parquet"
    series("export", "--all", "--unit", "ms", "--force", "-o", str(out))
    same(rows_of_polars(pl.read_parquet(out)), expected)


def frame_of_pandas(unit="ms"):
    frame = pd.DataFrame(ROWS, columns=["key", "ms", "value", "label_room"])
    frame["time"] = pd.to_datetime(frame["ms"], unit="ms", utc=True).dt.as_unit(unit)
    return frame.drop(columns="ms")


def pandas_writes(folder):
    for unit in ["ms", "us", "ns"]:
        path = folder / f"{unit}.parquet"
        frame_of_pandas(unit).to_parquet(path)
        taken(path)
    frame = frame_of_pandas()
    frame["key"], frame["label_room"] = frame["key"].astype("category"), frame["label_room"].astype("category")
    for codec in ["snappy", "zstd", None]:
        frame.to_parquet(folder / "category.parquet", compression=codec)
        taken(folder / "category.parquet")
    frame.to_parquet(folder / "small.parquet", row_group_size=5)
    taken(folder / "small.parquet")
    numbers = frame_of_pandas().drop(columns="time").assign(ts=[row[1] for row in ROWS])
    numbers.to_parquet(folder / "numbers.parquet")
    taken(folder / "numbers.parquet", "--time", "ts", "--time-format", "unix-ms")
    frame_of_pandas().to_csv(folder / "pandas.csv", index=False)
    taken(folder / "pandas.csv")
    # In JSON, pandas writes at most 15 digits.
    is_short = [math.isnan(row[2]) or row[2] in (0.1, 20.5) for row in ROWS]
    numbers = numbers[is_short].rename(columns={"ts": "time_ms"})
    numbers.to_json(folder / "pandas.jsonl", orient="records", lines=True, double_precision=15)
    taken(folder / "pandas.jsonl", expected=[row for row, is_kept in zip(ROWS, is_short) if is_kept])


def pandas_writes_other_types(folder):
    """Whole numbers, 32-bit floats, truth values, numbers of sensors, and days without a time."""
    times = pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True)
    columns = {
        "i64": np.array([1, -(2**53)], "int64"),
        "u32": np.array([0, 2**32 - 1], "uint32"),
        "f32": np.array([0.5, -1.25], "float32"),
        "i8": np.array([-128, 127], "int8"),
        "bool": np.array([True, False]),
        "nullable": pd.array([1, None], dtype="Int64"),
    }
    frame = pd.DataFrame({"day": times.date, "sensor": np.array([7, 7], "uint16"), **columns})
    path = folder / "types.parquet"
    frame.to_parquet(path)
    milliseconds = [int(time.timestamp() * 1000) for time in times]
    for name, values in columns.items():
        expected = [("sensor:7", t, math.nan if v is pd.NA else float(v), None) for t, v in zip(milliseconds, values)]
        flush()
        series("import", str(path), "--time", "day", "--value", name, "--key", "sensor:{sensor}", "--unit", "ms")
        out = folder / "taken.csv"
        series("export", "--all", "--force", "-o", str(out))
        found = pl.read_csv(out)
        same([(*row, None) for row in found.rows()], expected)


def polars_writes(folder):
    schema = {"key": pl.String, "time": pl.Int64, "value": pl.Float64, "label_room": pl.String}
    frame = pl.DataFrame(ROWS, schema=schema, orient="row")
    for unit in ["ms", "us", "ns"]:
        times = frame.with_columns(pl.col("time").cast(pl.Datetime("ms", "UTC")).cast(pl.Datetime(unit, "UTC")))
        path = folder / f"polars-{unit}.parquet"
        times.write_parquet(path)
        taken(path)
    local = frame.with_columns(pl.col("time").cast(pl.Datetime("ms")), pl.col("key", "label_room").cast(pl.Categorical))
    for codec in ["zstd", "snappy", "uncompressed"]:
        local.write_parquet(folder / "local.parquet", compression=codec, row_group_size=7)
        taken(folder / "local.parquet")
    local.write_csv(folder / "polars.csv")
    taken(folder / "polars.csv")
    numbers = frame.rename({"time": "time_ms"})
    numbers.write_ndjson(folder / "polars.ndjson")
    taken(folder / "polars.ndjson")


def duckdb_writes(folder):
    table = pl.DataFrame(ROWS, schema=["key", "ms", "value", "label_room"], orient="row")
    connection = duckdb.connect()
    connection.register("source", table.to_arrow())
    for kind in ["TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ"]:
        select = f"SELECT key, make_timestamp(ms * 1000)::{kind} AS time, value, label_room FROM source"
        for codec in ["snappy", "zstd"]:
            path = folder / f"{kind}.parquet"
            connection.sql(f"COPY ({select}) TO '{path}' (FORMAT parquet, COMPRESSION {codec})")
            taken(path)
    connection.sql("SET TimeZone = 'UTC'")
    connection.sql(f"COPY ({select}) TO '{folder / 'duckdb.csv'}' (FORMAT csv, HEADER)")
    taken(folder / "duckdb.csv")
    finite = [row for row in ROWS if not math.isnan(row[2])]
    # DuckDB writes NaN without quotes, which is no JSON.
    connection.sql(f"COPY (SELECT key, ms AS time_ms, value, label_room FROM source WHERE NOT isnan(value)) TO '{folder / 'duckdb.jsonl'}' (FORMAT json)")
    taken(folder / "duckdb.jsonl", expected=finite)
    # A number with a point is a DECIMAL.
    path = folder / "decimal.parquet"
    connection.sql(f"COPY (SELECT 'k' AS key, TIMESTAMP '2026-01-01' AS time, 20.55 AS value, 'x' AS label_room) TO '{path}'")
    taken(path, "--unit", "ms", expected=[("k", 1_767_225_600_000, 20.55, "x")])


passed, broken = 0, 0
for test in [pandas_reads, polars_reads, duckdb_reads, nanoseconds_and_seconds_are_exact, pandas_writes, pandas_writes_other_types, polars_writes, duckdb_writes]:
    flush()
    with tempfile.TemporaryDirectory() as name:
        try:
            test(pathlib.Path(name))
            passed += 1
            print(f"ok: {test.__name__}")
        except Exception:
            broken += 1
            print(f"FAILED: {test.__name__}")
            traceback.print_exc(file=sys.stdout)
flush()
print(f"{passed} passed, {broken} failed")
sys.exit(1 if broken else 0)
