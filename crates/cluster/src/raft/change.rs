//! Changes of the members, and of the leader by its own will.
//!
//! Both begin with a pause: the log refuses records, and the pump proposes what it has. Then the
//! next entry is the group's own, at the LSN behind the newest record, or the target of a transfer
//! can have everything. A change behind records that wait for their place would give out an LSN
//! twice.
//!
//! Before the pause, [`TermListener::close_gate`](crate::TermListener::close_gate) has ended the commands
//! that run: `group` calls it, because it may block.

use std::collections::BTreeSet;
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::type_config::TypeConfigExt;

use super::node::Node;
use super::types::Cfg;
use crate::consensus::ChangeError;
use crate::ids::NodeId;
use crate::member::{MEMBERS_MAX, Member, Members, Place};
use crate::term::Term;

/// Pause between two looks at what a change waits for.
const LOOK_PAUSE: Duration = Duration::from_millis(1);
/// A learner that lacks at most this many entries becomes a voter: it gets them while writes are
/// paused.
const LAG_MAX: u64 = 16;

impl<C: Cfg> Node<C> {
    /// Waits until `to` lacks few entries: it gets them while writes are paused.
    ///
    /// # Errors
    /// This member does not lead, or `to` lacks entries when `patience` ends.
    pub(crate) async fn catch_up(&self, to: NodeId, patience: Duration) -> Result<(), ChangeError> {
        let term = self.leading_term()?;
        let until = self.now() + patience;
        while let Err(behind) = self.check_caught_up(to) {
            self.look_again(term, until, behind).await?;
        }
        Ok(())
    }

    /// Checks that `to` lacks few entries. The error is their number.
    pub(crate) fn check_caught_up(&self, to: NodeId) -> Result<(), u64> {
        let status = self.status();
        let has = status.matching.get(&to.0).map_or(0, |id| id.index);
        let behind = status.last.index.saturating_sub(has);
        // What is before the beginning of the log comes with a snapshot, however few entries that are.
        let begins = self.driver.beginning().map_or(0, |beginning| beginning.end.id.index);
        if behind <= LAG_MAX && has >= begins { Ok(()) } else { Err(behind) }
    }

    /// Checks that the lead can be handed over to `to`.
    pub(crate) fn check_transfer(&self, to: NodeId) -> Result<(), ChangeError> {
        self.leading_term()?;
        let members = self.members().map_or_else(Vec::new, |members| members.list());
        if to == self.me() || !members.iter().any(|member| member.id == to && member.is_voter) {
            return Err(ChangeError::NoVoter(to));
        }
        Ok(())
    }

    /// Hands the lead over to `to`, once it has everything. Writes are paused meanwhile.
    ///
    /// # Errors
    /// This member does not lead, `to` does not vote, or it lacks entries when `patience` ends:
    /// nothing has changed. Or it did not take the lead in time: some member will.
    #[cfg(test)]
    pub(crate) async fn transfer(&self, to: NodeId, patience: Duration) -> Result<(), ChangeError> {
        let until = self.now() + patience;
        let term = self.prepare_transfer(to, until).await?;
        self.hand_over(term, to, until).await
    }

    /// Pauses writes, and waits until `to` has everything and all of it is committed. Returns the term, in
    /// which nothing can be written any more.
    ///
    /// # Errors
    /// As those of a transfer; nothing has changed.
    pub(crate) async fn prepare_transfer(&self, to: NodeId, until: Duration) -> Result<Term, ChangeError> {
        self.check_transfer(to)?;
        let term = self.leading_term()?;
        self.pause(term)?;
        let ready = async {
            self.drain(term, until).await?;
            loop {
                let status = self.status();
                let has = status.matching.get(&to.0).map_or(0, |id| id.index);
                if has == status.last.index && status.applied == status.last {
                    return Ok(());
                }
                self.look_again(term, until, status.last.index.saturating_sub(has)).await?;
            }
        };
        let ready: Result<(), ChangeError> = ready.await;
        if let Err(error) = ready {
            self.resume(term, until).await;
            return Err(error);
        }
        Ok(term)
    }

