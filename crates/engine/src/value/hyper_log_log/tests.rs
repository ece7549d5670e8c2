use super::*;
use proptest::prelude::*;

fn sketch_of(elements: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    create(&mut bytes);
    for element in elements {
        add(&mut bytes, element);
    }
    invalidate(&mut bytes);
    bytes
}

fn count(bytes: &[u8]) -> i64 {
    Sketch::of(bytes).expect("a sketch").count()
}

fn registers(bytes: &[u8]) -> Vec<u8> {
    let mut registers = Registers::zero();
    registers.merge(Sketch::of(bytes).expect("a sketch"));
    registers.iter().collect()
}

fn numbered(from: u32, to: u32) -> Vec<Vec<u8>> {
    (from..to).map(|number| number.to_le_bytes().to_vec()).collect()
}

/// Elements, and what Redis 7.0.15 answers to `PFDEBUG DECODE` of a sketch with only this one.
const DECODED: [(&str, &str); 6] = [
    ("", "Z:5938 v:2,1 Z:10445"),
    ("a", "Z:12711 v:2,1 Z:3672"),
    ("foo", "Z:7348 v:5,1 Z:9035"),
    ("hello12", "Z:10449 v:1,1 Z:5934"),
    ("12345678", "Z:10579 v:3,1 Z:5804"),
    ("a longer element of text", "Z:686 v:2,1 Z:15697"),
];

#[test]
fn hashes_are_those_of_redis() {
    for (element, shown) in DECODED {
        let bytes = sketch_of(&[element.as_bytes().to_vec()]);
        assert_eq!(Sketch::of(&bytes).expect("a sketch").shown(), shown, "{element}");
    }
}

