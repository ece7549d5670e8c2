//! The beginning and the end of a term at this member, in the order that keeps the log and the
//! server together.

use std::sync::Arc;

use tidemark_log::Lsn;
use tokio::sync::Notify;

use crate::driver::LogDriver;
use crate::lease::LeaseMirror;
use crate::role::{EndedTerm, RoleCell, TermListener};
use crate::term::{Ballot, Term};

/// What begins and ends terms. Used on the thread of the consensus.
pub(crate) struct Reign {
    driver: LogDriver,
    pub(crate) role: RoleCell,
    pub(crate) lease: LeaseMirror,
    listener: Arc<dyn TermListener>,
    /// There may be records to take.
    pub(crate) gathered: Arc<Notify>,
    #[cfg(test)]
    pub(crate) faults: crate::simulation::Faults,
}

impl Reign {
    pub(crate) fn new(
        driver: LogDriver,
        role: RoleCell,
        listener: Arc<dyn TermListener>,
        #[cfg(test)] faults: crate::simulation::Faults,
    ) -> Arc<Self> {
        let gathered = Arc::new(Notify::new());
        let waker = gathered.clone();
        driver.member().set_waker(Box::new(move || waker.notify_one()));
        Arc::new(Self {
            driver,
            role,
            lease: LeaseMirror::default(),
            listener,
            gathered,
            #[cfg(test)]
            faults,
        })
    }

    /// Ends the term that is led, if `ballot` ends it. The log refuses records when this returns;
    /// those that are not in the log are dropped before anything else is written.
    pub(crate) fn note_ballot(self: &Arc<Self>, ballot: Ballot) {
        let ended = self.role.note_ballot(ballot, || self.driver.member().pause());
        self.end(ended);
    }

    /// Ends `term`, because a batch of it was refused.
    pub(crate) fn lose(self: &Arc<Self>, term: Term) {
        let ended = self.role.lose(term, || self.driver.member().pause());
        self.end(ended);
    }

    fn end(self: &Arc<Self>, ended: Option<EndedTerm>) {
        let Some(ended) = ended else { return };
        self.lease.clear();
        if ended.was_led {
            self.listener.end_term(ended.term);
        }
        let reign = self.clone();
        self.driver.run(move |member| {
            if let Some((first, _)) = member.discard() {
                reign.note_cut(first.previous());
            }
        });
    }

    /// Notes that records behind `lsn` were taken back.
    pub(crate) fn note_cut(&self, lsn: Lsn) {
        self.listener.cut(lsn);
    }

    /// Begins `term`, whose LEADER record `lsn` is committed, once the record is written here.
    pub(crate) fn begin(self: &Arc<Self>, term: Term, lsn: Lsn) {
        if !self.role.is_established(term) {
            return;
        }
        let reign = self.clone();
        self.driver.run(move |member| {
            // Before the log accepts records: what executes commands must know of the term.
            if reign.role.begin(term, lsn, || {
                reign.listener.begin_term(term, lsn);
                member.lead();
            }) {
                reign.gathered.notify_one();
            }
        });
    }
}
