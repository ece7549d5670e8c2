//! What is written is read back, to the bit.

use crate::support::{open, rows, write};
use proptest::prelude::*;
use tidemark_tables::{Format, Layout, Mapping, Points, SeriesRow, Unit};

const FORMATS: [Format; 3] = [Format::Parquet, Format::Csv, Format::Jsonl];

/// Values of every class of bit patterns.
const VALUES: [f64; 14] = [
    0.0,
    -0.0,
    f64::NAN,
    f64::MIN_POSITIVE,
    f64::MIN_POSITIVE / 3.0,
    -5e-324,
    f64::MAX,
    f64::MIN,
    0.1,
    1e16,
    1e22,
    9_007_199_254_740_993.0,
    std::f64::consts::PI,
    -1e-7,
];

fn value() -> impl Strategy<Value = f64> {
    let finite = any::<u64>().prop_map(f64::from_bits);
    prop_oneof![
        proptest::sample::select(VALUES.to_vec()),
        finite.prop_filter("finite", |value| !value.is_infinite())
    ]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(i64::MAX), Just(i64::MAX - 1), 0..=i64::MAX, 0..2_000_000_000_000_i64]
}

/// Texts that formats find hard; labels have no comma.
fn text(is_label: bool) -> impl Strategy<Value = Vec<u8>> {
    let hard = if is_label {
        "[a\"'\n\r\t;é計🌊{}\\\\: ]{1,8}"
    } else {
        "[a\"',\n\r\t;é計🌊{}\\\\:() ]{1,8}"
    };
    hard.prop_map(String::into_bytes)
}

type Table = (Layout, Vec<(SeriesRow, Points)>);

fn table() -> impl Strategy<Value = Table> {
    let names = proptest::collection::btree_set(text(false), 0..4);
    (names, proptest::sample::select(Unit::ALL.to_vec())).prop_flat_map(|(names, unit)| {
        let labels = proptest::collection::vec(proptest::option::of(text(true)), names.len());
        let points = proptest::collection::vec((time(), value()), 0..20);
        let series = (text(false), labels, points).prop_map(|(key, labels, points)| {
            let (times, values) = points.into_iter().unzip();
            (SeriesRow { key, labels }, Points { times, columns: vec![values] })
        });
        let layout =
            Layout { unit, dates: false, labels: names.into_iter().collect(), values: Layout::one_value() };
        (Just(layout), proptest::collection::vec(series, 0..6))
    })
}

/// What a row should be.
type Expected = (Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>, i64, u64);

fn expected(layout: &Layout, table: &[(SeriesRow, Points)], has_payloads: bool) -> Vec<Expected> {
    let mut rows = Vec::new();
    for (series, points) in table {
        let labels = layout.labels.iter().zip(&series.labels);
        let labels: Vec<_> =
            labels.filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
        for (time, value) in points.times.iter().zip(&points.columns[0]) {
            let value = if value.is_nan() && !has_payloads { f64::NAN } else { *value };
            rows.push((series.key.clone(), labels.clone(), *time, value.to_bits()));
        }
    }
    rows
}

fn read(format: Format, bytes: &[u8], unit: Unit) -> Vec<Expected> {
    let mut reader = open(format, bytes, &Mapping::default()).expect("a table");
    assert_eq!(reader.unit(), unit, "{format}");
    let rows = rows(&mut *reader).expect("good rows").into_iter();
    rows.map(|row| {
        let labels = row.labels.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        (row.key, labels, row.time, row.value.to_bits())
    })
    .collect()
}

