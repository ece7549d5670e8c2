//! `ONCE` on a connection: what it stands before, transactions, protocols, and what its answers wait for.

use super::*;

fn send(connection: &mut Connection, bench: &Bench, lines: &str) {
    connection.receive(format!("{}\r\n", lines.replace('|', "\r\n")).as_bytes(), &bench.context());
}

/// Sends lines, separated by `|`, and returns the answers in a readable form once all are durable.
fn ask(connection: &mut Connection, bench: &Bench, lines: &str) -> String {
    send(connection, bench, lines);
    bench.sync(connection);
    connection.take().trim_end().replace("\r\n", " ")
}

#[test]
fn a_repetition_on_another_connection_gets_the_same_answer() {
    let bench = Bench::new(|_| ());
    let (mut one, mut other) = (bench.connect(), bench.connect());
    assert_eq!(ask(&mut one, &bench, "ONCE s 1 INCR n|once s 2 incr n|ONCE s 3 DURABLE INCR n"), ":1 :2 :3");
    assert_eq!(ask(&mut other, &bench, "ONCE s 1 INCR n|ONCE s 2 INCR n|ONCE s 3 INCR n"), ":1 :2 :3");
    assert_eq!(ask(&mut other, &bench, "ONCE s 4 GETDEL absent|GET n"), "$-1 $1 3");
    let resp3 = ask(&mut one, &bench, "HELLO 3|ONCE s 4 GETDEL absent");
    assert!(resp3.ends_with(" _"), "{resp3}");
}

#[test]
fn a_repetition_waits_for_the_disk_in_every_mode() {
    let bench = Bench::new(|_| ());
    let (mut one, mut other) = (bench.connect(), bench.connect());
    send(&mut one, &bench, "ONCE s 1 INCR n|ONCE s 2 DURABLE INCR n");
    assert_eq!(one.take(), ":1\r\n");
    // It cannot know what the answer waited for.
    send(&mut other, &bench, "ONCE s 1 INCR n|PING");
    assert_eq!(other.take(), "");
    assert!(matches!(other.awaited(), Some(Until::Committed(_))));
    bench.sync(&mut one);
    bench.sync(&mut other);
    assert_eq!((one.take(), other.take()), (":2\r\n".into(), ":1\r\n+PONG\r\n".into()));
}

#[test]
fn it_stands_before_changes_of_keys_that_do_not_wait() {
    let bench = Bench::new(|_| ());
    let mut connection = bench.connect();
    let no_change = "-ERR ONCE stands before a command that changes keys, such as ONCE session 1 INCR key, or before EXEC";
    let not_durable = "-ERR DURABLE stands before a command that changes keys, such as DURABLE SET key value";
    let no_number = "-ERR the number must be from 1 to 9223372036854775807, without leading zeros";
    let long = format!("ONCE {} 1 INCR n", "s".repeat(129));
    for (line, answer) in [
        ("ONCE s 1 GET n", no_change),
        ("ONCE s 1 PING", no_change),
        ("ONCE s 1 ONCE s 2 INCR n", no_change),
        ("ONCE s 1 GET.WATCH n", no_change),
        ("ONCE s 1 MULTI", no_change),
        (
            "ONCE s 1 BLPOP n 0",
            "-ERR ONCE does not wait: give it the command that does not block, such as LPOP in place of BLPOP",
        ),
        ("ONCE s 1 DURABLE GET n", not_durable),
        ("DURABLE ONCE s 1 INCR n", not_durable),
        ("ONCE s 1 INCR", "-ERR wrong number of arguments for 'incr' command"),
        ("ONCE s 1", "-ERR wrong number of arguments for 'once' command"),
        ("ONCE s 1 NOPE", "-ERR unknown command 'NOPE', with args beginning with:"),
        (&long, "-ERR the name of a session has 1 to 128 bytes, not 129"),
        ("ONCE \"\" 1 INCR n", "-ERR the name of a session has 1 to 128 bytes, not 0"),
        ("ONCE s 0 INCR n", no_number),
        ("ONCE s 9223372036854775808 INCR n", no_number),
        ("ONCE s 1 EXEC", "-ERR EXEC without MULTI"),
        ("MULTI|ONCE s 1 INCR n|DISCARD", "+OK -ERR Command not allowed inside a transaction +OK"),
        ("GET n", "$-1"),
    ] {
        assert_eq!(ask(&mut connection, &bench, line), answer, "{line}");
    }
    assert_eq!(bench.shared.engine.session_count(), 0, "what was refused begins no session");
    assert_eq!(ask(&mut connection, &bench, "ONCE s 9223372036854775807 INCR n"), ":1");
}

