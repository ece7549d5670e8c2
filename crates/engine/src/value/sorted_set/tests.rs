use super::*;
use crate::persist::record::put_bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn set(members: &[(&str, f64)]) -> SortedSet {
    let mut set = SortedSet::default();
    members.iter().for_each(|(member, score)| set.update(member.as_bytes(), |_| Some(*score)));
    set
}

fn members(set: &SortedSet) -> Vec<(Vec<u8>, f64)> {
    set.iter().map(|(member, score)| (member.to_vec(), score)).collect()
}

fn reread(set: &SortedSet) -> Option<SortedSet> {
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    let mut cursor = Cursor::new(&bytes);
    let decoded = SortedSet::decode(&mut cursor);
    assert!(cursor.is_empty());
    decoded
}

fn encoded(form: u8, members: &[(f64, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![form, members.len() as u8];
    for (score, member) in members {
        bytes.extend_from_slice(&score.to_le_bytes());
        put_bytes(&mut bytes, member);
    }
    bytes
}

#[test]
fn members_are_ordered_by_score_then_by_bytes_and_the_zeros_are_equal() {
    let set = set(&[("b", 0.0), ("a", -0.0), ("z", -1.5), ("low", f64::NEG_INFINITY), ("aa", 0.0)]);
    let names: Vec<&[u8]> = set.iter().map(|(member, _)| member).collect();
    assert_eq!(names, [b"low".as_slice(), b"z", b"a", b"aa", b"b"]);
    assert!(set.score(b"a").is_some_and(f64::is_sign_positive), "one of the zeros is kept");
}

/// With different scores, a range by names is undefined. It is still equal for every copy of the
/// set, regardless of its history.
#[test]
fn ranges_by_names_do_not_depend_on_what_the_set_has_been_through() {
    let name = |n: u32| n.wrapping_mul(2_654_435_761).to_string();
    let mut set = SortedSet::default();
    (0..3000).for_each(|n| set.update(name(n).as_bytes(), |_| Some(f64::from(n % 7))));
    (0..3000).filter(|n| n % 5 < 2).for_each(|n| _ = set.remove(name(n).as_bytes()));
    (0..700).for_each(|n| set.update(name(n * 3).as_bytes(), |_| Some(f64::from(n % 90))));
    let again = reread(&set).expect("what was encoded decodes");
    assert_eq!(members(&again), members(&set));
    for n in 0..1000 {
        let bound = name(n);
        let point = |set: &SortedSet| set.partition_point_by_name(|member| member < bound.as_bytes());
        assert_eq!(point(&again), point(&set), "{bound}");
    }
}

#[test]
fn a_set_becomes_large_with_its_129th_member_and_stays_so() {
    let mut set = SortedSet::default();
    for n in 0..128 {
        set.update(format!("m{n}").as_bytes(), |_| Some(f64::from(n % 10)));
    }
    assert_eq!(set.encoding(), "listpack");
    set.update(b"m128", |_| Some(0.0));
    assert_eq!((set.encoding(), set.len()), ("skiplist", 129));
    (0..120).for_each(|n| assert!(set.remove(format!("m{n}").as_bytes()).is_some()));
    assert_eq!((set.encoding(), set.len()), ("skiplist", 9));
    assert_eq!(reread(&set).map(|set| set.encoding()), Some("skiplist"));
}

#[test]
fn a_member_of_more_than_64_bytes_makes_a_set_large() {
    let mut set = set(&[("a", 1.0)]);
    set.update(&[b'x'; 64], |_| Some(1.0));
    assert_eq!(set.encoding(), "listpack");
    set.update(&[b'x'; 65], |_| Some(1.0));
    assert_eq!((set.encoding(), set.len()), ("skiplist", 3));
}

#[test]
fn a_large_member_costs_its_bytes_and_twenty_four() {
    assert_eq!(size_of::<Option<member::Member>>(), 8);
    assert_eq!(size_of::<member::Ranked>(), 16);
}

#[test]
fn a_snapshot_that_is_not_a_sorted_set_is_refused() {
    let decodes = |bytes: &[u8]| SortedSet::decode(&mut Cursor::new(bytes)).is_some();
    assert!(decodes(&encoded(PACKED, &[(1.0, b"a"), (2.0, b"b")])));
    assert!(decodes(&encoded(INDEXED, &[(1.0, b"a")])));
    assert!(!decodes(&encoded(2, &[(1.0, b"a")])), "unknown form");
    assert!(!decodes(&encoded(PACKED, &[])), "nothing");
    assert!(!decodes(&encoded(PACKED, &[(f64::NAN, b"a")])), "not a number");
    assert!(!decodes(&encoded(PACKED, &[(2.0, b"a"), (1.0, b"b")])), "not in order");
    assert!(!decodes(&encoded(INDEXED, &[(1.0, b"a"), (2.0, b"a")])), "the same member twice");
    assert!(!decodes(&encoded(PACKED, &[(1.0, &[0; 65])])), "too long for its form");
    let mut huge = vec![INDEXED];
    put_varint(&mut huge, u64::MAX);
    assert!(!decodes(&huge), "more members than bytes");
}

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<u8>, f64),
    Remove(Vec<u8>),
    RemoveRange(usize, usize),
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => (0..400_u16).prop_map(|n| format!("member:{n}").into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..80),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-5..5_i8).prop_map(f64::from),
        any::<f64>().prop_filter("a number", |score| !score.is_nan()),
        Just(-0.0),
        Just(f64::INFINITY),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (member(), score()).prop_map(|(member, score)| Step::Set(member, score)),
        3 => member().prop_map(Step::Remove),
        1 => (0..300_usize, 0..20_usize).prop_map(|(from, count)| Step::RemoveRange(from, from + count)),
    ]
}

