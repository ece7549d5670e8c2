//! What clients of a cluster of three see besides their data: who leads, by the ways of Redis Sentinel
//! and of load balancers; messages; how many members have a change.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, free_port, wait_until};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.to_owned())
}

fn connect(cluster: &Cluster, member: usize) -> Client {
    Client::connect(cluster.clients[member]).expect("the member accepts")
}

fn ask(client: &mut Client, words: &[&str]) -> Answer {
    client.call(words).expect("an answer")
}

/// Subscribes at a member.
fn subscribe(cluster: &Cluster, member: usize, channel: &str) -> Client {
    let mut client = connect(cluster, member);
    let confirmed = Answer::Array(vec![bulk("subscribe"), bulk(channel), Answer::Integer(1)]);
    assert_eq!(ask(&mut client, &["SUBSCRIBE", channel]), confirmed);
    client
}

/// Returns the next message of a subscriber.
fn message(client: &mut Client) -> String {
    match client.read().expect("a message") {
        Answer::Array(parts) => match parts.last() {
            Some(Answer::Bulk(text)) => text.clone(),
            other => panic!("a message ends with its text, not with {other:?}"),
        },
        other => panic!("a message, not {other:?}"),
    }
}

/// The address that a member names as that of the leader.
fn named_leader(cluster: &Cluster, member: usize) -> Answer {
    ask(&mut connect(cluster, member), &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "tidemark"])
}

fn address(port: u16) -> Answer {
    Answer::Array(vec![bulk("127.0.0.1"), bulk(&port.to_string())])
}

#[test]
fn a_member_has_a_port_at_which_its_role_is_that_of_a_sentinel() {
    let mut cluster = Cluster::found();
    let port = free_port();
    cluster.kill(1);
    cluster.run_with(1, &["--cluster-sentinel-port", &port.to_string()]);
    drop(cluster.settled());
    let leader = cluster.leader();
    let mut client = Client::connect(port).expect("it accepts");
    let role = Answer::Array(vec![bulk("sentinel"), Answer::Array(vec![bulk("tidemark")])]);
    assert_eq!(ask(&mut client, &["ROLE"]), role);
    let named = ask(&mut client, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "tidemark"]);
    assert_eq!(named, address(cluster.clients[leader]));
    let role = ask(&mut connect(&cluster, leader), &["ROLE"]).array();
    assert_eq!(role[0], bulk("master"), "at the port of all clients");
}

/// Returns status and text of `/health/leader`.
fn health(cluster: &Cluster, member: usize) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.http[member])).expect("HTTP is served");
    stream
        .write_all(b"GET /health/leader HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.trim_end().to_owned());
    (status, body.unwrap_or_default())
}

#[test]
fn every_member_names_the_leader_and_says_when_another_leads() {
    let mut cluster = Cluster::found();
    let leader = cluster.leader();
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let _ = cluster.settled();
    let old = cluster.clients[leader];
    for member in 0..3 {
        assert_eq!(named_leader(&cluster, member), address(old));
        let (status, text) = health(&cluster, member);
        let expected = if member == leader { "200" } else { "503" };
        assert_eq!(status, expected, "{text}");
        assert!(text.starts_with(&format!("member {} leads", leader + 1)), "{text}");
    }
    for member in others {
        let answer = check_limit(&cluster, member);
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains(&format!("tidemark-leader: 127.0.0.1:{old}\r\n")), "{answer}");
        assert!(answer.contains(&format!("\"leader\":\"127.0.0.1:{old}\"")), "{answer}");
    }
    let mut listeners = others.map(|member| subscribe(&cluster, member, "+switch-master"));
    cluster.kill(leader);
    let new = cluster.clients[cluster.leader()];
    for listener in &mut listeners {
        assert_eq!(message(listener), format!("tidemark 127.0.0.1 {old} 127.0.0.1 {new}"));
    }
    for member in others {
        wait_until("it names the new leader", || named_leader(&cluster, member) == address(new));
        let masters = format!("{:?}", ask(&mut connect(&cluster, member), &["SENTINEL", "MASTERS"]));
        assert!(masters.contains("\"master\"") && masters.contains(&new.to_string()), "{masters}");
        let followers =
            format!("{:?}", ask(&mut connect(&cluster, member), &["SENTINEL", "SLAVES", "tidemark"]));
        assert!(followers.contains("slave,s_down,disconnected"), "{followers}");
    }
}

