//! Watched reads over the wire.

use crate::common::watching::{begun, bulk, emission, outcome, resp3};
use crate::common::{Client, TestServer, eventually};
use std::net::TcpStream;
use std::time::Duration;
use tidemark_log::Durability;

#[test]
fn a_watched_read_is_answered_and_emits_its_changes_in_order() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    writer.ask("SET k 1", "+OK\r\n");
    watcher.ask("GET.WATCH k", &begun("2-0", 2, 0, "$1\r\n1\r\n"));
    watcher.ask("zrange.watch z 0 0 WITHSCORES", &begun("3-0", 3, 0, "*0\r\n"));
    // Emissions are ordered within a subscription, not between subscriptions. So the test reads
    // those of one subscription before it causes those of another.
    let k = [emission("2-0", 4, 1, "$1\r\n2\r\n"), emission("2-0", 6, 2, "$1\r\n3\r\n")];
    let z = [emission("3-0", 7, 1, "*1\r\n*2\r\n$1\r\na\r\n,1\r\n")];
    for (lines, emissions) in [
        (&["SET k 2", "SET k 2", "SET k 3"][..], &k[..]),
        (&["ZADD z 1 a", "ZADD z 2 b"], &z),
        (&["DEL k"], &[emission("2-0", 9, 3, "_\r\n")]),
    ] {
        for line in lines {
            writer.command(&line.split(' ').collect::<Vec<_>>());
            writer.line();
        }
        emissions.iter().for_each(|emission| watcher.expect(emission));
    }
    watcher.ask("PING", "+PONG\r\n");
    watcher.ask("UNWATCH 2-0 2-0 9-9", ":1\r\n");
    writer.ask("SET k 3", "+OK\r\n");
    watcher.ask("PING", "+PONG\r\n");
}

#[test]
fn what_the_own_blocked_move_emits_comes_behind_its_answer() {
    let server = TestServer::new();
    let (mut mover, mut other) = (resp3(&server), server.client());
    mover.ask("LLEN.WATCH to", &begun("1-0", 1, 0, ":0\r\n"));
    for round in 1..=50 {
        mover.send("BLMOVE from to LEFT RIGHT 0\r\n");
        eventually("the client waits", || {
            other.command(&["INFO", "clients"]);
            other.bulk().contains("blocked_clients:1")
        });
        other.ask("RPUSH from v", ":1\r\n");
        mover.expect("$1\r\nv\r\n");
        mover.expect(emission("1-0", 1 + 2 * round, round, &format!(":{round}\r\n")));
    }
}

#[test]
fn in_resp2_emissions_are_arrays_and_only_subscriptions_may_change() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (server.client(), server.client());
    watcher.ask(
        "HGETALL.WATCH h",
        "*8\r\n$6\r\nsub_id\r\n$3\r\n1-0\r\n$3\r\nlsn\r\n:1\r\n$3\r\nseq\r\n:0\r\n$5\r\nvalue\r\n*0\r\n",
    );
    writer.ask("HSET h f v", ":1\r\n");
    watcher.expect("*5\r\n$8\r\nemission\r\n$3\r\n1-0\r\n:2\r\n:1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
    watcher.command(&["GET", "k"]);
    assert!(watcher.line().starts_with("-ERR Can't execute 'get'"));
    watcher.command(&["HELLO", "3"]);
    assert!(watcher.line().starts_with("-ERR Can't execute 'hello'"));
    watcher.ask("UNWATCH 1-0", ":1\r\n");
    watcher.ask("GET k", "$-1\r\n");
}

#[test]
fn the_same_read_watched_again_is_the_same_subscription() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    writer.ask("SET k 1", "+OK\r\n");
    watcher.expect(emission("1-0", 2, 1, "$1\r\n1\r\n"));
    watcher.ask("GET.WATCH k", &begun("1-0", 2, 1, "$1\r\n1\r\n"));
    writer.ask("SET k 2", "+OK\r\n");
    watcher.expect(emission("1-0", 3, 2, "$1\r\n2\r\n"));
    watcher.ask("PING", "+PONG\r\n");
    let mut other = resp3(&server);
    other.ask("GET.WATCH k", &begun("1-2", 3, 0, "$1\r\n2\r\n"));
    writer.ask("SET k 3", "+OK\r\n");
    watcher.expect(emission("1-0", 4, 3, "$1\r\n3\r\n"));
    other.expect(emission("1-2", 4, 1, "$1\r\n3\r\n"));
}