/// Naive model: a map that is sorted for each check.
fn sorted(model: &BTreeMap<Vec<u8>, f64>) -> Vec<(Vec<u8>, f64)> {
    let mut sorted: Vec<_> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    sorted.sort_by(|one, other| compare((one.1, &one.0), (other.1, &other.0)));
    sorted
}

#[test]
fn a_scan_visits_everything_and_its_cursors_stay_small() {
    for count in [0, 1, 129, 5_000] {
        let mut set = SortedSet::default();
        (0..count).for_each(|n| set.update(n.to_string().as_bytes(), |_| Some(f64::from(n))));
        let (mut cursor, mut seen) = (0, BTreeMap::new());
        loop {
            cursor = set.scan(cursor, 10, |member, score| {
                seen.insert(member.to_vec(), score);
            });
            assert!(cursor < 1 << 16, "a cursor is not larger than the table");
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), count as usize);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_sorted_set_behaves_as_a_sorted_vector(steps in proptest::collection::vec(step(), 0..400)) {
        let (mut set, mut model) = (SortedSet::default(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Set(member, score) => {
                    let before = model.insert(member.clone(), score);
                    set.update(&member, |present| { assert_eq!(present, before); Some(score) });
                }
                Step::Remove(member) => prop_assert_eq!(set.remove(&member), model.remove(&member)),
                Step::RemoveRange(from, to) => {
                    let expected: Vec<_> = sorted(&model).into_iter().take(to).skip(from).collect();
                    let mut taken = Vec::new();
                    set.remove_range(from..to, |member, score| taken.push((member.to_vec(), score)));
                    expected.iter().for_each(|(member, _)| { model.remove(member); });
                    prop_assert_eq!(taken, expected);
                }
            }
            prop_assert_eq!(set.len(), model.len());
        }
        let expected = sorted(&model);
        prop_assert_eq!(members(&set), expected.clone());
        prop_assert!(set.iter().rev().map(|(member, score)| (member.to_vec(), score)).eq(expected.iter().rev().cloned()));
        for (rank, (member, score)) in expected.iter().enumerate() {
            prop_assert_eq!(set.rank(member), Some((rank, *score)));
            prop_assert_eq!(set.get(rank), Some((&member[..], *score)));
            let below = expected.iter().filter(|other| other.1 < *score).count();
            prop_assert_eq!(set.partition_point(|_, other| other < *score), below);
        }
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            cursor = set.scan(cursor, 10, |member, score| seen.push((member.to_vec(), score)));
            if cursor == 0 { break; }
        }
        seen.sort_by(|one, other| compare((one.1, &one.0), (other.1, &other.0)));
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn equal_sets_have_equal_digests_and_snapshots_whatever_their_history(
        model in proptest::collection::btree_map(member(), score(), 1..200),
        noise in proptest::collection::vec(member(), 0..50),
    ) {
        let expected = sorted(&model);
        let borrowed: Vec<(f64, &[u8])> = expected.iter().map(|(member, score)| (*score, &member[..])).collect();
        let straight = SortedSet::from_ascending(&borrowed);
        let mut winding = SortedSet::default();
        noise.iter().for_each(|member| winding.update(member, |_| Some(7.0)));
        model.iter().rev().for_each(|(member, score)| winding.update(member, |_| Some(*score)));
        noise.iter().filter(|member| !model.contains_key(*member)).for_each(|member| { winding.remove(member); });
        prop_assert_eq!(straight.digest(), winding.digest());
        for set in [straight, winding] {
            let again = reread(&set).expect("what was encoded decodes");
            prop_assert_eq!(members(&again), expected.clone());
            prop_assert_eq!((again.digest(), again.encoding()), (set.digest(), set.encoding()));
        }
    }

    #[test]
    fn a_changed_score_or_member_changes_the_digest(model in proptest::collection::btree_map(member(), score(), 1..50)) {
        let expected = sorted(&model);
        let borrowed: Vec<(f64, &[u8])> = expected.iter().map(|(member, score)| (*score, &member[..])).collect();
        let mut set = SortedSet::from_ascending(&borrowed);
        let digest = set.digest();
        let (member, score) = &expected[0];
        set.update(member, |_| Some(if *score < 1.0 { 1.0 } else { -1.0 }));
        prop_assert_ne!(set.digest(), digest);
        set.remove(member);
        prop_assert_ne!(set.digest(), digest);
    }

    #[test]
    fn any_bytes_decode_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(form) = bytes.first_mut() { *form %= 3; }
        if let Some(set) = SortedSet::decode(&mut Cursor::new(&bytes)) {
            prop_assert!(!set.is_empty());
        }
    }
}
