//! Sets: distinct members.
//!
//! A set of integers is a sorted array. The first member that is not an integer, or one integer too
//! many, converts it permanently to a map without values.

use super::dict::{Dict, pair_digest};
use super::integers::Integers;
use super::text::{Decimal, Text};
use super::{InParts, Pieces, TypedValue, Value};
use crate::command::parse::canonical_integer;
use crate::persist::record::{Cursor, put_varint};
use crate::random::Random;

/// Most members of a set of integers (Redis's `set-max-intset-entries`).
const MAX_INTEGERS: usize = 512;

/// Distinct byte strings. Adding, finding and removing a member is O(1).
#[derive(Debug, Default)]
pub struct Set {
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Integers(Integers),
    Members(Dict),
}

impl Default for Shape {
    fn default() -> Self {
        Self::Integers(Integers::default())
    }
}

impl Set {
    /// Returns Redis's name of this representation.
    pub fn encoding(&self) -> &'static str {
        match &self.shape {
            Shape::Integers(_) => "intset",
            Shape::Members(_) => "hashtable",
        }
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match &self.shape {
            Shape::Integers(integers) => integers.len(),
            Shape::Members(members) => members.len(),
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a member. Returns whether it is new.
    #[inline]
    pub fn insert(&mut self, member: &[u8]) -> bool {
        if let Shape::Integers(integers) = &mut self.shape {
            match canonical_integer(member) {
                Some(value) if integers.len() < MAX_INTEGERS || integers.contains(value) => {
                    return integers.insert(value);
                }
                _ => self.spell_out(),
            }
        }
        match &mut self.shape {
            Shape::Members(members) => members.insert(member, b""),
            Shape::Integers(_) => unreachable!("the integers have just been spelled out"),
        }
    }

    /// Whether the set contains a member.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.shape {
            Shape::Integers(integers) => {
                canonical_integer(member).is_some_and(|value| integers.contains(value))
            }
            Shape::Members(members) => members.contains(member),
        }
    }

    /// Removes a member. Returns whether it was present.
    #[inline]
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.shape {
            Shape::Integers(integers) => {
                canonical_integer(member).is_some_and(|value| integers.remove(value))
            }
            Shape::Members(members) => members.remove(member),
        }
    }

    /// Iterates over all members: integers ascending, other small sets in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = Text<'_>> {
        let (integers, members) = match &self.shape {
            Shape::Integers(integers) => (Some(integers), None),
            Shape::Members(members) => (None, Some(members)),
        };
        let members = members.into_iter().flat_map(Dict::iter).map(|(member, _)| Text::Bytes(member));
        integers.into_iter().flat_map(Integers::iter).map(text).chain(members)
    }

    /// Visits members from a cursor, like [`Dict::scan`]. A set of integers is visited whole.
    pub(crate) fn scan<'a>(&'a self, cursor: u64, budget: usize, mut visit: impl FnMut(Text<'a>)) -> u64 {
        match &self.shape {
            Shape::Integers(integers) => {
                integers.iter().for_each(|value| visit(text(value)));
                0
            }
            Shape::Members(members) => members.scan(cursor, budget, |member, _| visit(Text::Bytes(member))),
        }
    }

    /// Returns a random member.
    pub(crate) fn random(&self, random: &mut Random) -> Option<Text<'_>> {
        match &self.shape {
            Shape::Integers(integers) if integers.len() == 0 => None,
            Shape::Integers(integers) => integers.get(random.below(integers.len())).map(text),
            Shape::Members(members) => members.random(random).map(|(member, _)| Text::Bytes(member)),
        }
    }

    /// Returns different random members, like [`Dict::sample`].
    pub(crate) fn sample(&self, count: usize, random: &mut Random) -> Vec<Text<'_>> {
        match &self.shape {
            Shape::Integers(integers) => random.select(integers.iter().map(text), integers.len(), count),
            Shape::Members(members) => {
                members.sample(count, random).into_iter().map(|(member, _)| Text::Bytes(member)).collect()
            }
        }
    }

    /// Draws random members with repetition, like [`Dict::draw`].
    pub(crate) fn draw<'a, E>(
        &'a self,
        count: usize,
        random: &mut Random,
        mut visit: impl FnMut(Text<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.shape {
            Shape::Integers(_) => (0..count).filter_map(|_| self.random(random)).try_for_each(visit),
            Shape::Members(members) => members.draw(count, random, |member, _| visit(Text::Bytes(member))),
        }
    }

    /// Iterates over the intersection. O(N*M): N is the size of the smallest, M the number of sets.
    pub(crate) fn intersection<'a>(sets: &[&'a Self]) -> impl Iterator<Item = Text<'a>> {
        let mut sets = sets.to_vec();
        sets.sort_by_key(|set| set.len());
        let (smallest, others) = match sets.split_first() {
            Some((smallest, others)) => (Some(*smallest), others.to_vec()),
            None => (None, Vec::new()),
        };
        smallest
            .into_iter()
            .flat_map(Self::iter)
            .filter(move |member| others.iter().all(|set| set.contains_text(member)))
    }

    /// Returns the union. O(N) with N the members of all sets.
    pub(crate) fn union(sets: &[&Self]) -> Self {
        sets.iter().flat_map(|set| set.iter()).collect()
    }

    /// Returns the difference. O(N) with N the members of all sets, or O(N*M) with N the set's own
    /// members and M the number of sets, whichever is expected to cost less.
    pub(crate) fn difference(&self, others: &[&Self]) -> Self {
        let total = others.iter().fold(self.len(), |total, set| total.saturating_add(set.len()));
        // A search in the other sets stops at the first match: half of them on average.
        if self.len().saturating_mul(1 + others.len()) / 2 <= total {
            let only_here = |member: &Text<'_>| !others.iter().any(|set| set.contains_text(member));
            return self.iter().filter(only_here).collect();
        }
        let mut left: Self = self.iter().collect();
        for member in others.iter().flat_map(|set| set.iter()) {
            left.remove(&member);
        }
        left
    }

    fn contains_text(&self, member: &Text<'_>) -> bool {
        match (&self.shape, member) {
            (Shape::Integers(integers), Text::Int(value, _)) => integers.contains(*value),
            _ => self.contains(member),
        }
    }

    /// Converts a set of integers to a map.
    #[cold]
    fn spell_out(&mut self) {
        let mut members = Dict::default();
        for member in self.iter() {
            members.insert(&member, b"");
        }
        self.shape = Shape::Members(members);
    }
}