#[test]
fn what_was_missed_comes_after_a_reconnect_and_after_a_restart() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    writer.ask("SET k 1", "+OK\r\n");
    watcher.expect(emission("1-0", 2, 1, "$1\r\n1\r\n"));
    drop(watcher);
    writer.ask("SET k 2", "+OK\r\n");
    let mut watcher = resp3(&server);
    watcher.ask("EMITRECONNECT k 1-0 2", &outcome("OK", 2));
    watcher.expect(emission("1-0", 3, 2, "$1\r\n2\r\n"));
    writer.ask("SET k 3", "+OK\r\n");
    let server = TestServer::in_dir(server.stop(), |_| {});
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    writer.ask("SET k 4", "+OK\r\n");
    watcher.ask("EMITRECONNECT k 1-0 1", &outcome("OK", 1));
    for number in 1..=4 {
        watcher.expect(emission("1-0", number + 1, number, &format!("$1\r\n{number}\r\n")));
    }
    // After a snapshot and a start the earlier emissions are not retained. The floor says so,
    // because replay is off.
    writer.ask("SAVE", "+OK\r\n");
    writer.ask("SET k 5", "+OK\r\n");
    let server = TestServer::in_dir(server.stop(), |config| config.watch_backlogs = 0);
    let mut watcher = resp3(&server);
    watcher.ask("EMITRECONNECT k 1-0 4", &outcome("STALE_SEQUENCE", 5));
    watcher.ask("EMITRECONNECT k 1-0 5", &outcome("OK", 5));
    watcher.expect(emission("1-0", 6, 5, "$1\r\n5\r\n"));
}

#[test]
fn a_reconnect_that_makes_no_sense_says_which() {
    let server = TestServer::new();
    let mut watcher = resp3(&server);
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    for (line, answer) in [
        ("EMITRECONNECT k 1-0 2", outcome("INVALID_SEQUENCE", 1)),
        ("EMITRECONNECT other 1-0 1", outcome("SUBSCRIPTION_NOT_FOUND", 0)),
        ("EMITRECONNECT k 2-0 1", outcome("SUBSCRIPTION_NOT_FOUND", 0)),
        ("EMITRECONNECT k 1-1 1", outcome("SUBSCRIPTION_NOT_FOUND", 0)),
        ("EMITRECONNECT k nonsense 1", outcome("SUBSCRIPTION_NOT_FOUND", 0)),
        ("EMITRECONNECT k 1-0 0", outcome("OK", 1)),
        ("EMITACK k 1-0 9", outcome("INVALID_SEQUENCE", 1)),
        ("EMITACK k 2-0 1", outcome("SUBSCRIPTION_NOT_FOUND", 0)),
        ("EMITACK k 1-0 1", "+OK\r\n".to_owned()),
    ] {
        watcher.ask(line, &answer);
    }
    watcher.command(&["EMITRECONNECT", "k", "1-0", "-1"]);
    assert!(watcher.line().starts_with("-ERR the LSN is not an integer"));
    let mut other = server.client();
    other.command(&["EMITRECONNECT", "k", "1-0", "1"]);
    assert!(other.line().starts_with("-ERR the subscription began under the other protocol"));
}

#[test]
fn watches_are_listed_with_how_far_they_have_got() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("WATCHES", "*0\r\n");
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    writer.ask("SET k 1", "+OK\r\n");
    watcher.expect(emission("1-0", 2, 1, "$1\r\n1\r\n"));
    watcher.ask("EMITACK k 1-0 2", "+OK\r\n");
    let command = format!("*2\r\n{}{}", bulk("get"), bulk("k"));
    let fields = [("lsn", 2), ("seq", 1), ("lag", 0), ("acked", 2)]
        .map(|(name, value)| format!("{}:{value}\r\n", bulk(name)));
    let listed = format!(
        "*1\r\n%7\r\n{}{}{}{command}{}*0\r\n{}",
        bulk("sub_id"),
        bulk("1-0"),
        bulk("command"),
        bulk("operators"),
        fields.concat()
    );
    watcher.ask("WATCHES", &listed);
}