    /// Has `to` lead in the place of this member, which leads `term` and is prepared.
    ///
    /// # Errors
    /// This member leads no longer, or `to` did not take the lead in time: some member will.
    pub(crate) async fn hand_over(&self, term: Term, to: NodeId, until: Duration) -> Result<(), ChangeError> {
        if self.reign.role.leading() != Some(term) {
            return Err(ChangeError::NotLeader);
        }
        // Members vote for the target inside the lease: it must have ended before they are asked.
        self.reign.hand_over(term);
        let closed = |_| ChangeError::Closed;
        self.raft().trigger().transfer_leader(to.0).await.map_err(closed)?;
        while self.reign.role.leading() == Some(term) {
            if self.now() > until {
                return Err(ChangeError::NotTaken(to));
            }
            C::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// Has `to` lead in the place of this member, whatever this log still waits for.
    ///
    /// # Errors
    /// As those of [`hand_over`](Self::hand_over), or `to` does not vote.
    pub(crate) async fn hand_over_at_once(&self, to: NodeId, patience: Duration) -> Result<(), ChangeError> {
        self.check_transfer(to)?;
        self.hand_over(self.leading_term()?, to, self.now() + patience).await
    }

    /// Adds a member that receives the log and does not vote, unless it is there already.
    ///
    /// # Errors
    /// This member does not lead; the list of members would be invalid; or another change is under way.
    pub(crate) async fn add(&self, member: Member, patience: Duration) -> Result<(), ChangeError> {
        let term = self.leading_term()?;
        let until = self.now() + patience;
        let known = self.members().ok_or(ChangeError::NotLeader)?;
        let id = member.id;
        let list = Members::new(vec![Member { is_voter: true, ..member }]);
        let list = list.map_err(|error| ChangeError::Invalid(error.to_string()))?;
        // What it knows is checked when it connects.
        let nodes = list.at_level(known.level()).nodes;
        match known.nodes.get(&id.0) {
            Some(place) if Some(place) == nodes.get(&id.0) => Ok(()),
            Some(_) => Err(ChangeError::Invalid(format!(
                "the group has a member {id} with another address or directory; a new member takes a number \
                 that none has had"
            ))),
            None if known.nodes.len() >= MEMBERS_MAX => {
                Err(ChangeError::Invalid(format!("a group has at most {MEMBERS_MAX} members")))
            }
            None => self.change(term, until, ChangeMembers::AddNodes(nodes)).await,
        }
    }

    /// Makes a member vote that receives the log, unless it does.
    ///
    /// # Errors
    /// This member does not lead, the member is unknown, or another change is under way.
    pub(crate) async fn promote(&self, node: NodeId, patience: Duration) -> Result<(), ChangeError> {
        let term = self.leading_term()?;
        let known = self.members().ok_or(ChangeError::NotLeader)?;
        if known.voters.iter().all(|set| set.contains(&node.0)) {
            return Ok(());
        }
        let until = self.now() + patience;
        self.change(term, until, ChangeMembers::AddVoterIds(BTreeSet::from([node.0]))).await
    }

    /// Adds a member, and has it vote, if it is to, once it has caught up.
    ///
    /// # Errors
    /// As those of the three steps.
    #[cfg(test)]
    pub(crate) async fn join(&self, member: Member, patience: Duration) -> Result<(), ChangeError> {
        let (id, is_voter) = (member.id, member.is_voter);
        self.add(member, patience).await?;
        self.catch_up(id, patience).await?;
        if is_voter { self.promote(id, patience).await } else { Ok(()) }
    }

    /// Removes a member.
    ///
    /// # Errors
    /// This member does not lead, is the one to be removed, or is not alone in changing members; or
    /// no voter would be left.
    pub(crate) async fn remove(&self, node: NodeId, patience: Duration) -> Result<(), ChangeError> {
        let term = self.leading_term()?;
        if node == self.me() {
            return Err(ChangeError::Leads(node));
        }
        let until = self.now() + patience;
        let known = self.members().ok_or(ChangeError::NotLeader)?;
        if !known.nodes.contains_key(&node.0) {
            return Err(ChangeError::Unknown(node));
        }
        let change = if known.voters.iter().any(|set| set.contains(&node.0)) {
            ChangeMembers::RemoveVoters(BTreeSet::from([node.0]))
        } else {
            ChangeMembers::RemoveNodes(BTreeSet::from([node.0]))
        };
        self.change(term, until, change).await
    }

    /// Changes the members behind a pause. What follows the first entry cannot be taken back, so it
    /// is waited for while this member leads.
    pub(super) async fn change(
        &self,
        term: Term,
        until: Duration,
        change: ChangeMembers<u64, Place>,
    ) -> Result<(), ChangeError> {
        self.pause(term)?;
        let changed = async {
            self.drain(term, until).await?;
            let changed = self.raft().change_membership(change, false).await;
            changed.map(drop).map_err(|error| ChangeError::Refused(error.to_string()))
        };
        let changed = changed.await;
        self.resume(term, until).await;
        changed
    }

    pub(super) fn leading_term(&self) -> Result<Term, ChangeError> {
        self.reign.role.leading().ok_or(ChangeError::NotLeader)
    }

    fn pause(&self, term: Term) -> Result<(), ChangeError> {
        if self.reign.pause(term) { Ok(()) } else { Err(ChangeError::Another) }
    }

    /// Ends a pause, and waits until it has ended: the next change is not refused because of this one. A log that
    /// does not answer is waited for until `until`.
    async fn resume(&self, term: Term, until: Duration) {
        self.reign.resume(term);
        while self.reign.is_paused() && self.look_again(term, until, 0).await.is_ok() {}
    }

    /// Waits until everything that was accepted is in the log.
    async fn drain(&self, term: Term, until: Duration) -> Result<(), ChangeError> {
        while !self.driver.is_drained() {
            self.look_again(term, until, 0).await?;
        }
        Ok(())
    }

    async fn look_again(&self, term: Term, until: Duration, behind: u64) -> Result<(), ChangeError> {
        if self.reign.role.leading() != Some(term) {
            return Err(ChangeError::NotLeader);
        }
        if self.now() > until {
            return Err(ChangeError::NotCaughtUp { behind });
        }
        C::sleep(LOOK_PAUSE).await;
        Ok(())
    }
}
