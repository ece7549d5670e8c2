//! Reservations of a pool, by number and by deadline, and the latest endings.

use super::reservation::{ENDED_KEPT, Reservation};
use crate::ending::Ending;
use foldhash::fast::RandomState;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Reservations of a pool.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservations {
    open: BTreeMap<u64, Reservation>,
    by_time: BTreeSet<(u64, u64)>,
    /// Number of draws in the open reservations.
    draws: usize,
    /// Units held by open reservations, by item; never 0.
    held: HashMap<u32, u64, RandomState>,
    ended: BTreeMap<u64, Ending>,
    /// Numbers of the ended reservations, oldest ending first.
    order: VecDeque<u64>,
}

impl Reservations {
    /// Returns the number of open reservations.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn draws(&self) -> usize {
        self.draws
    }

    pub(super) fn get(&self, number: u64) -> Option<&Reservation> {
        self.open.get(&number)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Reservation> {
        self.open.values()
    }

    pub(super) fn iter_from(&self, number: u64) -> impl Iterator<Item = &Reservation> {
        self.open.range(number..).map(|(_, reservation)| reservation)
    }

    /// Returns the overdue reservation with the earliest deadline.
    pub(super) fn first_over(&self, now_us: u64) -> Option<&Reservation> {
        let (_, number) = self.by_time.first().filter(|(until_us, _)| *until_us <= now_us)?;
        Some(&self.open[number])
    }

    pub(super) fn overdue(&self, now_us: u64) -> usize {
        self.by_time.range(..=(now_us, u64::MAX)).count()
    }

    pub(super) fn next_until(&self) -> Option<u64> {
        self.by_time.first().map(|&(until_us, _)| until_us)
    }

    /// Returns the kept endings, oldest first.
    pub(super) fn all_ended(&self) -> impl ExactSizeIterator<Item = (u64, Ending)> {
        self.order.iter().map(|number| (*number, self.ended[number]))
    }

    /// Returns the items with held units, in no particular order.
    pub(super) fn held_items(&self) -> impl Iterator<Item = u32> {
        self.held.keys().copied()
    }

    /// Returns how a reservation ended, if that is still kept.
    pub(super) fn ending(&self, number: u64) -> Option<Ending> {
        self.ended.get(&number).copied()
    }

    pub(super) fn held(&self, item: u32) -> u64 {
        self.held.get(&item).copied().unwrap_or(0)
    }

    pub(super) fn open(&mut self, reservation: Reservation) {
        let number = reservation.number();
        let is_new = self.by_time.insert((reservation.until_us, number));
        assert!(is_new, "reservation {number} until {} is open already", reservation.until_us);
        self.draws += reservation.draws.len();
        for item in reservation.items() {
            *self.held.entry(item).or_insert(0) += 1;
        }
        let before = self.open.insert(number, reservation);
        assert!(before.is_none(), "reservation {number} is open already");
    }

    pub(super) fn close(&mut self, number: u64) -> Option<Reservation> {
        let reservation = self.open.remove(&number)?;
        let was_listed = self.by_time.remove(&(reservation.until_us, number));
        assert!(was_listed, "reservation {number} is not listed until {}", reservation.until_us);
        self.draws -= reservation.draws.len();
        for item in reservation.items() {
            match self.held.entry(item) {
                Entry::Occupied(held) if *held.get() == 1 => _ = held.remove(),
                Entry::Occupied(mut held) => *held.get_mut() -= 1,
                Entry::Vacant(_) => unreachable!("reservation {number} holds no unit of its item {item}"),
            }
        }
        Some(reservation)
    }

    /// Records how a reservation ended, and returns the ending that this evicts.
    pub(super) fn keep(&mut self, number: u64, ending: Ending) -> Option<(u64, Ending)> {
        self.ended.insert(number, ending);
        self.order.push_back(number);
        if self.order.len() <= ENDED_KEPT {
            return None;
        }
        let oldest = self.order.pop_front().expect("more are kept than are to be");
        let ending = self.ended.remove(&oldest);
        Some((
            oldest,
            ending.unwrap_or_else(|| panic!("how reservation {oldest} ended is forgotten already")),
        ))
    }

    pub(super) fn undo_keep(&mut self, number: u64, forgotten: Option<(u64, Ending)>) {
        assert_eq!(self.order.pop_back(), Some(number), "the reservation that ended last is undone first");
        self.ended.remove(&number);
        if let Some((number, ending)) = forgotten {
            self.order.push_front(number);
            self.ended.insert(number, ending);
        }
    }
}
