use super::*;
use crate::value::{Object, Pieces, SnapshotForm, TypedValue};

fn series(points: i64) -> TimeSeries {
    let labels = Labels::of([(&b"room"[..], &b"kitchen"[..]), (b"unit", b"celsius")]);
    let definition = Definition { labels, policy: Some(DuplicatePolicy::Last), ..Definition::default() };
    let mut series = TimeSeries::new(definition);
    for time in 0..points {
        // Full precision in part, so that blocks are large.
        let value = if time % 50 == 0 { (time as f64).sqrt() } else { (time % 50) as f64 / 10.0 };
        series.append(time * 1_000, value, None).unwrap();
    }
    series
}

#[test]
fn a_series_is_read_back_as_it_was_written() {
    for points in [0, 1, 1_024, 5_000] {
        let series = series(points);
        let mut bytes = Vec::new();
        series.encode(&mut bytes);
        let mut cursor = Cursor::new(&bytes);
        let read = TimeSeries::decode(&mut cursor).unwrap();
        assert!(cursor.is_empty());
        assert_eq!(read.definition(), series.definition());
        assert_eq!(read.digest(), series.digest());
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert!(TimeSeries::decode(&mut Cursor::new(&bytes[..cut])).is_none());
        }
    }
}

#[test]
fn the_digest_does_not_depend_on_how_the_points_lie() {
    let in_order = series(3_000);
    let mut late = series(0);
    for time in (0..3_000).rev() {
        let value = in_order.points().get(time * 1_000).unwrap();
        late.append(time * 1_000, value, None).unwrap();
    }
    assert_eq!(in_order.digest(), late.digest());
    late.append(0, 7.0, None).unwrap();
    assert_ne!(in_order.digest(), late.digest());
}

#[test]
fn a_capture_has_the_points_at_its_start() {
    let mut series = series(200_000);
    let digest = series.digest();
    assert!(series.needs_parts());
    series.begin_capture(7);
    let mut pieces = Pieces::default();
    let mut time = 0;
    while series.capture_step(&mut pieces) {
        series.append(time, 99.0, None).unwrap();
        series.remove(time + 1_000, time + 500_000);
        time += 1_000_000;
    }
    assert!(time > 0, "the capture takes several steps");
    let SnapshotForm::Pieces { decode, join } = TimeSeries::SNAPSHOT_FORM else { unreachable!() };
    let mut parts: Vec<(u64, Object)> = Vec::new();
    for piece in pieces.into_inner() {
        let mut cursor = Cursor::new(&piece);
        while !cursor.is_empty() {
            assert_eq!(cursor.take(2).unwrap()[1], crate::value::Type::Series.code());
            assert_eq!(cursor.varint(), Some(7));
            let place = cursor.varint().unwrap();
            let count = cursor.u32().unwrap();
            parts.push((place, decode(&mut cursor, count).unwrap()));
        }
    }
    parts.sort_by_key(|(place, _)| *place);
    let joined = join(parts.into_iter().map(|(_, part)| part).collect()).unwrap();
    assert_eq!(TimeSeries::from_object(&joined).unwrap().digest(), digest);
    assert_ne!(series.digest(), digest);
}
