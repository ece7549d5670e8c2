//! Named subscriptions over the wire: a client that kept nothing resumes at the position that it
//! acknowledged.

use crate::common::TestServer;
use crate::common::watching::{begun, bulk, emission, outcome, resp3};

/// Returns the frame that ends a named subscription on a connection.
fn ended(name: &str) -> String {
    let reason = "another connection has taken the subscription over, or UNWATCH NAMED has ended it";
    format!(">3\r\n{}{}{}", bulk("ended"), bulk(name), bulk(reason))
}

/// Returns the id of the client that owns a name.
fn holder_of(server: &TestServer, name: &str) -> u64 {
    let mut client = server.client();
    client.command(&["WATCHES", "NAMED", name]);
    while client.line() != "client" {}
    let id = client.line();
    id.strip_prefix(':').and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("it has no client: {id}"))
}

/// Writes 1, 2, … `count` to the key `k`.
fn count_up(server: &TestServer, count: u64) {
    let mut writer = server.client();
    (1..=count).for_each(|number| writer.ask(&format!("SET k {number}"), "+OK\r\n"));
}

fn value(number: u64) -> String {
    let text = number.to_string();
    format!("${}\r\n{text}\r\n", text.len())
}

#[test]
fn what_was_not_acknowledged_comes_again_with_its_numbers() {
    let server = TestServer::new();
    let mut first = resp3(&server);
    first.ask("GET.WATCH k | AS bill", &begun("bill", 1, 0, "_\r\n"));
    count_up(&server, 4);
    // The watch is the first record, the name the second.
    (1..=4).for_each(|number| first.expect(emission("bill", number + 2, number, &value(number))));
    first.ask("EMITACK k bill 4", "+OK\r\n");
    drop(first);
    let mut second = resp3(&server);
    second.ask("GET.WATCH k | AS bill", &begun("bill", 4, 2, "_\r\n"));
    second.expect(emission("bill", 5, 3, &value(3)));
    second.expect(emission("bill", 6, 4, &value(4)));
    second.ask("EMITACK k bill 4", "+OK\r\n");
    second.ask("EMITACK k bill 6", "+OK\r\n");
    second.ask("EMITACK k bill 5", "+OK\r\n");
    drop(second);
    let mut third = resp3(&server);
    third.ask("GET.WATCH k | AS bill UPDATES", &begun("bill", 6, 4, "_\r\n"));
    third.ask("PING", "+PONG\r\n");
    server.client().ask("SET k 5", "+OK\r\n");
    third.expect(emission("bill", 9, 5, &value(5)));
}

#[test]
fn a_subscriber_without_acknowledgements_gets_the_first_answer_and_all_later_emissions() {
    let server = TestServer::new();
    server.client().ask("SET k 0", "+OK\r\n");
    let mut first = resp3(&server);
    first.ask("GET.WATCH k | AS bill", &begun("bill", 2, 0, &value(0)));
    drop(first);
    let mut second = resp3(&server);
    second.ask("GET.WATCH k | AS bill", &begun("bill", 2, 0, &value(0)));
    count_up(&server, 2);
    second.expect(emission("bill", 4, 1, &value(1)));
    second.expect(emission("bill", 5, 2, &value(2)));
    drop(second);
    let mut third = resp3(&server);
    third.ask("GET.WATCH k | AS bill", &begun("bill", 2, 0, &value(0)));
    third.expect(emission("bill", 4, 1, &value(1)));
    third.expect(emission("bill", 5, 2, &value(2)));
    third.ask("EMITACK k bill 2", "+OK\r\n");
    drop(third);
    let mut fourth = resp3(&server);
    fourth.ask("GET.WATCH k | AS bill", &begun("bill", 2, 0, "_\r\n"));
    fourth.expect(emission("bill", 4, 1, &value(1)));
    fourth.expect(emission("bill", 5, 2, &value(2)));
}

