//! Random histories of a member, compared with a list of entries: what was synced survives a power
//! failure, what was written a kill, entries are whole, and what was taken back stays away once
//! something stands in its place.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidemark_log::storage::faulty::{Fault, Plan};
use tidemark_log::{EntryEnd, EntryId, EntryRecords, FaultyStorage, Log, Lsn, Member, MemoryStorage};

use super::{Opener, TERM, all_entries, id, options, replayed};

#[derive(Clone, Debug)]
enum Step {
    /// Records of these sizes, as the leader's next entry.
    Write(Vec<usize>),
    /// A new term, by itself or by another leader.
    Term,
    Sync,
    /// Commits this share of what is not committed yet.
    Commit(u8),
    /// Takes back this share of what is not committed.
    Cut(u8),
    /// Accepts records and loses the lead before they are written.
    Discard(Vec<usize>),
    /// Replaces the log by its beginning behind a snapshot that has this many more entries and records.
    Restart(u8),
    /// The process is killed.
    Kill,
    /// The power fails.
    Crash(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = || prop::collection::vec(prop_oneof![0_usize..100, 1000_usize..9000], 1..5);
    prop_oneof![
        8 => sizes().prop_map(Step::Write),
        1 => Just(Step::Term),
        3 => Just(Step::Sync),
        3 => any::<u8>().prop_map(Step::Commit),
        2 => any::<u8>().prop_map(Step::Cut),
        1 => sizes().prop_map(Step::Discard),
        1 => any::<u8>().prop_map(Step::Restart),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(Step::Crash),
    ]
}

/// An entry, as a list of its records' LSNs and payloads.
type Entry = (EntryId, Vec<(u64, Vec<u8>)>);

fn entry(id: EntryId, records: &EntryRecords) -> Entry {
    (id, records.iter().map(|record| (record.lsn.0, record.payload.to_vec())).collect())
}

struct World {
    open: Opener,
    has_threads: bool,
    storage: MemoryStorage,
    log: Log,
    member: Member,
    /// What the log begins behind.
    base: EntryEnd,
    entries: Vec<Entry>,
    /// Number of entries that are durable.
    synced: usize,
    committed: usize,
    /// Lists of entries before cuts behind which nothing was written yet.
    taken_back: Vec<Vec<Entry>>,
    term: u64,
    number: u8,
}

impl World {
    fn begin(storage: MemoryStorage, has_threads: bool) -> Self {
        let open: Opener = if has_threads { Log::open_member } else { Log::open_member_without_threads };
        let (log, member, _) = open(Arc::new(storage.clone()), options()).expect("opens");
        let mut world = Self {
            open,
            has_threads,
            storage,
            log,
            member,
            base: EntryEnd::default(),
            entries: Vec::new(),
            synced: 0,
            committed: 0,
            taken_back: Vec::new(),
            term: 0,
            number: 0,
        };
        world.run(&Step::Term);
        world
    }

    fn next_id(&self) -> EntryId {
        id(self.base.id.index + self.entries.len() as u64 + 1, self.term)
    }

    fn append(&mut self, sizes: &[usize]) {
        self.member.lead();
        for size in sizes {
            self.number = self.number.wrapping_add(1);
            let payload = vec![self.number; *size];
            self.log.append(7, 1, |buffer| buffer.extend_from_slice(&payload)).expect("is accepted");
        }
    }

    fn note(&mut self, id: EntryId, records: &EntryRecords) {
        self.entries.push(entry(id, records));
        self.taken_back.clear();
    }

    fn run(&mut self, step: &Step) {
        if !self.has_threads && self.number.is_multiple_of(3) {
            self.member.keep_house();
        }
        match step {
            Step::Write(sizes) => {
                self.append(sizes);
                let records = self.member.take(Duration::ZERO).expect("there are records");
                let id = self.next_id();
                self.member.write_taken(id, &records).expect("is written");
                self.note(id, &records);
            }
            Step::Term => {
                self.member.pause();
                self.term += 1;
                let lsn = self.member.next_term_lsn().expect("LSNs are left");
                let records = EntryRecords::of_record(lsn, 1, TERM, b"term");
                let id = self.next_id();
                self.member.append(id, &records).expect("is appended");
                self.note(id, &records);
            }
            Step::Sync => {
                let durable = self.member.sync().expect("syncs");
                assert_eq!(durable, self.member.last_entry().last);
                self.synced = self.entries.len();
            }
            Step::Commit(share) => {
                self.committed += share_of(self.entries.len() - self.committed, *share);
                if let Some((_, records)) = self.entries[..self.committed].last() {
                    self.member.commit(Lsn(records.last().expect("a record").0));
                }
            }
            Step::Cut(share) => {
                let cut = share_of(self.entries.len() - self.committed, *share);
                self.member.discard();
                self.member
                    .cut_behind(self.base.id.index + (self.entries.len() - cut) as u64)
                    .expect("is cut");
                if cut > 0 {
                    self.taken_back.push(self.entries.clone());
                    self.entries.truncate(self.entries.len() - cut);
                    self.synced = self.synced.min(self.entries.len());
                }
            }
            Step::Discard(sizes) => {
                self.append(sizes);
                if sizes.len() % 2 == 0 {
                    let _ = self.member.take(Duration::ZERO);
                }
                self.append(sizes);
                assert!(self.member.discard().is_some());
            }
            Step::Restart(more) => {
                self.member.discard();
                let newest = self.member.last_entry();
                let more = u64::from(*more) + 1;
                let index = newest.id.index + more;
                let end = EntryEnd { id: id(index, self.term), last: Lsn(newest.last.0 + more) };
                self.member.restart_behind(end).expect("begins anew");
                (self.base, self.entries, self.synced, self.committed) = (end, Vec::new(), 0, 0);
                self.taken_back.clear();
            }
            Step::Kill => self.start_again(self.storage.fork(), self.entries.len()),
            Step::Crash(seed) => self.start_again(self.storage.crash(*seed), self.synced),
        }
        self.check();
    }