proptest! {
    #[test]
    fn every_format_keeps_keys_labels_times_and_values((layout, table) in table()) {
        for format in FORMATS {
            let bytes = write(format, &layout, &table).expect("every text is UTF-8");
            // JSON Lines has no header: without points, there is nothing.
            if format == Format::Jsonl && bytes.is_empty() {
                continue;
            }
            let expected = expected(&layout, &table, format == Format::Parquet);
            prop_assert_eq!(read(format, &bytes, layout.unit), expected, "{}", format);
        }
    }

    #[test]
    fn csv_keeps_bytes_that_are_no_text(
        key in proptest::collection::vec(any::<u8>(), 1..12),
        label in proptest::collection::vec(any::<u8>(), 1..12),
        time in time(),
    ) {
        prop_assume!(!label.iter().any(|byte| b"(),".contains(byte)));
        // What a reader takes for the mark of UTF-8 at the beginning of the file is behind the header.
        let series = SeriesRow { key, labels: vec![Some(label)] };
        let points = Points { times: vec![time], columns: vec![vec![1.5]] };
        let layout = Layout {
            unit: Unit::Milliseconds,
            dates: false,
            labels: vec![b"\xff".to_vec()],
            values: Layout::one_value(),
        };
        let table = [(series, points)];
        let bytes = write(Format::Csv, &layout, &table).expect("CSV takes any bytes");
        prop_assert_eq!(read(Format::Csv, &bytes, layout.unit), expected(&layout, &table, false));
    }

    #[test]
    fn dates_are_times(times in proptest::collection::vec(0..253_402_300_800_000_i64, 0..20)) {
        let series = SeriesRow { key: b"k".to_vec(), labels: Vec::new() };
        let columns = vec![vec![1.0; times.len()]];
        let layout =
            Layout { unit: Unit::Milliseconds, dates: true, labels: Vec::new(), values: Layout::one_value() };
        let table = [(series, Points { times, columns })];
        for format in [Format::Csv, Format::Jsonl] {
            let bytes = write(format, &layout, &table).expect("years of four digits");
            if !bytes.is_empty() {
                prop_assert_eq!(read(format, &bytes, layout.unit), expected(&layout, &table, false));
            }
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_named() {
    let layout = |labels| Layout { unit: Unit::Seconds, dates: false, labels, values: Layout::one_value() };
    let one = |key: &[u8], label: Option<&[u8]>, value: f64| {
        let series = SeriesRow { key: key.to_vec(), labels: vec![label.map(<[u8]>::to_vec)] };
        [(series, Points { times: vec![7], columns: vec![vec![value]] })]
    };
    let room = || vec![b"room".to_vec()];
    for (format, name) in [(Format::Jsonl, "jsonl"), (Format::Parquet, "parquet")] {
        for (labels, table, text) in [
            (room(), one(b"a\xff", None, 1.0), "the key \"a\\xff\""),
            (room(), one(b"a", Some(b"\xfe"), 1.0), "the label \"\\xfe\""),
            (vec![b"\xfd".to_vec()], one(b"a", None, 1.0), "the label \"\\xfd\""),
        ] {
            let error = write(format, &layout(labels), &table).expect_err("not UTF-8").to_string();
            assert_eq!(error, format!("{text} is not UTF-8, which {name} cannot hold: use csv"));
        }
    }
    let infinite = one(b"a", None, f64::INFINITY);
    let error = write(Format::Jsonl, &layout(room()), &infinite).expect_err("JSON has no infinity");
    assert_eq!(
        error.to_string(),
        "the series \"a\" is infinite at 7, which JSON cannot hold: use csv or parquet"
    );
    let text = write(Format::Csv, &layout(room()), &infinite).expect("CSV has it");
    assert_eq!(text, b"key,time_s,value,label_room\na,7,inf,\n");
    let mut dates = layout(room());
    dates.dates = true;
    let mut late = one(b"a", None, 1.0);
    late[0].1.times = vec![i64::MAX];
    let error = write(Format::Csv, &dates, &late).expect_err("a year of many digits");
    assert!(error.to_string().contains("which RFC 3339 cannot write"), "{error}");
}

#[test]
fn rows_beyond_a_group_follow_in_the_next() {
    let series = |name: &str| SeriesRow { key: name.into(), labels: vec![Some(name.into()), None] };
    let layout = Layout {
        unit: Unit::Nanoseconds,
        dates: false,
        labels: vec![b"a".to_vec(), b"b".to_vec()],
        values: Layout::one_value(),
    };
    let points = |count: i64| Points {
        times: (0..count).collect(),
        columns: vec![(0..count).map(|time| time as f64 / 8.0).collect()],
    };
    let table =
        [(series("one"), points(1_000_000)), (series("two"), points(1_200_000)), (series("one"), points(3))];
    let bytes = write(Format::Parquet, &layout, &table).expect("a file");
    assert_eq!(read(Format::Parquet, &bytes, layout.unit), expected(&layout, &table, true));
}
