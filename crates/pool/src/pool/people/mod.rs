//! Users of a pool, with what the rules have counted for them.

mod image;
mod standing;

pub(super) use standing::Standing;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// Maximum number of users with counts.
pub const USERS_MAX: usize = 1 << 20;

/// Maximum number of idle users evicted when a user is added. More than one, so their number
/// shrinks.
const FORGOTTEN_AT_ONCE: usize = 2;

/// A time that never comes.
const NEVER: u64 = u64::MAX;

/// Count of one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Number of the window, counted from 1970; 0 if the rule has none.
    window: u64,
    count: u64,
}

/// Count of each rule, limits before guarantees.
pub(super) type Tallies = Box<[Tally]>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    id: Box<[u8]>,
    tallies: Tallies,
    /// From when on none of the counts matters. Milliseconds since 1970, or [`NEVER`].
    idle_ms: u64,
}

/// State before a change, to undo it.
#[derive(Debug, Clone)]
pub(super) enum Before {
    /// The last user did not exist.
    Absent,
    /// The user had these tallies.
    Counted(u32, Tallies, u64),
    /// The user existed, and has been removed.
    Present(u32, Box<Person>),
}

/// Users with counts. Their order is deterministic: it follows from the draws.
#[derive(Debug, Clone)]
pub(super) struct People {
    all: Vec<Person>,
    by_id: HashTable<u32>,
    /// Users that will become idle, by that time.
    by_time: BTreeSet<(u64, u32)>,
    max: usize,
    hasher: RandomState,
}

impl Default for People {
    fn default() -> Self {
        Self::up_to(USERS_MAX)
    }
}

