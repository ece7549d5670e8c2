//! While the server loads its data, clients can connect and receive `-LOADING`, and monitoring sees
//! the progress.

use crate::common::dice::DiceClient;
use crate::common::{TestServer, serve_http};
use tidemark_server::config::Config;

const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";

/// Returns the directory of a stopped server with a key, a watched counter of commands, and
/// optionally a snapshot.
fn some_data(with_snapshot: bool) -> tempfile::TempDir {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("SET key value", "+OK\r\n");
    client.ask("SET other value EX 1000", "+OK\r\n");
    if with_snapshot {
        client.ask("SAVE", "+OK\r\n");
        client.ask("SET key later", "+OK\r\n");
    }
    server.stop()
}

fn with_password_and_http(config: &mut Config) {
    "secret".clone_into(&mut config.requirepass);
    serve_http(config);
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).expect("a status")
}

#[test]
fn commands_that_need_the_data_get_loading() {
    for (with_snapshot, value) in [(false, "value"), (true, "later")] {
        let mut server = TestServer::loading(some_data(with_snapshot), with_password_and_http);
        let mut client = server.client();
        client.ask("GET key", "-NOAUTH Authentication required.\r\n");
        client.ask("AUTH secret", "+OK\r\n");
        for command in [
            "PING",
            "GET key",
            "SET key x",
            "MULTI",
            "WATCH key",
            "GET.WATCH key",
            "BLPOP a 0",
            "SAVE",
            "DBSIZE",
            "CLIENT TRACKING on",
            "CHANGES FROM 0",
            "DURABLE SET a 1",
            "WAIT 0 0",
            "DEBUG DIGEST",
        ] {
            client.ask(command, LOADING);
        }
        client.ask("CLIENT SETNAME one", "+OK\r\n");
        client.ask("SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
        client.ask("UNSUBSCRIBE news", "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n");
        client.ask("CONFIG SET durability always notify-keyspace-events KEA", "+OK\r\n");
        client.command(&["INFO"]);
        let info = client.bulk();
        for line in
            ["loading:1\r\n", "loading_loaded_perc:0.00\r\n", "loading_eta_seconds:", "log_status:ok\r\n"]
        {
            assert!(info.contains(line), "{line} in {info}");
        }
        assert_eq!(status(&server.http("/health/live")), "200");
        let ready = server.http("/health/ready");
        assert!(status(&ready) == "503" && ready.contains("the data is being loaded"), "{ready}");
        assert!(server.http("/metrics").contains("\ntidemark_loading 1.0\n"));
        assert_eq!(status(&server.http("/check?api_key=k")), "503");
        let mut dice = DiceClient::connect(&server);
        let answer = dice.ask(&["AUTH", "secret"]);
        assert!(answer.ok, "{answer:?}");
        dice.expect_error(&["GET", "key"], &LOADING[1..LOADING.len() - 2]);
        dice.expect_error(&["GET.WATCH", "key"], &LOADING[1..LOADING.len() - 2]);

        assert!(server.load(), "it is not stopped");
        client.ask("GET key", &format!("$5\r\n{value}\r\n"));
        client.ask("DBSIZE", ":2\r\n");
        client.ask("CLIENT GETNAME", "$3\r\none\r\n");
        client.ask(
            "SUBSCRIBE __keyevent@0__:set",
            "*3\r\n$9\r\nsubscribe\r\n$18\r\n__keyevent@0__:set\r\n:1\r\n",
        );
        let mut writer = server.client();
        writer.ask("AUTH secret", "+OK\r\n");
        writer.ask("SET key new", "+OK\r\n");
        client.expect("*3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$3\r\nkey\r\n");
        writer.command(&["INFO", "persistence"]);
        let info = writer.bulk();
        assert!(info.contains("loading:0\r\n") && info.contains("durability:always\r\n"), "{info}");
        assert_eq!(status(&server.http("/health/ready")), "200");
        assert_eq!(dice.text(&["GET", "key"], 16), "new");
    }
}

#[test]
fn a_stop_while_the_data_is_loaded_loses_nothing() {
    let mut server = TestServer::loading(some_data(true), |_| {});
    let mut client = server.client();
    client.send("SHUTDOWN\r\n");
    assert_eq!(client.until_closed(), b"");
    assert!(!server.load(), "it is stopped");
    let (ended, dir) = server.ended();
    ended.expect("a clean stop");
    let server = TestServer::in_dir(dir, |_| {});
    let mut client = server.client();
    client.ask("GET key", "$5\r\nlater\r\n");
    client.ask("DBSIZE", ":2\r\n");
}
