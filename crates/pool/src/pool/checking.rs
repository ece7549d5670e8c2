//! Auditing a log: everything that can be computed is checked.

use super::Pool;
use super::divergence::Divergence;
use crate::by::By;
use crate::draw::selector::Selector;
use crate::ending::Ending;
use crate::record::bytes::put_number;
use crate::record::event::Event;
use crate::record::frame::Chain;

impl<S: Selector> Pool<S> {
    /// Applies an event that was logged at this time, and checks all that can be checked. As
    /// [`verify`](Self::verify), and also:
    ///
    /// - An expired reservation was overdue; a confirmed or cancelled one was not.
    /// - What users did counts for the time at which they did it.
    /// - The schedule did not advance early.
    /// - At each draw, no reservation was overdue and no scheduled event was due.
    ///
    /// Draws of an epoch whose secret is [sealed](crate::Secret::sealed) are only
    /// [applied](Self::apply), as they cannot be computed.
    ///
    /// # Errors
    /// [`Divergence`]; do not use the pool after that.
    pub fn check(&mut self, time_us: u64, event: &Event<'_>) -> Result<(), Divergence> {
        if let Event::Ended { number, how } = event
            && let Some(until_us) = self.reservation(*number).map(|reservation| reservation.until_us)
        {
            let (number, how, is_over) = (*number, *how, until_us <= time_us);
            match how {
                Ending::Expired if !is_over => {
                    return Err(Divergence::TooEarly { number, until_us, time_us });
                }
                Ending::Confirmed | Ending::Cancelled if is_over => {
                    return Err(Divergence::TooLate { number, how, until_us, time_us });
                }
                _ => {}
            }
        }
        let done_by = match event {
            Event::Asked(asked) => Some(asked.by),
            Event::GivenBackBy { user, now_ms, .. } => {
                Some(By { user: Some(user), request: None, now_ms: *now_ms })
            }
            _ => None,
        };
        if let Some(by) = done_by
            && by.now_ms != self.event_time(&By { now_ms: time_us / 1000, ..by })
        {
            return Err(Divergence::OtherTime { draws: self.next_draw, said_ms: by.now_ms, time_us });
        }
        if let Event::Advanced { now_ms } = event
            && *now_ms > time_us / 1000
        {
            return Err(Divergence::Hurried { now_ms: *now_ms, time_us });
        }
        if event.draws() {
            let draw = self.next_draw;
            if let Some(over) = self.next_over(time_us) {
                let (number, until_us) = (over.number(), over.until_us);
                return Err(Divergence::NotEnded { draw, number, until_us, time_us });
            }
            if let Some(due_ms) = self.urn.next_release_ms().filter(|&due_ms| due_ms <= time_us / 1000) {
                return Err(Divergence::HeldBack { draw, due_ms, time_us });
            }
        }
        if self.epoch.secret.is_sealed() { self.apply(event) } else { self.verify(event) }
    }

    /// Returns the first link of the hash chain, for a pool that has done nothing yet. It is the
    /// SHA-256 of the two commitments, the rules for sold-out items and weights, whether the
    /// selector [keeps the items' order](Selector::in_order), the items, the rules, and the
    /// schedule and tables if there are any. O(n).
    pub fn origin(&self) -> Chain {
        let mut origin = [self.commitment().0, self.next_commitment().0].concat();
        self.urn.write_head(&mut origin);
        put_number(&mut origin, u64::from(self.urn.selector().in_order()));
        self.write_items(0..self.urn.len() as u32, &mut origin);
        self.write_rules(&mut origin);
        if !self.urn.releases().is_empty() {
            self.urn.write_timetable(&mut origin);
        }
        if self.urn.tables() > 0 {
            self.urn.write_tables(&mut origin);
        }
        Chain::begin(&origin)
    }
}
