//! The role of this member: whether commands run here, and who leads otherwise.
//!
//! ```text
//!   own ballot elected          LEADER record committed and written
//!  ───────────────────► established ───────────────────────────────► leading
//!                            │ any other ballot is saved, or a batch is refused │
//!                            └──────────────────► following ◄───────────────────┘
//! ```
//!
//! A term ends before the ballot that ends it is saved, and so before any other member can know of
//! the next one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidemark_log::Lsn;

use crate::ids::NodeId;
use crate::level::Level;
use crate::member::Member;
use crate::term::{Ballot, Term};

/// Role of this member, as a server may act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Commands run here: the LEADER record of the term is committed.
    Leading {
        /// The term.
        term: Term,
    },
    /// Commands go to `leader`, if one is known and not silent.
    Following {
        /// The leader.
        leader: Option<NodeId>,
    },
}

/// Receives changes of the role and of the log. The calls must return quickly: they run on the
/// thread of the consensus or on the log's writer.
pub trait TermListener: Send + Sync + 'static {
    /// `term` begins here. Its LEADER record, `lsn`, is committed and written; the log accepts
    /// records behind it.
    fn begin_term(&self, term: Term, lsn: Lsn);
    /// `term` ended here. The log refuses records. Held answers of the term must never be sent.
    fn end_term(&self, term: Term);
    /// `end` is the last record that the log gave out before it refused records, in a term that
    /// ended or was won and never begun. Called behind `end_term`, and behind `cut` if some of them
    /// are not in the log, before anything else is written.
    fn end_log(&self, end: Lsn);
    /// The newest entry that names the members names these. Connections go to their addresses.
    fn members(&self, members: &[Member]);
    /// The group has this level, by an entry that is committed: what is appended from now on may be of it.
    /// Called at a start, and for each entry that names the members.
    fn level(&self, _level: Level) {}
    /// What the log or a snapshot of this member has on its disk is damaged, which a read has found: `damage`
    /// says where. It is neither applied nor sent.
    fn damaged(&self, _damage: &str) {}
    /// What the other members have acknowledged may have changed. Called often.
    fn progressed(&self) {}
    /// Another member lacks what came before the beginning of this log, and there is no snapshot that could
    /// be sent. Called until there is one.
    fn snapshot_wanted(&self) {}
    /// Member `to` lacks what came before the beginning of this log, and an attempt to send it a snapshot has
    /// failed: `reason` says why. Called for each attempt.
    fn snapshot_unsent(&self, _to: NodeId, _reason: &str) {}
    /// This member does not take the snapshot that it needs: `reason` says why. Called for each attempt.
    fn snapshot_refused(&self, _reason: &str) {}
    /// Records behind `lsn` were given out or written here and are taken back. Memory that has
    /// them is dropped and built again from the log.
    fn cut(&self, lsn: Lsn);
    /// Runs `install`, which replaces the log by its beginning behind a snapshot of another member. All
    /// memory of before is dropped, and built again from the snapshot; none is built meanwhile. The call
    /// runs on a thread of its own.
    fn install(&self, install: &mut dyn FnMut()) {
        install();
        self.cut(Lsn::ZERO);
    }
    /// A change of the leader or of the members is about to make the log refuse records: refuses
    /// commands, and returns when those that ran have ended, so that none has changed memory when its
    /// record is refused. Called on the thread that asked for the change, and may block.
    ///
    /// # Errors
    /// Why commands cannot be ended; the change is not made. They are accepted again.
    fn close_gate(&self) -> Result<(), String> {
        Ok(())
    }
    /// What was executed is committed, and another member is about to be asked to lead: sends the
    /// answers that waited, as far as that takes a moment. Called as
    /// [`close_gate`](Self::close_gate), behind it.
    fn send_answers(&self) {}
    /// The change was made, or was not: commands run again where the lead is.
    fn open_gate(&self) {}
}

/// Listener for a member whose log alone matters.
#[derive(Clone, Copy, Debug)]
pub struct NoListener;

impl TermListener for NoListener {
    fn begin_term(&self, _term: Term, _lsn: Lsn) {}
    fn end_term(&self, _term: Term) {}
    fn end_log(&self, _end: Lsn) {}
    fn members(&self, _members: &[Member]) {}
    fn cut(&self, _lsn: Lsn) {}
}

/// A term that this member was elected for, and that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedTerm {
    pub(crate) term: Term,
    /// It had begun: records were accepted.
    pub(crate) was_led: bool,
}

#[derive(Debug, Default)]
struct RoleState {
    /// The term that this process was elected for; 0 if another ballot was saved since.
    established: u64,
    /// The LEADER record of the term that is led; `ZERO` if none is.
    leader_lsn: Lsn,
}

/// The role, readable without locks.
#[derive(Debug)]
pub(crate) struct RoleCell {
    me: NodeId,
    state: Mutex<RoleState>,
    /// The term that is led; 0 if none is.
    leading: AtomicU64,
    /// The elected leader of the newest ballot; 0 if it is not elected.
    leader: AtomicU64,
    /// When the leader was heard last, in nanoseconds of the group's clock.
    heard: AtomicU64,
}