impl People {
    /// Creates an empty set for up to `max` users.
    fn up_to(max: usize) -> Self {
        Self {
            all: Vec::new(),
            by_id: HashTable::new(),
            by_time: BTreeSet::new(),
            max,
            hasher: RandomState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn tallies(&self, id: &[u8]) -> Option<&[Tally]> {
        self.find(id).map(|place| &*self.all[place as usize].tallies)
    }

    /// Returns whether the user exists or can be added.
    pub(super) fn has_room_for(&self, id: &[u8], now_ms: u64) -> bool {
        self.len() < self.max || self.find(id).is_some() || self.first_idle(now_ms).is_some()
    }

    /// Stores a user's tallies, which matter until `idle_ms`, and returns the states before, in the
    /// order of the changes. Removes the user if all counts are 0. Evicts some idle users when a
    /// user is added.
    pub(super) fn keep(&mut self, id: &[u8], tallies: Tallies, idle_ms: u64, now_ms: u64) -> Vec<Before> {
        let is_empty = tallies.iter().all(|tally| tally.count == 0);
        match self.find(id) {
            Some(place) if is_empty => vec![self.remove(place)],
            Some(place) => vec![self.replace(place, tallies, idle_ms)],
            None if is_empty => Vec::new(),
            None => {
                let mut before = Vec::new();
                while before.len() < FORGOTTEN_AT_ONCE
                    && let Some(place) = self.first_idle(now_ms)
                {
                    before.push(self.remove(place));
                }
                self.push(Person { id: id.into(), tallies, idle_ms });
                before.push(Before::Absent);
                before
            }
        }
    }

    /// Undoes one change; call it for the last change first.
    pub(super) fn undo(&mut self, before: Before) {
        match before {
            Before::Absent => _ = self.remove(self.len() as u32 - 1),
            Before::Counted(place, tallies, idle_ms) => _ = self.replace(place, tallies, idle_ms),
            Before::Present(place, person) => self.insert(place, *person),
        }
    }

    fn find(&self, id: &[u8]) -> Option<u32> {
        let is_it = |&place: &u32| *self.all[place as usize].id == *id;
        self.by_id.find(self.hasher.hash_one(id), is_it).copied()
    }

    /// Returns the user that has been idle longest.
    fn first_idle(&self, now_ms: u64) -> Option<u32> {
        self.by_time.first().filter(|(idle_ms, _)| *idle_ms <= now_ms).map(|&(_, place)| place)
    }

    fn replace(&mut self, place: u32, tallies: Tallies, idle_ms: u64) -> Before {
        let person = &mut self.all[place as usize];
        let before = std::mem::replace(&mut person.tallies, tallies);
        let idle_before = std::mem::replace(&mut person.idle_ms, idle_ms);
        if idle_before != idle_ms {
            self.unlist(idle_before, place);
            self.list(idle_ms, place);
        }
        Before::Counted(place, before, idle_before)
    }

    fn push(&mut self, person: Person) {
        self.all.push(person);
        self.enter(self.len() as u32 - 1);
    }

    /// Removes a user; the last one moves to its place.
    fn remove(&mut self, place: u32) -> Before {
        let last = self.len() as u32 - 1;
        self.leave(place);
        if place != last {
            self.leave(last);
        }
        let person = self.all.swap_remove(place as usize);
        if place != last {
            self.enter(place);
        }
        Before::Present(place, Box::new(person))
    }

    /// Undoes [`remove`](Self::remove): the user that has the place becomes the last again.
    fn insert(&mut self, place: u32, person: Person) {
        let last = self.len() as u32;
        if place != last {
            self.leave(place);
        }
        self.all.push(person);
        self.all.swap(place as usize, last as usize);
        self.enter(place);
        if place != last {
            self.enter(last);
        }
    }

    /// Adds the user at a place to the indexes.
    fn enter(&mut self, place: u32) {
        self.list(self.all[place as usize].idle_ms, place);
        let Self { all, by_id, hasher, .. } = self;
        let hash = |place: &u32| hasher.hash_one(&*all[*place as usize].id);
        by_id.insert_unique(hash(&place), place, hash);
    }

    /// Removes the user at a place from the indexes.
    fn leave(&mut self, place: u32) {
        let Person { id, idle_ms, .. } = &self.all[place as usize];
        let (hash, idle_ms) = (self.hasher.hash_one(&**id), *idle_ms);
        self.unlist(idle_ms, place);
        match self.by_id.find_entry(hash, |&other| other == place) {
            Ok(entry) => _ = entry.remove(),
            Err(_) => unreachable!("the user at place {place} of {} is not found by its id", self.len()),
        }
    }

    fn list(&mut self, idle_ms: u64, place: u32) {
        if idle_ms != NEVER {
            let is_new = self.by_time.insert((idle_ms, place));
            assert!(is_new, "the user at place {place} is listed twice at {idle_ms}");
        }
    }

    fn unlist(&mut self, idle_ms: u64, place: u32) {
        if idle_ms != NEVER {
            let was_listed = self.by_time.remove(&(idle_ms, place));
            assert!(was_listed, "the user at place {place} is not listed at {idle_ms}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn tallies(count: u64) -> Tallies {
        Box::new([Tally { window: 3, count }])
    }

    /// All users in order, and the index by time.
    fn seen(people: &People) -> (Vec<Person>, Vec<(u64, u32)>) {
        for (place, person) in (0..).zip(&people.all) {
            assert_eq!(people.find(&person.id), Some(place));
        }
        assert_eq!(people.by_id.len(), people.len());
        (people.all.clone(), people.by_time.iter().copied().collect())
    }

    proptest! {
        #[test]
        fn whatever_is_undone_has_not_been(
            steps in vec((0_u8..9, 0_u64..3, prop_oneof![0_u64..20, Just(NEVER)], 0_u64..20), 0..40),
        ) {
            let mut people = People::up_to(5);
            let mut states = vec![seen(&people)];
            let mut done = Vec::new();
            for (id, count, idle_ms, now_ms) in steps {
                if !people.has_room_for(&[id], now_ms) {
                    prop_assert!(people.len() == 5);
                    continue;
                }
                done.push(people.keep(&[id], tallies(count), idle_ms, now_ms));
                prop_assert_eq!(people.tallies(&[id]).is_some(), count > 0);
                states.push(seen(&people));
            }
            while let Some(before) = done.pop() {
                prop_assert_eq!(Some(seen(&people)), states.pop());
                before.into_iter().rev().for_each(|before| people.undo(before));
            }
            prop_assert_eq!(Some(seen(&people)), states.pop());
        }
    }

    #[test]
    fn an_expired_user_is_evicted() {
        let mut people = People::up_to(2);
        people.keep(b"a", tallies(1), 10, 0);
        people.keep(b"b", tallies(1), NEVER, 0);
        assert!(
            !people.has_room_for(b"c", 9) && people.has_room_for(b"a", 9) && people.has_room_for(b"c", 10)
        );
        people.keep(b"c", tallies(1), 20, 10);
        assert!(people.tallies(b"a").is_none() && people.tallies(b"b").is_some());
        assert_eq!(people.len(), 2);
        // All counts are 0.
        people.keep(b"b", tallies(0), NEVER, 10);
        assert_eq!(people.len(), 1);
    }
}
