//! Changes of the leader and of the members.

use std::time::Duration;

use tidemark_cluster::{ChangeError, Consensus, Member, NodeId, Role, Settings};
use tidemark_log::Lsn;

use crate::fixture::{Event, Fleet, eventually, member};

const PATIENCE: Duration = Duration::from_secs(30);

fn write(fleet: &Fleet, name: &str) -> Vec<(Lsn, Vec<u8>)> {
    let (leader, term) = fleet.leader();
    let payloads = (0..40).map(|number| format!("{name} {number}").into_bytes());
    let written: Vec<_> = payloads.map(|payload| (fleet.append(leader, &payload), payload)).collect();
    fleet.wait_committed(leader, written[39].0, term);
    written
}

/// All logs that run are equal, and have these records at their LSNs.
fn assert_has(fleet: &Fleet, written: &[(Lsn, Vec<u8>)]) {
    let records = fleet.equal_records();
    for (lsn, payload) in written {
        let found = records.iter().filter(|(_, _, bytes)| bytes == payload).map(|(lsn, ..)| *lsn);
        assert_eq!(found.collect::<Vec<_>>(), [*lsn], "{}", String::from_utf8_lossy(payload));
    }
}

#[test]
fn a_lead_is_handed_over_without_a_record_that_is_taken_back() {
    let fleet = Fleet::begin(3, Settings::SHARED);
    let mut written = write(&fleet, "before");
    let (old, term) = fleet.leader();
    let to = if old == 3 { 1 } else { old + 1 };
    // What is under way is committed first.
    let (lsn, payload) = (fleet.append(old, b"under way"), b"under way".to_vec());
    written.push((lsn, payload));
    fleet.running[&old].group.transfer(NodeId(to), PATIENCE).expect("is handed over");
    let next = eventually("it leads", || fleet.running[&to].group.admit().ok());
    assert!(next > term);
    written.extend(write(&fleet, "after"));
    assert_has(&fleet, &written);
    let events = fleet.running[&old].events();
    assert_eq!(events, [Event::Begin(term.0), Event::End(term.0)], "memory of the old leader stays");
}

#[test]
fn a_transfer_that_cannot_succeed_changes_nothing() {
    let fleet = Fleet::begin(3, Settings::SHARED);
    let (leader, term) = fleet.leader();
    let group = &fleet.running[&leader].group;
    let transfer = |to| group.transfer(NodeId(to), Duration::from_millis(300));
    assert_eq!(transfer(leader), Err(ChangeError::NoVoter(NodeId(leader))));
    assert_eq!(transfer(9), Err(ChangeError::NoVoter(NodeId(9))));
    let follower = leader % 3 + 1;
    let elsewhere = fleet.running[&follower].group.transfer(NodeId(leader), PATIENCE);
    assert_eq!(elsewhere, Err(ChangeError::NotLeader));
    // A member that lacks a record does not get the lead.
    fleet.cut_off(follower);
    let lsn = fleet.append(leader, b"more");
    fleet.wait_committed(leader, lsn, term);
    assert!(matches!(transfer(follower), Err(ChangeError::NotCaughtUp { behind: 1.. })));
    fleet.heal();
    let written = write(&fleet, "after");
    assert_has(&fleet, &written);
}

#[test]
fn a_member_joins_catches_up_votes_and_is_removed() {
    let mut fleet = Fleet::begin(3, Settings::SHARED);
    let mut written = write(&fleet, "before");
    fleet.start(4);
    let (leader, _) = fleet.leader();
    let join = |member| fleet.running[&leader].group.join(member, PATIENCE);
    join(member(4)).expect("joins");
    written.extend(write(&fleet, "with four"));
    assert_has(&fleet, &written);
    let members = fleet.running[&4].group.members();
    assert_eq!(members, (1..=4).map(member).collect::<Vec<_>>());

    let remove = |node| fleet.running[&leader].group.remove(NodeId(node), PATIENCE);
    assert_eq!(remove(leader), Err(ChangeError::Leads(NodeId(leader))));
    assert_eq!(remove(9), Err(ChangeError::Unknown(NodeId(9))));
    let removed = leader % 3 + 1;
    remove(removed).expect("is removed");
    fleet.kill(removed);
    written.extend(write(&fleet, "without one"));
    assert_has(&fleet, &written);
    let names: Vec<_> = fleet.running[&leader].group.members().iter().map(|member| member.id.0).collect();
    assert_eq!(names, (1..=4).filter(|node| *node != removed).collect::<Vec<_>>());

    eventually("its listener knows the members", || {
        (fleet.running[&leader].lists().last() == Some(&names)).then_some(())
    });
    let lists = fleet.running[&leader].lists();
    assert!(lists.contains(&vec![1, 2, 3]) && lists.contains(&vec![1, 2, 3, 4]), "{lists:?}");

    // The three that are left elect a leader without the old one.
    fleet.kill(leader);
    let next = fleet.leader();
    written.extend(write(&fleet, "after"));
    assert_has(&fleet, &written);
    assert!(matches!(fleet.running[&next.0].group.role(), Role::Leading { .. }));
}

#[test]
fn a_change_that_follows_another_at_once_is_not_refused_because_of_it() {
    let mut fleet = Fleet::begin(1, Settings::SHARED);
    fleet.start(2);
    fleet.leader();
    let group = &fleet.running[&1].group;
    for round in 0..50 {
        group
            .join(Member { is_voter: false, ..member(2) }, PATIENCE)
            .unwrap_or_else(|error| panic!("{round}: {error}"));
        group.remove(NodeId(2), PATIENCE).unwrap_or_else(|error| panic!("{round}: {error}"));
    }
}

#[test]
fn a_learner_gets_the_log_and_does_not_count() {
    let mut fleet = Fleet::begin(1, Settings::SHARED);
    let written = write(&fleet, "before");
    fleet.start(2);
    let learner = Member { is_voter: false, ..member(2) };
    fleet.running[&1].group.join(learner.clone(), PATIENCE).expect("joins");
    assert_has(&fleet, &written);
    assert_eq!(fleet.running[&1].group.members(), [member(1), learner]);
    fleet.kill(2);
    let after = write(&fleet, "without it");
    assert_has(&fleet, &after);
    let bad = Member { id: NodeId(0), ..member(1) };
    let refused = fleet.running[&1].group.join(bad, PATIENCE).expect_err("is refused");
    assert!(refused.to_string().contains("0 is no name"), "{refused}");
}