impl<'a> FromIterator<Text<'a>> for Set {
    fn from_iter<I: IntoIterator<Item = Text<'a>>>(members: I) -> Self {
        let mut set = Self::default();
        for member in members {
            set.insert(&member);
        }
        set
    }
}

/// Tags of the two representations in the snapshot form.
const INTEGERS: u8 = 0;
const MEMBERS: u8 = 1;

impl Value for Set {
    collection_methods!();

    /// The tag; then the number of integers and eight bytes each, or a map.
    fn encode(&self, into: &mut Vec<u8>) {
        match &self.shape {
            Shape::Integers(integers) => {
                into.push(INTEGERS);
                put_varint(into, integers.len() as u64);
                integers.iter().for_each(|value| into.extend_from_slice(&value.to_le_bytes()));
            }
            Shape::Members(members) => {
                into.push(MEMBERS);
                members.encode(into);
            }
        }
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let shape = match bytes.u8()? {
            INTEGERS => {
                let mut integers = Integers::default();
                for _ in 0..bytes.varint().filter(|&count| count <= MAX_INTEGERS as u64)? {
                    integers.insert(bytes.u64()?.cast_signed()).then_some(())?;
                }
                Shape::Integers(integers)
            }
            MEMBERS => Shape::Members(Dict::decode(bytes)?),
            _ => return None,
        };
        let set = Self { shape };
        (!set.is_empty()).then_some(set)
    }

    fn digest(&self) -> u64 {
        self.iter().fold(0, |sum, member| sum.wrapping_add(pair_digest(&member, b"")))
    }
}

impl InParts for Set {
    fn needs_parts(&self) -> bool {
        matches!(&self.shape, Shape::Members(members) if members.is_large())
    }

    fn begin_capture(&mut self, number: u64) {
        if let Shape::Members(members) = &mut self.shape {
            members.begin_capture(number, Self::TYPE);
        }
    }

    fn end_capture(&mut self) {
        if let Shape::Members(members) = &mut self.shape {
            members.end_capture();
        }
    }

    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn is_captured(&self) -> bool {
        matches!(&self.shape, Shape::Members(members) if members.is_captured())
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        match &mut self.shape {
            Shape::Integers(_) => false,
            Shape::Members(members) => members.capture_step(pieces),
        }
    }

    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        if let Shape::Integers(_) = &self.shape {
            self.spell_out();
        }
        match &mut self.shape {
            Shape::Integers(_) => None,
            Shape::Members(members) => members.decode_pair(bytes),
        }
    }
}

