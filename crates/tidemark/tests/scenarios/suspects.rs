//! Members that may have lost what they acknowledged.

use std::fs;
use std::path::{Path, PathBuf};

use tidemark_cluster::suspicion::{Start, Suspicion, SuspicionFile};

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, info_number, wait_until};

/// Notes in the directory of a killed member that its machine had lost power meanwhile.
fn lose_power(cluster: &Cluster, member: usize) {
    let start = Start { boot: None, acknowledges_unsynced: true, is_new: false };
    let begun = SuspicionFile::begin(&cluster.member_directory(member), start).expect("the file");
    assert!(begun.suspicion().is_some_and(|suspicion| !suspicion.may_have_forgotten_votes()));
}

/// Restarts a cluster of which the first two members may have lost entries. Returns what they tell their operator.
fn two_lose_power(cluster: &mut Cluster) -> [PathBuf; 2] {
    for member in 0..3 {
        cluster.kill(member);
    }
    for member in [0, 1] {
        lose_power(cluster, member);
    }
    let errors = [0, 1].map(|member| cluster.run_noting(member, &[]));
    cluster.run_noting(2, &[]);
    errors
}

fn wait_for_line(path: &Path, line: &str) {
    wait_until(&format!("the operator is told: {line}"), || {
        fs::read_to_string(path).expect("text").contains(line)
    });
}

/// The files of the log in a member's directory, with what they have.
fn log_files(cluster: &Cluster, member: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let of_member = ["vote", "standing", "group", "group.copy"];
    let entries = fs::read_dir(cluster.member_directory(member)).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let is_of_log = |path: &PathBuf| !of_member.iter().any(|name| path.ends_with(name));
    paths.filter(is_of_log).map(|path| (path.clone(), fs::read(path).expect("readable"))).collect()
}

#[test]
fn a_member_that_lost_entries_in_a_power_failure_votes_again_once_it_has_them() {
    let mut cluster = Cluster::found();
    let victim = (cluster.leader() + 1) % 3;
    cluster.set("early", "1");
    cluster.kill(victim);
    let early = log_files(&cluster, victim);
    cluster.run_noting(victim, &[]);
    for number in 0..100 {
        cluster.set(&format!("late:{number}"), "1");
    }
    drop(cluster.settled());
    cluster.kill(victim);
    // It has acknowledged the late changes, and lost them.
    log_files(&cluster, victim).iter().for_each(|(path, _)| fs::remove_file(path).expect("removed"));
    early.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("written"));
    lose_power(&cluster, victim);
    let errors = cluster.run_noting(victim, &[]);
    wait_for_line(&errors, "It does not vote until a leader that was elected without it has caught it up");
    wait_for_line(&errors, "this member has everything again, and votes");
    // It has a full vote: with it and one other member, the group goes on.
    let leader = cluster.leader();
    cluster.kill(if leader == victim { (leader + 1) % 3 } else { leader });
    cluster.set("without", "1");
    let mut client = Client::connect(cluster.clients[victim]).expect("it accepts");
    let _ = client.call(&["READONLY"]).expect("an answer");
    let value =
        |answer: std::io::Result<Answer>| answer.is_ok_and(|answer| answer == Answer::Bulk("1".into()));
    wait_until("the member has what it had lost", || value(client.call(&["GET", "late:99"])));
}

#[test]
fn two_of_three_that_may_have_lost_entries_elect_no_leader_until_the_loss_is_accepted() {
    let mut cluster = Cluster::found();
    cluster.set("key", "value");
    let errors = two_lose_power(&mut cluster);
    for path in &errors {
        wait_for_line(path, "restart them with --cluster-accept-loss yes");
    }
    // Longer than any election takes.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(cluster.try_set("key", "other"), None, "no leader may be elected");
    for path in &errors {
        let told = fs::read_to_string(path).expect("text");
        assert!(!told.contains("has everything again"), "{told}");
    }
    cluster.kill(0);
    let accepted = cluster.run_noting(0, &["--cluster-accept-loss", "yes"]);
    wait_for_line(&accepted, "takes part although it may have lost");
    cluster.set("key", "other");
    // With the leader of two members, the third has everything again.
    wait_for_line(&errors[1], "this member has everything again, and votes");
    drop(cluster.settled());
}