#[test]
fn what_cannot_be_watched_is_refused_and_says_why() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    client.ask("RPUSH list a", ":1\r\n");
    for (line, beginning) in [
        ("SET.WATCH k 1", "-ERR unknown command 'SET.WATCH'"),
        ("TTL.WATCH k", "-ERR unknown command 'TTL.WATCH'"),
        ("GET.WATCH", "-ERR wrong number of arguments for 'get.watch' command"),
        ("GET.WATCH a b", "-ERR wrong number of arguments for 'get' command"),
        ("GET.WATCH a | NONSENSE", "-ERR unknown option 'NONSENSE' after '|'"),
        ("GET.WATCH list", "-WRONGTYPE"),
        ("SCAN.WATCH 1", "-ERR the whole of 'scan' is watched"),
    ] {
        client.command(&line.split(' ').collect::<Vec<_>>());
        let answer = client.line();
        assert!(answer.starts_with(beginning), "{line}: {answer}");
    }
    client.ask("COMMAND GETKEYS MGET.WATCH a b | OLD", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    client.ask("MULTI", "+OK\r\n");
    client.ask("GET.WATCH k", "-ERR Command not allowed inside a transaction\r\n");
    client.ask("DISCARD", "+OK\r\n");
    client.ask("WATCHES", "*0\r\n");
}

#[test]
fn the_protocol_stays_while_reads_are_watched_and_reset_ends_them() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    client.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    client.command(&["HELLO", "2"]);
    assert!(client.line().starts_with("-ERR the watched reads are answered in the present protocol"));
    client.ask("RESET", "+RESET\r\n");
    client.ask("WATCHES", "*0\r\n");
    client.ask("SET k 1", "+OK\r\n");
    client.ask("PING", "+PONG\r\n");
}

#[test]
fn under_always_no_subscriber_gets_a_change_before_it_is_durable() {
    let server = TestServer::with(|config| config.durability = Durability::Always);
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    for number in 1..100 {
        writer.ask(&format!("SET k {number}"), "+OK\r\n");
        let value = number.to_string();
        watcher.expect(emission("1-0", number + 1, number, &bulk(&value)));
    }
}

#[test]
fn a_subscriber_that_does_not_read_gets_everything_when_it_does() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    let value = |number: usize| format!("{number:0>10000}");
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    for number in 0..2000 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
    }
    // Twenty megabytes wait, but the server holds a bounded part for the client.
    let mut other = server.client();
    other.command(&["CLIENT", "LIST"]);
    let list = other.bulk();
    let held = list.split("omem=").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    assert!(held.clone().all(|bytes| bytes < 1_000_000), "{list}");
    for number in 0..2000 {
        watcher.expect(emission("1-0", number as u64 + 2, number as u64 + 1, &bulk(&value(number))));
    }
    watcher.ask("PING", "+PONG\r\n");
}

#[test]
fn a_subscriber_below_the_retention_floor_gets_its_position() {
    let server = TestServer::with(|config| {
        config.watch_retention_bytes = 1 << 20;
        config.watch_backlogs = 0;
    });
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    let value = |number: usize| format!("{number:0>50000}");
    for number in 0..1000 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
    }
    let mut seen = 0;
    loop {
        let head = watcher.line();
        let (kind, name) = (watcher.bulk(), watcher.bulk());
        let (lsn, number) = (watcher.line(), watcher.line());
        assert_eq!(name, "1-0");
        if kind == "stale" {
            assert_eq!((head.as_str(), lsn), (">4", format!(":{}", seen + 1)));
            let floor: u64 = number[1..].parse().expect("an LSN");
            assert!(floor > seen + 1, "{floor}");
            break;
        }
        seen += 1;
        assert_eq!((head.as_str(), number), (">5", format!(":{seen}")));
        assert_eq!(watcher.bulk().len(), 50_000);
    }
    assert!((1..1000).contains(&seen), "{seen}");
    watcher.ask("WATCHES", "*0\r\n");
}

#[test]
fn thousands_of_subscribers_of_one_key_all_get_what_it_emits() {
    let server = TestServer::new();
    let mut writer = server.client();
    let mut watchers: Vec<_> = (0..500).map(|_| resp3(&server)).collect();
    for watcher in &mut watchers {
        watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    }
    writer.ask("SET k 1", "+OK\r\n");
    for watcher in &mut watchers {
        watcher.expect(emission("1-0", 2, 1, "$1\r\n1\r\n"));
    }
    watchers.clear();
    let mut shown = server.client();
    eventually("they have left", || {
        shown.command(&["CLIENT", "LIST"]);
        shown.bulk().lines().count() == 2
    });
}

