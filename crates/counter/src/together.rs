//! Atomic moves of several counters: all, or none.
//!
//! The caller locks the books of all counters, nested, in the order of their addresses; so two
//! callers that name the same counters cannot deadlock. Each move is applied to copies. Only if all
//! are possible, the copies are stored, and then the locks are released. No reader sees a part of
//! the batch, and a refused batch has no effect.

use crate::account::{Account, Refusal};
use crate::counter::Counter;
use crate::ledger::Move;
use crate::promise::Promise;
use std::ptr;

/// One of the moves.
#[derive(Debug)]
pub(crate) struct Part<'counter> {
    pub(crate) counter: &'counter Counter,
    pub(crate) how: Move,
    /// Units moved.
    pub(crate) units: u64,
    /// Why this move is not possible. The first part of a counter carries the refusal of the
    /// counter's net.
    pub(crate) refusal: Option<Refusal>,
    /// First part of a counter: net of all moves of that counter.
    pub(crate) net: i64,
    /// First part of a counter: the net goes down beyond the promise, and must be stored before it
    /// is acknowledged.
    pub(crate) is_ahead: bool,
}

impl<'counter> Part<'counter> {
    pub(crate) fn new(counter: &'counter Counter, how: Move) -> Self {
        Self { counter, how, units: 0, refusal: None, net: 0, is_ahead: false }
    }
}

/// Makes all moves, those of one counter in their order, or none; returns whether it did. If not,
/// at least one part has a refusal.
///
/// A promise is checked against the net of each counter's moves. [`Refusal::Unsettled`] means that
/// a commit must make room for [`net`](Part::net).
pub(crate) fn move_together(parts: &mut [Part<'_>]) -> bool {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    // Stable: the moves of one counter stay in their order.
    order.sort_by_key(|index| ptr::from_ref(parts[*index].counter).addr());
    for part in &mut *parts {
        (part.units, part.refusal, part.net, part.is_ahead) = (0, None, 0, false);
    }
    let mut attempt = Attempt { parts, order: &order, is_possible: true };
    attempt.descend(0);
    attempt.is_possible
}

struct Attempt<'attempt, 'counter> {
    parts: &'attempt mut [Part<'counter>],
    order: &'attempt [usize],
    /// So far.
    is_possible: bool,
}

impl Attempt<'_, '_> {
    /// Locks the counter at this place of the order, recurses into the rest, and stores the changed
    /// books if all moves are possible.
    fn descend(&mut self, from: usize) {
        let Some(first) = self.order.get(from) else { return };
        let counter = self.parts[*first].counter;
        let is_same = |index: &&usize| ptr::eq(self.parts[**index].counter, counter);
        let until = from + self.order[from..].iter().take_while(is_same).count();
        counter.with_books(|books| {
            let after = self.play(from, until, books);
            self.descend(until);
            if let (true, Some(after)) = (self.is_possible, after) {
                *books = after;
            }
        });
    }

    /// Returns the books after the moves of one counter, if they are possible.
    fn play(&mut self, from: usize, until: usize, books: &Account) -> Option<Account> {
        let refused = |part: &mut Part<'_>, refusal| {
            part.refusal = Some(refusal);
            None
        };
        let played = (|| {
            let mut free = books.clone();
            free.set_promise(Promise::Relaxed { cap: u64::MAX });
            for index in &self.order[from..until] {
                let part = &mut self.parts[*index];
                match part.how.carry_out(&mut free) {
                    Ok(units) => part.units = units,
                    // Beyond what any promise allows.
                    Err(Refusal::Unsettled) => return refused(part, Refusal::OutOfRange),
                    Err(refusal) => return refused(part, refusal),
                }
            }
            let first = &mut self.parts[self.order[from]];
            let Some(net) = free.position().checked_sub(books.position()) else {
                return refused(first, Refusal::OutOfRange);
            };
            first.net = net;
            let mut after = books.clone();
            let is_exact = matches!(books.promise(), Promise::Exact { .. });
            let moved = match after.add(net) {
                Err(Refusal::Unsettled) if is_exact && net < 0 => after.go_down(net.unsigned_abs()),
                moved => moved,
            };
            first.is_ahead = is_exact && net < 0 && !after.is_settled();
            match moved {
                Ok(()) => Some(after),
                Err(refusal) => refused(first, refusal),
            }
        })();
        self.is_possible &= played.is_some();
        played
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Kind;
    use proptest::prelude::*;

    fn moves() -> impl Strategy<Value = Vec<(usize, Move)>> {
        let how = prop_oneof![
            (0..12_u64).prop_map(Move::Take),
            (0..12_u64).prop_map(Move::Refund),
            (-12..12_i64).prop_map(Move::Add),
        ];
        prop::collection::vec((0..3_usize, how), 0..6)
    }

