//! What was answered to requests that have ids, so that who asks again is told the same.

mod image;

use super::draw::{Draw, Given};
use crate::by::By;
use crate::repeats::Repeats;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Of so many requests a pool knows what it has answered. The oldest is forgotten first.
pub const REQUESTS_KEPT: usize = 1 << 16;

/// The requests that are kept have drawn at most so often together; the last one is kept in any case.
pub const REQUEST_DRAWS_KEPT: usize = 1 << 22;

/// What a request has asked for, and what it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: Box<[u8]>,
    pub(super) user: Option<Box<[u8]>>,
    /// The number of its first draw.
    pub(super) first: u64,
    pub(super) count: u32,
    pub(super) repeats: Repeats,
    /// Until when its draws were set aside, if they were.
    pub(super) until_us: Option<u64>,
    /// When it was made, where limits depend on it, and otherwise 0. Milliseconds since 1970.
    pub(super) drawn_ms: u64,
    /// Where its items begin, counted over all requests since the pool was made or read.
    begin: u64,
}

/// A request that was forgotten for a younger one, with the items of its draws.
#[derive(Debug, Clone)]
pub(super) struct Forgotten {
    request: Request,
    items: Vec<Given>,
}

/// The last requests, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    kept: VecDeque<Request>,
    /// The items of all their draws, one behind the other.
    items: VecDeque<Given>,
    /// Numbers of requests, counted since the pool was made or read, by their ids.
    by_id: HashTable<u64>,
    /// How many requests were forgotten, and how many items with them.
    forgotten: u64,
    items_forgotten: u64,
    hasher: RandomState,
}

impl Request {
    /// A request of draws that begin with this one. Its id must be known.
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

    /// The requests with what their draws have given, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Request, impl Iterator<Item = Option<u32>>)> {
        self.kept.iter().map(|request| (request, self.items(request)))
    }

    /// The request of this id, if it is still known. O(1).
    pub(super) fn find(&self, id: &[u8]) -> Option<&Request> {
        let number = self.by_id.find(self.hasher.hash_one(id), |&number| *self.at(number).id == *id)?;
        Some(self.at(*number))
    }

    /// What a request was given.
    pub(super) fn draws(&self, request: &Request) -> impl Iterator<Item = Draw> {
        (request.first..).zip(self.items(request)).map(|(number, item)| Draw { number, item })
    }

    fn items(&self, request: &Request) -> impl Iterator<Item = Option<u32>> {
        let begin = (request.begin - self.items_forgotten) as usize;
        let items = self.items.range(begin..begin + request.count as usize);
        items.map(|given| given.item())
    }

    /// Keeps what a request of a new id was given, and says what is forgotten for it.
    pub(super) fn keep(
        &mut self,
        request: Request,
        items: impl Iterator<Item = Option<u32>>,
    ) -> Vec<Forgotten> {
        // In debug builds only: every caller has just looked up the id.
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

    /// Whether the oldest is to be forgotten.
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
        // However often the last one has drawn, it is known.
        assert_eq!(keep(&mut requests, 2, REQUEST_DRAWS_KEPT + 1).len(), 1);
        assert!(is_known(&requests, 2));
    }
}
