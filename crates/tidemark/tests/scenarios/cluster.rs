//! Clusters of three: what clients see when members die and stop.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, wait_until};
use std::time::Duration;

#[test]
fn followers_name_the_leader_and_answer_readers_that_ask_for_it() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    cluster.set("key", "value");
    let address = format!("127.0.0.1:{}", cluster.clients[leader]);
    for (member, mut client) in cluster.settled().into_iter().enumerate() {
        if member == leader {
            continue;
        }
        let moved = Answer::Error(format!("MOVED 12539 {address}"));
        assert_eq!(client.call(&["SET", "key", "other"]).expect("an answer"), moved);
        assert_eq!(client.call(&["GET", "key"]).expect("an answer"), moved);
        assert_eq!(client.call(&["READONLY"]).expect("an answer"), Answer::Status("OK".into()));
        assert_eq!(client.call(&["GET", "key"]).expect("an answer"), Answer::Bulk("value".into()));
        assert_eq!(client.call(&["SET", "key", "other"]).expect("an answer"), moved);
    }
}

#[test]
fn what_was_acknowledged_survives_the_end_of_its_leader() {
    let mut cluster = Cluster::found();
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let leader = cluster.leader();
        for number in 0..100 {
            let key = format!("key:{round}:{number}");
            if cluster.try_set(&key, "1").is_some() {
                acknowledged.push(key);
            }
        }
        cluster.kill(leader);
        let key = format!("without:{round}");
        cluster.set(&key, "1");
        acknowledged.push(key);
        cluster.run(leader);
    }
    assert!(acknowledged.len() > 300, "{}", acknowledged.len());
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        for key in &acknowledged {
            assert_eq!(client.call(&["GET", key]).expect("an answer"), Answer::Bulk("1".into()), "{key}");
        }
    }
}

#[test]
fn a_leader_that_was_stopped_tells_nothing_that_the_others_do_not_have() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    let mut stale = Client::connect(cluster.clients[leader]).expect("the leader accepts");
    cluster.stop(leader);
    // In its socket when it wakes up: another leads meanwhile.
    stale.send(&["SET", "stale", "1"]).expect("the kernel takes it");
    cluster.set_at_others(leader, "fresh", "1");
    cluster.server(leader).signal("CONT");
    let answer = stale.read();
    assert_ne!(answer.as_ref().ok(), Some(&Answer::Status("OK".into())), "no quorum has it");
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        assert_eq!(client.call(&["GET", "stale"]).expect("an answer"), Answer::Null);
        assert_eq!(client.call(&["GET", "fresh"]).expect("an answer"), Answer::Bulk("1".into()));
    }
}

/// A record goes to the other members as a whole.
#[test]
fn large_values_reach_all_members_and_too_large_ones_are_refused() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    let mut client = Client::connect(cluster.clients[leader]).expect("the leader accepts");
    let large = "x".repeat(50 << 20);
    std::thread::scope(|scope| {
        // Together more than one entry takes.
        for number in 0..4 {
            let (cluster, large) = (&cluster, &large);
            scope.spawn(move || cluster.set(&format!("large:{number}"), large));
        }
    });
    let Answer::Error(error) = client.call(&["APPEND", "large:0", &"x".repeat(65 << 20)]).expect("an answer")
    else {
        panic!("it is refused")
    };
    assert!(error.contains("exceeds the limit of 67108864 bytes in a cluster"), "{error}");
    client.call(&["MULTI"]).expect("an answer");
    for key in ["one", "two"] {
        assert_eq!(client.call(&["SET", key, &large]).expect("an answer"), Answer::Status("QUEUED".into()));
    }
    let Answer::Error(error) = client.call(&["EXEC"]).expect("an answer") else { panic!("it is refused") };
    assert!(error.contains("transaction of"), "{error}");
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        for number in 0..4 {
            let length = client.call(&["STRLEN", &format!("large:{number}")]).expect("an answer");
            assert_eq!(length, Answer::Integer(50 << 20));
        }
        assert_eq!(client.call(&["EXISTS", "one", "two"]).expect("an answer"), Answer::Integer(0));
    }
}

#[test]
fn a_follower_that_was_away_shows_readers_nothing_old() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    let away = (leader + 1) % 3;
    cluster.set("key", "old");
    drop(cluster.settled());
    let mut reader = Client::connect(cluster.clients[away]).expect("the member accepts");
    let _ = reader.call(&["READONLY"]).expect("an answer");
    cluster.stop(away);
    cluster.set("key", "new");
    // Longer than a reader may be behind.
    std::thread::sleep(Duration::from_millis(2_500));
    reader.send(&["GET", "key"]).expect("the kernel takes it");
    cluster.server(away).signal("CONT");
    let mut answer = reader.read().expect("an answer");
    wait_until("it has caught up", || {
        let is_refusal = matches!(&answer, Answer::Error(error) if error.starts_with("MASTERDOWN"));
        if is_refusal {
            answer = reader.call(&["GET", "key"]).expect("an answer");
        }
        !is_refusal
    });
    assert_eq!(answer, Answer::Bulk("new".into()));
}
