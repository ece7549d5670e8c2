//! Memory of a member: it follows the log while another member leads, and is at its end while this
//! one does.

use super::leadership::{Leadership, Order};
use crate::observe::operator_line::say;
use crate::shared::Shared;
use std::time::Duration;
use tidemark_engine::{FollowError, Follower};
use tidemark_log::Lsn;

/// How often memory that has everything notes so, for reads on followers.
const PULSE: Duration = Duration::from_millis(100);

/// Why memory is no longer that of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server stops.
    Stopped,
    /// Memory has changes that the group has taken back, or the log was replaced by a snapshot.
    Outdated,
    /// The consensus has ended: this member takes no part any more.
    Failed(String),
}

/// Keeps the engine of a server with the log of its member, until the server stops, memory has to be
/// loaded again, or the consensus has ended, which `failure` says. `staleness` is the age of the leader's
/// state that the log has.
///
/// # Errors
/// The log cannot be read, or has a record that cannot be applied.
pub(crate) fn keep_with_log(
    shared: &Shared,
    leadership: &Leadership,
    staleness: impl Fn() -> Option<Duration>,
    failure: impl Fn() -> Option<String>,
) -> Result<Ended, FollowError> {
    let mut memory = Memory { shared, leadership, staleness: &staleness, follower: None };
    let mut order = leadership.order();
    loop {
        let ended = match order {
            Order { is_stopping: true, .. } => Some(Ended::Stopped),
            order => memory.obey(order)?,
        };
        if let Some(ended) = ended {
            return Ok(ended);
        }
        order = leadership.wait(order, PULSE);
        if let Some(failure) = failure() {
            return Ok(Ended::Failed(failure));
        }
    }
}

struct Memory<'s> {
    shared: &'s Shared,
    leadership: &'s Leadership,
    staleness: &'s dyn Fn() -> Option<Duration>,
    /// Where memory is in the log; `None` while it leads and until it first follows.
    follower: Option<Follower>,
}

impl Memory<'_> {
    fn obey(&mut self, order: Order) -> Result<Option<Ended>, FollowError> {
        let engine = &self.shared.engine;
        if !engine.is_following() {
            if order.won.is_some_and(|(term, _)| self.leadership.serves(term)) {
                return Ok(None);
            }
            // Until the log is known to have all that memory has, and no more.
            let Some(end) = order.end else { return Ok(None) };
            say("this member no longer leads the cluster");
            // With a change that the log has refused, it is memory of no log.
            if engine.follow(end).is_err() {
                return Ok(Some(Ended::Outdated));
            }
        }
        if is_cut(engine.applied(), order.cut) {
            return Ok(Some(Ended::Outdated));
        }
        self.leadership.note_following(order);
        if let Some(ended) = self.catch_up()? {
            return Ok(Some(ended));
        }
        if let Some((term, lsn)) = order.won
            && engine.applied() >= lsn
        {
            self.follower = None;
            self.leadership.serve(term, || {
                engine.lead(self.shared.clock.now_us());
                engine.raise_level(self.leadership.level().0);
            });
        }
        Ok(None)
    }

    /// Applies all that is committed.
    fn catch_up(&mut self) -> Result<Option<Ended>, FollowError> {
        match self.apply_committed() {
            // A log that is being replaced may be read in any state.
            Err(_) if is_cut(self.shared.engine.applied(), self.leadership.order().cut) => {
                Ok(Some(Ended::Outdated))
            }
            applied => applied,
        }
    }

    fn apply_committed(&mut self) -> Result<Option<Ended>, FollowError> {
        let engine = &self.shared.engine;
        loop {
            // Before the log is read: memory then has at least this.
            let age = (self.staleness)();
            if self.follower.is_none() && engine.applied() > engine.log().appended() {
                // The snapshot of another member has a part of the entry that comes next.
                self.leadership.note_caught_up(age);
                return Ok(None);
            }
            let follower = match &mut self.follower {
                Some(follower) => follower,
                empty => match Follower::of(engine) {
                    Ok(follower) => empty.insert(follower),
                    // A snapshot has taken the place of the records.
                    Err(_) if engine.log().floor() > engine.applied().next() => {
                        return Ok(Some(Ended::Outdated));
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            let leadership = self.leadership;
            // Looked at behind the batch: a cut comes before what stands in its place.
            let fits = || !is_cut(engine.applied(), leadership.order().cut);
            match follower.apply_next(engine, fits)? {
                None => return Ok(Some(Ended::Outdated)),
                Some(0) => {
                    self.leadership.note_caught_up(age);
                    return Ok(None);
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether memory has what was taken back. Of a log that was replaced, nothing is left.
fn is_cut(applied: Lsn, cut: Option<Lsn>) -> bool {
    cut.is_some_and(|cut| applied > cut || cut == Lsn::ZERO)
}
