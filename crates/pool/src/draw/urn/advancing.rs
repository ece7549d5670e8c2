//! What time brings: units that come by the schedule, and those that lapse.

use super::timetable::Coming;
use super::{Change, Urn};
use crate::catalogue::item::Stock;
use crate::catalogue::schedule::Release;
use crate::draw::selector::Selector;

/// What time has brought: what it takes to undo that.
#[derive(Debug, Clone)]
pub(crate) struct Advance {
    before_ms: u64,
    changes: Vec<Change>,
}

impl<S: Selector> Urn<S> {
    /// What comes to the stock, and when. Those of one item stand together, the items in their order.
    pub fn releases(&self) -> &[Release<u32>] {
        self.timetable.as_ref().map_or(&[], |timetable| timetable.releases())
    }

    /// All that the schedule says until this moment has been done. Milliseconds since 1970; 0 if that is nothing.
    pub fn released_until_ms(&self) -> u64 {
        self.timetable.as_ref().map_or(0, |timetable| timetable.now_ms())
    }

    /// When units come next by the schedule, or lapse. Milliseconds since 1970. O(1).
    pub fn next_release_ms(&self) -> Option<u64> {
        self.timetable.as_ref()?.next_ms()
    }

    /// The items for which something is due by this moment. Milliseconds since 1970. O(1) for each.
    pub fn due_items(&self, now_ms: u64) -> impl Iterator<Item = u32> {
        self.timetable.iter().flat_map(move |timetable| timetable.due(now_ms)).map(|coming| coming.item)
    }

    /// Does what the schedule says until this moment; `None`, and nothing is changed, if nothing is due. O(log n) for each item for which
    /// something is.
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
            // What is unlimited by now needs nothing, and what is gone gets nothing.
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

    /// Undoes it.
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
