//! When each member has last acknowledged this leader, by the time at which what it answered was
//! sent.
//!
//! The library keeps such times too, but an answer counts there for all requests that end at the
//! same entry, even for those that the member has not received: a lease made of them could last
//! longer than what the members promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The newest acknowledged sending time of each member, with its term.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    newest: Mutex<BTreeMap<u64, (u64, Duration)>>,
    changed: Notify,
}

impl Acks {
    /// Notes that `node` has answered a request of the leader of `term` that was sent at `sent`, and
    /// knew of no newer ballot.
    pub(crate) fn note(&self, node: u64, term: u64, sent: Duration) {
        let mut acks = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = acks.entry(node).or_default();
        *newest = (*newest).max((term, sent));
        drop(acks);
        self.changed.notify_waiters();
    }

    /// Waits for the next acknowledgement.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns whether `node` has answered a request of the leader of `term` that was sent at `since` or
    /// later.
    pub(crate) fn is_since(&self, node: u64, term: u64, since: Duration) -> bool {
        let acks = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        acks.get(&node).is_some_and(|newest| *newest >= (term, since))
    }

    /// Returns the time since which a quorum of each set of voters has promised to wait for the
    /// leader of `term`, `me`, which acknowledges itself at `now`. `None` if there is none.
    pub(crate) fn quorum(
        &self,
        me: u64,
        term: u64,
        voters: &[BTreeSet<u64>],
        now: Duration,
    ) -> Option<Duration> {
        let acks = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = |node: &u64| {
            if *node == me {
                return Some(now);
            }
            acks.get(node).filter(|(of, _)| *of == term).map(|(_, sent)| *sent)
        };
        let of_set = |set: &BTreeSet<u64>| {
            let mut times: Vec<_> = set.iter().filter_map(sent).collect();
            times.sort_unstable();
            let quorum = set.len() / 2 + 1;
            times.len().checked_sub(quorum).map(|at| times[at])
        };
        let times: Option<Vec<_>> = voters.iter().map(of_set).collect();
        times?.into_iter().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_quorum_has_promised_since_its_oldest_acknowledgement() {
        let acks = Acks::default();
        let of = |term, voters: &[&[u64]]| {
            let voters: Vec<_> = voters.iter().map(|set| set.iter().copied().collect()).collect();
            acks.quorum(1, term, &voters, MS(90))
        };
        assert_eq!(of(7, &[&[1]]), Some(MS(90)), "who votes alone acknowledges itself");
        assert_eq!(of(7, &[&[1, 2, 3]]), None);
        acks.note(2, 7, MS(40));
        acks.note(2, 7, MS(30));
        assert_eq!(of(7, &[&[1, 2, 3]]), Some(MS(40)));
        acks.note(3, 7, MS(50));
        assert_eq!(of(7, &[&[1, 2, 3]]), Some(MS(50)));
        assert_eq!(of(7, &[&[1, 2, 3, 4, 5]]), Some(MS(40)));
        assert_eq!(of(7, &[&[1, 2, 3], &[2, 4, 5]]), None, "both sets count");
        acks.note(4, 7, MS(20));
        assert_eq!(of(7, &[&[1, 2, 3], &[2, 4, 5]]), Some(MS(20)));
        assert_eq!(of(8, &[&[1, 2, 3]]), None, "another term");
        acks.note(2, 8, MS(10));
        assert_eq!(of(8, &[&[1, 2, 3]]), Some(MS(10)));
        assert_eq!(of(7, &[&[1, 2, 3]]), Some(MS(50)));
        assert_eq!(of(7, &[]), None, "no member");
    }
}
