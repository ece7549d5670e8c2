//! The log's changes as they arrive in NATS `JetStream`, with the real programs, which are killed
//! at bad moments.

use crate::support::changes::{await_state, changes, eventually, settle, sink, write_for};
use crate::support::cluster::Cluster;
use crate::support::nats::{Nats, Stored};
use crate::support::{Answer, Client, Server, info_number};
use std::path::Path;
use std::time::Duration;

fn delivered(messages: &[Stored]) -> Vec<(u64, String)> {
    let text = |stored: &Stored| String::from_utf8(stored.payload.clone()).expect("text");
    messages.iter().map(|stored| (stored.lsn(), text(stored))).collect()
}

fn start(dir: &Path, url: &str) -> Server {
    Server::start(dir, &["--sink", url])
}

#[test]
fn after_kills_of_either_side_the_stream_has_every_durable_change_once_and_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, store) = (dir.path().join("data"), dir.path().join("nats"));
    let mut nats = Nats::start(&store);
    let url = format!("nats://127.0.0.1:{}/CHANGES?subject=tidemark.changes", nats.port);
    let mut server = start(&data, &url);
    for round in 0..3 {
        let while_busy = Duration::from_millis(150);
        write_for(&server, &format!("all is well {round}"), while_busy);
        let port = nats.kill();
        write_for(&server, &format!("without nats {round}"), while_busy);
        nats = Nats::start_at(&store, port);
        // Written while the sink catches up.
        write_for(&server, &format!("killed {round}"), while_busy);
        server.kill();
        server = start(&data, &url);
    }
    settle(&server);
    let (expected, messages) = (changes(&server), nats.stream("CHANGES").messages());
    assert!(expected.len() > 1_000, "{}", expected.len());
    assert_eq!(delivered(&messages), expected);
    for stored in &messages {
        assert_eq!(stored.subject, "tidemark.changes");
        assert!(stored.headers["Nats-Msg-Id"].ends_with(&format!("-{}", stored.lsn())));
    }
    // A restart without new changes repeats nothing.
    assert!(server.terminate().success());
    let server = start(&data, &url);
    settle(&server);
    assert_eq!(nats.stream("CHANGES").count(), expected.len() as u64 + 1);
}

/// Changes keys at a member until it has made 150 changes or does not lead any more.
fn write_while_it_leads(server: &Server, round: u32) {
    let mut client = server.client();
    for number in 0..150 {
        let value = format!("{round}-{number}");
        let set = client.call(&["SET", "k", &value]);
        if !set.is_ok_and(|answer| answer == Answer::Status("OK".to_owned())) {
            return;
        }
        let calls: [&[&str]; 4] = [&["MULTI"], &["INCR", "n"], &["RPUSH", "l", &value], &["EXEC"]];
        if number % 10 == 0 && calls.iter().any(|call| client.call(call).is_err()) {
            return;
        }
    }
}

/// Each member has the sink; that of the leader delivers.
#[test]
fn a_cluster_delivers_every_change_once_and_in_order_while_its_leaders_die() {
    let dir = tempfile::tempdir().expect("a directory");
    let nats = Nats::start(&dir.path().join("nats"));
    let url = format!("nats://127.0.0.1:{}/CHANGES", nats.port);
    let mut cluster = Cluster::found_with(&["--sink", &url]);
    for round in 0..3 {
        let leader = cluster.leader();
        write_while_it_leads(cluster.server(leader), round);
        if round == 1 {
            // It believes to lead when it wakes up, until it hears of another leader.
            cluster.stop(leader);
            cluster.set_at_others(leader, "stopped", "1");
            cluster.server(leader).signal("CONT");
        } else {
            cluster.kill(leader);
            cluster.set("killed", "1");
            cluster.run(leader);
        }
    }
    cluster.set("last", "one");
    let state = |port: u16| Client::connect(port).map(|mut client| sink(&mut client));
    let mut leader = None;
    eventually("the leader's sink delivers everything, and the others stand by", || {
        let sinks = cluster.clients.map(|port| state(port).expect("a member"));
        leader = sinks.iter().position(|sink| sink["state"] == "running" && sink["lag"] == "0");
        leader.is_some() && sinks.iter().filter(|sink| sink["state"] == "standing-by").count() == 2
    });
    let expected = changes(cluster.server(leader.expect("there is one")));
    assert!(expected.len() > 20, "{}", expected.len());
    // The last change was repeated if its answer was lost.
    assert!(delivered(&nats.stream("CHANGES").messages()).starts_with(&expected));
}

