//! Steps that can be taken back: of a call that gives all or nothing, and of a caller who writes them down before they count.

use super::Pool;
use super::step::{NOTHING, Step};
use crate::event::Event;
use crate::selector::Selector;

impl<S: Selector> Pool<S> {
    /// Stages what follows, until it is kept by [`commit`](Self::commit) or undone by [`revert`](Self::revert). It is done at once. For
    /// whoever writes it down first, and may fail.
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
    /// // Whatever writes the log has failed: nobody has got anything.
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

    /// What is staged, as [`Events`](crate::Events).
    pub fn staged(&self) -> &[u8] {
        self.recorder.bytes()
    }

    /// How many draws are staged.
    pub fn staged_draws(&self) -> u64 {
        self.recorder.draws()
    }

    /// Keeps what is staged. What follows is staged no more.
    pub fn commit(&mut self) {
        self.staging = false;
        self.steps.clear();
        self.recorder.clear();
    }

    /// Undoes all that is staged, the last first: it is as if it had not been done. What follows is staged no more. O(log n) a step with
    /// most selectors.
    pub fn revert(&mut self) {
        self.staging = false;
        self.revert_to(0);
        self.recorder.clear();
    }

    /// Keeps what it takes to undo what was just done and to do it again, if that is staged.
    pub(super) fn note(&mut self, step: impl FnOnce() -> Step, event: &Event<'_>) {
        if self.staging {
            self.steps.push(step());
            self.recorder.record(event);
        }
    }

    /// Keeps what it takes to undo what was just done, if that is staged; what it takes to do it again is written elsewhere.
    pub(super) fn keep_step(&mut self, step: impl FnOnce() -> Step) {
        if self.staging {
            self.steps.push(step());
        }
    }

    pub(super) fn revert_to(&mut self, mark: usize) {
        while self.steps.len() > mark {
            match self.steps.pop() {
                Some(Step::Drew(item)) => {
                    self.next_draw -= 1;
                    if item != NOTHING {
                        self.urn.undo_draw(item);
                    }
                }
                Some(Step::Changed(change)) => self.urn.undo(&change),
                Some(Step::Reserved(number)) => self.undo_reserved(number),
                Some(Step::Ended(ended)) => self.undo_ended(*ended),
                Some(Step::Requested(forgotten)) => self.requests.undo_keep(forgotten),
                Some(Step::Counted(counted)) => self.undo_counted(counted.0, counted.1),
                Some(Step::Epoch(forgotten)) => self.undo_epoch(forgotten.map(|forgotten| *forgotten)),
                None => break,
            }
        }
    }
}
