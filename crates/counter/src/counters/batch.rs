//! Several moves in one call: each separately, or all or none.

use super::inbox::Request;
use super::key::KeyRef;
use super::moving::{is_beyond_block, refused};
use super::names::Names;
use super::shared::Shared;
use crate::account::Refusal;
use crate::committer::{Errand, Error, Extent, Ticket};
use crate::ledger::Move;
use crate::together::{Part, move_together};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Most moves that can be made atomically. All their counters are locked for it, and other callers
/// wait.
pub const MAX_TOGETHER: usize = 64;

/// Most moves that one call leaves to the committer at a time. Each has a reference to its counter,
/// and references are counted only up to a limit.
const ERRANDS: usize = 1_024;

/// Why none of several moves was made; with [`Error::Unstored`], all were made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("of {moves} moves {}, because of number {index}: {error}", outcome(error))]
pub struct BatchError {
    /// Index of the first move that is not possible, or not known to be stored.
    pub index: usize,
    /// Number of moves.
    pub moves: usize,
    /// What is wrong with the move.
    #[source]
    pub error: Error,
}

fn outcome(error: &Error) -> &'static str {
    match error {
        Error::Unstored { .. } => "all were made and not all are stored",
        _ => "none was made",
    }
}

impl Shared {
    /// Makes each move separately, those of one name in their order. Absent counters are loaded
    /// together, and commits are awaited together.
    pub(crate) fn batch_each(&self, moves: &[(&[u8], Move)]) -> Vec<Result<u64, Error>> {
        let began = Instant::now();
        let mut each = Each::new(self, moves, began);
        let mut absent = Names::default();
        for (index, (name, _)) in moves.iter().enumerate() {
            // If an earlier move waits for its counter, later moves of the same name wait too.
            let key = if absent.has(name) { None } else { self.present(self.hash(name), name) };
            match key {
                Some(key) => each.carry_out(index, &key),
                None => absent.push(name, index),
            }
        }
        self.locate_each(absent.list(), began, |number, key| {
            for index in absent.places(number) {
                match &key {
                    Ok(key) => each.carry_out(*index, key),
                    Err(error) => each.results[*index] = Err(error.clone()),
                }
            }
        });
        each.finish()
    }

    /// Makes all moves atomically, or none.
    pub(crate) fn batch_all(&self, moves: &[(&[u8], Move)]) -> Result<Vec<u64>, BatchError> {
        let failed = |index, error| BatchError { index, moves: moves.len(), error };
        if moves.len() > MAX_TOGETHER {
            return Err(failed(MAX_TOGETHER, Error::TooManyMoves { moves: moves.len(), max: MAX_TOGETHER }));
        }
        let began = Instant::now();
        let mut keys = Vec::with_capacity(moves.len());
        for (index, key) in
            self.locate_all(moves.iter().map(|(name, _)| *name), began).into_iter().enumerate()
        {
            keys.push(key.map_err(|error| failed(index, error))?);
        }
        let mut parts: Vec<_> =
            keys.iter().zip(moves).map(|(key, (_, how))| Part::new(key.counter(), *how)).collect();
        while !move_together(&mut parts) {
            let refusals = parts.iter().enumerate().filter_map(|(index, part)| Some((index, part.refusal?)));
            if let Some((index, refusal)) =
                refusals.clone().find(|(_, refusal)| *refusal != Refusal::Unsettled)
            {
                return Err(failed(index, refused(keys[index].found(), refusal)));
            }
            let mut wanted = Wanted::default();
            refusals.for_each(|(index, _)| wanted.push(&keys[index], parts[index].net));
            let errors = self.commit_together(&wanted, began);
            let first =
                keys.iter().enumerate().find_map(|(index, key)| Some((index, errors.get(&key.place())?)));
            if let Some((index, error)) = first {
                return Err(failed(index, error.clone()));
            }
        }
        keys.iter().for_each(|key| self.has_moved(key.found()));
        // All of them are stored, even if one fails.
        let ahead: Vec<_> = (0..parts.len()).filter(|index| parts[*index].is_ahead).collect();
        let errands = ahead.iter().map(|index| {
            let net = parts[*index].net;
            (&keys[*index], Arc::new(Errand::new(Move::Add(net), Some(net.unsigned_abs()))))
        });
        let stored = self.finish_all(errands, began);
        let unstored = ahead.into_iter().zip(stored).find_map(|(index, stored)| Some((index, stored.err()?)));
        match unstored {
            Some((index, error)) => Err(failed(index, error)),
            None => Ok(parts.iter().map(|part| part.units).collect()),
        }
    }