#[test]
fn at_most_once_nothing_is_done_with_that_was_never_written() {
    let server = TestServer::new();
    let mut slow = resp3(&server);
    slow.ask("GET.WATCH k | AS bill ATMOSTONCE", &begun("bill", 1, 0, "_\r\n"));
    let mut writer = server.client();
    let large = |number: u64| format!("{number:0>10}").repeat(40_000);
    for number in 1..=60 {
        writer.ask(&format!("SET k {}", large(number)), "+OK\r\n");
    }
    slow.command(&["UNWATCH", "bill"]);
    let mut given = 0;
    loop {
        let line = slow.line();
        if line == ":1" {
            break;
        }
        assert_eq!(line, ">5");
        (0..4).for_each(|_| drop(slow.line()));
        // LSN, number, length and bytes of the answer.
        slow.line();
        given += 1;
        assert_eq!(slow.line(), format!(":{given}"));
        slow.line();
        assert_eq!(slow.line(), large(given));
    }
    assert!(given < 60, "it did not read");
    let mut next = resp3(&server);
    next.command(&["GET.WATCH", "k", "|", "AS", "bill", "ATMOSTONCE"]);
    let lines: Vec<String> = (0..14).map(|_| next.line()).collect();
    assert_eq!((lines[0].as_str(), lines[10].as_str()), ("%4", format!(":{given}").as_str()));
    (0..6).for_each(|_| drop(next.line()));
    assert_eq!(next.line(), format!(":{}", given + 1), "what was not written comes now");
}

#[test]
fn two_that_ask_for_a_name_again_and_again_leave_it_to_the_last() {
    let server = TestServer::with(|config| config.threads = 1);
    let (mut one, mut other) = (resp3(&server), resp3(&server));
    let mut writer = server.client();
    for round in 1..=50 {
        // The worker often runs both requests in one turn, before either client has received a
        // reply.
        one.command(&["GET.WATCH", "k", "|", "AS", "bill"]);
        other.command(&["GET.WATCH", "k", "|", "AS", "bill"]);
        one.command(&["ECHO", "one"]);
        other.command(&["ECHO", "other"]);
        while one.line() != "one" {}
        while other.line() != "other" {}
        let holder = holder_of(&server, "bill");
        writer.ask(&format!("SET k {round}"), "+OK\r\n");
        let holder = if holder == 1 { &mut one } else { &mut other };
        // Skips the emissions of earlier rounds.
        while holder.line() != round.to_string() {}
    }
}

/// A client that begins a named subscription while another client ends it receives `ended`, or
/// still owns it.
#[test]
fn a_client_whose_name_ends_as_it_resumes_gets_an_error() {
    let server = TestServer::new();
    let race = |name: &str| {
        let (mut beginner, mut ender) = (resp3(&server), server.client());
        let (begin, end) = (format!("GET.WATCH k | AS {name}"), ["UNWATCH", "NAMED", name]);
        for _ in 0..500 {
            beginner.command(&begin.split(' ').collect::<Vec<_>>());
            (0..20).for_each(|_| ender.command(&end));
            (0..20).for_each(|_| drop(ender.line()));
            while beginner.line() != "_" {}
            // Ends the name in case the earlier attempts came before it existed.
            ender.command(&end);
            ender.line();
            beginner.expect(ended(name));
            beginner.ask("PING", "+PONG\r\n");
        }
    };
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            scope.spawn(move || race(name));
        }
    });
}

#[test]
fn a_name_that_another_one_replaces_on_a_connection_is_free() {
    let server = TestServer::new();
    let (mut one, mut other) = (resp3(&server), resp3(&server));
    let replaced = |name: &str| {
        let reason = "the connection watches the read under another name now";
        format!(">3\r\n{}{}{}", bulk("ended"), bulk(name), bulk(reason))
    };
    one.ask("GET.WATCH k | AS first", &begun("first", 1, 0, "_\r\n"));
    one.command(&["GET.WATCH", "k", "|", "AS", "second"]);
    one.expect(begun("second", 2, 0, "_\r\n") + &replaced("first"));
    other.ask("GET.WATCH k | AS first", &begun("first", 1, 0, "_\r\n"));
    server.client().ask("SET k 1", "+OK\r\n");
    one.expect(emission("second", 4, 1, &value(1)));
    other.expect(emission("first", 4, 1, &value(1)));
    one.command(&["GET.WATCH", "k"]);
    one.expect(begun("1-0", 4, 1, &value(1)) + &replaced("second"));
    other.command(&["WATCHES", "NAMED", "second"]);
    while other.line() != "client" {}
    assert_eq!(other.line(), "_", "it has no client");
}

