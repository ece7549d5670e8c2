use super::*;
use crate::exact_sum::Halves;
use proptest::prelude::*;

fn block<V: Sample>(times: &[i64], values: &[V]) -> Block {
    Block::encode(times, values, &mut Hints::default())
}

fn points() -> impl Strategy<Value = (Vec<i64>, Vec<f64>)> {
    let step = prop_oneof![Just(1_000_i64), 1_i64..5_000];
    (any::<i32>(), proptest::collection::vec((step, -9_999_i32..9_999), 1..=BLOCK_POINTS)).prop_map(
        |(first, points)| {
            let mut time = i64::from(first);
            let next = |(step, digits): (i64, i32)| {
                time += step;
                (time, f64::from(digits) / 100.0)
            };
            points.into_iter().map(next).unzip()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_block_has_the_points_that_were_sealed((times, values) in points()) {
        let block = block(&times, &values);
        let read = Block::from_words::<f64>(block.words()).unwrap();
        prop_assert_eq!(&read, &block);
        let (mut read_times, mut read_values) = ([0; BLOCK_POINTS], [0.0; BLOCK_POINTS]);
        let count = read.decode(&mut read_times, &mut read_values);
        prop_assert_eq!(&read_times[..count], &times[..]);
        prop_assert_eq!(&read_values[..count], &values[..]);
        prop_assert_eq!((read.first_time(), read.last_time()), (times[0], times[count - 1]));
        for (time, value) in times.iter().zip(&values) {
            prop_assert_eq!(read.get::<f64>(*time), Some(*value));
            if !times.contains(&(time + 1)) {
                prop_assert_eq!(read.get::<f64>(time + 1), None);
            }
        }
        prop_assert_eq!(read.get::<f64>(times[0] - 1), None);
    }

    #[test]
    fn every_flipped_bit_is_found((times, values) in points(), at in any::<proptest::sample::Index>()) {
        let block = block(&times, &values);
        let mut words = block.words().to_vec();
        let bit = at.index(words.len() * 64);
        words[bit / 64] ^= 1 << (bit % 64);
        prop_assert!(Block::from_words::<f64>(&words).is_err());
    }

    #[test]
    fn a_block_that_was_made_by_hand_is_refused_or_read(
        (times, values) in points(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u64>()), 1..4),
    ) {
        let block = block(&times, &values);
        let mut words = block.words().to_vec();
        for (at, bits) in damage {
            words[at.index(block.words().len())] ^= bits;
        }
        words[1] = words[1] >> 32 << 32 | u64::from(checksum(&words));
        if let Ok(read) = Block::from_words::<f64>(&words) {
            read.decode(&mut [0; BLOCK_POINTS], &mut [0.0; BLOCK_POINTS]);
            read.get::<f64>(times[0]);
            read.summary::<f64>();
        }
    }
}

#[test]
fn what_is_no_block_is_refused() {
    assert_eq!(Block::from_words::<f64>(&[]), Err(BlockError::NotABlock(0)));
    assert_eq!(Block::from_words::<f64>(&[0; 40]), Err(BlockError::NotABlock(40)));
    let mut whole: Vec<u64> = block(&[1, 2, 3], &[1.5, 2.5, f64::NAN]).words().into();
    whole.push(0);
    assert_eq!(Block::from_words::<f64>(&whole), Err(BlockError::NotABlock(whole.len())));
    whole.pop();
    assert_eq!(
        Block::from_words::<i64>(&whole),
        Err(BlockError::Kind { expected: Kind::Integer, found: Kind::Float })
    );
    whole[0] ^= 7 << 32;
    whole[1] = whole[1] >> 32 << 32 | u64::from(checksum(&whole));
    assert_eq!(Block::from_words::<f64>(&whole), Err(BlockError::Version(6)));
}

#[test]
fn the_summary_leaves_nan_out() {
    let summary = block(&[1, 2, 3, 4], &[f64::NAN, 2.5, -1.0, 0.5]).summary::<f64>();
    assert_eq!(summary.nans, 1);
    assert_eq!((summary.lowest, summary.highest, summary.last), (-1.0, 2.5, 0.5));
    assert_eq!(summary.sum, Some(Halves { high: 2.0, low: 0.0 }));
    let far_apart = block(&[1, 2], &[1e300, 1.0]).summary::<f64>();
    assert_eq!(far_apart.sum, None);
    let booleans = block(&[1, 2, 3], &[true, false, true]).summary::<bool>();
    assert_eq!(booleans.sum, Some(Halves { high: 2.0, low: 0.0 }));
}
