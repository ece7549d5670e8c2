use super::{PART_BYTES, Parts, Pieces};
use crate::keyspace::form::{self, Form};
use crate::persist::record::Cursor;
use crate::value::{End, Hash, InParts, List, Set, SortedSet, Type, TypedValue};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A change of one element, by number, or of many.
#[derive(Debug, Clone, Copy)]
enum Step {
    Set(u16, u8),
    Remove(u16),
    Push(bool, u8),
    Pop(bool, u16),
    Replace(i64, u8),
    Insert(u16, bool),
    RemoveRange(u16, u16),
    Trim(u16, u16),
    /// Removes all but this many, so that a table shrinks.
    Purge(u16),
    /// Adds many, so that a table grows.
    Fill(u16),
    /// The snapshot continues.
    Walk,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3000_u16, any::<u8>()).prop_map(|(name, value)| Step::Set(name, value)),
        4 => (0..3000_u16).prop_map(Step::Remove),
        4 => (any::<bool>(), any::<u8>()).prop_map(|(front, value)| Step::Push(front, value)),
        4 => (any::<bool>(), 1..200_u16).prop_map(|(front, count)| Step::Pop(front, count)),
        4 => (-2000..2000_i64, any::<u8>()).prop_map(|(index, value)| Step::Replace(index, value)),
        1 => (0..3000_u16, any::<bool>()).prop_map(|(pivot, behind)| Step::Insert(pivot, behind)),
        2 => (0..2500_u16, 0..300_u16).prop_map(|(from, count)| Step::RemoveRange(from, count)),
        1 => (0..400_u16, 0..400_u16).prop_map(|(front, back)| Step::Trim(front, back)),
        1 => (0..60_u16).prop_map(Step::Purge),
        1 => (0..4000_u16).prop_map(Step::Fill),
        8 => Just(Step::Walk),
    ]
}

/// All numbers of names are below this.
const NAMES: u16 = 4000;

fn name(number: u16) -> Vec<u8> {
    format!("element:{number}:{}", "x".repeat(usize::from(number % 7) * 40)).into_bytes()
}

fn change_list(list: &mut List, step: Step) {
    let end = |front| if front { End::Front } else { End::Back };
    match step {
        Step::Set(number, _) => list.push(End::Back, &name(number)),
        Step::Push(front, value) => list.push(end(front), &[value]),
        Step::Pop(front, count) => (0..count).for_each(|_| list.pop(end(front), |_| ()).unwrap_or_default()),
        Step::Replace(index, value) => _ = list.set(index, &vec![value; usize::from(value) * 4]),
        Step::Insert(pivot, behind) => _ = list.insert_beside(&name(pivot), behind, b"beside"),
        Step::Remove(number) => _ = list.remove(&name(number), i64::from(number % 3) - 1),
        Step::Trim(front, back) => {
            list.trim(usize::from(front)..list.len().saturating_sub(back.into()));
        }
        Step::Purge(kept) => list.trim(100..100 + usize::from(kept)),
        Step::Fill(count) => (0..count).for_each(|n| list.push(end(n % 2 == 0), &name(n))),
        Step::RemoveRange(..) | Step::Walk => {}
    }
}

fn change_hash(hash: &mut Hash, step: Step) {
    match step {
        Step::Set(number, value) => _ = hash.set(&name(number), &[value]),
        Step::Remove(number) => _ = hash.remove(&name(number)),
        Step::RemoveRange(from, count) => (from..from + count).for_each(|n| _ = hash.remove(&name(n))),
        Step::Purge(kept) => (kept..NAMES).for_each(|n| _ = hash.remove(&name(n))),
        Step::Fill(count) => (0..count).for_each(|n| _ = hash.set(&name(n), b"filled")),
        _ => {}
    }
}

fn change_set(set: &mut Set, step: Step) {
    match step {
        Step::Set(number, _) => _ = set.insert(&name(number)),
        Step::Remove(number) => _ = set.remove(&name(number)),
        Step::RemoveRange(from, count) => (from..from + count).for_each(|n| _ = set.remove(&name(n))),
        Step::Purge(kept) => (kept..NAMES).for_each(|n| _ = set.remove(&name(n))),
        Step::Fill(count) => (0..count).for_each(|n| _ = set.insert(&name(n))),
        _ => {}
    }
}

fn change_sorted_set(set: &mut SortedSet, step: Step) {
    match step {
        Step::Set(number, score) => set.update(&name(number), |_| Some(f64::from(score) * 12.0)),
        Step::Remove(number) => _ = set.remove(&name(number)),
        Step::RemoveRange(from, count) => {
            set.remove_range(usize::from(from)..usize::from(from + count), |_, _| ());
        }
        Step::Purge(kept) => set.remove_range(kept.into()..usize::MAX, |_, _| ()),
        Step::Fill(count) => {
            (0..count).for_each(|n| set.update(&name(n), |_| Some(f64::from(n % 91) * 40.0)));
        }
        _ => {}
    }
}

