//! A member that becomes the only one of a group, with the log that it has: that of a single node, or what
//! is left of a group.
//!
//! ```text
//!  records of a single node, or entries 1 to n │ entry n + 1: this member is the only one │ next term …
//!                                              └► the group's log may begin here: BEGIN, the ballot
//! ```
//!
//! Everything in the log counts as committed from then on. The log of the group begins behind it, so
//! every member that joins gets a snapshot first: it cannot have what came before, even if it has entries of
//! these places. What is older stays readable here, as long as it is retained.

use std::io;

use tidemark_log::{EntryEnd, EntryId, Log, Member as LogMember};

use crate::beginning::Beginning;
use crate::driver::VoteStore;
use crate::entry::Entry;
use crate::level::Level;
use crate::member::{Member, Members};
use crate::term::Ballot;
use crate::wire::message::{decode_ballot, encode_ballot};

/// Makes `me` the only member of its group, whose records are of `level`: what this build may have written, and
/// knows. `ballot` has the bytes that `votes` had when it was opened.
/// Called when the log is open, and before the member takes part.
///
/// If it is interrupted or fails, it is repeated before the member takes part: each call adds an entry.
///
/// # Errors
/// The storage failed or is full, the ballot is damaged, or an address is too long.
pub fn found_alone(
    log: &Log,
    member: &LogMember,
    votes: &mut dyn VoteStore,
    ballot: Option<&[u8]>,
    me: Member,
    level: Level,
) -> io::Result<()> {
    let ballot = match ballot {
        None => Ballot::default(),
        Some(bytes) => decode_ballot(bytes).ok_or_else(|| io::Error::other("the saved ballot is damaged"))?,
    };
    let node = me.id.0;
    let members =
        Members::new(vec![Member { is_voter: true, ..me }]).map_err(io::Error::other)?.at_level(level);
    let before = member.last_entry().id;
    let id = EntryId { index: before.index + 1, term: before.term.max(ballot.term) + 1 };
    // Other members of a group may have given out LSNs behind the last one that is here. A single node's are
    // known.
    let lsn = if before.index == 0 { Some(member.next_lsn()) } else { member.next_term_lsn() };
    let lsn = lsn.ok_or_else(|| io::Error::other("the LSNs are exhausted"))?;
    let entry = Entry::members(lsn, log.clock().now_us(), members.clone());
    member.append(id, entry.records()).map_err(io::Error::other)?;
    member.sync().map_err(|failure| io::Error::other(failure.to_string()))?;
    Beginning { end: EntryEnd { id, last: lsn }, members: (id, members) }.write(&**log.storage())?;
    votes.save(&encode_ballot(Ballot { term: id.term, node, is_elected: true }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::LogDriver;
    use crate::ids::NodeId;
    use std::sync::{Arc, Mutex};
    use tidemark_log::{Durability, Lsn, MemoryStorage, Options, Storage};

    #[derive(Clone, Default)]
    struct Votes(Arc<Mutex<Vec<u8>>>);

    impl VoteStore for Votes {
        fn save(&mut self, ballot: &[u8]) -> io::Result<()> {
            *self.0.lock().expect("not poisoned") = ballot.to_vec();
            Ok(())
        }
    }

    fn me() -> Member {
        Member {
            id: NodeId(7),
            peer_address: "a:1".to_owned(),
            client_address: "a:2".to_owned(),
            directory: None,
            is_voter: true,
        }
    }

    fn options() -> Options {
        Options { segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() }
    }

    fn append(log: &Log, count: u8) -> Lsn {
        let lsns = (0..count).map(|byte| log.append(1, 1, |into| into.push(byte)).expect("is accepted"));
        let last = lsns.last().expect("there is one");
        log.wait_durable(last).expect("memory does not fail");
        last
    }

    /// Makes the storage that of a group's only member. Returns the last entry and the LSNs of its log.
    fn found(storage: &MemoryStorage, ballot: Option<&[u8]>, votes: &Votes) -> (EntryEnd, Lsn) {
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let (log, member, _) = Log::open_member(shared, options()).expect("opens");
        let before = log.appended();
        found_alone(&log, &member, &mut votes.clone(), ballot, me(), Level(2)).expect("is founded");
        let end = member.last_entry();
        log.close().expect("closes");
        (end, before)
    }

    /// Opens the log as the group's, and returns what is known to be committed.
    fn committed(storage: &MemoryStorage) -> (EntryEnd, Members) {
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let (log, member, _) = Log::open_member(shared, options()).expect("opens");
        let (log, votes) = (Arc::new(log), Box::new(Votes::default()));
        let (mode, faults) = (Durability::Always, crate::faults::Faults::default());
        let driver = LogDriver::open(NodeId(7), log, member, votes, None, mode, faults).expect("opens");
        let beginning = driver.beginning();
        let end = beginning.clone().map(|beginning| beginning.end.last).expect("it begins there");
        let found = crate::start::find_committed(driver.member(), beginning, end).expect("reads");
        let (_, members) = found.members.last().cloned().expect("members are named");
        (found.last, members)
    }

    #[test]
    fn the_log_of_a_single_node_goes_on_as_that_of_a_group() {
        let (storage, votes) = (MemoryStorage::new(), Votes::default());
        let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
        let last = append(&log, 9);
        log.close().expect("closes");
        let (end, before) = found(&storage, None, &votes);
        assert_eq!((before, end.last), (last, last.next()), "a stop leaves no gap");
        assert_eq!(end.id, EntryId { index: 1, term: 1 });
        let (found, members) = committed(&storage);
        assert_eq!((found, members.list()), (end, vec![me()]));
        let ballot = decode_ballot(&votes.0.lock().expect("not poisoned"));
        assert_eq!(ballot, Some(Ballot { term: 1, node: 7, is_elected: true }));
        // What is older is still read, and a single node does not take the log back.
        let (log, _, _) = Log::open_member(Arc::new(storage.clone()), options()).expect("opens");
        assert_eq!(log.floor(), Lsn::FIRST);
        drop(log);
        let error = Log::open(Arc::new(storage), options()).expect_err("it is a group's").to_string();
        assert!(error.contains("group"), "{error}");
    }

    #[test]
    fn no_lsn_that_a_killed_node_gave_out_comes_again() {
        let first = MemoryStorage::new();
        let (log, _) = Log::open(Arc::new(first.clone()), options()).expect("opens");
        append(&log, 3);
        // The second process gives out LSNs behind a gap, and loses them.
        let second = first.fork();
        let (log, _) = Log::open(Arc::new(second.clone()), options()).expect("opens");
        let storage = second.fork();
        let given = append(&log, 5);
        let (end, _) = found(&storage, None, &Votes::default());
        assert!(end.last > given && end.last.0.is_multiple_of(1 << 32), "{} behind {given}", end.last);
        assert_eq!(committed(&storage).0, end);
    }

    #[test]
    fn it_is_repeated_when_it_was_interrupted() {
        let (storage, votes) = (MemoryStorage::new(), Votes::default());
        let (log, _) = Log::open(Arc::new(storage.clone()), options()).expect("opens");
        append(&log, 3);
        log.close().expect("closes");
        let (first, _) = found(&storage, None, &votes);
        let (second, _) = found(&storage, None, &votes);
        assert_eq!(second.id, EntryId { index: 2, term: 2 });
        assert!(second.last > first.last);
        assert_eq!(committed(&storage).0, second);
        let ballot = encode_ballot(Ballot { term: 9, node: 3, is_elected: false });
        let (third, _) = found(&storage, Some(&ballot), &votes);
        assert_eq!(third.id, EntryId { index: 3, term: 10 }, "no term comes again");
    }
}