#[test]
fn reads_without_subscribers_are_evicted() {
    let server = TestServer::with_http(|config| config.watch_retention_age = Duration::from_secs(1));
    let watched = || {
        server
            .http("/metrics")
            .lines()
            .find_map(|line| Some(line.strip_prefix("tidemark_watched_reads ")?.to_owned()))
    };
    let mut watcher = resp3(&server);
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    assert_eq!(watched().as_deref(), Some("1.0"));
    drop(watcher);
    eventually("it is forgotten", || watched().as_deref() == Some("0.0"));
    resp3(&server).ask("EMITRECONNECT k 1-0 1", &outcome("SUBSCRIPTION_NOT_FOUND", 0));
    // The log has the end of the watch: the read is not watched after a restart either.
    let server = TestServer::in_dir(server.stop(), |_| {});
    resp3(&server).ask("GET.WATCH k", &begun("3-0", 3, 0, "_\r\n"));
}

#[test]
fn operators_and_options_stand_behind_a_bar() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    writer.ask("SET k 5", "+OK\r\n");
    watcher.ask("GET.WATCH k | HIGH", &begun("2-0", 2, 0, "$1\r\n5\r\n"));
    watcher.ask("GET.WATCH k | OLD", &begun("3-0", 3, 0, "$1\r\n5\r\n"));
    watcher.ask("GET.WATCH k | RANGE 6 9 UPDATES", &begun("4-0", 4, 0, "_\r\n"));
    writer.ask("SET k 4", "+OK\r\n");
    writer.ask("SET k 7", "+OK\r\n");
    let old = |lsn, sequence, value: &str| emission("3-0", lsn, sequence, value).replace(">5", ">6");
    watcher.expect(old(5, 1, "$1\r\n4\r\n") + "$1\r\n5\r\n");
    let mut frames = [
        emission("2-0", 6, 1, "$1\r\n7\r\n"),
        old(6, 2, "$1\r\n7\r\n") + "$1\r\n4\r\n",
        emission("4-0", 6, 1, "$1\r\n7\r\n"),
    ];
    frames.sort();
    let mut received: Vec<String> = (0..3).map(|_| frame(&mut watcher)).collect();
    received.sort();
    assert_eq!(received, frames, "those of several subscriptions come in any order");
}

/// Reads a push frame of bulk strings and integers.
fn frame(client: &mut Client<TcpStream>) -> String {
    let head = client.line();
    let count: usize = head.strip_prefix('>').expect("a push frame").parse().expect("a length");
    let mut lines = vec![head];
    for _ in 0..count {
        let line = client.line();
        let length = line.strip_prefix('$').map(|length| length.parse::<usize>().expect("a length"));
        lines.push(line);
        if let Some(length) = length {
            // Reads the whole string, not byte by byte as lines are read.
            let mut text = client.bytes(length + 2);
            text.truncate(length);
            lines.push(String::from_utf8(text).expect("text"));
        }
    }
    lines.push(String::new());
    lines.join("\r\n")
}

#[test]
fn a_squashed_subscription_gets_the_latest_after_a_pause() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k | SQUASH 500", &begun("1-0", 1, 0, "_\r\n"));
    writer.ask("SET k 1", "+OK\r\n");
    watcher.expect(emission("1-0", 2, 1, "$1\r\n1\r\n"));
    for number in 2..=9 {
        writer.ask(&format!("SET k {number}"), "+OK\r\n");
    }
    watcher.expect(emission("1-0", 10, 9, "$1\r\n9\r\n"));
    watcher.ask("PING", "+PONG\r\n");
}

#[test]
fn an_idle_subscriber_gets_progress() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k | PROGRESS 50", &begun("1-0", 1, 0, "_\r\n"));
    watcher.expect(format!(">3\r\n{}{}:1\r\n", bulk("progress"), bulk("1-0")));
    for _ in 0..3 {
        writer.ask("INCR other", ":1\r\n");
        writer.ask("DEL other", ":1\r\n");
    }
    let last = format!(">3\r\n{}{}:7\r\n", bulk("progress"), bulk("1-0"));
    eventually("it has got there", || frame(&mut watcher) == last);
    drop(watcher);
    let mut watcher = resp3(&server);
    watcher.ask("EMITRECONNECT k 1-0 7", &outcome("OK", 1));
}

#[test]
fn a_read_is_watched_from_an_lsn_on_and_the_end_of_what_was_missed_is_marked() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    for number in 1..=3 {
        writer.ask(&format!("SET k {number}"), "+OK\r\n");
        watcher.expect(emission("1-0", number + 1, number, &format!("$1\r\n{number}\r\n")));
    }
    let mut other = resp3(&server);
    other.ask("GET.WATCH k | RESUME 2 MARK", &begun("1-1", 2, 0, "_\r\n"));
    other.expect(emission("1-1", 3, 1, "$1\r\n2\r\n"));
    other.expect(emission("1-1", 4, 2, "$1\r\n3\r\n"));
    other.expect(format!(">3\r\n{}{}:4\r\n", bulk("caught-up"), bulk("1-1")));
    let mut third = resp3(&server);
    third.ask("GET.WATCH k | RESUME 9", "-INVALID_SEQUENCE the log ends at LSN 4\r\n");
    third.ask("GET.WATCH new | RESUME 3", "-SUBSCRIPTION_NOT_FOUND the read is not watched\r\n");
    third.ask("WATCHES", "*0\r\n");
}

