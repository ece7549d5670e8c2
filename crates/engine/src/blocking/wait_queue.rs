//! The wait queues of one shard's keys, and the destinations of the moves among them.

use crate::blocking::waiter::Waiter;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// A client in a queue, with its sequence number: later clients have greater ones.
type Queued = (u64, Arc<Waiter>);

/// The clients that wait for each key of a database, longest-waiting first.
type Queues = HashMap<Box<[u8]>, VecDeque<Queued>>;

/// Shard indices, each with the number of waiting moves to that shard.
type Destinations = BTreeMap<usize, usize>;

/// The queues of one shard's keys, protected by the shard's lock.
///
/// ```text
/// (0, jobs)  ► BLPOP jobs ► BLMOVE jobs taken … ► BLPOP other jobs     longest first
/// ```
///
/// A client that was served or stopped waiting may remain in the queues of its other keys; it is
/// skipped until it is removed from them.
#[derive(Default)]
pub(crate) struct Waiting {
    queues: BTreeMap<u8, Queues>,
    /// For each key, in any database: further shards that serving its queues may touch.
    moves: HashMap<Box<[u8]>, Destinations>,
    /// The same for all keys together.
    all_moves: Destinations,
    /// Number of clients in the queues that only read.
    readers: usize,
    /// Number of clients in the queues that take something on a condition.
    conditional: usize,
    /// Number of clients that have joined a queue so far.
    joined: u64,
}

impl Waiting {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether a client waits whose serving touches a further key.
    #[inline]
    pub(crate) fn has_moves(&self) -> bool {
        !self.all_moves.is_empty()
    }

    /// Appends a client to a key's queue.
    pub(crate) fn join(&mut self, db: u8, key: &[u8], waiter: &Arc<Waiter>) {
        let queues = self.queues.entry(db).or_default();
        self.joined += 1;
        queues.entry(key.into()).or_default().push_back((self.joined, Arc::clone(waiter)));
        self.readers += usize::from(waiter.only_reads());
        self.conditional += usize::from(waiter.is_conditional());
        for &shard in &waiter.destinations {
            *self.moves.entry(key.into()).or_default().entry(shard).or_default() += 1;
            *self.all_moves.entry(shard).or_default() += 1;
        }
    }

    /// Removes a client from a key's queue, if present.
    pub(crate) fn leave(&mut self, db: u8, key: &[u8], waiter: &Arc<Waiter>) {
        let queue = self.queues.get(&db).and_then(|queues| queues.get(key));
        let position = queue.and_then(|queue| queue.iter().position(|(_, other)| Arc::ptr_eq(other, waiter)));
        if let Some(position) = position {
            self.take(db, key, position);
        }
    }

    /// Claims and removes the client that has waited longest among those that can take what is at the
    /// key. A claimed client cannot be claimed again and cannot stop waiting.
    pub(crate) fn claim(
        &mut self,
        db: u8,
        key: &[u8],
        can_take: impl Fn(&Waiter) -> bool,
    ) -> Option<Arc<Waiter>> {
        let queue = self.queues.get(&db)?.get(key)?;
        let position = queue.iter().position(|(_, waiter)| can_take(waiter) && waiter.claim())?;
        let claimed = queue[position].0;
        for (place, waiter) in queue.range(..position) {
            assert!(
                *place < claimed,
                "client {claimed} of a queue is served, and client {place} stands before it"
            );
            let is_passed_over = can_take(waiter) && waiter.is_waiting();
            assert!(
                !is_passed_over,
                "client {claimed} of a queue is served, and client {place} waits for longer"
            );
        }
        Some(self.take(db, key, position))
    }

    /// The clients that wait for the key and only read, longest-waiting first. They are served in any
    /// order, as none takes anything from another.
    pub(crate) fn readers(&self, db: u8, key: &[u8]) -> Vec<Arc<Waiter>> {
        if self.readers == 0 { Vec::new() } else { self.those(db, key, Waiter::only_reads) }
    }

    /// The clients that wait for the key and take something on a condition, longest-waiting first.
    pub(crate) fn conditional(&self, db: u8, key: &[u8]) -> Vec<Arc<Waiter>> {
        if self.conditional == 0 { Vec::new() } else { self.those(db, key, Waiter::is_conditional) }
    }

    fn those(&self, db: u8, key: &[u8], are_wanted: impl Fn(&Waiter) -> bool) -> Vec<Arc<Waiter>> {
        let queue = self.queues.get(&db).and_then(|queues| queues.get(key));
        let waiters = queue.into_iter().flatten().map(|(_, waiter)| waiter);
        waiters.filter(|waiter| are_wanted(waiter)).cloned().collect()
    }

    /// Whether a client waits that satisfies a condition.
    pub(crate) fn is_awaited(&self, db: u8, key: &[u8], condition: impl Fn(&Waiter) -> bool) -> bool {
        let queue = self.queues.get(&db).and_then(|queues| queues.get(key));
        queue.is_some_and(|queue| queue.iter().any(|(_, waiter)| condition(waiter)))
    }

    /// The keys of a database that clients wait for.
    pub(crate) fn keys(&self, db: u8) -> impl Iterator<Item = &[u8]> {
        self.queues.get(&db).into_iter().flat_map(|queues| queues.keys().map(|key| &**key))
    }