impl RoleCell {
    /// Begins with the ballot that was found. If it is this member's own, the term is over: its
    /// unsynced entries may be lost.
    pub(crate) fn new(me: NodeId, found: Option<Ballot>) -> Self {
        let leader = found.filter(|ballot| ballot.is_elected && ballot.node != me.0);
        Self {
            me,
            state: Mutex::default(),
            leading: AtomicU64::new(0),
            leader: AtomicU64::new(leader.map_or(0, |ballot| ballot.node)),
            heard: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, RoleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the term that is led.
    pub(crate) fn leading(&self) -> Option<Term> {
        let term = self.leading.load(Ordering::Acquire);
        (term > 0).then_some(Term(term))
    }

    /// Returns the term that is led and its LEADER record.
    pub(crate) fn reign(&self) -> Option<(Term, Lsn)> {
        let state = self.state();
        self.leading().map(|term| (term, state.leader_lsn))
    }

    /// Returns the role at `now`. A leader that was silent for `lease` is not named: clients would
    /// wait for it.
    pub(crate) fn role(&self, now: Duration, lease: Duration) -> Role {
        if let Some(term) = self.leading() {
            return Role::Leading { term };
        }
        let leader = self.leader.load(Ordering::Acquire);
        let heard = Duration::from_nanos(self.heard.load(Ordering::Relaxed));
        let is_known = leader > 0 && leader != self.me.0 && now.saturating_sub(heard) < lease;
        Role::Following { leader: is_known.then_some(NodeId(leader)) }
    }

    /// Returns the leader of the newest ballot, and when it was heard last.
    pub(crate) fn followed(&self) -> Option<(NodeId, Duration)> {
        let leader = self.leader.load(Ordering::Acquire);
        let heard = Duration::from_nanos(self.heard.load(Ordering::Relaxed));
        (leader > 0 && leader != self.me.0).then_some((NodeId(leader), heard))
    }

    /// Notes a message of the leader at `now`.
    pub(crate) fn note_heard(&self, now: Duration) {
        self.heard.store(now.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Notes the ballot that is about to be saved. Calls `pause` if a term or a candidacy of this
    /// member ends with it. Returns that term.
    pub(crate) fn note_ballot(&self, ballot: Ballot, pause: impl FnOnce()) -> Option<EndedTerm> {
        let mut state = self.state();
        self.leader.store(if ballot.is_elected { ballot.node } else { 0 }, Ordering::Release);
        if ballot.is_elected && ballot.node == self.me.0 {
            if state.established == ballot.term {
                return None;
            }
            let ended = self.end(&mut state, pause);
            state.established = ballot.term;
            return ended;
        }
        self.end(&mut state, pause)
    }

    /// Ends `term` if it is led or about to be: its batch was refused.
    pub(crate) fn lose(&self, term: Term, pause: impl FnOnce()) -> Option<EndedTerm> {
        let mut state = self.state();
        if state.established == term.0 { self.end(&mut state, pause) } else { None }
    }

    fn end(&self, state: &mut RoleState, pause: impl FnOnce()) -> Option<EndedTerm> {
        let established = std::mem::take(&mut *state).established;
        let led = self.leading.swap(0, Ordering::AcqRel);
        assert!(led == 0 || led == established, "term {led} is led, and {established} was won");
        (established > 0).then(|| {
            pause();
            EndedTerm { term: Term(established), was_led: led > 0 }
        })
    }

    /// Calls `run` if `term` is led; it does not end meanwhile.
    pub(crate) fn while_leading(&self, term: Term, run: impl FnOnce()) -> bool {
        let _state = self.state();
        let is_led = self.leading() == Some(term);
        if is_led {
            run();
        }
        is_led
    }

    /// Returns whether this process was elected for `term` and no other ballot was saved since.
    pub(crate) fn is_established(&self, term: Term) -> bool {
        self.state().established == term.0
    }

    /// Begins `term`, if this process was elected for it and it did not end meanwhile: calls `lead`
    /// and returns true.
    pub(crate) fn begin(&self, term: Term, lsn: Lsn, lead: impl FnOnce()) -> bool {
        let mut state = self.state();
        if state.established != term.0 || self.leading().is_some() {
            return false;
        }
        lead();
        state.leader_lsn = lsn;
        self.leading.store(term.0, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_millis(100);

    fn elected(term: u64, node: u64) -> Ballot {
        Ballot { term, node, is_elected: true }
    }

    #[test]
    fn a_term_begins_only_for_who_was_elected_and_ends_with_any_other_ballot() {
        let role = RoleCell::new(NodeId(1), None);
        let not = || panic!("must not be called");
        assert!(!role.begin(Term(3), Lsn(5), not));
        assert_eq!(role.note_ballot(Ballot { term: 3, node: 1, is_elected: false }, not), None);
        assert!(!role.begin(Term(3), Lsn(5), not));
        assert_eq!(role.note_ballot(elected(3, 1), not), None);
        assert!(role.begin(Term(3), Lsn(5), || {}));
        assert_eq!(
            (role.reign(), role.role(LEASE, LEASE)),
            (Some((Term(3), Lsn(5))), Role::Leading { term: Term(3) })
        );
        assert_eq!(role.note_ballot(elected(3, 1), not), None, "it is the same ballot");
        let mut paused = false;
        assert_eq!(
            role.note_ballot(Ballot { term: 4, node: 2, is_elected: false }, || paused = true),
            Some(EndedTerm { term: Term(3), was_led: true })
        );
        assert!(paused && role.reign().is_none() && !role.begin(Term(3), Lsn(5), not));
    }

    #[test]
    fn a_silent_leader_is_not_named() {
        let role = RoleCell::new(NodeId(1), None);
        let _ = role.note_ballot(elected(2, 3), || {});
        role.note_heard(LEASE);
        assert_eq!(role.role(Duration::from_millis(199), LEASE), Role::Following { leader: Some(NodeId(3)) });
        assert_eq!(role.role(LEASE * 2, LEASE), Role::Following { leader: None });
        let _ = role.note_ballot(elected(2, 1), || {});
        role.note_heard(LEASE * 2);
        assert_eq!(role.role(LEASE * 2, LEASE), Role::Following { leader: None }, "it does not lead yet");
    }
}