    /// Requests all these commits, waits for them, and returns the errors by the keys' places.
    fn commit_together(&self, wanted: &Wanted, began: Instant) -> HashMap<usize, Error> {
        let waiters: Vec<_> = wanted.list.iter().map(|_| Arc::new(Ticket::default())).collect();
        let requests = wanted.list.iter().zip(&waiters).map(|((key, delta), waiter)| Request::Commit {
            key: key.clone(),
            extent: Extent::RoomFor(*delta),
            waiter: Some(waiter.clone()),
        });
        let asked = self.request_all(requests);
        let answers = waiters.iter().map(|waiter| {
            asked.clone()?;
            self.answer(waiter, began)?
        });
        let keys = wanted.list.iter().map(|(key, _)| key.place());
        keys.zip(answers).filter_map(|(key, answer)| Some((key, answer.err()?))).collect()
    }
}

/// State of a batch of separate moves.
struct Each<'call> {
    shared: &'call Shared,
    moves: &'call [(&'call [u8], Move)],
    began: Instant,
    /// Result of each move, once it has been made.
    results: Vec<Result<u64, Error>>,
    /// Moves that need a commit, and later moves of the same counters, with the index into
    /// `counters`.
    waiting: Vec<(usize, usize, Arc<Errand>)>,
    counters: Vec<KeyRef>,
    /// Indices of the counters that have waiting moves, by their places.
    numbers: HashMap<usize, usize>,
}

impl<'call> Each<'call> {
    fn new(shared: &'call Shared, moves: &'call [(&'call [u8], Move)], began: Instant) -> Self {
        let results = vec![Ok(0); moves.len()];
        let (waiting, counters, numbers) = (Vec::new(), Vec::new(), HashMap::new());
        Self { shared, moves, began, results, waiting, counters, numbers }
    }

    /// Makes a move, or queues it to wait for a commit.
    fn carry_out(&mut self, index: usize, key: &KeyRef) {
        let how = self.moves[index].1;
        let number = self.numbers.get(&key.place()).copied();
        let tried = if number.is_some() { Err(Refusal::Unsettled) } else { key.counter().carry_out(how) };
        match tried {
            Ok(units) => {
                self.shared.has_moved(key.found());
                if is_beyond_block(key.counter(), how, units) {
                    self.counters.push(key.clone());
                    self.wait(index, self.counters.len() - 1, Some(units));
                } else {
                    self.results[index] = Ok(units);
                }
            }
            Err(Refusal::Unsettled) => {
                let number = number.unwrap_or_else(|| {
                    self.counters.push(key.clone());
                    self.numbers.insert(key.place(), self.counters.len() - 1);
                    self.counters.len() - 1
                });
                self.wait(index, number, None);
            }
            Err(refusal) => self.results[index] = Err(refused(key.found(), refusal)),
        }
    }

    fn wait(&mut self, index: usize, number: usize, moved: Option<u64>) {
        self.waiting.push((index, number, Arc::new(Errand::new(self.moves[index].1, moved))));
        // Each counter that is waited for occupies a place in memory.
        if self.waiting.len() >= ERRANDS.min(self.shared.share()) {
            self.finish_waiting();
        }
    }

    fn finish_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let errands = waiting.iter().map(|(_, number, errand)| (&self.counters[*number], errand.clone()));
        let results = self.shared.finish_all(errands, self.began);
        for ((index, ..), result) in waiting.into_iter().zip(results) {
            self.results[index] = result;
        }
        self.counters.clear();
        self.numbers.clear();
    }

    /// Completes the waiting moves.
    fn finish(mut self) -> Vec<Result<u64, Error>> {
        self.finish_waiting();
        self.results
    }
}

/// Moves for which room is needed, one for each key.
#[derive(Default)]
struct Wanted {
    list: Vec<(KeyRef, i64)>,
}

impl Wanted {
    fn push(&mut self, key: &KeyRef, delta: i64) {
        let is_new = self.list.iter().all(|(other, _)| other.place() != key.place());
        assert!(is_new, "room is wanted twice for one of {} counters", self.list.len());
        self.list.push((key.clone(), delta));
    }
}