#[test]
fn a_sink_passes_on_what_it_selects_and_says_up_to_where_there_is_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let nats = Nats::start(&dir.path().join("nats"));
    let url = format!("nats://127.0.0.1:{}/S?prefix=user%3A&type=hash&format=binary&progress=1", nats.port);
    let server = start(&dir.path().join("data"), &url);
    let mut client = server.client();
    client.call(&["SET", "user:0", "v"]).expect("an answer");
    client.call(&["HSET", "user:1", "f", "v"]).expect("an answer");
    client.call(&["DURABLE", "HSET", "other", "f", "v"]).expect("an answer");
    client.call(&["DEL", "user:1"]).expect("an answer");
    client.call(&["HSET", "user:2", "f", "v"]).expect("an answer");
    settle(&server);
    let mut stream = nats.stream("S");
    eventually("a note of progress", || stream.count() >= 4);
    let messages = stream.messages();
    let command = |stored: &Stored| {
        let text = String::from_utf8(stored.payload.clone()).expect("text");
        text.rsplit_once(":0\r\n").expect("a command in database 0").1.to_owned()
    };
    let set = |key: &str| format!("$4\r\nhset\r\n$6\r\n{key}\r\n$1\r\nf\r\n$1\r\nv\r\n");
    let delivered: Vec<(u64, String)> =
        messages.iter().take(3).map(|stored| (stored.lsn(), command(stored))).collect();
    let del = "$3\r\ndel\r\n$6\r\nuser:1\r\n".to_owned();
    assert_eq!(delivered, [(2, set("user:1")), (4, del), (5, set("user:2"))]);
    let (last, before) = (messages.last().expect("a message"), &messages[2]);
    assert!(last.headers.contains_key("Tidemark-Progress") && last.payload.is_empty());
    assert!(last.lsn() > before.lsn());
}

/// Returns the LSN at which the server's log begins.
fn floor(client: &mut Client) -> i64 {
    info_number(client, "persistence", "log_floor_lsn")
}

#[test]
fn a_sink_that_misses_records_stops_until_it_may_skip_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, store) = (dir.path().join("data"), dir.path().join("nats"));
    let nats = Nats::start(&store);
    let url = format!("nats://127.0.0.1:{}/S", nats.port);
    let args = ["--log-segment-bytes", "64kb", "--snapshot-keep", "1"];
    let with = |url: &str| Server::start(&data, &[&args[..], &["--sink", url]].concat());
    let server = with(&url);
    settle(&server);
    let port = nats.kill();
    let mut client = server.client();
    let value = "x".repeat(20_000);
    for _ in 0..100 {
        client.call(&["SET", "k", &value]).expect("an answer");
    }
    await_state(&mut client, "retrying");
    client.call(&["SAVE"]).expect("an answer");
    eventually("segments are dropped", || floor(&mut client) > 50);
    // Changes that are queued for the sink are still delivered; a restart loses them.
    assert!(server.terminate().success());
    let nats = Nats::start_at(&store, port);
    let server = with(&url);
    let mut client = server.client();
    await_state(&mut client, "stopped");
    let stopped = sink(&mut client);
    assert!(stopped["last_error"].contains("Give it gap=skip"), "{stopped:?}");
    assert_eq!(nats.stream("S").count(), 1);
    assert!(server.terminate().success());
    let server = with(&format!("{url}?gap=skip"));
    settle(&server);
    let lsns: Vec<u64> = nats.stream("S").messages().iter().map(Stored::lsn).collect();
    assert!(lsns[0] == 1 && lsns[1] > 50 && lsns.is_sorted(), "{lsns:?}");
}

