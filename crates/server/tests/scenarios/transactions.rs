//! MULTI, EXEC and WATCH: commands that take effect together.

use crate::common::TestServer;

#[test]
fn queued_commands_run_together() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("MULTI", "+OK\r\n");
    client.ask("SET a 1", "+QUEUED\r\n");
    client.ask("INCR a", "+QUEUED\r\n");
    client.ask("EXEC", "*2\r\n+OK\r\n:2\r\n");
    client.ask("EXEC", "-ERR EXEC without MULTI\r\n");
}

#[test]
fn an_empty_transaction_is_an_empty_array() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("MULTI\r\nEXEC\r\n");
    client.expect("+OK\r\n*0\r\n");
}

#[test]
fn commands_of_the_connection_answer_in_their_places() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("MULTI\r\nPING\r\nSET a x\r\nSELECT 3\r\nSET a y\r\nECHO z\r\nGET a\r\nEXEC\r\nGET a\r\n");
    client.expect("+OK\r\n");
    client.expect("+QUEUED\r\n".repeat(6));
    client.expect("*6\r\n+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\nz\r\n$1\r\ny\r\n$1\r\ny\r\n");
    client.send("SELECT 0\r\nGET a\r\n");
    client.expect("+OK\r\n$1\r\nx\r\n");
}

#[test]
fn a_refused_command_spoils_the_transaction() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("MULTI\r\nSET a\r\nSET a 1\r\nEXEC\r\nGET a\r\n");
    client.expect("+OK\r\n-ERR wrong number of arguments for 'set' command\r\n+QUEUED\r\n");
    client.expect("-EXECABORT Transaction discarded because of previous errors.\r\n$-1\r\n");
}

#[test]
fn an_exec_that_is_refused_ends_the_transaction() {
    const REFUSED: &str =
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n";
    let server = TestServer::new();
    let mut client = server.client();
    client.send("MULTI\r\nSET foo 1\r\nEXEC blah\r\nGET foo\r\nEXEC\r\n");
    client.expect(format!("+OK\r\n+QUEUED\r\n{REFUSED}$-1\r\n-ERR EXEC without MULTI\r\n"));
    client.ask("exec blah", REFUSED);
    // The failed `EXEC` has ended the watch.
    client.send("WATCH w\r\nMULTI\r\nEXEC x\r\nSET w 1\r\nMULTI\r\nPING\r\nEXEC\r\n");
    client.expect(format!("+OK\r\n+OK\r\n{REFUSED}+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n"));
    for other in ["DISCARD", "MULTI"] {
        client.send(format!("MULTI\r\n{other} x\r\nEXEC\r\n"));
        client.expect(format!(
            "+OK\r\n-ERR wrong number of arguments for '{}' command\r\n\
             -EXECABORT Transaction discarded because of previous errors.\r\n",
            other.to_lowercase()
        ));
    }
}

#[test]
fn a_failing_command_does_not_stop_the_others() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("SET a x\r\nMULTI\r\nINCR a\r\nSET b 1\r\nEXEC\r\n");
    client.expect("+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    client.expect("*2\r\n-ERR value is not an integer or out of range\r\n+OK\r\n");
}

#[test]
fn discard_forgets_and_multi_does_not_nest() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("MULTI\r\nSET a 1\r\nMULTI\r\nWATCH a\r\nDISCARD\r\nGET a\r\nDISCARD\r\n");
    client.expect("+OK\r\n+QUEUED\r\n-ERR MULTI calls can not be nested\r\n");
    client.expect("-ERR WATCH inside MULTI is not allowed\r\n+OK\r\n$-1\r\n-ERR DISCARD without MULTI\r\n");
}

#[test]
fn a_watched_key_that_changes_stops_the_transaction() {
    let server = TestServer::new();
    let (mut client, mut other) = (server.client(), server.client());
    client.ask("WATCH a b", "+OK\r\n");
    other.ask("SET a 1", "+OK\r\n");
    client.send("MULTI\r\nSET a 2\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n*-1\r\n");
    client.ask("GET a", "$1\r\n1\r\n");
    // EXEC has ended the watch.
    other.ask("SET a 3", "+OK\r\n");
    client.send("MULTI\r\nSET a 4\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
}

#[test]
fn unwatch_lets_the_transaction_run() {
    let server = TestServer::new();
    let (mut client, mut other) = (server.client(), server.client());
    client.send("WATCH a\r\nUNWATCH\r\n");
    client.expect("+OK\r\n+OK\r\n");
    other.ask("SET a 1", "+OK\r\n");
    client.send("MULTI\r\nPING\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
}

#[test]
fn a_broken_watch_also_stops_commands_of_the_connection() {
    let server = TestServer::new();
    let (mut client, mut other) = (server.client(), server.client());
    client.ask("WATCH a", "+OK\r\n");
    other.ask("SET a 1", "+OK\r\n");
    client.send("MULTI\r\nSELECT 5\r\nEXEC\r\nGET a\r\n");
    client.expect("+OK\r\n+QUEUED\r\n*-1\r\n$1\r\n1\r\n");
}
