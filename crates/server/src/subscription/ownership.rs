//! Ownership of named subscriptions: each name is delivered to one connection, the last to request
//! it.

use crate::net::connection_id::ConnectionAddress;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// Fencing token of one acquisition of a name. Later acquisitions have greater tokens, so a release
/// by an earlier owner is recognised as stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FencingToken(u64);

/// The ownership of a name by one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) owner: ConnectionAddress,
    pub(crate) fencing_token: FencingToken,
    /// Query that the name stands for. An ended subscription may begin again under its name with
    /// another query.
    pub(crate) query: Lsn,
}

/// The owner of each name, across all workers. Every call is O(1) and holds one lock for it.
#[derive(Debug, Default)]
pub(crate) struct NameOwners(Mutex<Owned>);

#[derive(Debug, Default)]
struct Owned {
    by_name: HashMap<Box<[u8]>, Ownership>,
    /// The number of acquisitions so far, which is the last fencing token.
    acquisitions: u64,
}

impl NameOwners {
    /// Gives a name to a connection. Returns the new fencing token, and the ownership that ends
    /// with it.
    pub(crate) fn take(
        &self,
        name: &[u8],
        owner: ConnectionAddress,
        query: Lsn,
    ) -> (FencingToken, Option<Ownership>) {
        let mut owned = self.lock();
        owned.acquisitions += 1;
        let fencing_token = FencingToken(owned.acquisitions);
        (fencing_token, owned.by_name.insert(name.into(), Ownership { owner, fencing_token, query }))
    }

    /// Ends the ownership with this fencing token. Does nothing if the name has been taken since.
    pub(crate) fn release(&self, name: &[u8], fencing_token: FencingToken) {
        let mut owned = self.lock();
        if owned.by_name.get(name).is_some_and(|last| last.fencing_token == fencing_token) {
            owned.by_name.remove(name);
        }
    }

    /// Ends the ownership of a name that stands for this query, and returns it.
    pub(crate) fn evict(&self, name: &[u8], query: Lsn) -> Option<Ownership> {
        let mut owned = self.lock();
        let last = owned.by_name.get(name).copied().filter(|last| last.query == query)?;
        owned.by_name.remove(name);
        Some(last)
    }

    /// The current ownership of a name.
    pub(crate) fn of(&self, name: &[u8]) -> Option<Ownership> {
        self.lock().by_name.get(name).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Owned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::connection_id::ConnectionId;

    fn connection(worker: usize, client: u64) -> ConnectionAddress {
        ConnectionAddress { worker, connection_id: ConnectionId { slot: 1, client } }
    }

    #[test]
    fn the_one_that_asked_last_has_the_name() {
        let (name_owners, query, later) = (NameOwners::default(), Lsn(7), Lsn(9));
        let (one, other) = (connection(0, 1), connection(1, 2));
        let (first, before) = name_owners.take(b"n", one, query);
        assert_eq!(before, None);
        let (second, before) = name_owners.take(b"n", other, query);
        assert_eq!(before, Some(Ownership { owner: one, fencing_token: first, query }));
        let (third, before) = name_owners.take(b"n", one, later);
        assert_eq!(before, Some(Ownership { owner: other, fencing_token: second, query }));
        name_owners.release(b"n", first);
        name_owners.release(b"n", second);
        let last = Ownership { owner: one, fencing_token: third, query: later };
        assert_eq!(name_owners.of(b"n"), Some(last), "it was taken again since");
        assert_eq!(name_owners.evict(b"n", query), None, "it stands for something else by now");
        assert_eq!(name_owners.evict(b"n", later), Some(last));
        assert_eq!(name_owners.of(b"n"), None);
        let (fourth, _) = name_owners.take(b"n", other, later);
        name_owners.release(b"n", fourth);
        assert_eq!(name_owners.of(b"n"), None);
    }
}