/// Changes before the first connection to the sink's target are delivered, and so are those after
/// it.
#[test]
fn a_sink_that_begins_at_the_end_misses_nothing_from_then_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, store) = (dir.path().join("data"), dir.path().join("nats"));
    let nats = Nats::start(&store);
    let url = format!("nats://127.0.0.1:{}/S?from=end", nats.port);
    let port = nats.kill();
    let server = Server::start(&data, &[]);
    server.client().call(&["DURABLE", "SET", "before", "v"]).expect("an answer");
    assert!(server.terminate().success());
    let server = start(&data, &url);
    let mut client = server.client();
    await_state(&mut client, "retrying");
    client.call(&["DURABLE", "SET", "while away", "v"]).expect("an answer");
    let nats = Nats::start_at(&store, port);
    settle(&server);
    let contents = |nats: &Nats| -> Vec<(u64, bool)> {
        let messages = nats.stream("S").messages();
        messages.iter().map(|stored| (stored.lsn(), stored.payload.is_empty())).collect()
    };
    let (place, delivered) = (contents(&nats)[0], contents(&nats)[1..].to_vec());
    assert!(place.1, "a message without content keeps the place");
    assert!(delivered.first().is_some_and(|delivered| delivered.0 > place.0), "{place:?} {delivered:?}");
    // The position is stored in the sink: changes that are written while it is away, with a restart
    // of the server, are not lost either.
    let port = nats.kill();
    client.call(&["DURABLE", "SET", "while both are away", "v"]).expect("an answer");
    assert!(server.terminate().success());
    let server = start(&data, &url);
    let nats = Nats::start_at(&store, port);
    settle(&server);
    let messages = nats.stream("S").messages();
    let text: String = messages.iter().map(|stored| String::from_utf8_lossy(&stored.payload)).collect();
    for (key, is_there) in [("before", false), ("while away", true), ("while both are away", true)] {
        assert_eq!(text.contains(&format!("\"{key}\"")), is_there, "{key}: {text}");
    }
}

/// Records that the log drops before the first connection to the sink's target are not skipped
/// silently.
#[test]
fn a_sink_that_has_never_been_reached_stops_at_what_was_dropped_meanwhile() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, store) = (dir.path().join("data"), dir.path().join("nats"));
    let nats = Nats::start(&store);
    let url = format!("nats://127.0.0.1:{}/S", nats.port);
    let port = nats.kill();
    let args = ["--log-segment-bytes", "64kb", "--snapshot-keep", "1", "--sink", &url];
    let server = Server::start(&data, &args);
    let mut client = server.client();
    let value = "x".repeat(20_000);
    for _ in 0..100 {
        client.call(&["SET", "k", &value]).expect("an answer");
    }
    client.call(&["SAVE"]).expect("an answer");
    eventually("segments are dropped", || floor(&mut client) > 50);
    let nats = Nats::start_at(&store, port);
    await_state(&mut client, "stopped");
    let stopped = sink(&mut client);
    assert!(stopped["last_error"].contains("Give it gap=skip"), "{stopped:?}");
    assert_eq!(nats.stream("S").count(), 0);
}

/// An operator empties a stream to start over.
#[test]
fn a_stream_that_was_emptied_is_filled_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let nats = Nats::start(&dir.path().join("nats"));
    let url = format!("nats://127.0.0.1:{}/S", nats.port);
    let server = start(&data, &url);
    server.client().call(&["DURABLE", "SET", "k", "v"]).expect("an answer");
    settle(&server);
    assert!(server.terminate().success());
    let mut stream = nats.stream("S");
    let before = stream.count();
    stream.purge();
    assert_eq!(stream.count(), 0);
    let server = start(&data, &url);
    settle(&server);
    assert!(stream.count() >= before, "{} of {before}", stream.count());
}

#[test]
fn what_is_not_the_sinks_own_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let nats = Nats::start(&dir.path().join("nats"));
    let url = format!("nats://127.0.0.1:{}/S", nats.port);
    let mut stream = nats.stream("S");
    stream.make();
    stream.publish("S", "somebody else's");
    eventually("it is there", || stream.count() == 1);
    let server = start(&dir.path().join("data"), &url);
    let mut client = server.client();
    client.call(&["DURABLE", "SET", "k", "v"]).expect("an answer");
    eventually("the sink complains", || {
        sink(&mut client)["last_error"].contains("another writer is active there")
    });
    assert_eq!((sink(&mut client)["state"].as_str(), stream.count()), ("retrying", 1));
    // A stream with records that this log does not have is refused as well.
    let one = Nats::start(&dir.path().join("other"));
    let url = format!("nats://127.0.0.1:{}/S", one.port);
    let long = start(&dir.path().join("long"), &url);
    for _ in 0..3 {
        settle(&long);
    }
    let short = start(&dir.path().join("short"), &url);
    let mut client = short.client();
    await_state(&mut client, "stopped");
    assert!(sink(&mut client)["last_error"].contains("it is another server's"));
    assert_eq!(one.stream("S").count(), 3);
}
