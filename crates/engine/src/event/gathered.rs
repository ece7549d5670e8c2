//! Keyspace events, collected until they are published.

use super::classes::EventClasses;
use crate::keyspace::is_internal;
use std::ops::Range;

/// An event of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Number of the key's database.
    pub db: u8,
    /// Redis's name of the event.
    pub name: &'static str,
    /// The key.
    pub key: Box<[u8]>,
}

/// The events of the commands under one set of locks, until they are published. Collects and
/// allocates nothing if no class is wanted.
#[derive(Debug, Default)]
pub(crate) struct Events(pub(super) Option<Box<Gathered>>);

#[derive(Debug)]
pub(super) struct Gathered {
    wanted: EventClasses,
    /// A few per key that a command names, so the command's size bounds them.
    events: Vec<Event>,
    /// Range of those that are key misses of the current command.
    misses: Range<usize>,
}

impl Events {
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn want(&self, class: EventClasses) -> bool {
        self.0.as_ref().is_some_and(|gathered| gathered.wanted.contains(class))
    }

    /// Adds an event. Of databases that clients do not see there are none.
    pub(crate) fn add(&mut self, class: EventClasses, db: u8, name: &'static str, key: &[u8]) {
        if is_internal(db) {
            return;
        }
        if let Some(gathered) = self.0.as_mut().filter(|gathered| gathered.wanted.contains(class)) {
            gathered.events.push(Event { db, name, key: key.into() });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |gathered| gathered.events.len())
    }

    /// Marks the events from `start` on as misses.
    pub(crate) fn set_misses(&mut self, start: usize) {
        if let Some(gathered) = &mut self.0 {
            gathered.misses = start..gathered.events.len();
        }
    }

    /// Removes the misses of the current command, because it fails.
    #[cold]
    pub(crate) fn forget_misses(&mut self) {
        if let Some(gathered) = &mut self.0 {
            gathered.events.drain(std::mem::take(&mut gathered.misses));
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        let Some(gathered) = &mut self.0 else { return Vec::new() };
        gathered.misses = 0..0;
        std::mem::take(&mut gathered.events)
    }

    #[cold]
    pub(super) fn of(wanted: EventClasses) -> Self {
        Self(Some(Box::new(Gathered { wanted, events: Vec::new(), misses: 0..0 })))
    }
}