/// Assembles a value from its parts.
fn put_together<T: TypedValue + Default + InParts>(
    parts: &[Vec<u8>],
    number: u64,
    append: fn(&mut T, T),
) -> T {
    let mut runs: BTreeMap<(u64, usize), T> = BTreeMap::new();
    for part in parts {
        let mut bytes = Cursor::new(part);
        let place = runs.len();
        let Some(Form::Part(part)) = form::decode(&mut bytes) else { panic!("not a part: {part:?}") };
        assert_eq!((part.number, part.kind), (number, T::TYPE));
        let run = runs.entry((part.place, place)).or_default();
        (0..part.count).for_each(|_| run.decode_element(&mut bytes).expect("an element"));
        assert!(bytes.is_empty() && part.count > 0);
    }
    let mut whole = T::default();
    for run in runs.into_values() {
        append(&mut whole, run);
    }
    whole
}

/// Captures a value and changes it during the walk. Compares the parts with the value at the cut,
/// and the value with a twin that was not captured.
fn disturb<T: TypedValue + Default + InParts>(
    make: impl Fn() -> T,
    change: impl Fn(&mut T, Step),
    append: fn(&mut T, T),
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let (at_cut, mut twin, mut captured) = (make(), make(), make());
    prop_assert!(captured.needs_parts() && !captured.is_captured());
    captured.begin_capture(7);
    let (mut pieces, mut more) = (Pieces::default(), true);
    for &step in steps {
        if matches!(step, Step::Walk) {
            more = captured.capture_step(&mut pieces);
        } else {
            change(&mut captured, step);
            change(&mut twin, step);
        }
        prop_assert_eq!(captured.is_captured(), more);
    }
    while captured.capture_step(&mut pieces) {}
    prop_assert!(!captured.is_captured());
    prop_assert_eq!(captured.digest(), twin.digest());
    prop_assert_eq!(pieces.ended, 1);
    let seen = put_together(&pieces.into_inner(), 7, append);
    prop_assert_eq!(seen.count(), at_cut.count());
    prop_assert_eq!(seen.digest(), at_cut.digest());
    prop_assert_eq!(seen.into_object().encoding(), at_cut.into_object().encoding());
    Ok(())
}

fn many<T: Default>(mut add: impl FnMut(&mut T, u16)) -> T {
    let mut value = T::default();
    (0..3500).for_each(|number| add(&mut value, number));
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_seen_as_it_was_at_the_cut(steps in proptest::collection::vec(step(), 0..60)) {
        let make = || many(|list: &mut List, number| list.push(End::Back, &name(number)));
        disturb(make, change_list, List::append, &steps)?;
    }

    #[test]
    fn a_hash_is_seen_as_it_was_at_the_cut(steps in proptest::collection::vec(step(), 0..200)) {
        let make = || many(|hash: &mut Hash, number| _ = hash.set(&name(number), b"value"));
        let append = |whole: &mut Hash, run: Hash| run.iter().for_each(|(field, value)| {
            assert!(whole.set(field, value), "every field comes once");
        });
        disturb(make, change_hash, append, &steps)?;
    }

    #[test]
    fn a_set_is_seen_as_it_was_at_the_cut(steps in proptest::collection::vec(step(), 0..200)) {
        let make = || many(|set: &mut Set, number| _ = set.insert(&name(number)));
        let append = |whole: &mut Set, run: Set| run.iter().for_each(|member| {
            assert!(whole.insert(&member), "every member comes once");
        });
        disturb(make, change_set, append, &steps)?;
    }

    #[test]
    fn a_sorted_set_is_seen_as_it_was_at_the_cut(steps in proptest::collection::vec(step(), 0..200)) {
        let make = || {
            many(|set: &mut SortedSet, number| set.update(&name(number), |_| Some(f64::from(number))))
        };
        let append = |whole: &mut SortedSet, run: SortedSet| run.iter().for_each(|(member, score)| {
            assert!(whole.score(member).is_none(), "every member comes once");
            whole.update(member, |_| Some(score));
        });
        disturb(make, change_sorted_set, append, &steps)?;
    }
}

#[test]
fn parts_are_bounded_whatever_the_elements() {
    let mut hash = Hash::default();
    for number in 0..100_u16 {
        hash.set(&name(number), &vec![b'v'; 20_000]);
    }
    assert!(hash.needs_parts());
    hash.begin_capture(1);
    let mut pieces = Pieces::default();
    let mut steps = 0;
    while hash.capture_step(&mut pieces) {
        steps += 1;
    }
    assert!(steps >= 10, "{steps}");
    assert!(pieces.into_inner().iter().all(|part| part.len() <= PART_BYTES + 20_400));
}

#[test]
#[should_panic(expected = "1 elements of value 1, a Set, are in none of its parts")]
fn a_value_of_which_an_element_is_missing_is_noticed() {
    let mut parts = Parts::new(1, Type::Set, 2);
    let mut pieces = Pieces::default();
    parts.push(|part| part.push(0));
    parts.end(&mut pieces);
}
