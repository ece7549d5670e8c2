use super::*;
use crate::BLOCK_POINTS;
use crate::sample::Sample;
use crate::series::{Options, Series};
use proptest::prelude::*;

/// Returns the blocks of a series with these points.
fn blocks<V: Sample>(points: &[(i64, V)]) -> Vec<Block> {
    let mut series = Series::new(Options::default());
    for (time, value) in points {
        series.append(*time, *value).expect("times rise");
    }
    series.seal_all();
    (0..series.parts()).map(|index| series.block(index).expect("all is sealed").clone()).collect()
}

fn stored(bundle: &Bundle) -> Vec<u8> {
    let mut bytes = Vec::new();
    bundle.encode(None, &mut bytes);
    bytes
}

/// Checks that blocks are read back to the bit, and compressed. Returns their bytes, and those of the bundle.
fn check<V: Sample>(blocks: &[Block]) -> (usize, usize) {
    let bundle = Bundle::of(blocks);
    assert!(!bundle.times().is_empty(), "the blocks are stored as they are");
    let bytes = stored(&bundle);
    let read = StoredBundle::read(&bytes, None).expect("what was written is well formed");
    assert_eq!(read.len(), blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let words = read.words(index).expect("what was written is well formed");
        assert_eq!(Block::from_words::<V>(&words).as_ref(), Ok(block));
        assert_eq!(read.words_behind(block, index).as_deref(), Ok(block.words()));
    }
    assert!(read.words(blocks.len()).is_err());
    (blocks.iter().map(|block| 8 * block.stored_words()).sum(), bytes.len())
}

/// Values of every kind that a sensor has, and of those that are hard to keep.
fn values() -> impl Strategy<Value = Vec<u64>> {
    let hard = prop_oneof![
        Just(f64::NAN.to_bits()),
        Just(0x7ff8_dead_beef_0001),
        Just(0xfff0_0000_0000_0001),
        Just((-0.0_f64).to_bits()),
        Just(0.0_f64.to_bits()),
        Just(f64::INFINITY.to_bits()),
        Just(1_u64),
        Just(f64::MIN_POSITIVE.to_bits() - 1),
        Just(f64::MAX.to_bits()),
        Just(i64::MIN.cast_unsigned()),
        Just(i64::MAX.cast_unsigned()),
        any::<u64>(),
    ];
    let decimal = (-9_999_i64..9_999).prop_map(|digits| (digits as f64 / 100.0).to_bits());
    let counter = (0_u64..50).prop_map(|step| (step as f64).to_bits());
    let size = 1..3 * BLOCK_POINTS;
    prop_oneof![
        proptest::collection::vec(decimal.clone(), size.clone()),
        proptest::collection::vec(counter, size.clone()),
        proptest::collection::vec(prop_oneof![50 => decimal, 1 => hard.clone()], size.clone()),
        proptest::collection::vec(hard.clone(), size.clone()),
        (hard, size.clone()).prop_map(|(value, count)| vec![value; count]),
        proptest::collection::vec(any::<u64>(), size),
    ]
}