#[test]
fn a_transaction_is_executed_once() {
    let bench = Bench::new(|_| ());
    let mut connection = bench.connect();
    let queued = "+OK +QUEUED +QUEUED";
    for _ in 0..2 {
        let answer = ask(&mut connection, &bench, "MULTI|INCR n|GET n|ONCE s 1 EXEC");
        assert_eq!(answer, format!("{queued} *2 :1 $1 1"));
    }
    let answer = ask(&mut connection, &bench, "MULTI|INCR n|DURABLE INCR n|ONCE s 2 EXEC|GET n");
    assert_eq!(answer, format!("{queued} *2 :2 :3 $1 3"));
    assert_eq!(
        ask(&mut connection, &bench, "WATCH n|INCR n|MULTI|SET n 0|ONCE s 3 EXEC"),
        "+OK :4 +OK +QUEUED *-1"
    );
    assert_eq!(ask(&mut connection, &bench, "MULTI|SET n 0|ONCE s 3 EXEC|GET n"), "+OK +QUEUED *-1 $1 4");
    assert_eq!(ask(&mut connection, &bench, "MULTI|SET n 0|ONCE s 4 EXEC|GET n"), "+OK +QUEUED *1 +OK $1 0");
}

#[test]
fn a_transaction_that_cannot_be_executed_once_ends_without_effect() {
    let bench = Bench::new(|_| ());
    let mut connection = bench.connect();
    for (lines, answer) in [
        (
            "MULTI|INCR n|PING|ONCE s 1 EXEC",
            "+OK +QUEUED +QUEUED -ERR ONCE stands before the EXEC of commands on keys alone, and others were queued: \
             nothing was done",
        ),
        (
            "MULTI|INCR n|NOPE|ONCE s 1 EXEC",
            "+OK +QUEUED -ERR unknown command 'NOPE', with args beginning with:  -EXECABORT Transaction discarded \
             because of previous errors.",
        ),
        (
            "MULTI|INCR n|ONCE s zero EXEC",
            "+OK +QUEUED -EXECABORT Transaction discarded because of: the number must be from 1 to \
             9223372036854775807, without leading zeros",
        ),
        (
            "MULTI|INCR n|ONCE s 1 EXEC now",
            "+OK +QUEUED -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command",
        ),
        ("EXEC", "-ERR EXEC without MULTI"),
        ("GET n", "$-1"),
    ] {
        assert_eq!(ask(&mut connection, &bench, lines), answer, "{lines}");
    }
    assert_eq!(ask(&mut connection, &bench, "MULTI|INCR n|ONCE s 1 EXEC"), "+OK +QUEUED *1 :1");
}

#[test]
fn the_number_of_sessions_has_a_setting() {
    let bench = Bench::new(|config| config.once_max_sessions = 1);
    let mut connection = bench.connect();
    bench.shared.configure(&bench.shared.engine, &bench.config, 1);
    assert_eq!(ask(&mut connection, &bench, "ONCE s 1 INCR n"), ":1");
    let refused = ask(&mut connection, &bench, "ONCE other 1 INCR n");
    assert!(
        refused.starts_with("-ONCE_FULL there are 1 sessions, and once-max-sessions allows 1"),
        "{refused}"
    );
    assert!(ask(&mut connection, &bench, "INFO stats").ends_with(" once_sessions:1"));
}
