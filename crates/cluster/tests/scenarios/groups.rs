//! Leaders, failures, and what becomes of records.

use tidemark_cluster::{Consensus, NodeId, Refusal, Role, Settings, Term, kind};
use tidemark_log::{AppendError, Durability, Lsn};

use crate::fixture::{Event, Fleet, eventually};

/// Slower than the defaults: many tests share the machine.
const SETTINGS: Settings = Settings::SHARED;

/// Appends `count` records at a leader, waits until they are committed, and returns them.
fn write(fleet: &Fleet, (leader, term): (u64, Term), name: &str, count: usize) -> Vec<(Lsn, Vec<u8>)> {
    let payloads = (0..count).map(|number| format!("{name} {number}").into_bytes());
    let written: Vec<_> = payloads.map(|payload| (fleet.append(leader, &payload), payload)).collect();
    fleet.wait_committed(leader, written[count - 1].0, term);
    written
}

fn assert_has(records: &[(Lsn, u8, Vec<u8>)], written: &[(Lsn, Vec<u8>)]) {
    for (lsn, payload) in written {
        let found: Vec<_> =
            records.iter().filter(|(_, _, bytes)| bytes == payload).map(|(lsn, ..)| *lsn).collect();
        assert_eq!(found, [*lsn], "{}", String::from_utf8_lossy(payload));
    }
}

#[test]
fn a_record_has_the_same_lsn_on_all_members_and_the_term_begins_with_a_record() {
    for count in [1, 3, 5] {
        let fleet = Fleet::begin(count, SETTINGS);
        let leader = fleet.leader();
        let written = write(&fleet, leader, "record", 100);
        let records = fleet.equal_records();
        assert_has(&records, &written);
        let kinds: Vec<_> = records.iter().take(3).map(|(_, kind, _)| *kind).collect();
        assert_eq!(kinds, [kind::MEMBERS, kind::LEADER, 1]);
        let [members, reign, first] = [0, 1, 2].map(|at| records[at].0.0);
        assert_eq!((members, reign, first), (1 << 32, 2 << 32, (2 << 32) + 1));
    }
}

#[test]
fn followers_refuse_records_and_name_the_leader_and_members_are_known_everywhere() {
    let fleet = Fleet::begin(3, SETTINGS);
    let (leader, term) = fleet.leader();
    for (node, running) in &fleet.running {
        let members =
            eventually("the members", || Some(running.group.members()).filter(|members| members.len() == 3));
        assert_eq!(members[1].peer_address, "127.0.0.1:7002");
        if *node == leader {
            assert!(running.group.has_lease(term) && !running.group.has_lease(Term(term.0 + 1)));
            continue;
        }
        let refused = running.log.append(1, 1, |into| into.push(1));
        assert!(matches!(refused, Err(AppendError::Follows)), "{refused:?}");
        eventually("the leader is named", || {
            (running.group.admit() == Err(Refusal::Moved(NodeId(leader)))).then_some(())
        });
        assert_eq!(running.group.role(), Role::Following { leader: Some(NodeId(leader)) });
        assert!(!running.group.has_lease(term));
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_leaders_are_killed_and_start_again() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let mut written = Vec::new();
    for round in 0..4 {
        let (leader, term) = fleet.leader();
        written.extend(write(&fleet, (leader, term), &format!("round {round} record"), 50));
        // Under way when the process ends: committed or not, but never in part.
        for number in 0..20 {
            fleet.append(leader, format!("round {round} unknown {number}").as_bytes());
        }
        fleet.kill(leader);
        let next = fleet.leader();
        assert!(next.1 > term, "{next:?} follows {term}");
        written.extend(write(&fleet, next, &format!("round {round} after"), 10));
        fleet.start(leader);
    }
    let records = fleet.equal_records();
    assert_has(&records, &written);
    let terms: Vec<_> =
        records.iter().filter(|(_, kind, _)| *kind == kind::LEADER).map(|(lsn, ..)| lsn.0).collect();
    assert!(terms.len() >= 5 && terms.iter().all(|lsn| lsn % (1 << 32) == 0), "{terms:?}");
}

#[test]
fn a_group_whose_members_are_all_killed_goes_on() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let leader = fleet.leader();
    let mut written = write(&fleet, leader, "before", 30);
    for node in 1..=3 {
        fleet.kill(node);
    }
    for node in 1..=3 {
        fleet.start(node);
    }
    let next = fleet.leader();
    assert!(next.1 > leader.1);
    written.extend(write(&fleet, next, "after", 30));
    assert_has(&fleet.equal_records(), &written);
}

#[test]
fn a_leader_proposes_nothing_beyond_what_its_group_may_lack() {
    let fleet = Fleet::begin(3, Settings { backlog_bytes: 1, ..SETTINGS });
    let (old, term) = fleet.leader();
    let mut written = write(&fleet, (old, term), "before", 100);
    let last_entry = |node: u64| fleet.running[&node].group.status().last.index;
    let before = last_entry(old);
    fleet.cut_off(old);
    fleet.append(old, b"proposed");
    eventually("the first is proposed", || (last_entry(old) > before).then_some(()));
    fleet.append(old, b"kept back");
    eventually("it refuses commands", || fleet.running[&old].group.admit().is_err().then_some(()));
    assert_eq!(last_entry(old), before + 1);
    let next = fleet.leader_but(old);
    fleet.heal();
    written.extend(write(&fleet, next, "after", 100));
    let records = fleet.equal_records();
    assert_has(&records, &written);
    assert!(records.iter().all(|(_, _, bytes)| bytes != b"kept back"));
}

