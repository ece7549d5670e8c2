//! Tables that other programs have written.

use crate::support::{csv, jsonl};
use tidemark_tables::{Labels, Mapping, Nulls, Template, TimeFormat, Unit};

fn template(text: &str) -> Template {
    text.parse().expect("a template")
}

fn pairs(labels: &Labels) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    labels.iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn flags_name_the_columns() {
    let mapping = Mapping {
        key: template("temperature:{room}"),
        time: Some("ts".to_owned()),
        time_format: Some(TimeFormat::Unix(Unit::Seconds)),
        value: "t".to_owned(),
        labels: vec![(b"room".to_vec(), template("{room}")), (b"kind".to_vec(), template("temperature"))],
        ..Mapping::default()
    };
    let rows =
        csv("\u{feff}ts,room,note,t\r\n10, hall ,\"x\ny\",20.5\r\n11,attic,,-1\r\n", &mapping).expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!((&*rows[0].key, rows[0].time, rows[0].value), (&b"temperature: hall "[..], 10, 20.5));
    assert_eq!(pairs(&rows[1].labels), [pair("kind", "temperature"), pair("room", "attic")]);
    let json = "{\"t\":20.5,\"ts\":10,\"room\":\"h\\u00e4ll\",\"x\":[1,{}]}\n\n{\"room\":7,\"ts\":\"11\",\"t\":\"-1\"}";
    let rows = jsonl(json, &mapping).expect("rows");
    assert_eq!((&*rows[0].key, rows[0].time, rows[0].value), ("temperature:häll".as_bytes(), 10, 20.5));
    assert_eq!((&*rows[1].key, rows[1].time, rows[1].value), (&b"temperature:7"[..], 11, -1.0));
}

#[test]
fn times_are_converted_exactly() {
    use Unit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
    let read = |format: &str, unit: Option<Unit>, time: &str| {
        let time_format = Some(format.parse().expect("a format"));
        let mapping = Mapping { time: Some("t".to_owned()), time_format, unit, ..Mapping::default() };
        csv(&format!("key,t,value\nk,{time},1\n"), &mapping).map(|rows| rows[0].time)
    };
    for (format, unit, text, expected) in [
        ("unix-s", None, "1700000000", 1_700_000_000),
        ("unix-s", Some(Milliseconds), "1700000000", 1_700_000_000_000),
        ("unix-s", Some(Milliseconds), "1700000000.125", 1_700_000_000_125),
        ("unix-ms", Some(Seconds), "2000", 2),
        ("unix-ns", None, "9223372036854775807", i64::MAX),
        ("rfc3339", None, "1970-01-01T00:00:01.5Z", 1_500),
        ("rfc3339", Some(Nanoseconds), "1970-01-01 00:00:00.000000001+00", 1),
        ("rfc3339", Some(Microseconds), "1970-01-02", 86_400_000_000),
    ] {
        assert_eq!(read(format, unit, text), Ok(expected), "{format} {text}");
    }
    for (format, unit, text, reason) in [
        ("unix-ms", Some(Seconds), "1500", "1500 ms is no whole number of s, or too late; give another unit"),
        (
            "unix-s",
            Some(Nanoseconds),
            "9223372037",
            "9223372037 s is no whole number of ns, or too late; give another unit",
        ),
        ("unix-s", None, "1.5", "1.5 is no whole number of s, or too late; give another unit"),
        ("unix-ms", None, "-1", "-1 is before 1970; times begin at 0"),
        ("unix-ms", None, "1e3", "\"1e3\" is no time in ms since 1970"),
        ("unix-ms", None, "", "\"\" is no time in ms since 1970"),
        ("rfc3339", None, "yesterday", "\"yesterday\" is no time as RFC 3339 has it"),
        ("rfc3339", None, "1969-12-31", "1969-12-31 is before 1970; times begin at 0"),
    ] {
        assert_eq!(read(format, unit, text), Err(format!("line 2, column t: {reason}")), "{format} {text}");
    }
}

#[test]
fn a_point_without_a_value_is_nan_or_no_point() {
    for nulls in [Nulls::Nan, Nulls::Skip] {
        let mapping = Mapping { nulls, ..Mapping::default() };
        let table = "key,time_ms,value\nk,1,\nk,2,NaN\nk,3,3\n";
        let times = |rows: Vec<tidemark_tables::Row>| -> Vec<(i64, bool)> {
            rows.iter().map(|row| (row.time, row.value.is_nan())).collect()
        };
        let all = [(1, true), (2, true), (3, false)];
        let expected = if nulls == Nulls::Nan { &all[..] } else { &all[1..] };
        assert_eq!(times(csv(table, &mapping).expect("rows")), expected);
        let table = "{\"key\":\"k\",\"time_ms\":1,\"value\":null}\n{\"key\":\"k\",\"time_ms\":2,\"value\":\"nan\"}\n{\"key\":\"k\",\"time_ms\":3,\"value\":3}";
        assert_eq!(times(jsonl(table, &mapping).expect("rows")), expected);
    }
}

