//! Advancing the schedule: units are released, or lapse.

use super::timetable::Coming;
use super::{Change, Urn};
use crate::catalogue::item::Stock;
use crate::catalogue::schedule::Release;
use crate::draw::selector::Selector;

/// An advance of the schedule, with what is needed to undo it.
#[derive(Debug, Clone)]
pub(crate) struct Advance {
    before_ms: u64,
    changes: Vec<Change>,
}

impl<S: Selector> Urn<S> {
    /// Returns the releases, grouped by item, in the order of the items.
    pub fn releases(&self) -> &[Release<u32>] {
        self.timetable.as_ref().map_or(&[], |timetable| timetable.releases())
    }

    /// Returns the time up to which the schedule has advanced. Milliseconds since 1970; 0 without a
    /// schedule.
    pub fn released_until_ms(&self) -> u64 {
        self.timetable.as_ref().map_or(0, |timetable| timetable.now_ms())
    }

    /// Returns the time of the next release or lapse. Milliseconds since 1970. O(1).
    pub fn next_release_ms(&self) -> Option<u64> {
        self.timetable.as_ref()?.next_ms()
    }

    /// Returns the items with an event due by this time. Milliseconds since 1970. O(1) for each.
    pub fn due_items(&self, now_ms: u64) -> impl Iterator<Item = u32> {
        self.timetable.iter().flat_map(move |timetable| timetable.due(now_ms)).map(|coming| coming.item)
    }

    /// Advances the schedule to this time; `None`, without a change, if nothing is due. O(log n)
    /// for each item with a due event.
    pub(crate) fn advance(&mut self, now_ms: u64) -> Option<Advance> {
        let timetable = self
            .timetable
            .as_deref()
            .filter(|timetable| timetable.next_ms().is_some_and(|at_ms| at_ms <= now_ms))?;
        let before_ms = timetable.now_ms();
        let due: Vec<Coming> = timetable.due(now_ms).collect();
        let changes = due.iter().map(|coming| self.noted(coming.item)).collect();
        due.iter().for_each(|coming| self.leave(coming.item));
        self.go_to(now_ms);
        for &Coming { item, lapses, units } in &due {
            // An item that became unlimited needs no units, and a removed item gets none.
            if let Stock::Limited(left) = self.stocks.stock(item)
                && self.has(item)
            {
                let kept = if lapses { 0 } else { left };
                let fits = self.stocks.restock(item, Stock::Limited(kept + units));
                assert!(
                    fits.is_some(),
                    "{units} units of item {item} come to {kept}, more than there can be"
                );
            }
            self.enter(item);
        }
        Some(Advance { before_ms, changes })
    }

    pub(crate) fn undo_advance(&mut self, advance: &Advance) {
        advance.changes.iter().for_each(|change| self.leave(change.item()));
        self.go_to(advance.before_ms);
        for change in &advance.changes {
            self.stocks.stand(change.item(), change.standing());
            self.enter(change.item());
        }
    }

    fn go_to(&mut self, now_ms: u64) {
        self.timetable.as_mut().expect("only a schedule goes on").go_to(now_ms);
    }
}
