//! How old the leader's state is that a follower has.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

    pub(super) fn note(&self, as_of: Duration) {
        self.as_of.store(as_of.as_nanos() as u64, Ordering::Release);
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