#[test]
fn the_answer_to_a_command_stands_before_what_it_has_ended() {
    let server = TestServer::new();
    // In RESP2 a client takes the first frame for the answer, whatever the frame holds.
    let mut client = server.client();
    let begun = |name, lsn| begun(name, lsn, 0, "$-1\r\n").replacen("%4", "*8", 1);
    let replaced = |name: &str| {
        let reason = "the connection watches the read under another name now";
        format!("*3\r\n{}{}{}", bulk("ended"), bulk(name), bulk(reason))
    };
    client.ask("GET.WATCH k | AS first", &begun("first", 1));
    client.command(&["GET.WATCH", "k", "|", "AS", "second"]);
    client.expect(begun("second", 2) + &replaced("first"));
    client.command(&["GET.WATCH", "k", "|", "AS", "first"]);
    client.expect(begun("first", 1) + &replaced("second"));
    client.command(&["EMITRECONNECT", "k", "second", "2"]);
    client.expect(outcome("OK", 1) + &replaced("first"));
}

#[test]
fn only_a_position_up_to_the_reported_progress_can_be_acknowledged() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    client.ask("GET.WATCH k | AS bill PROGRESS 20", &begun("bill", 1, 0, "_\r\n"));
    let mut writer = server.client();
    writer.ask("SET other 1", "+OK\r\n");
    writer.ask("SET other 2", "+OK\r\n");
    loop {
        assert_eq!(client.line(), ">3");
        (0..4).for_each(|_| drop(client.line()));
        if client.line() == ":4" {
            break;
        }
    }
    client.command(&["MULTI"]);
    client.command(&["INCR", "done"]);
    client.command(&["EMITACK", "k", "bill", "5"]);
    client.command(&["EXEC"]);
    client.command(&["EMITACK", "k", "bill", "4"]);
    client.command(&["GET", "done"]);
    let mut answers = Vec::new();
    while answers.len() < 6 {
        let line = client.line();
        if line == ">3" {
            (0..5).for_each(|_| drop(client.line()));
        } else {
            answers.push(line);
        }
    }
    assert_eq!(answers[..3], ["+OK", "+QUEUED", "+QUEUED"]);
    assert!(
        answers[3].starts_with("-INVALID_SEQUENCE the connection was given emissions up to LSN 4"),
        "{answers:?}"
    );
    assert_eq!(answers[4..], ["+OK", "_"]);
}

#[test]
fn at_most_once_nothing_comes_again() {
    let server = TestServer::new();
    let mut first = resp3(&server);
    first.ask("GET.WATCH k | ATMOSTONCE AS bill", &begun("bill", 1, 0, "_\r\n"));
    server.client().ask("SET k 1", "+OK\r\n");
    first.expect(emission("bill", 3, 1, &value(1)));
    drop(first);
    // While no connection owns the name, emissions wait and the position does not move.
    server.client().ask("SET k 2", "+OK\r\n");
    let mut second = resp3(&server);
    second.ask("GET.WATCH k | AS bill ATMOSTONCE", &begun("bill", 3, 1, "_\r\n"));
    second.expect(emission("bill", 5, 2, &value(2)));
    drop(second);
    let mut third = resp3(&server);
    third.ask("GET.WATCH k | AS bill ATMOSTONCE", &begun("bill", 5, 2, "_\r\n"));
    server.client().ask("SET k 3", "+OK\r\n");
    third.expect(emission("bill", 7, 3, &value(3)));
    third.ask("EMITRECONNECT k bill 5", &outcome("INVALID_SEQUENCE", 7));
}