    /// The destination shards of the moves that wait for a key, in any database.
    pub(crate) fn destinations(&self, key: &[u8]) -> impl Iterator<Item = usize> {
        self.moves.get(key).into_iter().flat_map(|destinations| destinations.keys().copied())
    }

    /// The destination shards of all moves that wait in this shard.
    pub(crate) fn all_destinations(&self) -> impl Iterator<Item = usize> {
        self.all_moves.keys().copied()
    }

    /// Removes the client at a position of a key's queue, which must exist.
    fn take(&mut self, db: u8, key: &[u8], position: usize) -> Arc<Waiter> {
        let queues = self.queues.get_mut(&db).expect("the queue was found before");
        let queue = queues.get_mut(key).expect("the queue was found before");
        let len = queue.len();
        let (_, waiter) =
            queue.remove(position).unwrap_or_else(|| panic!("place {position} of a queue of {len} clients"));
        self.readers -= usize::from(waiter.only_reads());
        self.conditional -= usize::from(waiter.is_conditional());
        if queue.is_empty() {
            queues.remove(key);
            if queues.is_empty() {
                self.queues.remove(&db);
            }
        }
        for &shard in &waiter.destinations {
            let destinations =
                self.moves.get_mut(key).expect("a key knows where the moves that wait for it lead");
            decrement(destinations, shard);
            if destinations.is_empty() {
                self.moves.remove(key);
            }
            decrement(&mut self.all_moves, shard);
        }
        let (moves, all_moves) = (self.moves.len(), self.all_moves.len());
        let (readers, conditional) = (self.readers, self.conditional);
        assert!(
            !self.queues.is_empty() || (moves == 0 && all_moves == 0 && readers == 0 && conditional == 0),
            "no client waits, and {readers} readers, {conditional} clients with a condition, and moves from \
             {moves} keys and to {all_moves} shards are noted"
        );
        waiter
    }
}

fn decrement(destinations: &mut Destinations, shard: usize) {
    let count = destinations.get_mut(&shard).unwrap_or_else(|| panic!("no move to shard {shard} is noted"));
    // Entries with a count of 0 are removed.
    *count -= 1;
    if *count == 0 {
        destinations.remove(&shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::waiter::Block;
    use crate::value::Type;
    use crate::wire::reply::Protocol;

    fn waiter(wants: Type, destinations: &[usize]) -> Arc<Waiter> {
        let block = Box::new(Block::new(wants, &[], None));
        Arc::new(Waiter::new(
            0,
            0,
            Vec::new(),
            block,
            destinations.to_vec(),
            Protocol::Resp2,
            Box::new(|_| ()),
        ))
    }

    #[test]
    fn the_longest_waiting_client_of_the_right_type_is_claimed_first() {
        let mut waiting = Waiting::default();
        let [set, first, second] = [Type::SortedSet, Type::List, Type::List].map(|wants| waiter(wants, &[]));
        [&set, &first, &second].into_iter().for_each(|waiter| waiting.join(3, b"k", waiter));
        let of = |held: Type| move |waiter: &Waiter| waiter.block.wants == held;
        assert!(waiting.is_awaited(3, b"k", of(Type::List)) && !waiting.is_awaited(0, b"k", of(Type::List)));
        assert!(!waiting.is_awaited(3, b"k", of(Type::String)));
        let claimed = waiting.claim(3, b"k", of(Type::List)).expect("two wait for a list");
        assert!(Arc::ptr_eq(&claimed, &first) && first.is_served());
        assert!(second.stop(), "it has not been served");
        assert!(waiting.claim(3, b"k", of(Type::List)).is_none(), "it waits no longer");
        waiting.leave(3, b"k", &second);
        waiting.leave(3, b"k", &second);
        assert_eq!(waiting.keys(3).collect::<Vec<_>>(), [b"k"]);
        assert!(waiting.claim(3, b"k", of(Type::SortedSet)).is_some());
        assert!(waiting.is_empty() && waiting.keys(3).next().is_none());
    }

    #[test]
    fn destinations_are_registered_while_a_client_waits_to_move_there() {
        let mut waiting = Waiting::default();
        let (one, other, third) =
            (waiter(Type::List, &[5]), waiter(Type::List, &[5]), waiter(Type::List, &[7]));
        waiting.join(0, b"k", &one);
        waiting.join(1, b"k", &other);
        waiting.join(0, b"l", &third);
        assert_eq!(waiting.destinations(b"k").collect::<Vec<_>>(), [5]);
        assert_eq!(waiting.all_destinations().collect::<Vec<_>>(), [5, 7]);
        waiting.leave(0, b"k", &one);
        assert_eq!(waiting.destinations(b"k").collect::<Vec<_>>(), [5]);
        assert!(waiting.claim(1, b"k", |_| true).is_some());
        assert_eq!(waiting.destinations(b"k").next(), None);
        assert_eq!(waiting.all_destinations().collect::<Vec<_>>(), [7]);
        waiting.leave(0, b"l", &third);
        assert!(waiting.is_empty() && !waiting.has_moves());
    }
}
