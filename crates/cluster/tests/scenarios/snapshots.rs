//! Logs that are released behind snapshots, and members that get a snapshot because they lack what is gone.

use std::time::Duration;

use tidemark_cluster::{Consensus, Settings};
use tidemark_log::storage::write_all;
use tidemark_log::{Lsn, SnapshotWriter, Snapshots};

use crate::fixture::{Event, Fleet, Running, eventually, member};

/// A member that is not heard is not waited for, and so is one that lacks more than a little.
const SETTINGS: Settings = Settings { kept_bytes: 256 << 10, ..Settings::SHARED };
/// Bytes of a snapshot's state: it takes a moment to send.
const STATE_BYTES: usize = 6 << 20;

/// Appends records of 2 kB at the leader, and waits until they are committed. Returns the last one.
fn write(fleet: &Fleet, count: usize) -> Lsn {
    let (leader, term) = fleet.leader();
    let mut last = Lsn::ZERO;
    for number in 0..count {
        last = fleet.append(leader, &[number as u8; 2000]);
        if number % 20 == 19 {
            fleet.wait_committed(leader, last, term);
        }
    }
    fleet.wait_committed(leader, last, term);
    last
}

/// Completes a snapshot of everything up to `lsn`, once that is committed here.
fn take_snapshot(running: &Running, lsn: Lsn) {
    let log = &running.log;
    eventually("the records are committed", || (log.committed() >= lsn).then_some(()));
    let mut writer = SnapshotWriter::create(log.storage().clone(), lsn).expect("begins");
    for chunk in state(lsn).chunks(1 << 20) {
        writer.write_frame(1, chunk).expect("is written");
    }
    log.finish_snapshot(writer).expect("counts");
}

/// The state up to a record, which differs for each.
fn state(lsn: Lsn) -> Vec<u8> {
    let mut random = lsn.0 | 1;
    let next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(STATE_BYTES).collect()
}

/// Returns the newest snapshot of a member, whose content is what it should be.
fn newest_snapshot(running: &Running) -> Option<Lsn> {
    let snapshots = Snapshots::new(running.log.storage().clone());
    let (snapshot, damaged) = snapshots.latest(running.log.floor()).expect("is usable");
    assert!(damaged.is_empty(), "{damaged:?}");
    let snapshot = snapshot?;
    let mut content = Vec::new();
    snapshot.read_section(1, |frame| content.extend_from_slice(frame)).expect("reads");
    assert!(content == state(snapshot.lsn()), "the snapshot at {} has another content", snapshot.lsn());
    Some(snapshot.lsn())
}

/// Writes until all members that run have dropped the beginning of their logs. Returns the LSN before which
/// nothing is kept.
fn write_and_release(fleet: &Fleet) -> Lsn {
    for _ in 0..3 {
        let last = write(fleet, 200);
        // Within an entry, as often as not.
        fleet.running.values().for_each(|running| take_snapshot(running, last.previous()));
    }
    eventually("the beginning of the logs is dropped", || {
        // Segments are dropped when others begin.
        write(fleet, 40);
        fleet.running.values().map(|running| running.log.floor()).min().filter(|floor| *floor > Lsn(2 << 32))
    })
}

fn others(node: u64) -> [u64; 2] {
    [node % 3 + 1, (node + 1) % 3 + 1]
}

#[test]
fn logs_begin_behind_snapshots_and_members_are_known_without_what_is_gone() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    write_and_release(&fleet);
    fleet.equal_records();
    for node in 1..=3 {
        fleet.kill(node);
    }
    for node in 1..=3 {
        fleet.start(node);
    }
    for running in fleet.running.values() {
        let members =
            eventually("members", || Some(running.group.members()).filter(|members| !members.is_empty()));
        assert_eq!(members, (1..=3).map(member).collect::<Vec<_>>());
        assert!(running.log.floor() > Lsn(2 << 32));
    }
    write(&fleet, 10);
    fleet.equal_records();
}

