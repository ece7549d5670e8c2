//! What a member asks its leader: for the last entry.
//!
//! That tells a follower how old its state is. It asks, because the age of a message that it gets unasked
//! is unknown: it may have waited in a socket for as long as this process was stopped. A leader that has
//! the lease answers with its last entry. Once that is applied here, everything is that was committed
//! when the question was asked.

use std::time::Duration;

use openraft::type_config::TypeConfigExt;
use tidemark_log::EntryId;

use super::node::Node;
use super::types::Cfg;
use crate::ids::NodeId;
use crate::net::{Lane, Transport};
use crate::term::Term;
use crate::wire::message::{LastAnswer, Request};

/// Pause between two questions.
const ASK_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two looks whether the answer is applied.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// Time after which another question is asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a leader says of itself.
pub(super) struct LeaderView {
    /// The term that it was elected for.
    pub(super) term: u64,
    /// The last entry of its log.
    pub(super) last: EntryId,
    /// No other member can lead yet.
    pub(super) has_lease: bool,
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

    /// Asks the leader that this member follows for its term and its last entry.
    pub(super) async fn ask_leader(&self, transport: &impl Transport) -> Option<LeaderView> {
        let (leader, _) = self.reign.role.followed()?;
        let answer = transport.send(leader, Lane::Control, Request::Last.encode());
        let answer = C::timeout(self.settings.lease() * 2, answer).await.ok()?.ok()?;
        match LastAnswer::decode(&answer)? {
            LastAnswer::Leader { term, last, has_lease } => Some(LeaderView { term, last, has_lease }),
            LastAnswer::NotLeader => None,
        }
    }

    /// Answers a member that asks for this leader's last entry.
    pub(super) fn last_answer(&self) -> LastAnswer {
        let (ballot, last) = self.driver.ballot_and_last();
        match ballot {
            // Elected as this process: after a restart entries may be missing.
            Some(ballot)
                if ballot.is_elected
                    && NodeId(ballot.node) == self.me()
                    && self.reign.role.is_established(Term(ballot.term)) =>
            {
                let has_lease = self.reign.lease.is_valid(Term(ballot.term), self.now());
                LastAnswer::Leader { term: ballot.term, last: last.id, has_lease }
            }
            _ => LastAnswer::NotLeader,
        }
    }
}
