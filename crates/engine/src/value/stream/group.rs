//! Consumer groups: which entries were delivered to which consumer, and are not acknowledged yet.

use super::id::Id;
use super::ordered::{Keyed, Ordered};
use std::collections::BTreeMap;

/// A consumer's number in its group.
pub(crate) type ConsumerNumber = u32;

/// An entry that was delivered and is not acknowledged: Redis's NACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// ID of the entry, which may be deleted by now.
    pub id: Id,
    /// Time of the last delivery, in milliseconds since 1970.
    pub delivered_ms: u64,
    /// Number of deliveries.
    pub deliveries: u64,
    pub(crate) consumer: ConsumerNumber,
}

impl Keyed for Pending {
    fn id(&self) -> Id {
        self.id
    }
}

/// A consumer of a group.
#[derive(Debug, Clone)]
pub struct Consumer {
    name: Box<[u8]>,
    /// When it last asked for entries, in milliseconds since 1970. Volatile: a request that delivers
    /// nothing is not logged.
    pub(super) seen_ms: u64,
    pub(super) pending: Ordered<Id>,
}

impl Consumer {
    /// Returns the name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns when it last asked for entries, in milliseconds since 1970.
    pub fn seen_ms(&self) -> u64 {
        self.seen_ms
    }

    /// Returns the number of its pending entries.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}

/// Chunks of pending entries and consumers from which on a group is large.
const MANY_PARTS: usize = 64;

/// A group of consumers, each of which gets other entries.
///
/// Every pending entry is among those of the group and of exactly one of its consumers.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// ID of the last entry that was delivered.
    pub(crate) last: Id,
    /// How many entries were ever delivered, counted from the stream's first; `None` if that is not
    /// known.
    pub(crate) entries_read: Option<u64>,
    pub(super) pending: Ordered<Pending>,
    numbers: BTreeMap<Box<[u8]>, ConsumerNumber>,
    /// By their numbers.
    consumers: Vec<Option<Consumer>>,
    /// Numbers of deleted consumers.
    free: Vec<ConsumerNumber>,
}

impl Group {
    /// Creates a group that has read up to an entry.
    pub(super) fn new(last: Id, entries_read: Option<u64>) -> Self {
        Self { last, entries_read, ..Self::default() }
    }

    /// Returns the ID of the last entry that was delivered.
    pub fn last(&self) -> Id {
        self.last
    }

    /// Returns how many entries were ever delivered, if that is known.
    pub fn entries_read(&self) -> Option<u64> {
        self.entries_read
    }