#[test]
fn an_empty_sketch_has_redis_s_bytes_and_counts_nothing() {
    let bytes = sketch_of(&[]);
    assert_eq!(bytes, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff");
    assert_eq!(count(&bytes), 0);
}

#[test]
fn a_valid_cached_estimate_is_believed() {
    let mut bytes = sketch_of(&numbered(0, 10));
    bytes[8..16].copy_from_slice(&77_u64.to_le_bytes());
    assert_eq!(count(&bytes), 77);
    invalidate(&mut bytes);
    assert_eq!(count(&bytes), 10);
}

#[test]
fn the_estimate_is_as_exact_as_promised() {
    let (mut bytes, mut added) = (sketch_of(&[]), 0);
    for target in [1_u32, 10, 100, 1000, 10_000, 100_000, 1_000_000] {
        for element in added..target {
            add(&mut bytes, &element.to_le_bytes());
        }
        added = target;
        let error = (count(&bytes) as f64 / f64::from(target) - 1.0).abs();
        assert!(error < 4.0 * 0.0081, "{target} elements are estimated with an error of {error}");
    }
}

#[test]
fn a_sketch_becomes_dense_and_keeps_its_registers() {
    let elements = numbered(0, 20_000);
    let mut bytes = sketch_of(&[]);
    let mut dense = bytes.clone();
    assert!(make_dense(&mut dense) && !make_dense(&mut dense));
    for element in &elements {
        assert_eq!(add(&mut bytes, element), add(&mut dense, element));
        assert!(bytes.len() <= SPARSE_BYTES_MAX || bytes.len() == DENSE_BYTES);
    }
    assert_eq!(Sketch::of(&bytes).expect("a sketch").encoding(), Encoding::Dense);
    assert_eq!(bytes, dense);
}

#[test]
fn what_is_no_sketch_is_refused_as_by_redis() {
    let valid = sketch_of(&numbered(0, 3));
    let refusal = |bytes: &[u8]| Sketch::of(bytes).expect_err("refused").to_string();
    let changed = |at: usize, byte: u8| {
        let mut bytes = valid.clone();
        bytes[at] = byte;
        bytes
    };
    assert!(refusal(b"").starts_with("WRONGTYPE"));
    assert!(refusal(&valid[..15]).starts_with("WRONGTYPE"));
    assert!(refusal(&changed(0, b'h')).starts_with("WRONGTYPE"));
    assert!(refusal(&changed(4, 2)).starts_with("WRONGTYPE"));
    assert!(refusal(&changed(4, 0)).starts_with("WRONGTYPE"), "a dense one has one length");
    assert!(refusal(&[&valid[..], b"hello"].concat()).starts_with("INVALIDOBJ"));
    assert!(refusal(&valid[..valid.len() - 1]).starts_with("INVALIDOBJ"));
}

/// CVE-2025-32023: runs of zeros whose sum leaves the range of an integer of 32 bits.
/// CVE-2019-10192 and CVE-2019-10193: runs beyond the last register.
#[test]
fn runs_beyond_the_registers_are_refused() {
    let header = &sketch_of(&[])[..HEADER];
    let endless = [header, &b"\x7f\xff".repeat(140_000), &b"\xff".repeat(40_000)].concat();
    let one_more = [header, b"\x7f\xff\x80"].concat();
    let whole_and_zeros = [header, b"\x7f\xff\x00"].concat();
    for bytes in [endless, one_more, whole_and_zeros] {
        assert_eq!(Sketch::of(&bytes).expect_err("refused"), CORRUPTED, "{} bytes", bytes.len());
    }
}

/// What a sparse sketch has where neither elements nor Redis bring it: short runs beside each other.
fn odd_sparse() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((0..70_usize, 0..33_u8, 1..5_usize), 0..200).prop_map(|runs| {
        let mut bytes = sketch_of(&[]);
        bytes.truncate(HEADER);
        let mut left = REGISTERS;
        for (zeros, value, len) in runs {
            if zeros > 0 {
                bytes.extend_from_slice(&(0x4000 | (zeros as u16 - 1)).to_be_bytes());
            }
            if value > 0 {
                bytes.push(0x80 | (value - 1) << 2 | (len as u8 - 1));
            }
            left -= zeros + if value > 0 { len } else { 0 };
        }
        bytes.extend_from_slice(&(0x4000 | (left as u16 - 1)).to_be_bytes());
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn sparse_and_dense_sketches_agree(
        start in odd_sparse(),
        elements in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..100),
    ) {
        let (mut sparse, mut dense) = (start.clone(), start);
        make_dense(&mut dense);
        for element in &elements {
            prop_assert_eq!(add(&mut sparse, element), add(&mut dense, element));
            prop_assert!(!add(&mut sparse, element));
        }
        prop_assert_eq!(registers(&sparse), registers(&dense));
        invalidate(&mut sparse);
        invalidate(&mut dense);
        prop_assert_eq!(count(&sparse), count(&dense));
    }

    #[test]
    fn a_union_counts_what_one_sketch_of_all_does(one in 0..3000_u32, other in 0..3000_u32, overlap in 0..500_u32) {
        let (ours, theirs) = (numbered(0, one), numbered(one.saturating_sub(overlap), one + other));
        let all = sketch_of(&[ours.clone(), theirs.clone()].concat());
        let (mut ours, theirs) = (sketch_of(&ours), sketch_of(&theirs));
        let mut union = Registers::zero();
        for bytes in [&ours, &theirs] {
            union.merge(Sketch::of(bytes).expect("a sketch"));
        }
        prop_assert_eq!(union.count(), count(&all));
        raise_all(&mut ours, &union);
        prop_assert_eq!(registers(&ours), registers(&all));
        prop_assert_eq!(count(&ours), count(&all));
    }

    #[test]
    fn any_bytes_are_a_sketch_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        dense: bool,
        element: u64,
    ) {
        let mut bytes = if dense {
            let mut whole = sketch_of(&[]);
            make_dense(&mut whole);
            whole[HEADER..HEADER + bytes.len()].copy_from_slice(&bytes);
            whole
        } else {
            [&sketch_of(&[])[..HEADER], &bytes].concat()
        };
        if let Ok(sketch) = Sketch::of(&bytes) {
            sketch.count();
            sketch.shown();
            add(&mut bytes, &element.to_le_bytes());
            prop_assert!(Sketch::of(&bytes).is_ok());
        }
    }
}