    proptest! {
        /// As if each move were made separately, and all were undone at the first refusal.
        #[test]
        fn all_are_made_as_one_after_the_other_or_none_is(
            batches in prop::collection::vec(moves(), 1..20), is_striped: [bool; 3], limit in 0..40_i64,
        ) {
            let kinds = [Kind::Quota { limit }, Kind::Quota { limit: 30 }, Kind::Plain];
            let wide = Promise::Relaxed { cap: 1_000_000 };
            let counters = kinds.map(|kind| Counter::new(kind, wide, 3));
            counters.iter().zip(is_striped).filter(|(_, is)| *is).for_each(|(counter, _)| counter.stripe());
            let mut model = kinds.map(|kind| Account::new(kind, wide, 3));
            for batch in batches {
                let mut trial = model.clone();
                let expected: Result<Vec<u64>, Refusal> =
                    batch.iter().map(|(at, how)| how.carry_out(&mut trial[*at])).collect();
                let mut parts: Vec<_> = batch.iter().map(|(at, how)| Part::new(&counters[*at], *how)).collect();
                let is_made = move_together(&mut parts);
                prop_assert_eq!(is_made, expected.is_ok());
                if let Ok(units) = expected {
                    prop_assert_eq!(parts.iter().map(|part| part.units).collect::<Vec<_>>(), units);
                    model = trial;
                } else {
                    prop_assert!(parts.iter().any(|part| part.refusal.is_some()));
                }
                for (counter, account) in counters.iter().zip(&model) {
                    prop_assert_eq!(&counter.books(), account);
                }
            }
        }
    }

    #[test]
    fn what_a_promise_allows_is_asked_of_the_net() {
        let counter = Counter::new(Kind::Plain, Promise::Relaxed { cap: 10 }, 0);
        let mut there_and_back = [Part::new(&counter, Move::Take(30)), Part::new(&counter, Move::Refund(25))];
        assert!(move_together(&mut there_and_back));
        assert_eq!(counter.position(), 5);
        let mut too_far = [Part::new(&counter, Move::Take(3)), Part::new(&counter, Move::Take(3))];
        assert!(!move_together(&mut too_far));
        assert_eq!((too_far[0].refusal, too_far[0].net), (Some(Refusal::Unsettled), 6));
        assert_eq!(counter.position(), 5);
    }
}

/// All interleavings of two threads that move the same two counters, explored by loom.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::Kind;
    use loom::sync::Arc;
    use loom::thread;

    fn pair(limits: [i64; 2]) -> Arc<[Counter; 2]> {
        Arc::new(limits.map(|limit| Counter::new(Kind::Quota { limit }, Promise::Relaxed { cap: 1_000 }, 0)))
    }

    fn take_both(counters: [&Counter; 2]) -> bool {
        move_together(&mut counters.map(|counter| Part::new(counter, Move::Take(1))))
    }

    /// The second batch sees the effects of the first, and a refused batch takes nothing. The
    /// threads name the counters in opposite orders and do not deadlock.
    #[test]
    fn loom_batches_come_one_after_the_other() {
        loom::model(|| {
            let counters = pair([1, 2]);
            let other = counters.clone();
            let thread = thread::spawn(move || take_both([&other[1], &other[0]]));
            let mine = take_both([&counters[0], &counters[1]]);
            let theirs = thread.join().unwrap();
            assert!(mine != theirs, "one of the two has the only unit");
            assert_eq!(counters.each_ref().map(Counter::position), [1, 1]);
        });
    }

    /// No move is refused because of units that a refused batch would have taken.
    #[test]
    fn loom_a_batch_that_is_refused_is_not_seen() {
        loom::model(|| {
            let counters = pair([1, 0]);
            let other = counters.clone();
            let thread = thread::spawn(move || take_both([&other[0], &other[1]]));
            assert_eq!(counters[0].take(1), Ok(()));
            assert_eq!(counters[0].refund(1), Ok(1));
            assert!(!thread.join().unwrap());
            assert_eq!(counters.each_ref().map(Counter::position), [0, 0]);
        });
    }

    /// A reader that has seen one counter moved sees the other moved.
    #[test]
    fn loom_a_batch_is_seen_as_a_whole() {
        loom::model(|| {
            let counters = pair([5, 5]);
            let other = counters.clone();
            let thread = thread::spawn(move || take_both([&other[0], &other[1]]));
            let seen = [counters[0].position(), counters[1].position()];
            assert!(seen[0] <= seen[1], "{seen:?}");
            let seen = [counters[1].position(), counters[0].position()];
            assert!(seen[0] <= seen[1], "{seen:?}");
            assert!(thread.join().unwrap());
        });
    }
}
