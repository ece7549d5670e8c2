//! Clusters that have lost most of their disks go on with what is left, when their operator accepts that.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, wait_until};
use std::fs::File;
use std::time::Duration;

fn value(cluster: &Cluster, member: usize, key: &str) -> Option<Answer> {
    Client::connect(cluster.clients[member]).ok()?.call(&["GET", key]).ok()
}

#[test]
fn what_is_left_of_a_cluster_becomes_one_of_its_own_and_the_others_are_strangers() {
    let mut cluster = Cluster::found();
    for number in 0..100 {
        cluster.set(&format!("key:{number}"), "1");
    }
    drop(cluster.settled());
    (0..3).for_each(|member| cluster.kill(member));
    let aside = cluster.directory.path().join("aside");
    std::fs::rename(cluster.directory.path().join("member1"), &aside).expect("renamed");
    std::fs::remove_dir_all(cluster.directory.path().join("member2")).expect("removed");
    let errors = cluster.directory.path().join("errors");
    cluster.run_telling(0, &[], File::create(&errors).expect("a file").into());

    // It says what is left, and changes nothing.
    let (is_good, said) = cluster.command(&["recover"], 0);
    assert!(!is_good && said.contains("1 of 3 voting members answer"), "{said}");
    assert!(said.contains("  1  last entry") && said.contains("  2  silent"), "{said}");
    assert!(said.contains("member 1 begin a cluster of its own"), "{said}");
    assert!(said.contains("nothing was changed") && said.contains("--accept-loss"), "{said}");
    assert_eq!(cluster.try_set("key:1", "2"), None, "there is no leader");
    let (_, status) = cluster.command(&["status"], 0);
    assert!(status.contains("tidemark cluster recover"), "{status}");

    let (is_good, said) = cluster.command(&["recover", "--accept-loss"], 0);
    assert!(is_good && said.contains("member 1 leads"), "{said}");
    for number in 0..100 {
        assert_eq!(value(&cluster, 0, &format!("key:{number}")), Some(Answer::Bulk("1".into())));
    }
    cluster.set("alone", "1");
    let (is_good, said) = cluster.command(&["recover", "--accept-loss"], 0);
    assert!(is_good && said.contains("nothing to recover from"), "{said}");

    // A member of before is a stranger.
    std::fs::rename(&aside, cluster.directory.path().join("member1")).expect("renamed");
    cluster.run(1);
    wait_until("it is refused in words", || {
        std::fs::read_to_string(&errors).expect("text").contains("node 2 belongs to the cluster")
    });
    std::thread::sleep(Duration::from_secs(2));
    let (_, status) = cluster.command(&["status"], 1);
    assert!(status.contains("it belongs to another cluster now"), "{status}");
    assert!(!matches!(value(&cluster, 1, "alone"), Some(Answer::Bulk(_))), "it gets nothing");
    cluster.set("alone", "2");
    cluster.kill(1);

    // With empty directories others take part, also under the old numbers.
    std::fs::remove_dir_all(cluster.directory.path().join("member1")).expect("removed");
    for member in [1, 2] {
        cluster.join(member, 0);
        wait_until("it votes", || {
            let (_, json) = cluster.command(&["status", "--json"], 0);
            json.contains(&format!("\"node\": {},", member + 1)) && !json.contains("\"votes\": false")
        });
    }
    drop(cluster.settled());
    cluster.kill(0);
    cluster.set_at_others(0, "without", "1");
    cluster.run(0);
    drop(cluster.settled());
    for number in 0..100 {
        let answer = (0..3).find_map(|member| match value(&cluster, member, &format!("key:{number}")) {
            Some(answer @ Answer::Bulk(_)) => Some(answer),
            _ => None,
        });
        assert_eq!(answer, Some(Answer::Bulk("1".into())));
    }
}

/// The process ends between the note in the directory and the cluster of its own.
#[test]
fn a_recovery_that_is_killed_goes_on_at_the_next_start() {
    let mut cluster = Cluster::found();
    cluster.set("key", "1");
    drop(cluster.settled());
    (0..3).for_each(|member| cluster.kill(member));
    for round in 0..6 {
        cluster.run(0);
        let mut client = Client::connect(cluster.clients[0]).expect("it accepts");
        // Refused where the last round has come through: then it leads.
        let _ = client.call(&["CLUSTER", "RECOVER", "ALONE"]);
        std::thread::sleep(Duration::from_millis(round * 15));
        cluster.kill(0);
    }
    cluster.run(0);
    let mut is_led = false;
    wait_until("it leads", || {
        is_led = value(&cluster, 0, "key") == Some(Answer::Bulk("1".into()));
        // The note may never have been made.
        if !is_led {
            let _ = Client::connect(cluster.clients[0])
                .and_then(|mut client| client.call(&["CLUSTER", "RECOVER", "ALONE"]));
        }
        is_led
    });
    cluster.set("key", "2");
}

#[test]
fn nothing_is_recovered_from_where_a_leader_is_or_can_be() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    drop(cluster.settled());
    for member in 0..3 {
        for how in ["ALONE", "VOTE"] {
            let mut client = Client::connect(cluster.clients[member]).expect("it accepts");
            let answer = client.call(&["CLUSTER", "RECOVER", how]).expect("an answer");
            assert!(answer.is_error(), "{how} at {member}: {answer:?}");
        }
    }
    let (is_good, said) = cluster.command(&["recover", "--accept-loss"], (leader + 1) % 3);
    assert!(is_good && said.contains("nothing to recover from"), "{said}");
    cluster.set("key", "1");
    drop(cluster.settled());
}

/// It does not know at once that its followers will not come back.
#[test]
fn a_leader_that_is_left_alone_goes_on_alone() {
    let mut cluster = Cluster::found();
    cluster.set("key", "1");
    let leader = cluster.leader();
    (0..3).filter(|member| *member != leader).for_each(|member| cluster.kill(member));
    let (is_good, said) = cluster.command(&["recover"], leader);
    assert!(!is_good && said.contains("1 of 3 voting members answer"), "{said}");
    let (is_good, said) = cluster.command(&["recover", "--accept-loss"], leader);
    assert!(is_good && said.contains("leads, in term"), "{said}");
    assert_eq!(value(&cluster, leader, "key"), Some(Answer::Bulk("1".into())));
    cluster.set("key", "2");
}
