//! Staged steps that can be undone: for a call that is all or nothing, and for a caller that writes
//! the steps to a log before they count.

use super::Pool;
use super::step::Step;
use super::steps::Last;
use crate::draw::selector::Selector;
use crate::record::event::{Event, Mark};

/// A position among the staged steps: see [`Pool::savepoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    steps: usize,
    recorded: Mark,
}

impl<S: Selector> Pool<S> {
    /// Starts staging: later calls take effect immediately, but can be undone.
    /// [`commit`](Self::commit) keeps them and [`revert`](Self::revert) undoes them. For a caller
    /// that writes them to a log first, which may fail.
    ///
    /// ```
    /// use tidemark_pool::selector::WideTree;
    /// use tidemark_pool::{Catalogue, Events, Item, Pool, Secret};
    ///
    /// let catalogue = Catalogue::new(vec![Item::limited("mug", 1, 2)]).unwrap();
    /// let new = || Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
    /// let (mut pool, mut log) = (new(), Vec::new());
    /// pool.stage();
    /// pool.draw().unwrap();
    /// // The log's writer has failed: no caller has got anything.
    /// pool.revert();
    /// pool.stage();
    /// pool.draw().unwrap();
    /// log.extend_from_slice(pool.staged());
    /// pool.commit();
    ///
    /// let mut again = new();
    /// for event in Events::new(&log) {
    ///     again.apply(&event.unwrap()).unwrap();
    /// }
    /// assert_eq!((again.next_draw(), pool.next_draw()), (1, 1));
    /// ```
    pub fn stage(&mut self) {
        self.staging = true;
    }

    /// Returns the staged events, to be read with [`Events`](crate::Events).
    pub fn staged(&self) -> &[u8] {
        self.recorder.bytes()
    }

    /// Returns the number of staged draws.
    pub fn staged_draws(&self) -> u64 {
        self.recorder.draws()
    }

    /// Keeps the staged steps and stops staging.
    pub fn commit(&mut self) {
        self.staging = false;
        self.steps.clear();
        self.handed_over = 0;
        self.recorder.clear();
    }

    /// Undoes all staged steps, last first, and stops staging. O(log n) a step with most selectors.
    ///
    /// The next draws get the same numbers and give the same items as the undone ones. Do not show
    /// undone draws to a client.
    pub fn revert(&mut self) {
        self.staging = false;
        self.revert_to(0);
        self.handed_over = 0;
        self.recorder.clear();
    }

    /// Returns the current position, to which [`back_to`](Self::back_to) can return.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { steps: self.steps.len(), recorded: self.recorder.mark() }
    }

    /// Returns what was staged after a savepoint. The savepoint must be younger than the last
    /// [`commit`](Self::commit), [`revert`](Self::revert) or [`hand_over`](Self::hand_over).
    pub fn staged_since(&self, savepoint: Savepoint) -> &[u8] {
        self.recorder.since(savepoint.recorded)
    }

    /// Undoes what was staged after a savepoint. The savepoint must be younger than the last
    /// [`commit`](Self::commit), [`revert`](Self::revert) or [`hand_over`](Self::hand_over). As
    /// after [`revert`](Self::revert), the next draws repeat the undone ones.
    ///
    /// # Panics
    /// If fewer steps are staged than at the savepoint, or more have been handed over.
    pub fn back_to(&mut self, savepoint: Savepoint) {
        let (steps, kept, handed_over) = (self.steps.len(), savepoint.steps, self.handed_over);
        assert!(
            (handed_over..=steps).contains(&kept),
            "{steps} steps, of which {handed_over} are handed over, cannot go back to {kept}"
        );
        self.revert_to(savepoint.steps);
        self.recorder.back_to(savepoint.recorded);
    }

    /// Marks everything [`staged`](Self::staged) so far as handed over to the writer, and continues
    /// staging after it. Returns the number of steps handed over by this call. Once they are
    /// written, keep them with [`commit_first`](Self::commit_first). Until then,
    /// [`revert`](Self::revert) undoes them too. For a caller that continues while a write is under
    /// way.
    pub fn hand_over(&mut self) -> usize {
        let (all, before) = (self.steps.len(), self.handed_over);
        let steps = all.checked_sub(before);
        let steps = steps.unwrap_or_else(|| panic!("{before} steps are handed over, and {all} are staged"));
        self.handed_over = all;
        self.recorder.clear();
        steps
    }

    /// Keeps the first `steps` of the steps that were handed over. O(1) for each staged step.
    ///
    /// # Panics
    /// If fewer were handed over.
    pub fn commit_first(&mut self, steps: usize) {
        let handed_over = self.handed_over;
        assert!(steps <= handed_over, "{steps} steps are kept, and {handed_over} are handed over");
        self.steps.forget_first(steps);
        self.handed_over -= steps;
    }

    /// Stages a step together with its event.
    pub(super) fn note(&mut self, step: impl FnOnce() -> Step, event: &Event<'_>) {
        if self.staging {
            self.steps.did(step());
            self.recorder.record(event);
        }
    }

    /// Stages a step whose event is recorded elsewhere.
    pub(super) fn keep_step(&mut self, step: impl FnOnce() -> Step) {
        if self.staging {
            self.steps.did(step());
        }
    }

    /// Stages a draw.
    #[inline]
    pub(super) fn keep_draw(&mut self, item: Option<u32>) {
        if self.staging {
            self.steps.drew(item);
            self.recorder.drew(item);
        }
    }

    pub(super) fn revert_to(&mut self, mark: usize) {
        while self.steps.len() > mark {
            match self.steps.pop() {
                Some(Last::Drew(item)) => {
                    // Steps are undone backwards, so the draw belongs to the current epoch.
                    let (next, first) = (self.next_draw, self.epoch.first_draw);
                    assert!(
                        next > first,
                        "a draw before number {next} is undone in an epoch from {first} on"
                    );
                    self.next_draw -= 1;
                    if let Some(item) = item {
                        self.urn.undo_draw(item);
                    }
                }
                Some(Last::Did(step)) => self.undo(step),
                None => unreachable!("{} steps are there, and none can be taken", self.steps.len()),
            }
        }
    }

    fn undo(&mut self, step: Step) {
        match step {
            Step::Changed(change) => self.urn.undo(&change),
            Step::Advanced(advance) => self.urn.undo_advance(&advance),
            Step::Reserved(number) => self.undo_reserved(number),
            Step::Ended(ended) => self.undo_ended(*ended),
            Step::Requested(forgotten) => self.requests.undo_keep(forgotten),
            Step::Counted(counted) => self.undo_counted(counted.0, counted.1),
            Step::Epoch(forgotten) => self.undo_epoch(forgotten.map(|forgotten| *forgotten)),
        }
    }
}
