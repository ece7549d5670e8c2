//! Steps that can be taken back: of a call that gives all or nothing, and of a caller who writes them down before they count.

use super::Pool;
use super::step::Step;
use super::steps::Last;
use crate::draw::selector::Selector;
use crate::record::event::{Event, Mark};

/// A place among what is staged: see [`Pool::savepoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    steps: usize,
    recorded: Mark,
}

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
        self.handed_over = 0;
        self.recorder.clear();
    }

    /// Undoes all that is staged, the last first: it is as if it had not been done. What follows is staged no more. O(log n) a step with
    /// most selectors.
    ///
    /// Draws that are undone are drawn again: the same numbers give the same items. Show no client what they gave.
    pub fn revert(&mut self) {
        self.staging = false;
        self.revert_to(0);
        self.handed_over = 0;
        self.recorder.clear();
    }

    /// Where staging has come to, so that what follows can be taken back by itself: [`back_to`](Self::back_to).
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { steps: self.steps.len(), recorded: self.recorder.mark() }
    }

    /// What is staged behind a savepoint, which was made since the last [`commit`](Self::commit), [`revert`](Self::revert) or
    /// [`hand_over`](Self::hand_over).
    pub fn staged_since(&self, savepoint: Savepoint) -> &[u8] {
        self.recorder.since(savepoint.recorded)
    }

    /// Undoes what was staged behind a savepoint, which was made since the last [`commit`](Self::commit), [`revert`](Self::revert) or
    /// [`hand_over`](Self::hand_over). Draws that are undone are drawn again, as by [`revert`](Self::revert).
    ///
    /// # Panics
    /// If less is staged than was at the savepoint, or more has been handed over.
    pub fn back_to(&mut self, savepoint: Savepoint) {
        let (steps, kept, handed_over) = (self.steps.len(), savepoint.steps, self.handed_over);
        assert!(
            (handed_over..=steps).contains(&kept),
            "{steps} steps, of which {handed_over} are handed over, cannot go back to {kept}"
        );
        self.revert_to(savepoint.steps);
        self.recorder.back_to(savepoint.recorded);
    }

    /// Goes on staging, behind what is [`staged`](Self::staged) so far and has been handed to whatever writes it down. Says how many steps
    /// that was: once they are written down, so many are kept by [`commit_first`](Self::commit_first). [`revert`](Self::revert) undoes
    /// those as well that have been handed over, as long as they are not kept. For whoever goes on while something is being written.
    pub fn hand_over(&mut self) -> usize {
        let (all, before) = (self.steps.len(), self.handed_over);
        let steps = all.checked_sub(before);
        let steps = steps.unwrap_or_else(|| panic!("{before} steps are handed over, and {all} are staged"));
        self.handed_over = all;
        self.recorder.clear();
        steps
    }

    /// Keeps the first so many of the steps that were handed over. O(1) for each step that is staged.
    ///
    /// # Panics
    /// If fewer were handed over.
    pub fn commit_first(&mut self, steps: usize) {
        let handed_over = self.handed_over;
        assert!(steps <= handed_over, "{steps} steps are kept, and {handed_over} are handed over");
        self.steps.forget_first(steps);
        self.handed_over -= steps;
    }

    /// Keeps what it takes to undo what was just done and to do it again, if that is staged.
    pub(super) fn note(&mut self, step: impl FnOnce() -> Step, event: &Event<'_>) {
        if self.staging {
            self.steps.did(step());
            self.recorder.record(event);
        }
    }

    /// Keeps what it takes to undo what was just done, if that is staged; what it takes to do it again is written elsewhere.
    pub(super) fn keep_step(&mut self, step: impl FnOnce() -> Step) {
        if self.staging {
            self.steps.did(step());
        }
    }

    /// Keeps what it takes to undo a draw and to do it again, if that is staged.
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
                    // Undoing goes backwards, so the draw is one of the current epoch.
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
