//! Answers to requests with IDs (idempotency keys), to answer a repeated request alike.

mod image;

use super::draw::{Draw, Given};
use crate::by::By;
use crate::repeats::Repeats;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Number of requests whose answers a pool keeps. The oldest is evicted first.
pub const REQUESTS_KEPT: usize = 1 << 16;

/// Maximum number of draws of all kept requests. The latest request is kept even if it has more.
pub const REQUEST_DRAWS_KEPT: usize = 1 << 22;

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: Box<[u8]>,
    pub(super) user: Option<Box<[u8]>>,
    /// Number of its first draw.
    pub(super) first: u64,
    pub(super) count: u32,
    pub(super) repeats: Repeats,
    /// Deadline of the reservation, if the draws were reserved.
    pub(super) until_us: Option<u64>,
    /// Time of the request if limits depend on it, otherwise 0. Milliseconds since 1970.
    pub(super) drawn_ms: u64,
    /// Position of its items, counted over all requests since the pool was created or read.
    begin: u64,
}

/// A request evicted for a younger one, with the items of its draws.
#[derive(Debug, Clone)]
pub(super) struct Forgotten {
    request: Request,
    items: Vec<Given>,
}

/// The latest requests, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    kept: VecDeque<Request>,
    /// Items of all their draws, concatenated.
    items: VecDeque<Given>,
    /// Index by ID: request numbers, counted since the pool was created or read.
    by_id: HashTable<u64>,
    /// Number of evicted requests, and of the items evicted with them.
    forgotten: u64,
    items_forgotten: u64,
    hasher: RandomState,
}