#[test]
fn a_name_is_one_connection_s_and_the_last_that_asked_has_it() {
    let server = TestServer::new();
    let (mut first, mut second) = (resp3(&server), resp3(&server));
    first.ask("GET.WATCH k | AS bill", &begun("bill", 1, 0, "_\r\n"));
    second.ask("GET.WATCH k | AS bill", &begun("bill", 1, 0, "_\r\n"));
    first.expect(ended("bill"));
    first.ask("WATCHES", "*0\r\n");
    count_up(&server, 1);
    second.expect(emission("bill", 3, 1, &value(1)));
    first.ask("PING", "+PONG\r\n");
    // A client other than the owner may acknowledge.
    first.ask("EMITACK k bill 3", "+OK\r\n");
    first.ask("EMITACK k bill 99", &outcome("INVALID_SEQUENCE", 4));
    second.ask("EMITACK k bill 4", &outcome("INVALID_SEQUENCE", 3));
    first.ask("UNWATCH NAMED bill other", ":1\r\n");
    second.expect(ended("bill"));
    first.ask("WATCHES NAMED", "*0\r\n");
    first.ask("EMITACK k bill 3", &outcome("SUBSCRIPTION_NOT_FOUND", 0));
    second.ask("GET.WATCH k | AS bill", &begun("bill", 5, 0, &value(1)));
}

#[test]
fn an_acknowledgement_in_a_transaction_takes_place_with_it_and_only_once() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    client.ask("GET.WATCH k | AS bill", &begun("bill", 1, 0, "_\r\n"));
    count_up(&server, 1);
    client.expect(emission("bill", 3, 1, &value(1)));
    let process = |client: &mut crate::common::Client<std::net::TcpStream>, lsn: u64, answer: &str| {
        client.ask("MULTI", "+OK\r\n");
        client.ask("INCR processed", "+QUEUED\r\n");
        client.ask(&format!("EMITACK k bill {lsn}"), "+QUEUED\r\n");
        client.ask("LPUSH done 1", "+QUEUED\r\n");
        client.ask("EXEC", answer);
    };
    process(&mut client, 3, "*3\r\n:1\r\n+OK\r\n:1\r\n");
    // A client that does not know of the acknowledgement processes the emission again.
    process(&mut client, 3, "_\r\n");
    process(
        &mut client,
        99,
        "-INVALID_SEQUENCE the connection was given emissions up to LSN 3; nothing was done\r\n",
    );
    client.ask("GET processed", "$1\r\n1\r\n");
    client.ask("LLEN done", ":1\r\n");
    client.ask("MULTI", "+OK\r\n");
    client.ask("INCR processed", "+QUEUED\r\n");
    client.ask("EMITACK other bill 4", "+QUEUED\r\n");
    client.ask(
        "EXEC",
        "-SUBSCRIPTION_NOT_FOUND there is no subscription of that name to the key; nothing was done\r\n",
    );
    client.ask("GET processed", "$1\r\n1\r\n");
    let mut again = resp3(&server);
    again.ask("GET.WATCH k | AS bill", &begun("bill", 3, 1, "_\r\n"));
    again.ask("PING", "+PONG\r\n");
}

