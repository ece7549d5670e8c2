//! The level of a group: members of different builds, and when newer records may be written.

use std::time::Duration;

use tidemark_cluster::{Consensus, Level, NodeId, Settings};

use crate::fixture::{Fleet, eventually, member};

const PATIENCE: Duration = Duration::from_secs(30);
const OLD: Settings = Settings { level: Level(1), ..Settings::SHARED };
const NEW: Settings = Settings { level: Level(3), ..Settings::SHARED };

/// Raises the level at the leader; `stated` is what the other members state.
fn raise(fleet: &Fleet, stated: fn(u64) -> Option<u8>) -> Option<Level> {
    let knows = move |node: NodeId| stated(node.0).map(Level);
    // Another change, or the end of a term, may come between.
    eventually("the level is looked at", || {
        fleet.running[&fleet.leader().0].group.raise_level(knows, PATIENCE).ok()
    })
}

fn wait_for_level(fleet: &Fleet, level: u8) {
    eventually("all members are told the level", || {
        fleet.running.values().all(|running| running.level() == Level(level)).then_some(())
    });
}

/// Upgrades a group of members one by one; the leader is raised to what all know then.
fn upgraded() -> Fleet {
    let mut fleet = Fleet::begin(3, OLD);
    fleet.leader();
    wait_for_level(&fleet, 1);
    fleet.settings = NEW;
    for node in 1..=3 {
        fleet.kill(node);
        fleet.start(node);
        let (leader, term) = fleet.leader();
        let lsn = fleet.append(leader, b"while members are upgraded");
        fleet.wait_committed(leader, lsn, term);
    }
    fleet
}

#[test]
fn a_level_is_raised_when_all_members_know_it_and_never_before() {
    let fleet = upgraded();
    assert_eq!(raise(&fleet, |_| None), None, "no other member has stated what it knows");
    assert_eq!(raise(&fleet, |node| (node != 2 && node != 3).then_some(3)), None, "one has not");
    assert_eq!(raise(&fleet, |_| Some(1)), None, "they know what the group has");
    wait_for_level(&fleet, 1);
    assert_eq!(raise(&fleet, |_| Some(2)), Some(Level(2)), "as far as all know it");
    wait_for_level(&fleet, 2);
    assert_eq!(raise(&fleet, |_| Some(3)), Some(Level(3)));
    assert_eq!(raise(&fleet, |_| Some(9)), None, "the leader itself does not know more");
    wait_for_level(&fleet, 3);
    fleet.running.values().for_each(|running| assert_eq!(running.group.status().level, Level(3)));
    assert!(fleet.running[&1].group.members().iter().eq((1..=3).map(member).collect::<Vec<_>>().iter()));
    fleet.equal_records();
}

#[test]
fn a_level_outlives_restarts_and_a_build_that_knows_less_is_refused() {
    let mut fleet = upgraded();
    assert_eq!(raise(&fleet, |_| Some(3)), Some(Level(3)));
    wait_for_level(&fleet, 3);
    let (leader, term) = fleet.leader();
    // Each batch says in every log what was committed before.
    for _ in 0..3 {
        let lsn = fleet.append(leader, b"at the new level");
        fleet.wait_committed(leader, lsn, term);
    }
    fleet.equal_records();
    let victim = leader % 3 + 1;
    fleet.kill(victim);
    fleet.settings = OLD;
    let error = fleet.try_start(victim).expect_err("it knows less").to_string();
    assert!(
        error.contains("the cluster writes records of level 3, and this build knows them up to level 1"),
        "{error}"
    );
    fleet.settings = NEW;
    fleet.start(victim);
    wait_for_level(&fleet, 3);
    fleet.equal_records();
}

#[test]
fn a_new_member_gets_the_level_and_counts_before_the_next_one() {
    let mut fleet = upgraded();
    assert_eq!(raise(&fleet, |_| Some(2)), Some(Level(2)));
    fleet.start(4);
    let (leader, _) = fleet.leader();
    fleet.running[&leader].group.join(member(4), PATIENCE).expect("joins");
    wait_for_level(&fleet, 2);
    assert_eq!(
        raise(&fleet, |node| (node != 4).then_some(3)),
        None,
        "the new member has not stated what it knows"
    );
    assert_eq!(raise(&fleet, |node| Some(if node == 4 { 2 } else { 3 })), None, "it knows less");
    assert_eq!(raise(&fleet, |_| Some(3)), Some(Level(3)));
    wait_for_level(&fleet, 3);
}
