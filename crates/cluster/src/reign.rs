//! The beginning and the end of a term at this member, in the order that keeps the log and the
//! server together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tidemark_log::Lsn;
use tokio::sync::Notify;

use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::lease::LeaseMirror;
use crate::level::Level;
use crate::member::Members;
use crate::role::{EndedTerm, RoleCell, TermListener};
use crate::term::{Ballot, Term};

/// Records are accepted while a term is led.
const OPEN: u8 = 0;
/// A change waits until all records are in the log.
const PAUSED: u8 = 1;
/// Another member is about to lead.
const HANDING_OVER: u8 = 2;

/// What begins and ends terms. Used on the thread of the consensus.
pub(crate) struct Reign {
    driver: LogDriver,
    pub(crate) role: RoleCell,
    pub(crate) lease: LeaseMirror,
    listener: Arc<dyn TermListener>,
    /// Whether records are accepted, and whether the lease counts.
    admission: AtomicU8,
    /// There may be records to take.
    pub(crate) gathered: Arc<Notify>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

impl Reign {
    pub(crate) fn new(
        driver: LogDriver,
        role: RoleCell,
        listener: Arc<dyn TermListener>,
        #[cfg(test)] faults: crate::faults::Faults,
    ) -> Arc<Self> {
        let gathered = Arc::new(Notify::new());
        let waker = gathered.clone();
        driver.member().set_waker(Box::new(move || waker.notify_one()));
        Arc::new(Self {
            driver,
            role,
            lease: LeaseMirror::default(),
            admission: AtomicU8::new(OPEN),
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

    /// Ends whatever term is led: the consensus has ended.
    pub(crate) fn abdicate(self: &Arc<Self>) {
        self.note_ballot(Ballot::default());
    }

    /// Notes that these are the members.
    pub(crate) fn note_members(&self, members: &Members) {
        self.listener.members(&members.list());
    }

    /// Notes the level of the newest list of members that is committed.
    pub(crate) fn note_level(&self, level: Level) {
        self.listener.level(level);
    }

    /// Notes that a read has found damage on this member's disk.
    pub(crate) fn note_damage(&self, damage: &str) {
        self.listener.damaged(damage);
    }

    /// Notes that members may have acknowledged more.
    pub(crate) fn note_progress(&self) {
        self.listener.progressed();
    }

    /// Notes that member `to` needs a snapshot, and why it did not get it.
    pub(crate) fn note_unsent_snapshot(&self, to: NodeId, reason: &str) {
        self.listener.snapshot_unsent(to, reason);
    }

    /// Notes why this member does not take the snapshot that it needs.
    pub(crate) fn note_refused_snapshot(&self, reason: &str) {
        self.listener.snapshot_refused(reason);
    }

    /// Asks the server for a snapshot that can be sent to another member.
    pub(crate) fn want_snapshot(&self) {
        self.listener.snapshot_wanted();
    }

    /// Ends `term`, because a batch of it was refused.
    pub(crate) fn lose(self: &Arc<Self>, term: Term) {
        let ended = self.role.lose(term, || self.driver.member().pause());
        self.end(ended);
    }

    fn end(self: &Arc<Self>, ended: Option<EndedTerm>) {
        let Some(ended) = ended else { return };
        self.lease.clear();
        self.admission.store(OPEN, Ordering::Release);
        if ended.was_led {
            self.listener.end_term(ended.term);
        }
        let reign = self.clone();
        self.driver.run(move |member| {
            let end = reign.driver.appended();
            if let Some((first, _)) = member.discard() {
                reign.note_cut(first.previous());
            }
            reign.listener.end_log(end);
        });
    }

    /// See [`TermListener::close_gate`].
    pub(crate) fn close_gate(&self) -> Result<(), String> {
        self.listener.close_gate()
    }

    /// See [`TermListener::send_answers`].
    pub(crate) fn send_answers(&self) {
        self.listener.send_answers();
    }

    /// See [`TermListener::open_gate`].
    pub(crate) fn open_gate(&self) {
        self.listener.open_gate();
    }

    /// Makes the log refuse records while `term` is led. Returns false if it is not, or if records
    /// are refused already.
    pub(crate) fn pause(&self, term: Term) -> bool {
        let mut is_first = false;
        self.role.while_leading(term, || {
            let paused = self.admission.compare_exchange(OPEN, PAUSED, Ordering::AcqRel, Ordering::Acquire);
            is_first = paused.is_ok();
            if is_first {
                self.driver.member().pause();
            }
        });
        is_first
    }

    /// Makes the log accept records again, if `term` is still led, once it has what was pushed to it.
    /// A change may be committed by others before it is written here, and it goes before all records.
    pub(crate) fn resume(self: &Arc<Self>, term: Term) {
        let reign = self.clone();
        self.driver.run(move |member| {
            reign.role.while_leading(term, || {
                member.lead();
                reign.admission.store(OPEN, Ordering::Release);
            });
        });
    }

    /// Ends the lease of `term` before the term ends: another member is asked to lead.
    pub(crate) fn hand_over(&self, term: Term) {
        self.role.while_leading(term, || {
            self.admission.store(HANDING_OVER, Ordering::Release);
            self.lease.clear();
        });
    }

    /// Returns whether the log refuses records because of a change.
    pub(crate) fn is_paused(&self) -> bool {
        self.admission.load(Ordering::Acquire) != OPEN
    }

    /// Returns whether another member is asked to lead.
    pub(crate) fn hands_over(&self) -> bool {
        self.admission.load(Ordering::Acquire) == HANDING_OVER
    }

    /// Notes that records behind `lsn` were taken back.
    pub(crate) fn note_cut(&self, lsn: Lsn) {
        self.listener.cut(lsn);
    }

    /// Runs `install`, which replaces the log by a snapshot and its beginning behind it.
    pub(crate) fn install(&self, install: &mut dyn FnMut()) {
        self.listener.install(install);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{NewEntry, Next, VoteStore};
    use crate::entry::Entry;
    use crate::faults::Faults;
    use crate::member::{Member, Members};
    use crate::role::NoListener;
    use std::io;
    use tidemark_log::storage::faulty::{Fault, Plan, Site};
    use tidemark_log::{
        AppendError, Durability, EntryId, EntryRecords, FaultyStorage, Log, MemoryStorage, Options, Storage,
    };

    struct NoVotes;

    impl VoteStore for NoVotes {
        fn save(&mut self, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn open() -> (Arc<Log>, LogDriver, Arc<Reign>) {
        open_on(Arc::new(MemoryStorage::new()))
    }

    fn open_on(storage: Arc<dyn Storage>) -> (Arc<Log>, LogDriver, Arc<Reign>) {
        let (durability, faults) = (Durability::Always, Faults::default());
        let options = Options { durability, segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() };
        let (log, member, _) = Log::open_member_without_threads(storage, options).expect("opens");
        let (log, votes) = (Arc::new(log), Box::new(NoVotes));
        let driver = LogDriver::open(NodeId(1), log.clone(), member, votes, None, durability, faults);
        let driver = driver.expect("opens");
        let role = RoleCell::new(NodeId(1), None);
        let reign = Reign::new(driver.clone(), role, Arc::new(NoListener), faults);
        (log, driver, reign)
    }

    /// Does what the writer does.
    fn write_all(driver: &LogDriver) {
        while let Next::Job(job) = driver.driver().writes.try_pop() {
            driver.driver().write(job);
        }
    }

    #[test]
    fn an_append_waits_for_space_no_longer_than_until_the_member_stops() {
        let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
        let (_, driver, reign) = open_on(Arc::new(storage.clone()));
        reign.note_ballot(Ballot { term: 3, node: 2, is_elected: true });
        let fault = Fault::Error(std::io::ErrorKind::StorageFull);
        storage.set_plan(Some(Plan { fault, at: 1, site: Some(Site::Create), forever: true, seed: 0 }));
        driver.stop_waiting();
        let (done, ended) = std::sync::mpsc::channel();
        for index in 1.. {
            let lsn = driver.last().last.next();
            let records = EntryRecords::of_record(lsn, 1, 1, &[7; 3000]);
            let entry = NewEntry::Received(Entry::of_records(records).expect("a batch"));
            let sender = done.clone();
            let done = Box::new(move |result: io::Result<()>| drop(sender.send(result)));
            driver.append(EntryId { index, term: 3 }, entry, done).expect("is accepted");
            write_all(&driver);
            while let Next::Job(job) = driver.driver().syncs.try_pop() {
                driver.driver().sync(job);
            }
            if let Err(error) = ended.try_recv().expect("the job is done") {
                assert!(error.to_string().contains("appending entry"), "{error}");
                return;
            }
        }
    }

    #[test]
    fn no_record_comes_before_a_change_that_others_commit_first() {
        let (log, driver, reign) = open();
        let append = || log.append(1, 1, |into| into.push(1));
        let id = |index| EntryId { index, term: 3 };
        reign.note_ballot(Ballot { term: 3, node: 1, is_elected: true });
        driver.append(id(1), NewEntry::Leader, Box::new(drop)).expect("is accepted");
        reign.begin(Term(3), driver.last().last);
        write_all(&driver);
        assert!(reign.pause(Term(3)), "the term is led");
        assert!(matches!(append(), Err(AppendError::Follows)));
        let member = Member {
            id: NodeId(1),
            peer_address: "a:1".to_owned(),
            client_address: "a:2".to_owned(),
            directory: None,
            is_voter: true,
        };
        let members = NewEntry::Members(Members::new(vec![member]).expect("is valid"));
        driver.append(id(2), members, Box::new(drop)).expect("is accepted");
        // Others have committed it; the disk of this member is slow.
        reign.resume(Term(3));
        assert!(matches!(append(), Err(AppendError::Follows)), "the change is not written here");
        assert!(reign.is_paused());
        write_all(&driver);
        let record = append().expect("is accepted");
        assert_eq!(record, driver.last().last.next());
        assert!(!reign.is_paused());
    }
}