#[test]
fn names_are_listed_with_where_they_are() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    client.ask("ZRANGE.WATCH z 0 1 | EVERY 2 AS top", &begun("top", 1, 0, "_\r\n"));
    let mut other = server.client();
    other.ask("WATCHES NAMED other*", "*0\r\n");
    let fields = [
        bulk("name") + &bulk("top"),
        bulk("command") + "*4\r\n" + &["zrange", "z", "0", "1"].map(bulk).concat(),
        bulk("operators") + "*2\r\n" + &["EVERY", "2"].map(bulk).concat(),
        bulk("db") + ":0\r\n",
        bulk("guarantee") + &bulk("at-least-once"),
        bulk("lsn") + ":1\r\n",
    ];
    client.ask("CLIENT ID", ":1\r\n");
    other.ask("WATCHES NAMED t?p", &format!("*1\r\n*14\r\n{}{}:1\r\n", fields.concat(), bulk("client")));
    client.ask("UNWATCH top", ":1\r\n");
    other.ask("WATCHES NAMED", &format!("*1\r\n*14\r\n{}{}$-1\r\n", fields.concat(), bulk("client")));
    client.ask("ZRANGE.WATCH z 0 1 | EVERY 2 AS top", &begun("top", 1, 0, "_\r\n"));
    client.ask("EMITRECONNECT z top 2", &outcome("OK", 1));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let server = TestServer::with(|config| config.watch_max_names = 2);
    let mut client = resp3(&server);
    client.ask("GET.WATCH k | AS bill", &begun("bill", 1, 0, "_\r\n"));
    client.ask("GET.WATCH l | AS other", &begun("other", 3, 0, "_\r\n"));
    for (line, error) in [
        ("GET.WATCH l | AS bill", "ERR the subscription of that name is to another read"),
        ("GET.WATCH k | DIFF AS bill", "ERR the subscription of that name is to another read"),
        ("GET.WATCH k | AS bill ATMOSTONCE", "ERR the subscription of that name is at-least-once"),
        ("GET.WATCH k | AS bill RESUME 1", "ERR RESUME is not valid with AS"),
        ("GET.WATCH k | AS", "ERR AS takes the name"),
        ("GET.WATCH k | AS 1-0", "ERR the name of a subscription begins with a letter"),
        ("GET.WATCH k | ATMOSTONCE", "ERR ATLEASTONCE and ATMOSTONCE are only valid with AS"),
        ("GET.WATCH k | AS third", "ERR there are 2 named subscriptions, as many as watch-max-names allows"),
        ("EMITRECONNECT k bill 1 | AS bill", "ERR AS is only valid with X.WATCH"),
        ("WATCHES NAMED a b", "ERR syntax error: WATCHES takes nothing after 'a', not 'b'"),
    ] {
        client.command(&line.split(' ').collect::<Vec<_>>());
        let answer = client.line();
        assert!(answer.starts_with(&format!("-{error}")), "{line}: {answer}");
    }
    client.ask("EMITRECONNECT l bill 1", &outcome("SUBSCRIPTION_NOT_FOUND", 0));
    client.ask("EMITRECONNECT k nobody 1", &outcome("SUBSCRIPTION_NOT_FOUND", 0));
}

#[test]
fn a_name_is_where_it_was_after_a_restart_from_the_log_and_from_a_snapshot() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    client.ask("GET.WATCH k | AS bill", &begun("bill", 1, 0, "_\r\n"));
    client.ask("GET.WATCH o | AS once ATMOSTONCE", &begun("once", 3, 0, "_\r\n"));
    client.ask("GET.WATCH g | AS gone", &begun("gone", 5, 0, "_\r\n"));
    count_up(&server, 1);
    client.expect(emission("bill", 7, 1, &value(1)));
    client.ask("EMITACK k bill 7", "+OK\r\n");
    server.client().ask("SET o 1", "+OK\r\n");
    client.expect(emission("once", 9, 1, &value(1)));
    client.ask("UNWATCH NAMED gone", ":1\r\n");
    client.expect(ended("gone"));
    server.client().ask("SET k 2", "+OK\r\n");
    client.expect(emission("bill", 12, 2, &value(2)));

    let server = TestServer::in_dir(server.stop(), |_| {});
    let mut client = resp3(&server);
    client.ask("WATCHES NAMED gone", "*0\r\n");
    client.ask("GET.WATCH k | AS bill", &begun("bill", 7, 1, "_\r\n"));
    client.expect(emission("bill", 12, 2, &value(2)));
    client.ask("GET.WATCH o | AS once ATMOSTONCE", &begun("once", 9, 1, "_\r\n"));
    client.ask("EMITACK k bill 12", "+OK\r\n");
    server.client().ask("SAVE", "+OK\r\n");

    let server = TestServer::in_dir(server.stop(), |_| {});
    let mut client = resp3(&server);
    client.ask("WATCHES NAMED gone", "*0\r\n");
    client.ask("GET.WATCH k | AS bill", &begun("bill", 12, 2, "_\r\n"));
    server.client().ask("SET k 3", "+OK\r\n");
    client.expect(emission("bill", 14, 3, &value(3)));
}