fn text<'a>(value: i64) -> Text<'a> {
    Text::Int(value, Decimal::of(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Model = BTreeSet<Vec<u8>>;

    fn members(set: &Set) -> Model {
        set.iter().map(|member| member.to_vec()).collect()
    }

    fn of(members: &Model) -> Set {
        members.iter().map(|member| Text::Bytes(member)).collect()
    }

    fn read_back(set: &Set) -> Option<Set> {
        let mut form = Vec::new();
        set.encode(&mut form);
        let mut cursor = Cursor::new(&form);
        Set::decode(&mut cursor).filter(|_| cursor.is_empty())
    }

    /// Few integers, many integers, and arbitrary members.
    fn some_members() -> impl Strategy<Value = Model> {
        let integers = |count| proptest::collection::btree_set(0..1_000_i64, 0..count);
        let spelled = |set: BTreeSet<i64>| set.iter().map(|n| n.to_string().into_bytes()).collect();
        prop_oneof![
            integers(20).prop_map(spelled),
            integers(600).prop_map(spelled),
            proptest::collection::btree_set("[a-c0-9]{0,2}".prop_map(String::into_bytes), 0..40),
        ]
    }

    #[test]
    fn integers_come_out_sorted_until_there_is_something_else() {
        let mut set = Set::default();
        ["10", "-2", "7"].iter().for_each(|member| assert!(set.insert(member.as_bytes())));
        assert_eq!(set.encoding(), "intset");
        assert!(set.iter().map(|member| member.to_vec()).eq([b"-2".to_vec(), b"7".to_vec(), b"10".to_vec()]));
        assert!(!set.contains(b"07") && set.insert(b"07"), "07 is not a way to write an integer");
        assert_eq!((set.len(), set.encoding()), (4, "hashtable"));
        assert!(set.remove(b"07") && set.contains(b"7"));
        assert_eq!(set.encoding(), "hashtable");
    }

    #[test]
    fn the_513th_integer_makes_a_table() {
        let mut set: Set = (0..512).map(text).collect();
        assert!(!set.insert(b"511"));
        assert_eq!(set.encoding(), "intset");
        assert!(set.insert(b"512"));
        assert_eq!((set.len(), set.encoding()), (513, "hashtable"));
    }

    #[test]
    fn damaged_forms_are_refused() {
        let twice = [&[INTEGERS, 2][..], &[7; 16]].concat();
        assert!(Set::decode(&mut Cursor::new(&twice)).is_none());
        assert!(Set::decode(&mut Cursor::new(&[INTEGERS, 0])).is_none());
        assert!(Set::decode(&mut Cursor::new(&[MEMBERS, 0])).is_none());
        assert!(Set::decode(&mut Cursor::new(&[2, 0])).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_set_behaves_as_a_set(
            steps in proptest::collection::vec((any::<bool>(), "[ab]{0,1}-?[0-9]{1,3}"), 0..300),
        ) {
            let (mut set, mut model) = (Set::default(), Model::new());
            for (add, member) in steps {
                let member = member.into_bytes();
                if add {
                    prop_assert_eq!(set.insert(&member), model.insert(member.clone()));
                } else {
                    prop_assert_eq!(set.remove(&member), model.remove(&member));
                }
                prop_assert_eq!(set.contains(&member), add);
                prop_assert_eq!(set.len(), model.len());
            }
            prop_assert_eq!(members(&set), model.clone());
            prop_assert_eq!(set.digest(), of(&model).digest());
            prop_assert_eq!(read_back(&set).map(|read| members(&read)), (!model.is_empty()).then_some(model));
        }

        #[test]
        fn algebra_is_that_of_sets(models in proptest::collection::vec(some_members(), 1..5)) {
            let sets: Vec<Set> = models.iter().map(of).collect();
            let sets: Vec<&Set> = sets.iter().collect();
            let common: Set = Set::intersection(&sets).collect();
            let (first, others) = models.split_first().expect("one model at least");
            let kept = |inside: bool| -> Model {
                let fits = |member: &&Vec<u8>| others.iter().all(|other| other.contains(*member) == inside);
                first.iter().filter(fits).cloned().collect()
            };
            prop_assert_eq!(members(&common), kept(true));
            prop_assert_eq!(members(&sets[0].difference(&sets[1..])), kept(false));
            prop_assert_eq!(members(&Set::union(&sets)), models.iter().flatten().cloned().collect::<Model>());
        }

        #[test]
        fn a_sample_is_a_part_and_has_no_member_twice(model in some_members(), count in 0..700_usize, seed: u64) {
            let set = of(&model);
            let mut random = Random::new(seed);
            let sample: Vec<Vec<u8>> = set.sample(count, &mut random).iter().map(|member| member.to_vec()).collect();
            prop_assert_eq!(sample.len(), count.min(model.len()));
            prop_assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), sample.len());
            prop_assert!(sample.iter().all(|member| model.contains(member)));
            let mut drawn = 0;
            let drawing: Result<(), ()> = set.draw(count, &mut random, |member| {
                drawn += usize::from(model.contains(&*member));
                Ok(())
            });
            prop_assert!(drawing.is_ok());
            prop_assert_eq!(drawn, if model.is_empty() { 0 } else { count });
        }

        #[test]
        fn any_bytes_decode_to_what_they_are_or_are_refused(bytes in damage::bytes(100)) {
            let encode = |set: &Set| {
                let mut form = Vec::new();
                set.encode(&mut form);
                form
            };
            damage::check(&bytes, Set::decode, encode, members)?;
        }
    }
}
