//! How old the leader's state is that a follower has.
//!
//! The follower asks, because the age of a message that it gets unasked is unknown: it may have waited
//! in a socket for as long as this process was stopped. A leader that has the lease answers with its
//! last entry. Once that is applied here, everything is that was committed when the question was asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::type_config::TypeConfigExt;

use super::node::Node;
use super::types::Cfg;
use crate::net::Transport;

/// Pause between two questions.
const ASK_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two looks whether the answer is applied.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// Time after which another question is asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time as of which a member has everything that was committed.
#[derive(Debug, Default)]
pub(crate) struct Staleness {
    /// Nanoseconds of the group's clock; 0 if none is known.
    as_of: AtomicU64,
}

impl Staleness {
    /// Returns the age of what the log has, at `now`; `None` if it is unknown.
    pub(crate) fn age(&self, now: Duration) -> Option<Duration> {
        let as_of = self.as_of.load(Ordering::Acquire);
        (as_of > 0).then(|| now.saturating_sub(Duration::from_nanos(as_of)))
    }

    fn note(&self, as_of: Duration) {
        self.as_of.store(as_of.as_nanos() as u64, Ordering::Release);
    }
}

impl<C: Cfg> Node<C> {
    /// Finds out again and again how old the leader's state is that this member has.
    pub(crate) async fn watch_staleness<T: Transport>(self, transport: T) {
        while self.status().failure.is_none() {
            C::sleep(ASK_PAUSE).await;
            let asked = self.now();
            let Some(leader) = self.ask_leader(&transport).await.filter(|leader| leader.has_lease) else {
                continue;
            };
            while self.apply.last_index() < leader.last.index && self.now() < asked + PATIENCE {
                C::sleep(LOOK_PAUSE).await;
            }
            if self.apply.last_index() >= leader.last.index {
                self.staleness.note(asked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_has_gets_older_until_it_is_known_to_have_more() {
        let (staleness, ms) = (Staleness::default(), Duration::from_millis);
        assert_eq!(staleness.age(ms(5)), None);
        staleness.note(ms(10));
        assert_eq!(staleness.age(ms(10)), Some(ms(0)));
        assert_eq!(staleness.age(ms(40)), Some(ms(30)));
        staleness.note(ms(30));
        assert_eq!(staleness.age(ms(40)), Some(ms(10)));
    }
}