    /// Iterates over the consumers, by their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.numbers.values().map(|number| self.of_number(*number))
    }

    fn of_number(&self, number: ConsumerNumber) -> &Consumer {
        self.consumers.get(number as usize).and_then(Option::as_ref).expect("a number is that of a consumer")
    }

    fn of_number_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        let consumer = self.consumers.get_mut(number as usize).and_then(Option::as_mut);
        consumer.expect("a number is that of a consumer")
    }

    /// Returns a consumer.
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.numbers.get(name).map(|number| self.of_number(*number))
    }

    /// Returns each consumer's place in the order of the names, by its number.
    pub(super) fn ordinals(&self) -> Vec<u64> {
        let mut ordinals = vec![0; self.consumers.len()];
        for (ordinal, number) in self.numbers.values().enumerate() {
            ordinals[*number as usize] = ordinal as u64;
        }
        ordinals
    }

    /// Returns the name of the consumer that got an entry.
    pub fn owner(&self, pending: &Pending) -> &[u8] {
        &self.of_number(pending.consumer).name
    }

    /// Returns a consumer's number, after it has asked for entries.
    pub(crate) fn see(&mut self, name: &[u8], now_ms: u64) -> Option<ConsumerNumber> {
        let number = *self.numbers.get(name)?;
        self.of_number_mut(number).seen_ms = now_ms;
        Some(number)
    }

    /// Creates a consumer; `None` if it is there already.
    pub(crate) fn create_consumer(&mut self, name: &[u8], now_ms: u64) -> Option<ConsumerNumber> {
        if self.numbers.contains_key(name) {
            return None;
        }
        let consumer = Consumer { name: name.into(), seen_ms: now_ms, pending: Ordered::default() };
        let number = if let Some(number) = self.free.pop() {
            self.consumers[number as usize] = Some(consumer);
            number
        } else {
            self.consumers.push(Some(consumer));
            u32::try_from(self.consumers.len() - 1).expect("memory ends before so many consumers")
        };
        self.numbers.insert(name.into(), number);
        Some(number)
    }

    /// Deletes a consumer with its pending entries. Returns how many it had; `None` if there is no such
    /// consumer.
    pub(crate) fn delete_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.numbers.remove(name)?;
        let consumer = self.consumers[number as usize].take().expect("a number is that of a consumer");
        self.free.push(number);
        for id in consumer.pending.iter_from(Id::MIN) {
            self.pending.remove(*id);
        }
        Some(consumer.pending.len())
    }

    /// Returns the number of pending entries.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether freeing it takes long enough to be moved to another thread.
    pub(crate) fn is_large(&self) -> bool {
        self.pending.chunks() + self.consumers.len() > MANY_PARTS
    }

    /// Returns a pending entry.
    pub fn pending_entry(&self, id: Id) -> Option<&Pending> {
        self.pending.get(id)
    }

    /// Returns the IDs of the first and last pending entry.
    pub fn pending_ends(&self) -> Option<(Id, Id)> {
        Some((self.pending.first()?.id, self.pending.last()?.id))
    }

    /// Iterates over the pending entries from an ID on.
    pub fn pending_from(&self, id: Id) -> impl Iterator<Item = &Pending> {
        self.pending.iter_from(id)
    }

    /// Iterates over the pending entries of a consumer from an ID on.
    pub fn pending_of(&self, consumer: &Consumer, id: Id) -> impl Iterator<Item = &Pending> {
        let of_group = |id: &Id| self.pending.get(*id).expect("a consumer's entry is also the group's");
        consumer.pending.iter_from(id).map(of_group)
    }

    /// Notes that the group has read up to an entry.
    pub(crate) fn pass(&mut self, last: Id) {
        self.last = last;
    }

    /// Notes that a pending entry was delivered to its consumer once more.
    pub(crate) fn redeliver(&mut self, id: Id, now_ms: u64) {
        if let Some(pending) = self.pending.get_mut(id) {
            pending.delivered_ms = now_ms;
            pending.deliveries = pending.deliveries.saturating_add(1);
        }
    }

    /// Notes the delivery of an entry to a consumer, which takes it from any other.
    pub(crate) fn deliver(&mut self, id: Id, consumer: ConsumerNumber, now_ms: u64) {
        self.assign(Pending { id, delivered_ms: now_ms, deliveries: 1, consumer });
    }

    /// Makes an entry pending as given, whether or not it was.
    pub(crate) fn assign(&mut self, pending: Pending) {
        let Pending { id, consumer, .. } = pending;
        let before = match self.pending.get_mut(id) {
            Some(there) => {
                let before = there.consumer;
                *there = pending;
                Some(before)
            }
            None => {
                self.pending.insert(pending);
                None
            }
        };
        if before == Some(consumer) {
            return;
        }
        if let Some(before) = before {
            self.of_number_mut(before).pending.remove(id);
        }
        let is_new = self.of_number_mut(consumer).pending.insert(id);
        assert!(is_new, "entry {id} was pending at its consumer, and not in the group");
    }

    /// Ends that an entry is pending; `false` if it was not.
    pub(crate) fn acknowledge(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(id) else { return false };
        let removed = self.of_number_mut(pending.consumer).pending.remove(id);
        assert!(removed.is_some(), "entry {id} is pending in the group, and not at its consumer");
        true
    }
}