impl Request {
    /// Creates a request whose first draw has this number. Panics if `by` has no request ID.
    pub(super) fn new(by: &By<'_>, first: u64, repeats: Repeats, until_us: Option<u64>) -> Self {
        let id = by.request.expect("a request that is kept has an id").into();
        let user = by.user.map(Box::from);
        Self { id, user, first, count: 0, repeats, until_us, drawn_ms: by.now_ms, begin: 0 }
    }
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns the requests with the results of their draws, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Request, impl Iterator<Item = Option<u32>>)> {
        self.kept.iter().map(|request| (request, self.items(request)))
    }

    /// Returns the kept request with this ID. O(1).
    pub(super) fn find(&self, id: &[u8]) -> Option<&Request> {
        let number = self.by_id.find(self.hasher.hash_one(id), |&number| *self.at(number).id == *id)?;
        Some(self.at(*number))
    }

    pub(super) fn draws(&self, request: &Request) -> impl Iterator<Item = Draw> {
        (request.first..).zip(self.items(request)).map(|(number, item)| Draw { number, item })
    }

    fn items(&self, request: &Request) -> impl Iterator<Item = Option<u32>> {
        let begin = (request.begin - self.items_forgotten) as usize;
        let items = self.items.range(begin..begin + request.count as usize);
        items.map(|given| given.item())
    }

    /// Keeps a request with a new ID, and returns the requests that this evicts.
    pub(super) fn keep(
        &mut self,
        request: Request,
        items: impl Iterator<Item = Option<u32>>,
    ) -> Vec<Forgotten> {
        // Only in debug builds: every caller has just looked up the ID.
        debug_assert!(self.find(&request.id).is_none(), "an id belongs to one request");
        let begin = self.items_forgotten + self.items.len() as u64;
        self.items.extend(items.map(Given::new));
        let count = (self.items_forgotten + self.items.len() as u64 - begin) as u32;
        self.kept.push_back(Request { count, begin, ..request });
        self.enter(self.forgotten + self.kept.len() as u64 - 1);
        let mut forgotten = Vec::new();
        while self.is_too_much() {
            forgotten.push(self.forget_first());
        }
        forgotten
    }

    /// Returns whether the oldest must be evicted.
    fn is_too_much(&self) -> bool {
        self.kept.len() > REQUESTS_KEPT || (self.items.len() > REQUEST_DRAWS_KEPT && self.kept.len() > 1)
    }

    /// Undoes the last [`keep`](Self::keep).
    pub(super) fn undo_keep(&mut self, forgotten: Vec<Forgotten>) {
        self.leave(self.forgotten + self.kept.len() as u64 - 1);
        let request = self.kept.pop_back().expect("the last request is undone, and there is none");
        self.items.truncate((request.begin - self.items_forgotten) as usize);
        for Forgotten { request, items } in forgotten.into_iter().rev() {
            self.forgotten -= 1;
            self.items_forgotten -= items.len() as u64;
            items.into_iter().rev().for_each(|given| self.items.push_front(given));
            self.kept.push_front(request);
            self.enter(self.forgotten);
        }
    }

    fn forget_first(&mut self) -> Forgotten {
        self.leave(self.forgotten);
        let request = self.kept.pop_front().expect("the first request is forgotten, and there is none");
        let items: Vec<Given> = self.items.drain(..request.count as usize).collect();
        self.forgotten += 1;
        self.items_forgotten += items.len() as u64;
        Forgotten { request, items }
    }

    fn at(&self, number: u64) -> &Request {
        &self.kept[(number - self.forgotten) as usize]
    }

    fn enter(&mut self, number: u64) {
        let Self { kept, by_id, forgotten, hasher, .. } = self;
        let hash = |number: &u64| hasher.hash_one(&*kept[(number - *forgotten) as usize].id);
        by_id.insert_unique(hash(&number), number, hash);
    }

    fn leave(&mut self, number: u64) {
        let hash = self.hasher.hash_one(&*self.at(number).id);
        match self.by_id.find_entry(hash, |&other| other == number) {
            Ok(entry) => _ = entry.remove(),
            Err(_) => unreachable!("request {number} is not found by its id"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(requests: &mut Requests, id: u64, draws: usize) -> Vec<Forgotten> {
        let id = id.to_le_bytes();
        let items = (0..draws).map(|item| (item > 0).then_some(item as u32));
        requests.keep(Request::new(&By::request(&id), 7, Repeats::Allowed, None), items)
    }

    fn is_known(requests: &Requests, id: u64) -> bool {
        requests.find(&id.to_le_bytes()).is_some()
    }

    #[test]
    fn the_oldest_is_forgotten_first_and_known_again_if_that_is_undone() {
        let mut requests = Requests::default();
        for id in 0..REQUESTS_KEPT as u64 {
            assert!(keep(&mut requests, id, 1 + id as usize % 3).is_empty());
        }
        let forgotten = keep(&mut requests, 1 << 32, 2);
        assert_eq!((forgotten.len(), requests.len()), (1, REQUESTS_KEPT));
        assert!(!is_known(&requests, 0) && is_known(&requests, 1) && is_known(&requests, 1 << 32));
        requests.undo_keep(forgotten);
        assert!(is_known(&requests, 0) && !is_known(&requests, 1 << 32));
        let second = requests.find(&1_u64.to_le_bytes()).expect("it is known");
        let draws: Vec<_> = requests.draws(second).collect();
        assert_eq!(draws, [Draw { number: 7, item: None }, Draw { number: 8, item: Some(1) }]);
    }

    #[test]
    fn requests_that_have_drawn_very_often_are_forgotten_sooner() {
        let mut requests = Requests::default();
        assert!(keep(&mut requests, 0, REQUEST_DRAWS_KEPT).is_empty());
        let forgotten = keep(&mut requests, 1, 1);
        assert_eq!((forgotten.len(), requests.len(), requests.items.len()), (1, 1, 1));
        requests.undo_keep(forgotten);
        assert_eq!((requests.len(), requests.items.len()), (1, REQUEST_DRAWS_KEPT));
        // The latest request is kept, however many draws it has.
        assert_eq!(keep(&mut requests, 2, REQUEST_DRAWS_KEPT + 1).len(), 1);
        assert!(is_known(&requests, 2));
    }
}
