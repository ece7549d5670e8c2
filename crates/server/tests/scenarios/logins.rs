//! Passwords cannot be guessed quickly over any protocol, and are not shown.

use crate::common::dice::DiceClient;
use crate::common::{TestServer, eventually};

fn server() -> TestServer {
    TestServer::with_http(|config| "secret".clone_into(&mut config.requirepass))
}

/// Returns the reply that a new connection receives for a password.
fn attempt(server: &TestServer, command: &str) -> String {
    let mut client = server.client();
    client.send(format!("{command}\r\n"));
    client.line()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).expect("a status")
}

#[test]
fn a_guessing_client_is_refused_unchecked_on_every_protocol_for_some_time() {
    const REFUSED: &str = "WRONGPASS too many wrong passwords came from this address";
    let server = server();
    let mut known = server.client();
    known.ask("AUTH secret", "+OK\r\n");
    let mut wrong = 0;
    eventually("guesses are refused", || {
        let answer =
            attempt(&server, if wrong % 2 == 0 { "AUTH guess" } else { "HELLO 3 AUTH default guess" });
        wrong += 1;
        answer.starts_with(&format!("-{REFUSED}"))
    });
    assert!(wrong > 20, "{wrong} guesses");
    let http = |password: &str| {
        server.http_with(
            "/check?api_key=k",
            &format!("Host: localhost\r\nAuthorization: Bearer {password}\r\n"),
        )
    };
    // Tokens refill over time, and guesses take them again.
    for password in ["guess", "secret"] {
        eventually("HTTP refuses too, right or not", || {
            attempt(&server, "AUTH guess");
            status(&http(password)) == "429"
        });
        eventually("so does RESP", || {
            attempt(&server, "AUTH guess");
            attempt(&server, &format!("AUTH {password}")).starts_with(&format!("-{REFUSED}"))
        });
        eventually("and so does DiceDB's protocol", || {
            attempt(&server, "AUTH guess");
            DiceClient::connect(&server).ask(&["AUTH", password]).message.starts_with(REFUSED)
        });
    }
    // A request without a password is not a guess.
    assert_eq!(status(&server.http("/check?api_key=k")), "401");
    known.ask("GET k", "$-1\r\n");
    known.command(&["INFO", "stats"]);
    let info = known.bulk();
    let figure = |name: &str| -> u64 {
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {info}"))
    };
    assert!(figure("acl_access_denied_auth") >= 20 && figure("refused_logins") >= 7, "{info}");
    eventually("the right password is taken", || attempt(&server, "AUTH secret") == "+OK");
    assert!(server.http("/metrics").contains("\ntidemark_logins_failed_total "));
}

#[test]
fn secrets_are_not_shown() {
    let server = server();
    let mut client = server.client();
    client.ask("AUTH secret", "+OK\r\n");
    client.ask("CONFIG GET requirepass", "*2\r\n$11\r\nrequirepass\r\n$8\r\n(hidden)\r\n");
    client.command(&["CONFIG", "GET", "*"]);
    client.ask("ECHO end", "");
    let said = client.line();
    assert!(said.starts_with('*'));
    client.command(&["CONFIG", "SET", "requirepass", "(hidden)"]);
    client.command(&["CONFIG", "SET", "requirepass", ""]);
    client.command(&["CONFIG", "GET", "requirepass"]);
    client.command(&["QUIT"]);
    let all = String::from_utf8(client.until_closed()).expect("text");
    assert!(!all.contains("secret"), "{all}");
    assert!(
        all.contains("must not be (hidden)") && all.ends_with("requirepass\r\n$0\r\n\r\n+OK\r\n"),
        "{all}"
    );
}