#[test]
fn a_member_that_lacks_what_is_gone_gets_a_snapshot_and_follows() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    write(&fleet, 10);
    let behind = others(fleet.leader().0)[0];
    fleet.kill(behind);
    let gone = write_and_release(&fleet);
    fleet.start(behind);
    write(&fleet, 10);
    fleet.equal_records();
    let running = &fleet.running[&behind];
    assert!(running.log.floor() >= gone, "{} and {gone}", running.log.floor());
    assert!(newest_snapshot(running).is_some_and(|lsn| lsn >= gone));
    assert!(running.events().contains(&Event::Cut(Lsn::ZERO)), "memory of before is dropped");
    // It has all that it needs, to start again and to lead.
    fleet.kill(behind);
    fleet.start(behind);
    fleet.equal_records();
    let patience = Duration::from_secs(30);
    let leader = fleet.leader().0;
    if leader != behind {
        let target = tidemark_cluster::NodeId(behind);
        eventually("it leads", || fleet.running[&leader].group.transfer(target, patience).ok());
    }
    eventually("it leads", || (fleet.leader().0 == behind).then_some(()));
    write(&fleet, 10);
    fleet.equal_records();
}

#[test]
fn a_member_that_is_killed_while_it_gets_a_snapshot_gets_it_again() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let behind = others(fleet.leader().0)[0];
    fleet.kill(behind);
    write_and_release(&fleet);
    for round in 0..25 {
        fleet.start(behind);
        // Files arrive and are installed within some 150 ms.
        std::thread::sleep(Duration::from_millis(7 * round));
        fleet.kill(behind);
    }
    fleet.start(behind);
    write(&fleet, 10);
    fleet.equal_records();
    assert!(newest_snapshot(&fleet.running[&behind]).is_some());
}

#[test]
fn a_leader_that_is_killed_while_it_sends_a_snapshot_is_replaced_as_sender() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let behind = others(fleet.leader().0)[0];
    fleet.kill(behind);
    write_and_release(&fleet);
    for round in 0..4 {
        let leader = fleet.leader().0;
        fleet.start(behind);
        std::thread::sleep(Duration::from_millis(30 * round));
        fleet.kill(leader);
        // The two that are left are a quorum when the one behind has voted: it may have to get the snapshot.
        fleet.start(leader);
        write(&fleet, 10);
        if round < 3 {
            fleet.kill(behind);
        }
    }
    fleet.equal_records();
    assert!(newest_snapshot(&fleet.running[&behind]).is_some());
}

#[test]
fn a_new_member_begins_with_a_snapshot() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    write_and_release(&fleet);
    fleet.start(4);
    let leader = fleet.leader().0;
    fleet.running[&leader].group.join(member(4), Duration::from_mins(1)).expect("joins");
    write(&fleet, 10);
    fleet.equal_records();
    let running = &fleet.running[&4];
    assert!(newest_snapshot(running).is_some());
    eventually("it votes", || {
        let members = running.group.members();
        (members == (1..=4).map(member).collect::<Vec<_>>()).then_some(())
    });
}

#[test]
fn a_damaged_snapshot_is_not_sent() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let behind = others(fleet.leader().0)[0];
    fleet.kill(behind);
    write_and_release(&fleet);
    let snapshots = |running: &Running| Snapshots::new(running.log.storage().clone()).list().expect("lists");
    for running in fleet.running.values() {
        let newest = snapshots(running).pop().expect("there is one");
        let file = format!("snapshot-{:020}.tide", newest.0);
        let file = running.log.storage().open(&file).expect("opens");
        write_all(&*file, b"damage", STATE_BYTES as u64 / 2).expect("is written");
    }
    fleet.start(behind);
    std::thread::sleep(Duration::from_millis(500));
    assert!(snapshots(&fleet.running[&behind]).is_empty(), "it would have nothing that can be loaded");
    let last = write(&fleet, 20);
    for node in others(behind) {
        take_snapshot(&fleet.running[&node], last.previous());
    }
    fleet.equal_records();
    assert_eq!(newest_snapshot(&fleet.running[&behind]), Some(last.previous()));
}