#[test]
fn a_squashing_subscriber_that_does_not_read_delays_no_client() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k | SQUASH 50 PROGRESS 20", &begun("1-0", 1, 0, "_\r\n"));
    let value = |number: usize| format!("{number:0>60000}").repeat(10);
    for number in 0..40 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
        std::thread::sleep(Duration::from_millis(20));
    }
    for _ in 0..10 {
        let mut other = server.client();
        other.ask("PING", "+PONG\r\n");
    }
    // The client receives the latest value when it reads again, whatever comes before.
    let last = value(39);
    eventually("it has got the latest", || frame(&mut watcher).contains(&last));
}

#[test]
fn a_pause_between_emissions_is_not_begun_anew_by_what_is_said_meanwhile() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k | SQUASH 300 PROGRESS 50", &begun("1-0", 1, 0, "_\r\n"));
    writer.ask("SET k 1", "+OK\r\n");
    writer.ask("SET k 2", "+OK\r\n");
    eventually("the second comes, too", || frame(&mut watcher).contains("\r\n2\r\n"));
}

#[test]
fn a_subscriber_that_leaves_without_reading_delays_no_client() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    writer.ask(&format!("SET big {}", "x".repeat(60_000)), "+OK\r\n");
    watcher.ask("GET.WATCH k | PROGRESS 10", &begun("2-0", 2, 0, "_\r\n"));
    watcher.send("GET big\r\n".repeat(200) + "QUIT\r\n");
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..10 {
        let mut other = server.client();
        other.ask("PING", "+PONG\r\n");
    }
}

#[test]
fn much_that_was_missed_comes_within_the_limits_of_the_output() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    drop(watcher);
    let value = |number: usize| format!("{number:0>50000}").repeat(20);
    for number in 0..60 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
    }
    let mut watcher = resp3(&server);
    watcher.ask("EMITRECONNECT k 1-0 1", &outcome("OK", 1));
    std::thread::sleep(Duration::from_millis(100));
    for number in 0..60 {
        watcher.expect(emission("1-0", number as u64 + 2, number as u64 + 1, &bulk(&value(number))));
    }
}

#[test]
fn reads_whose_words_are_those_of_options_survive_a_restart() {
    let server = TestServer::new();
    let mut watcher = resp3(&server);
    watcher.ask("SSCAN.WATCH s 0 MATCH count", &begun("1-0", 1, 0, "*2\r\n$1\r\n0\r\n*0\r\n"));
    watcher.ask("SCAN.WATCH 0 MATCH type", &begun("2-0", 2, 0, "*2\r\n$1\r\n0\r\n*0\r\n"));
    watcher.ask("SSCAN.WATCH s 0 MATCH COUNT COUNT 7", &begun("3-0", 3, 0, "*2\r\n$1\r\n0\r\n*0\r\n"));
    let server = TestServer::in_dir(server.stop(), |_| {});
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    watcher.ask("EMITRECONNECT s 1-0 1", &outcome("OK", 1));
    watcher.ask("EMITRECONNECT any 2-0 2", &outcome("OK", 1));
    writer.ask("SADD s count", ":1\r\n");
    watcher.expect(emission("1-0", 4, 1, "*2\r\n$1\r\n0\r\n*1\r\n$5\r\ncount\r\n"));
    writer.ask("SET type 1", "+OK\r\n");
    watcher.expect(emission("2-0", 5, 1, "*2\r\n$1\r\n0\r\n*1\r\n$4\r\ntype\r\n"));
}

#[test]
fn a_key_is_read_by_a_bounded_number_of_watched_reads() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    let mut refused = 0;
    for number in 0..260 {
        client.command(&["KEYS.WATCH", &format!("{number}*")]);
        let head = client.line();
        if head == "%4" {
            for _ in 0..8 {
                client.line();
            }
            while client.line() != "*0" {}
        } else {
            assert_eq!(head, "-ERR 256 other reads of the same keys are watched already");
            refused += 1;
        }
    }
    assert_eq!(refused, 4);
}
