//! Damaged files are errors, and the rows before the damage are those of the file.

use crate::support::{open, rows, write};
use proptest::prelude::*;
use tidemark_tables::{Format, Layout, Mapping, Points, SeriesRow, Unit};

fn table(format: Format) -> Vec<u8> {
    let series = SeriesRow { key: b"kitchen".to_vec(), labels: vec![Some(b"1".to_vec())] };
    let points = Points {
        times: (0..300).map(|time| time * 1000).collect(),
        columns: vec![(0..300).map(|time| f64::from(time) / 7.0).collect()],
    };
    let layout = Layout {
        unit: Unit::Milliseconds,
        dates: false,
        labels: vec![b"floor".to_vec()],
        values: Layout::one_value(),
    };
    write(format, &layout, &[(series, points)]).expect("a table")
}

proptest! {
    #[test]
    fn no_damage_panics(
        format in proptest::sample::select(vec![Format::Parquet, Format::Csv, Format::Jsonl]),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = table(format);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Whether a change is noticed depends on where it is: texts have no checksums.
        let _ = open(format, &bytes, &Mapping::default()).and_then(|mut reader| rows(&mut *reader));
    }

    #[test]
    fn a_parquet_file_without_its_end_is_refused(cut in any::<prop::sample::Index>()) {
        let mut bytes = table(Format::Parquet);
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(open(Format::Parquet, &bytes, &Mapping::default()).is_err());
    }
}