#[test]
fn labels_are_found_by_their_prefix_also_late() {
    let table = "{\"key\":\"k\",\"time\":\"1970-01-01\",\"value\":1,\"label_b\":\"x\"}\n\
                 {\"label_a\":\"y\",\"key\":\"k\",\"time\":\"1970-01-01\",\"value\":1,\"label_b\":null,\"label_\":\"z\"}";
    let rows = jsonl(table, &Mapping::default()).expect("rows");
    assert_eq!(pairs(&rows[0].labels), [pair("b", "x")]);
    assert_eq!(pairs(&rows[1].labels), [pair("a", "y")]);
}

#[test]
fn a_table_without_its_columns_is_refused() {
    let named = |time: &str| Mapping { time: Some(time.to_owned()), ..Mapping::default() };
    for (table, mapping, reason) in [
        ("", Mapping::default(), "it is empty: the first line must name the columns"),
        (
            "a,b\n1,2\n",
            Mapping::default(),
            "there is no column time, time_s, time_ms, time_us or time_ns; there are \"a\", \"b\"; name the column of times",
        ),
        ("a,value\n", named("t"), "there is no column \"key\"; there are \"a\", \"value\""),
        ("key,value\n", named("t"), "there is no column \"t\"; there are \"key\", \"value\""),
        (
            "key,time,time_ms,value\n",
            Mapping::default(),
            "there are the columns time and time_ms; name the column of times",
        ),
        ("key,time,value,value\n", Mapping::default(), "there are several columns \"value\""),
    ] {
        assert_eq!(csv(table, &mapping).expect_err(table), reason);
    }
    assert_eq!(jsonl("", &Mapping::default()).expect_err("nothing"), "it is empty");
    for (table, reason) in [
        ("[1]\n", "line 1: it is not one JSON object"),
        ("\n{\"key\":1\n", "line 2: it is not one JSON object"),
        ("{} {}\n", "line 1: it is not one JSON object"),
    ] {
        let error = jsonl(table, &Mapping::default()).expect_err(table);
        assert!(error.starts_with(reason), "{table}: {error}");
    }
}

#[test]
fn a_bad_row_is_named_with_line_and_column() {
    let header = "key,time_ms,value,label_room\n";
    for (row, reason) in [
        ("k,1,2\n", "line 3: it has 3 fields, and the header 4"),
        (",1,2,a\n", "line 3, column key: it is empty, and the key needs it"),
        ("k,x,2,a\n", "line 3, column time_ms: \"x\" is no time in ms since 1970"),
        ("k,1,2x,a\n", "line 3, column value: \"2x\" is no number"),
        ("k,1,inf,a\n", "line 3, column value: inf is infinite; a series takes no infinity"),
        (
            "k,1,2,\"a,b\"\n",
            "line 3, column label_room: \"a,b\" has a comma or a parenthesis, which labels cannot have",
        ),
        ("k,1,1e999,a\n", "line 3, column value: inf is infinite; a series takes no infinity"),
    ] {
        let table = format!("{header}k,0,1,a\n{row}");
        assert_eq!(csv(&table, &Mapping::default()).expect_err(row), reason);
    }
    let error = csv("key,time,value\nk,17,1\n", &Mapping::default()).expect_err("a number");
    assert_eq!(error, "line 2, column time: \"17\" is a number; say what it counts");
    let json = "{\"key\":\"k\",\"time_ms\":0,\"value\":1}\n";
    for (row, reason) in [
        ("{\"key\":\"k\",\"time_ms\":[],\"value\":1}", "line 2, column time_ms: it is an array or an object"),
        ("{\"key\":\"k\",\"value\":1}", "line 2, column time_ms: \"\" is no time in ms since 1970"),
        (
            "{\"key\":\"k\",\"time_ms\":9223372036854775808,\"value\":1}",
            "line 2, column time_ms: \"9223372036854775808\" is no time in ms since 1970",
        ),
    ] {
        assert_eq!(jsonl(&format!("{json}{row}"), &Mapping::default()).expect_err(row), reason);
    }
}

#[test]
fn a_row_without_an_end_is_refused() {
    let table = format!("key,time_ms,value\n\"{}", "x".repeat(17 << 20));
    let error = csv(&table, &Mapping::default()).expect_err("a quote that is not closed");
    assert_eq!(error, "a row has more than 16 MiB: is a quote not closed?");
    let table = format!("{{\"key\":\"{}", "x".repeat(17 << 20));
    let error = jsonl(&table, &Mapping::default()).expect_err("a line without an end");
    assert_eq!(error, "a line has more than 16 MiB");
}
