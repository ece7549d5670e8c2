//! Watches of a real server, through its crashes and cut connections.
#![allow(clippy::indexing_slicing, missing_docs, reason = "a test may fail by a panic")]

mod common;

use common::proxy::Proxy;
use common::server::Server;
use common::{client, command, event, expect_numbers, run, snapshot, text, write_numbers};
use futures_util::StreamExt;
use redis::Value;
use std::time::Duration;
use tidemark_client::{Client, Error, Event, Position, Reason, Retry};

#[tokio::test]
async fn the_answer_comes_first_and_then_each_change() {
    let server = Server::start(&[]);
    let () = run(&server, "SET k 0");
    let mut watch = client(server.port).await.watch(["get", "k"]);
    assert_eq!(watch.position(), None);
    let first = snapshot(&mut watch, Reason::Begun).await;
    assert_eq!((first.lsn, first.value), (2, text(0)));
    assert!(!first.reason.emissions_may_be_missing());
    for line in ["SET k 1", "SET k 1", "SET other 1", "SET k 2", "DEL k"] {
        let () = run(&server, line);
    }
    expect_numbers(&mut watch, 1..=2, 1).await;
    let Event::Emission(gone) = event(&mut watch).await else { panic!("an emission comes") };
    assert_eq!((gone.seq, gone.value), (3, Value::Nil));
    // An error is an answer as well.
    let () = run(&server, "RPUSH k 1");
    let Event::Emission(error) = event(&mut watch).await else { panic!("an emission comes") };
    assert!(matches!(error.value, Value::ServerError(_)), "{error:?}");
    let position = watch.position().expect("events came");
    assert_eq!((position.lsn(), position.seq()), (error.lsn, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_costs_nothing_and_doubles_nothing() {
    let mut server = Server::start(&[]);
    let () = run(&server, "SET k 0");
    let mut watch = client(server.port).await.watch(["GET", "k"]);
    snapshot(&mut watch, Reason::Begun).await;
    let port = server.port;
    let writer = tokio::task::spawn_blocking(move || write_numbers(port, "k", 1..=2000));
    for round in 0..4 {
        expect_numbers(&mut watch, round * 500 + 1..=round * 500 + 200, round * 500 + 1).await;
        server.kill();
        server.start_again();
        expect_numbers(&mut watch, round * 500 + 201..=round * 500 + 500, round * 500 + 201).await;
    }
    writer.await.expect("everything is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_may_be_cut_behind_any_byte() {
    let server = Server::start(&[]);
    let () = run(&server, "SET k 0");
    // Some connections end in the middle of the handshake, the others among emissions.
    let proxy =
        Proxy::start(server.port, std::iter::once(usize::MAX).chain((0..).map(|n| 1 + n * 37 % 4001)));
    let mut watch = client(proxy.port).await.watch(["GET", "k"]);
    snapshot(&mut watch, Reason::Begun).await;
    let port = server.port;
    let writer = tokio::task::spawn_blocking(move || write_numbers(port, "k", 1..=2000));
    expect_numbers(&mut watch, 1..=2000, 1).await;
    writer.await.expect("everything is written");
    assert!(proxy.cut() > 20, "{} connections were cut", proxy.cut());
}

#[tokio::test]
async fn reads_of_several_keys_and_of_none_are_gone_on_with() {
    let mut server = Server::start(&[]);
    let client = client(server.port).await;
    let reads: [&[&str]; 5] = [
        &["MGET", "a:1", "a:2"],
        &["ZUNION", "2", "z:1", "z:2"],
        &["KEYS", "a:*"],
        &["DBSIZE"],
        &["HSCAN", "h", "0", "MATCH", "f*"],
    ];
    let mut watches: Vec<_> = reads.iter().map(|read| client.watch(read.iter())).collect();
    for watch in &mut watches {
        snapshot(watch, Reason::Begun).await;
    }
    let lines = ["SET a:2 x", "ZADD z:2 1 m", "SET a:1 x", "SET b x", "HSET h f v"];
    server.kill();
    server.start_again();
    for line in lines {
        let () = run(&server, line);
    }
    for (watch, emissions) in watches.iter_mut().zip([2, 1, 2, 5, 1]) {
        for seq in 1..=emissions {
            let Event::Emission(emission) = event(watch).await else { panic!("an emission comes") };
            assert_eq!(emission.seq, seq);
        }
    }
}

#[tokio::test]
async fn what_operators_let_pass_is_gone_on_with() {
    let mut server = Server::start(&[]);
    let client = client(server.port).await;
    let mut watch = client.watch(["GET", "k", "|", "RANGE", "10", "29", "|", "EVERY", "2"]);
    snapshot(&mut watch, Reason::Begun).await;
    write_numbers(server.port, "k", 1..=15);
    let mut passed = Vec::new();
    for number in [11, 13, 15, 17, 19] {
        let Event::Emission(emission) = event(&mut watch).await else { panic!("an emission comes") };
        passed.push(emission.seq);
        assert_eq!(emission.value, text(number));
        if number == 15 {
            server.kill();
            server.start_again();
            write_numbers(server.port, "k", 16..=40);
        }
    }
    assert_eq!(passed, [1, 2, 3, 4, 5]);
    let mut refused = client.watch(["GET", "k", "|", "SQUASH"]);
    assert!(matches!(refused.next().await, Some(Err(Error::Refused(_)))));
}

#[tokio::test]
async fn another_process_goes_on_where_one_has_stopped() {
    let mut server = Server::start(&[]);
    let () = run(&server, "SET k 0");
    let mut watch = client(server.port).await.watch([b"GET".as_slice(), b"k"]);
    snapshot(&mut watch, Reason::Begun).await;
    write_numbers(server.port, "k", 1..=20);
    expect_numbers(&mut watch, 1..=10, 1).await;
    let kept = watch.position().expect("events came").to_string();
    drop(watch);
    write_numbers(server.port, "k", 21..=30);
    server.kill();
    server.start_again();
    write_numbers(server.port, "k", 31..=40);
    let position: Position = kept.parse().expect("a position");
    assert_eq!(position.read().collect::<Vec<_>>(), [b"GET".as_slice(), b"k"]);
    let mut watch = client(server.port).await.resume(position.clone());
    assert_eq!(watch.position(), Some(&position));
    expect_numbers(&mut watch, 11..=40, 11).await;
}

/// Limits the server to emissions that it retains: it replays none from the log.
const NOTHING_MADE_AGAIN: [&str; 2] = ["--watch-backlogs", "0"];

#[tokio::test]
async fn what_is_not_retained_any_more_is_said_and_the_answer_comes_anew() {
    let mut server = Server::start(&NOTHING_MADE_AGAIN);
    let mut watch = client(server.port).await.watch(["GET", "k"]);
    snapshot(&mut watch, Reason::Begun).await;
    write_numbers(server.port, "k", 1..=3);
    expect_numbers(&mut watch, 1..=3, 1).await;
    let position = watch.position().expect("events came").clone();
    drop(watch);
    write_numbers(server.port, "k", 4..=5);
    let () = run(&server, "SAVE");
    server.kill();
    server.start_again();
    let mut watch = client(server.port).await.resume(position.clone());
    let stale = snapshot(&mut watch, Reason::Stale { floor: position.lsn() + 2 }).await;
    assert_eq!(stale.value, text(5));
    assert!(stale.reason.emissions_may_be_missing());
    write_numbers(server.port, "k", 6..=8);
    expect_numbers(&mut watch, 6..=8, 1).await;
}

#[tokio::test]
async fn a_server_that_has_lost_its_data_is_noticed() {
    let mut server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kept = directory.path().join("kept");
    server.kill();
    server.keep(&kept);
    server.start_again();
    let mut watch = client(server.port).await.watch(["GET", "k"]);
    snapshot(&mut watch, Reason::Begun).await;
    write_numbers(server.port, "k", 1..=10);
    expect_numbers(&mut watch, 1..=10, 1).await;

    // The data from before the subscription.
    server.kill();
    server.put_back(&kept);
    server.start_again();
    assert_eq!(snapshot(&mut watch, Reason::NotFound).await.value, Value::Nil);
    write_numbers(server.port, "k", 11..=15);
    expect_numbers(&mut watch, 11..=15, 1).await;

    // The data from the middle of the subscription, so the log ends before the last emission.
    let head = watch.position().expect("events came").lsn();
    server.kill();
    std::fs::remove_dir_all(&kept).expect("a directory");
    server.keep(&kept);
    server.start_again();
    write_numbers(server.port, "k", 16..=20);
    expect_numbers(&mut watch, 16..=20, 6).await;
    server.kill();
    server.put_back(&kept);
    server.start_again();
    let back = snapshot(&mut watch, Reason::TakenBack { head }).await;
    assert_eq!(back.value, text(15));
    // The server has also lost the new subscription. Another read has its name, over no key and so
    // over any.
    write_numbers(server.port, "k", 16..=20);
    expect_numbers(&mut watch, 16..=20, 1).await;
}

#[tokio::test]
async fn another_read_that_has_the_subscriptions_name_is_not_taken_for_it() {
    let mut server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kept = directory.path().join("kept");
    server.kill();
    server.keep(&kept);
    server.start_again();
    let mut watch = client(server.port).await.watch(["KEYS", "*"]);
    snapshot(&mut watch, Reason::Begun).await;
    let position = watch.position().expect("an event came").clone();
    drop(watch);
    server.kill();
    server.put_back(&kept);
    server.start_again();
    let mut other = client(server.port).await.watch(["DBSIZE"]);
    snapshot(&mut other, Reason::Begun).await;
    let place = |position: &Position| position.to_string().split(':').take(4).collect::<Vec<_>>().join(":");
    assert_eq!(place(other.position().expect("an event came")), place(&position));
    let mut watch = client(server.port).await.resume(position);
    assert_eq!(snapshot(&mut watch, Reason::NotFound).await.value, Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_slow_caller_gets_everything_when_it_comes() {
    let server = Server::start(&[]);
    let () = run(&server, "SET k 0");
    let mut watch = client(server.port).await.watch(["GET", "k"]);
    // More than the client holds.
    let port = server.port;
    tokio::task::spawn_blocking(move || write_numbers(port, "k", 1..=1)).await.expect("it is written");
    let first = event(&mut watch).await;
    let writer = tokio::task::spawn_blocking(move || write_numbers(port, "k", 2..=5000));
    writer.await.expect("everything is written");
    // The watch may have begun before or after the first change.
    let seq = match first {
        Event::Snapshot(snapshot) if snapshot.value == text(1) => 1,
        Event::Snapshot(_) => {
            expect_numbers(&mut watch, 1..=1, 1).await;
            2
        }
        other => panic!("a snapshot comes first: {other:?}"),
    };
    expect_numbers(&mut watch, 2..=5000, seq).await;
}

#[tokio::test]
async fn a_subscriber_below_the_retention_floor_gets_a_stale_push() {
    let retention = ["--watch-retention-bytes", "1048576"];
    let server = Server::start(&[&NOTHING_MADE_AGAIN[..], &retention].concat());
    let mut watch = client(server.port).await.watch(["GET", "k"]);
    snapshot(&mut watch, Reason::Begun).await;
    // The caller does not read: what exceeds the client's buffer is fifteen times what the server
    // retains.
    let mut connection = server.connection();
    for number in 1..=4000 {
        command(&format!("SET k {number:0>5000}")).exec(&mut connection).expect("it is written");
    }
    let mut last = 0;
    let snapshot = loop {
        match event(&mut watch).await {
            Event::Emission(emission) => {
                last += 1;
                assert_eq!((emission.seq, emission.value), (last, text(format!("{last:0>5000}"))));
            }
            Event::Snapshot(snapshot) => break snapshot,
        }
    };
    assert!(matches!(snapshot.reason, Reason::Stale { .. }), "{:?}", snapshot.reason);
    assert_eq!(snapshot.value, text(format!("{:0>5000}", 4000)));
    assert!(last < 4000);
    write_numbers(server.port, "k", 1..=3);
    expect_numbers(&mut watch, 1..=3, 1).await;
}

#[tokio::test]
async fn what_the_server_refuses_ends_the_watch() {
    let server = Server::start(&["--requirepass", "secret"]);
    for password in ["", ":wrong@"] {
        let refused = Client::connect(format!("redis://{password}127.0.0.1:{}", server.port)).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{password}: {refused:?}");
    }
    assert!(matches!(Client::connect("nonsense").await, Err(Error::Address(_))));
    assert!(matches!(Client::connect("redis://127.0.0.1:1").await, Err(Error::Unreachable { .. })));

    let client = Client::connect(format!("redis://:secret@127.0.0.1:{}", server.port)).await;
    let client = client.expect("the password is right");
    let reads: [&[&str]; 5] = [&[], &[""], &["NONSENSE", "k"], &["TTL", "k"], &["GET"]];
    for read in reads {
        let mut watch = client.watch(read.iter());
        let refused = watch.next().await;
        assert!(matches!(refused, Some(Err(Error::Refused(_)))), "{read:?}: {refused:?}");
        assert!(watch.next().await.is_none());
    }
}

#[tokio::test]
async fn as_many_attempts_are_made_as_are_allowed() {
    let mut server = Server::start(&[]);
    let delay_min = Duration::from_millis(1);
    let retry = Retry { delay_min, attempts_max: Some(5), ..Retry::default() };
    let mut watch = client(server.port).await.with_retry(retry).watch(["GET", "k"]);
    snapshot(&mut watch, Reason::Begun).await;
    server.kill();
    let unreachable = watch.next().await;
    assert!(matches!(unreachable, Some(Err(Error::Unreachable { attempts: 5, .. }))), "{unreachable:?}");
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watch_is_a_stream_and_ends_with_its_connection_when_it_is_dropped() {
    let server = Server::start(&[]);
    let () = run(&server, "SET k 0");
    let mut watches: Vec<_> = Vec::new();
    let client = client(server.port).await;
    for _ in 0..10 {
        watches.push(client.watch(["GET", "k"]));
    }
    let mut all = futures_util::stream::select_all(watches);
    for _ in 0..10 {
        assert!(matches!(all.next().await, Some(Ok(Event::Snapshot(_)))));
    }
    let connections = || run::<String>(&server, "CLIENT LIST").lines().count();
    assert_eq!(connections(), 11);
    drop(all);
    let mut left = connections();
    for _ in 0..1000 {
        if left == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        left = connections();
    }
    assert_eq!(left, 1);
}