/// What a start finds in the directory of a killed member whose machine has lost power.
fn suspicion_after_power_failure(cluster: &Cluster, member: usize) -> Option<Suspicion> {
    let start = Start { boot: None, acknowledges_unsynced: true, is_new: false };
    SuspicionFile::begin(&cluster.member_directory(member), start).expect("the file").suspicion()
}

#[test]
fn a_running_member_changes_what_a_power_failure_may_lose() {
    let mut cluster = Cluster::found_with(&["--durability", "interval:10s"]);
    cluster.set("key", "1");
    drop(cluster.settled());
    let set = |member: usize, mode: &str| {
        let mut client = Client::connect(cluster.clients[member]).expect("it accepts");
        let answer = client.call(&["CONFIG", "SET", "durability", mode]).expect("an answer");
        assert_eq!(answer, Answer::Status("OK".into()));
        let shown = client.call(&["CONFIG", "GET", "durability"]).expect("an answer").array();
        assert_eq!(shown[1], Answer::Bulk(mode.into()));
        let durable = info_number(&mut client, "persistence", "log_durable_lsn");
        (durable, info_number(&mut client, "persistence", "log_written_lsn"))
    };
    for member in 0..3 {
        let (durable, written) = set(member, "always");
        assert!(durable >= written - 1, "all that was acknowledged is synced: {durable} of {written}");
    }
    cluster.set("key", "2");
    set(1, "off");
    cluster.set("key", "3");
    drop(cluster.settled());
    (0..3).for_each(|member| cluster.kill(member));
    assert_eq!(suspicion_after_power_failure(&cluster, 0), None);
    assert_eq!(suspicion_after_power_failure(&cluster, 1), Some(Suspicion::PowerFailure));
    assert_eq!(suspicion_after_power_failure(&cluster, 2), None);
}

#[test]
fn a_durable_change_is_on_the_disks_of_most_members_in_every_mode() {
    let cluster = Cluster::found_with(&["--durability", "off"]);
    drop(cluster.settled());
    for number in 0..10 {
        cluster.set("unsynced", "1");
        let leader = cluster.leader();
        let mut client = Client::connect(cluster.clients[leader]).expect("it accepts");
        let before = info_number(&mut client, "persistence", "log_committed_lsn");
        let answer = client.call(&["DURABLE", "SET", "key", &number.to_string()]);
        if answer.ok() != Some(Answer::Status("OK".into())) {
            // The lead has moved.
            continue;
        }
        let synced = cluster.clients.iter().filter(|port| {
            let mut client = Client::connect(**port).expect("it accepts");
            info_number(&mut client, "persistence", "log_durable_lsn") > before
        });
        assert!(synced.count() >= 2, "round {number}: record {before} and what came behind it");
    }
}

#[test]
fn one_command_accepts_what_two_of_three_may_have_lost_and_no_more() {
    let mut cluster = Cluster::found();
    cluster.set("key", "value");
    drop(cluster.settled());
    let errors = two_lose_power(&mut cluster);
    wait_for_line(&errors[0], "`tidemark cluster recover` says what could be lost");
    // All of them answer, and know the members.
    wait_until("status says what is wrong", || {
        let (is_good, said) = cluster.command(&["status"], 2);
        !is_good && said.contains("no leader can be elected")
    });
    let (is_good, said) = cluster.command(&["recover"], 2);
    assert!(!is_good && said.contains("3 of 3 voting members answer, 1 vote"), "{said}");
    assert!(
        said.contains("may have lost what it acknowledged") && said.contains("nothing was changed"),
        "{said}"
    );
    assert_eq!(cluster.try_set("key", "other"), None, "no leader may be elected");
    let (is_good, said) = cluster.command(&["recover", "--accept-loss"], 2);
    assert!(is_good && said.contains("leads, in term"), "{said}");
    // One of the two had to accept it; the other one is caught up.
    let told = |wanted: &str| {
        errors.iter().filter(|path| fs::read_to_string(path).expect("text").contains(wanted)).count()
    };
    wait_until("both vote", || {
        told("this member votes, with what it has") == 1 && told("this member has everything again") == 1
    });
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        assert_eq!(client.call(&["GET", "key"]).expect("an answer"), Answer::Bulk("value".into()));
    }
    wait_until("nothing is wrong", || cluster.command(&["status"], 2).0);
}