#[test]
fn a_message_reaches_the_subscribers_of_every_member_in_the_order_of_its_publisher() {
    let cluster = Cluster::found();
    let _ = cluster.settled();
    let mut subscribers = [0, 1, 2].map(|member| subscribe(&cluster, member, "news"));
    // What is published before the members are connected is lost: at most once.
    wait_until("messages arrive everywhere", || {
        ask(&mut connect(&cluster, 0), &["PUBLISH", "news", "ping"]);
        let figures = |member: usize| metric(&cluster, member, "tidemark_cluster_messages_received_total");
        figures(1) > 0 && figures(2) > 0
    });
    for member in 0..3 {
        let mut publisher = connect(&cluster, member);
        for number in 0..100 {
            let published = ask(&mut publisher, &["PUBLISH", "news", &format!("{member}:{number}")]);
            assert_eq!(published, Answer::Integer(1), "its own subscriber is counted");
        }
    }
    for subscriber in &mut subscribers {
        let mut next = [0; 3];
        while next != [100; 3] {
            let text = message(subscriber);
            if text == "ping" {
                continue;
            }
            let (member, number) = text.split_once(':').expect("a number");
            let member: usize = member.parse().expect("a member");
            assert_eq!(number, next[member].to_string(), "of member {member}");
            next[member] += 1;
        }
    }
    let mut shard = subscribe_to_shard(&cluster, 1);
    ask(&mut connect(&cluster, 2), &["SPUBLISH", "shard", "hello"]);
    assert_eq!(message(&mut shard), "hello");
}

fn subscribe_to_shard(cluster: &Cluster, member: usize) -> Client {
    let mut client = connect(cluster, member);
    let _ = ask(&mut client, &["SSUBSCRIBE", "shard"]);
    client
}

/// Returns a metric of a member.
fn metric(cluster: &Cluster, member: usize, name: &str) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.http[member])).expect("HTTP is served");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let value = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in {answer}"))
}

#[test]
fn wait_counts_members_and_waitaof_syncs_in_every_mode() {
    let mut cluster = Cluster::found_with(&["--durability", "off"]);
    let leader = cluster.leader();
    let mut client = connect(&cluster, leader);
    assert_eq!(ask(&mut client, &["SET", "key", "1"]), Answer::Status("OK".into()));
    assert_eq!(ask(&mut client, &["WAIT", "2", "20000"]), Answer::Integer(2));
    let synced = Answer::Array(vec![Answer::Integer(1), Answer::Integer(0)]);
    assert_eq!(ask(&mut client, &["WAITAOF", "1", "0", "0"]), synced);
    cluster.kill((leader + 1) % 3);
    assert_eq!(ask(&mut client, &["SET", "key", "2"]), Answer::Status("OK".into()));
    assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Answer::Integer(1));
    assert_eq!(ask(&mut client, &["WAIT", "2", "100"]), Answer::Integer(1));
    let mut follower = connect(&cluster, (leader + 2) % 3);
    let Answer::Error(text) = ask(&mut follower, &["WAIT", "1", "0"]) else {
        panic!("a follower has no others")
    };
    assert!(text.contains("ask the leader"), "{text}");
}

/// Checks a limit over HTTP, and returns the whole answer.
fn check_limit(cluster: &Cluster, member: usize) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.http[member])).expect("HTTP is served");
    let body = r#"{"key": "user:43", "limit": "GCRA 10 PER 1000 BURST 20"}"#;
    let head = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nConnection: close";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn reads_by_index_are_answered_and_never_old() {
    let cluster = Cluster::found_with(&["--cluster-reads", "index"]);
    cluster.set("key", "old");
    let leader = cluster.leader();
    let mut client = connect(&cluster, leader);
    for _ in 0..100 {
        assert_eq!(ask(&mut client, &["GET", "key"]), bulk("old"));
    }
    let answer = check_limit(&cluster, leader);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");

    cluster.stop(leader);
    client.send(&["GET", "key"]).expect("the kernel takes it");
    cluster.set_at_others(leader, "key", "new");
    cluster.server(leader).signal("CONT");
    assert_ne!(client.read().ok(), Some(bulk("old")), "it was changed before the question could be answered");
}
