//! A member that may have lost entries that it had acknowledged takes part without a vote, until it
//! has everything that a leader could count on it for.
//!
//! ```text
//!  start ─► asks the leader of its term or a later one for its last entry
//!        ─► has that entry, synced ─► the suspicion ends durably ─► votes
//! ```
//!
//! Why that is enough. Call S the member, and A the entries that it acknowledged before the loss and
//! that are committed, or will be. It still has its ballot, which is synced in every mode.
//!
//! 1. *No leader is elected that lacks one of A.* An entry is committed by a quorum, and a leader is
//!    elected by one. Both have a member in common, and S is none of the electors. So the proof of
//!    Raft holds for the others, as if S had not acknowledged.
//! 2. *The leader that S asks has all of A.* Its term is not below the ballot of S, so S had
//!    acknowledged its entries, or those of leaders before it. Its own are in its log, and those of
//!    earlier terms by 1. The entries that S had acknowledged to it were in its log before the
//!    restart of S, and so before the question: its answer is at or behind all of them. A process
//!    that was elected, died and started again does not answer: it may have lost entries itself.
//! 3. *With the leader's last entry, S has the leader's log up to there.* Entries of one place and
//!    term have the same log before them. A later cut takes nothing of A back.
//! 4. *What S acknowledges meanwhile counts, rightly:* it has those entries. Its leader may still
//!    count older acknowledgements of entries that are lost. By 1 that does no harm while S does not
//!    vote, and by 2 and 3 it has those entries when it does.
//!
//! What the leader has committed at the first contact would not be enough: by 4 it may later count
//! a lost entry behind that as acknowledged by S, and commit it. A member that may have forgotten
//! its *ballot* is not safe this way, and does not start: its acknowledgement could commit entries
//! of a leader that it had helped to depose.

use std::io;

use openraft::type_config::TypeConfigExt;
use tidemark_log::EntryId;
use tokio::sync::oneshot;

use super::node::Node;
use super::standing::{Heal, Regained};
use super::types::Cfg;
use crate::net::Transport;

impl<C: Cfg> Node<C> {
    /// Waits until a leader has caught this member up, or its operator accepts what is lost, ends the
    /// suspicion, and votes from then on.
    /// `began_in` is the term of the ballot that the start found.
    pub(super) async fn regain_vote<T: Transport>(self, transport: T, began_in: u64, heal: Heal) {
        let mut asked = None;
        let regained = loop {
            C::sleep(self.settings.heartbeat).await;
            if self.status().failure.is_some() {
                return;
            }
            if self.standing.is_loss_accepted() {
                break Regained::LossAccepted;
            }
            let term = self.driver.ballot().map_or(0, |ballot| ballot.term);
            let known = asked.filter(|(of, _)| *of == term);
            let Some((_, last)) = known else {
                // A leader of an earlier term is deposed: what S acknowledged later is not with it.
                let leader = self.ask_leader(&transport).await;
                asked =
                    leader.filter(|leader| leader.term >= began_in).map(|leader| (leader.term, leader.last));
                continue;
            };
            if self.has_entry(last).await {
                break Regained::CaughtUp;
            }
        };
        match self.end_suspicion(heal, regained).await {
            Ok(()) => {
                self.standing.end();
                self.raft().runtime_config().elect(true);
            }
            Err(error) => {
                tracing::error!(%error, "the member has everything, and cannot note it: it stays without a vote");
            }
        }
    }

    /// Returns whether the log has this entry, or a snapshot in its place.
    async fn has_entry(&self, id: EntryId) -> bool {
        if id.index > self.driver.last().id.index {
            return false;
        }
        if id.index < self.driver.member().first_entry() {
            return true;
        }
        // A failed read ends the consensus soon: it reads the same log.
        let read = self.driver.read(id.index, id.index + 1, 1).await.unwrap_or_default();
        read.first().is_some_and(|(found, _)| *found == id)
    }

    /// Syncs what was pushed to the log so far, and has `heal` note that the member votes.
    async fn end_suspicion(&self, heal: Heal, regained: Regained) -> io::Result<()> {
        let (done, ended) = oneshot::channel();
        self.driver.run(move |member| {
            let synced = member.sync().map_err(|failure| io::Error::other(failure.to_string()));
            drop(done.send(synced.and_then(|_| heal(regained))));
        });
        ended.await.map_err(|_| io::Error::other("the log of the member is closed"))?
    }
}