    /// Starts from what a crash has left, which has at least the first `kept` entries.
    fn start_again(&mut self, storage: MemoryStorage, kept: usize) {
        let (log, member, recovery) = (self.open)(Arc::new(storage.clone()), options()).expect("opens");
        assert_eq!((recovery.gap, recovery.last_lsn), (None, member.last_entry().last));
        (self.storage, self.log, self.member) = (storage, log, member);
        let found = read(&self.member);
        let lists = std::iter::once(&self.entries).chain(&self.taken_back);
        let is_known = lists.clone().any(|list| list.starts_with(&found));
        assert!(
            is_known && found.len() >= kept,
            "{} of {} entries, {kept} kept",
            found.len(),
            self.entries.len()
        );
        assert_eq!(found[..kept], self.entries[..kept]);
        self.entries = found;
        self.synced = self.entries.len();
        self.taken_back.clear();
        // The group knows better than the member what is committed.
        let committed = self.log.committed();
        let is_committed = |(_, records): &&Entry| records.last().is_some_and(|(lsn, _)| *lsn <= committed.0);
        let known = self.entries.iter().take_while(is_committed).count();
        assert!(known <= self.committed);
        self.committed = known;
        self.term += 1;
    }

    fn check(&self) {
        assert_eq!(read(&self.member), self.entries);
        let committed = self.entries[..self.committed].iter().flat_map(|(_, records)| records.clone());
        assert_eq!(replayed(&self.log), committed.collect::<Vec<_>>());
        let last = self.entries.last().map(|(_, records)| records.last().expect("a record").0);
        assert_eq!(self.member.last_entry().last, last.map_or(self.base.last, Lsn));
        for (id, records) in &self.entries {
            let end = self.member.entry(id.index).expect("reads").expect("is written");
            assert_eq!((end.id, end.last.0), (*id, records.last().expect("a record").0));
        }
    }
}

fn read(member: &Member) -> Vec<Entry> {
    all_entries(member).iter().map(|(id, records)| entry(*id, records)).collect()
}

fn share_of(count: usize, share: u8) -> usize {
    count * usize::from(share) / 255
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_member_keeps_what_it_has_synced_and_nothing_that_was_taken_back(
        steps in prop::collection::vec(step(), 1..40),
        has_threads: bool,
    ) {
        let mut world = World::begin(MemoryStorage::with_crashes(), has_threads);
        for step in &steps {
            world.run(step);
        }
    }
}

/// What is done while storage calls fail. Returns the entries that were synced.
fn work(member: &Member, log: &Log) -> Result<(), Box<dyn std::error::Error>> {
    let lsn = member.next_term_lsn().ok_or("LSNs are left")?;
    member.append(id(1, 1), &EntryRecords::of_record(lsn, 1, TERM, b"term"))?;
    for index in 2..6 {
        member.lead();
        log.append(1, 1, |buffer| buffer.extend_from_slice(&[index as u8; 4000]))?;
        log.append(1, 1, |buffer| buffer.extend_from_slice(&[index as u8; 3000]))?;
        let records = member.take(Duration::ZERO).ok_or("there are records")?;
        member.write_taken(id(index, 1), &records)?;
        member.sync()?;
    }
    member.pause();
    member.cut_behind(3)?;
    let lsn = member.next_term_lsn().ok_or("LSNs are left")?;
    member.append(id(4, 2), &EntryRecords::of_record(lsn, 1, TERM, b"term"))?;
    member.sync()?;
    Ok(())
}

#[test]
fn every_storage_call_may_fail_and_no_synced_entry_is_lost() {
    let faults = [Fault::Error(std::io::ErrorKind::Other), Fault::Torn, Fault::SyncFailure];
    let openers: [Opener; 2] = [Log::open_member, Log::open_member_without_threads];
    for fault in faults {
        for (forever, open) in
            [false, true].into_iter().flat_map(|forever| openers.map(|open| (forever, open)))
        {
            let mut at = 0;
            loop {
                at += 1;
                let storage = MemoryStorage::with_crashes();
                let faulty = Arc::new(FaultyStorage::new(Arc::new(storage.clone()), None));
                let opened = open(faulty.clone(), options());
                let (log, member, _) = opened.expect("opens");
                let at_call = faulty.calls() + at;
                faulty.set_plan(Some(Plan { fault, at: at_call, site: None, forever, seed: at }));
                let ended = work(&member, &log);
                let reached = faulty.calls() >= at_call;
                let newest = log.durable();
                faulty.set_plan(None);
                drop((log, member));
                for survivor in [storage.fork(), storage.crash(at)] {
                    let (_, member, _) = Log::open_member(Arc::new(survivor), options())
                        .unwrap_or_else(|error| panic!("{fault:?} at {at}: {error}"));
                    let found = member.last_entry();
                    assert!(
                        found.last >= newest.min(Lsn((1 << 32) + 4)),
                        "{fault:?} at {at}: {found:?}, {newest} durable"
                    );
                    assert!(ended.is_err() || found.id == id(4, 2), "{fault:?} at {at}: {found:?}");
                }
                if !reached {
                    break;
                }
            }
            assert!(at > 20, "{fault:?}: {at} calls");
        }
    }
}