#[test]
fn a_batch_of_a_deposed_leader_is_cut_and_its_listener_is_notified() {
    let fleet = Fleet::begin(3, SETTINGS);
    let (old, term) = fleet.leader();
    let mut written = write(&fleet, (old, term), "before", 5);
    let last = written[4].0;
    fleet.cut_off(old);
    // It still leads: the record is in its log, and no quorum has it.
    let lost = fleet.append(old, b"lost");
    assert_eq!(lost, last.next());
    let next = fleet.leader_but(old);
    written.extend(write(&fleet, next, "after", 5));
    assert!(fleet.running[&old].log.committed() < lost);
    eventually("it refuses commands", || fleet.running[&old].group.admit().is_err().then_some(()));
    fleet.heal();
    let records = fleet.equal_records();
    assert_has(&records, &written);
    assert!(records.iter().all(|(_, _, payload)| payload != b"lost"));
    let events = fleet.running[&old].events();
    assert_eq!(events[..2], [Event::Begin(term.0), Event::End(term.0)], "{events:?}");
    assert!(events[2..].contains(&Event::Cut(last)), "{events:?}");
    assert!(records.iter().all(|(lsn, ..)| *lsn != lost), "its LSN is the name of nothing");
}

#[test]
fn without_a_quorum_nothing_is_committed_and_no_command_is_admitted() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let (leader, term) = fleet.leader();
    let written = write(&fleet, (leader, term), "before", 5);
    let others: Vec<_> = fleet.running.keys().copied().filter(|node| *node != leader).collect();
    for node in &others {
        fleet.kill(*node);
    }
    eventually("it refuses commands", || fleet.running[&leader].group.admit().err().map(|_| ()));
    assert_eq!(fleet.running[&leader].log.committed(), written[4].0);
    for node in others {
        fleet.start(node);
    }
    let next = fleet.leader();
    let after = write(&fleet, next, "after", 5);
    let records = fleet.equal_records();
    assert_has(&records, &written);
    assert_has(&records, &after);
}

#[test]
fn a_lead_is_confirmed_by_a_quorum_and_not_without_one() {
    let mut fleet = Fleet::begin(3, SETTINGS);
    let (leader, term) = fleet.leader();
    let confirm = |fleet: &Fleet, term| {
        let (done, confirmed) = std::sync::mpsc::channel();
        let then = move |is_confirmed| done.send(is_confirmed).expect("is awaited");
        fleet.running[&leader].group.confirm(term, Box::new(then));
        confirmed
    };
    let rounds: Vec<_> = (0..50).map(|_| confirm(&fleet, term)).collect();
    assert!(rounds.iter().all(|round| round.recv() == Ok(true)), "many share few rounds");
    assert_eq!(confirm(&fleet, Term(term.0 + 1)).recv(), Ok(false), "another term");
    for node in (1..=3).filter(|node| *node != leader) {
        fleet.kill(node);
    }
    eventually("the lease ends", || (!fleet.running[&leader].group.has_lease(term)).then_some(()));
    assert_eq!(confirm(&fleet, term).recv(), Ok(false), "no quorum answers");
}

#[test]
fn members_that_acknowledge_what_is_written_agree_as_well() {
    let settings = Settings { durability: Durability::default(), ..SETTINGS };
    let mut fleet = Fleet::begin(3, settings);
    let leader = fleet.leader();
    let mut written = write(&fleet, leader, "before", 200);
    fleet.kill(leader.0);
    let next = fleet.leader();
    written.extend(write(&fleet, next, "after", 50));
    fleet.start(leader.0);
    assert_has(&fleet.equal_records(), &written);
    for running in fleet.running.values() {
        eventually("the interval's sync", || (running.log.durable() == running.log.written()).then_some(()));
    }
}

#[test]
fn a_group_begins_once_and_a_closed_member_says_so() {
    let fleet = Fleet::begin(3, SETTINGS);
    let (leader, _) = fleet.leader();
    let group = &fleet.running[&leader].group;
    let list = tidemark_cluster::Members::new(group.members()).expect("is valid");
    let refused = group.init(list.clone()).expect_err("is refused").to_string();
    assert!(refused.contains("not allowed to initialize"), "{refused}");
    group.close();
    let closed = group.init(list).expect_err("is closed").to_string();
    assert!(closed.contains("is closed"), "{closed}");
    group.close();
    assert!(group.admit().is_err() && fleet.running[&leader].log.append(1, 1, |into| into.push(1)).is_err());
    let events = fleet.running[&leader].events();
    assert!(matches!(events[..], [Event::Begin(begun), Event::End(ended)] if begun == ended), "{events:?}");
}
