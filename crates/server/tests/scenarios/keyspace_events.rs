//! `notify-keyspace-events`: events of keys as messages on channels.

use crate::common::{Client, TestServer, eventually};
use std::net::TcpStream;

/// Starts a server that publishes the events named by `letters`, with a client that listens to all
/// of their channels.
fn listening(letters: &str) -> (TestServer, Client<TcpStream>, Client<TcpStream>) {
    let server = TestServer::new();
    let (mut client, mut listener) = (server.client(), server.client());
    client.command(&["CONFIG", "SET", "notify-keyspace-events", letters]);
    client.expect("+OK\r\n");
    listener.ask("PSUBSCRIBE __key*@*__:*", "*3\r\n$10\r\npsubscribe\r\n$12\r\n__key*@*__:*\r\n:1\r\n");
    (server, client, listener)
}

/// Expects the next message, with its channel and its text.
#[track_caller]
fn expect(listener: &mut Client<TcpStream>, channel: &str, message: &str) {
    assert_eq!((listener.line().as_str(), listener.bulk().as_str()), ("*4", "pmessage"));
    assert_eq!(listener.bulk(), "__key*@*__:*");
    assert_eq!((listener.bulk().as_str(), listener.bulk().as_str()), (channel, message));
}

#[test]
fn an_event_is_published_by_its_key_and_by_its_name() {
    let (_server, mut client, mut listener) = listening("KEA");
    client.ask("SELECT 3", "+OK\r\n");
    client.ask("RPUSH jobs a", ":1\r\n");
    client.ask("LPOP jobs", "$1\r\na\r\n");
    for (event, key) in [("rpush", "jobs"), ("lpop", "jobs"), ("del", "jobs")] {
        expect(&mut listener, &format!("__keyspace@3__:{key}"), event);
        expect(&mut listener, &format!("__keyevent@3__:{event}"), key);
    }
}

#[test]
fn only_configured_events_are_published() {
    let (_server, mut client, mut listener) = listening("E$x");
    client.ask("SET k 1", "+OK\r\n");
    client.ask("DEL k", ":1\r\n");
    client.ask("SET l 1 PX 1", "+OK\r\n");
    expect(&mut listener, "__keyevent@0__:set", "k");
    expect(&mut listener, "__keyevent@0__:set", "l");
    expect(&mut listener, "__keyevent@0__:expired", "l");
    client.ask("CONFIG SET notify-keyspace-events KA", "+OK\r\n");
    client.ask("SET m 1", "+OK\r\n");
    expect(&mut listener, "__keyspace@0__:m", "set");
    client.command(&["CONFIG", "SET", "notify-keyspace-events", ""]);
    client.expect("+OK\r\n");
    client.ask("SET m 2", "+OK\r\n");
    client.ask("CONFIG SET notify-keyspace-events KA", "+OK\r\n");
    client.ask("DEL m", ":1\r\n");
    expect(&mut listener, "__keyspace@0__:m", "del");
}

#[test]
fn letters_are_shown_as_redis_shows_them_and_others_are_refused() {
    let server = TestServer::new();
    let mut client = server.client();
    let shown =
        |letters: &str| format!("*2\r\n$22\r\nnotify-keyspace-events\r\n${}\r\n{letters}\r\n", letters.len());
    client.ask("CONFIG GET notify-keyspace-events", &shown(""));
    for (given, canonical) in [("KEA", "AKE"), ("xEg", "gxE"), ("AKEm", "AKEm"), ("Kdn", "dnK")] {
        client.ask(&format!("CONFIG SET notify-keyspace-events {given}"), "+OK\r\n");
        client.ask("CONFIG GET notify-keyspace-events", &shown(canonical));
    }
    client.ask(
        "CONFIG SET notify-keyspace-events KEq",
        "-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - must consist of the letters \
         Ag$lshzxeKEtmdn, of which 'q' is none\r\n",
    );
    client.ask("CONFIG GET notify-keyspace-events", &shown("dnK"));
}

#[test]
fn the_events_of_a_transaction_are_in_the_order_of_its_commands() {
    let (_server, mut client, mut listener) = listening("KA");
    client.ask("MULTI", "+OK\r\n");
    for line in ["SET k 1", "RENAME k l", "EXPIRE l 100"] {
        client.ask(line, "+QUEUED\r\n");
    }
    client.ask("EXEC", "*3\r\n+OK\r\n+OK\r\n:1\r\n");
    for (key, event) in [("k", "set"), ("k", "rename_from"), ("l", "rename_to"), ("l", "expire")] {
        expect(&mut listener, &format!("__keyspace@0__:{key}"), event);
    }
}

#[test]
fn the_event_of_a_served_waiter_follows_the_push() {
    let (server, mut client, mut listener) = listening("KA");
    let mut waiting = server.client();
    waiting.command(&["BLMOVE", "a", "b", "LEFT", "RIGHT", "0"]);
    eventually("it waits", || {
        client.command(&["INFO", "clients"]);
        client.bulk().contains("blocked_clients:1")
    });
    client.ask("RPUSH a x", ":1\r\n");
    waiting.expect("$1\r\nx\r\n");
    for (key, event) in [("a", "rpush"), ("b", "rpush"), ("a", "lpop"), ("a", "del")] {
        expect(&mut listener, &format!("__keyspace@0__:{key}"), event);
    }
}

#[test]
fn events_of_a_key_come_in_the_order_of_its_changes() {
    let (server, _client, mut listener) = listening("KA");
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let mut writer = server.client();
            std::thread::spawn(move || {
                for _ in 0..100 {
                    writer.send("RPUSH k a\r\nDEL k\r\n");
                }
                (0..200).for_each(|_| drop(writer.line()));
            })
        })
        .collect();
    let (mut exists, mut pushes, mut left) = (false, 0, 0);
    // A `del` is published only for a key that existed: after a push, and never after another
    // `del`.
    while pushes < 400 {
        (0..7).for_each(|_| drop(listener.line()));
        match (listener.line(), listener.line()).1.as_str() {
            "rpush" => {
                exists = true;
                pushes += 1;
            }
            "del" => {
                assert!(exists, "deleted before it was there");
                exists = false;
                left += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!(left > 0);
    writers.into_iter().for_each(|writer| writer.join().expect("it ends"));
}

#[test]
fn the_setting_holds_from_the_start_and_what_is_recovered_is_no_event() {
    let server = TestServer::new();
    server.client().ask("SET k 1", "+OK\r\n");
    let dir = server.stop();
    let server = TestServer::in_dir(dir, |config| {
        tidemark_server::config::find("notify-keyspace-events")
            .expect("a setting")
            .set(config, "KA")
            .expect("letters");
    });
    let (mut client, mut listener) = (server.client(), server.client());
    listener.ask("SUBSCRIBE __keyspace@0__:k", "*3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n");
    client.ask("INCR k", ":2\r\n");
    listener.expect("*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$6\r\nincrby\r\n");
}