fn points<V: Sample>(first: i64, values: &[u64], jitter: u64) -> Vec<(i64, V)> {
    let point = |(index, bits): (usize, &u64)| {
        let time = index as i64 * 1_000 + (bits % jitter).cast_signed();
        (first + time, V::from_bits(*bits))
    };
    values.iter().enumerate().map(point).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn blocks_are_read_back_to_the_bit(
        first in prop_oneof![Just(i64::MIN), Just(i64::MAX / 2), any::<i32>().prop_map(i64::from)],
        values in values(),
        jitter in prop_oneof![Just(1_u64), 1_u64..1_000],
    ) {
        check::<f64>(&blocks(&points::<f64>(first, &values, jitter)));
        check::<i64>(&blocks(&points::<i64>(first, &values, jitter)));
        check::<bool>(&blocks(&points::<bool>(first, &values, jitter)));
    }

    #[test]
    fn damaged_bundles_are_refused_or_give_words(
        values in values(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = stored(&Bundle::of(&blocks(&points::<f64>(0, &values, 7))));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        if let Ok(read) = StoredBundle::read(&bytes, None) {
            for index in 0..read.len() {
                // Another checksum would be wrong: it is made of the words.
                if let Ok(words) = read.words(index) {
                    let _ = Block::from_words::<f64>(&words);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_no_bundle_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(read) = StoredBundle::read(&bytes, None) {
            (0..read.len()).for_each(|index| drop(read.words(index)));
        }
    }
}

#[test]
fn a_value_that_stays_takes_next_to_nothing() {
    let (alone, bundled) =
        check::<f64>(&blocks(&points::<f64>(0, &vec![42.5_f64.to_bits(); 8 * BLOCK_POINTS], 1)));
    assert!(bundled < 180 && bundled < alone / 4, "{bundled} bytes instead of {alone}");
}

#[test]
fn series_with_the_same_times_share_them() {
    let jittered = |value: fn(i64) -> f64| -> Vec<Block> {
        let point = |index: i64| (index * 1_000 + index * index % 61, value(index));
        blocks(&(0..4 * BLOCK_POINTS as i64).map(point).collect::<Vec<_>>())
    };
    let one = Bundle::of(&jittered(|index| (index % 7) as f64));
    let other_blocks = jittered(|index| (index % 100) as f64 / 10.0);
    let other = Bundle::of(&other_blocks);
    assert_eq!(one.times(), other.times());
    let with_times = stored(&one);
    let mut bytes = Vec::new();
    other.encode(Some(300), &mut bytes);
    // The number takes two bytes.
    assert_eq!(bytes.len() + one.times().len(), stored(&other).len() + 1);
    assert!(one.times().len() > 100, "{} bytes of times", one.times().len());

    assert_eq!(BundleTimes::elsewhere(&with_times), Ok(None));
    assert_eq!(BundleTimes::elsewhere(&bytes), Ok(Some(300)));
    assert!(BundleTimes::read(&bytes).is_err(), "it has none itself");
    let times = BundleTimes::read(&with_times).expect("its times");
    let read = StoredBundle::read(&bytes, Some(&times)).expect("both are well formed");
    for (index, block) in other_blocks.iter().enumerate() {
        assert_eq!(read.words(index).as_deref(), Ok(block.words()));
    }
    assert!(StoredBundle::read(&bytes, None).is_err(), "its times are elsewhere");
    let fewer = BundleTimes::read(&stored(&Bundle::of(&other_blocks[..2]))).expect("its times");
    let read = StoredBundle::read(&bytes, Some(&fewer)).expect("both are well formed");
    assert!(read.words(0).is_err(), "times of fewer blocks");
}

#[test]
fn blocks_that_no_program_has_made_are_stored_as_they_are() {
    let mut made = blocks(&points::<f64>(0, &[1, 2, 3], 1));
    let mut words = made[0].words().to_vec();
    // A lowest value that no point has.
    words[7] = 2.5_f64.to_bits();
    words[1] = words[1] >> 32 << 32 | u64::from(crate::block::checksum(&words));
    made[0] = Block::from_words::<f64>(&words).expect("its checksum is right");
    let bundle = Bundle::of(&made);
    assert!(bundle.times().is_empty());
    let mut bytes = Vec::new();
    bundle.encode(Some(3), &mut bytes);
    assert_eq!(BundleTimes::elsewhere(&bytes), Ok(None));
    assert!(BundleTimes::read(&bytes).is_err());
    let read = StoredBundle::read(&bytes, None).expect("it is well formed");
    assert_eq!(read.words_behind(&made[0], 0).as_ref(), Ok(&words));
    assert_eq!(read.words(0), Ok(words));
    bytes.push(0);
    assert!(StoredBundle::read(&bytes, None).is_ok_and(|read| read.words(0).is_err()));
}
