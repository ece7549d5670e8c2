//! Limits over HTTP: `/v1/check` and `/v1/release` in JSON, `/check` and `/release` as in VSA's
//! rate limiter.

use crate::common::TestServer;
use crate::common::events::connect;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tidemark_log::Durability;

fn server() -> TestServer {
    TestServer::with_http(|_| {})
}

/// Client with a persistent connection.
struct Visitor {
    stream: BufReader<TcpStream>,
    host: String,
}

/// HTTP response.
struct Answer {
    status: u16,
    /// Status line and header, in lower case.
    head: String,
    body: String,
}

impl Visitor {
    fn of(server: &TestServer) -> Visitor {
        let address = server.http_address();
        Visitor { stream: BufReader::new(connect(address)), host: address.to_string() }
    }

    /// Sends a request with further header lines, each with its line end.
    fn ask(&mut self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("HTTP reads");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.stream.read_line(&mut head).expect("a line"), 0, "{head}");
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
        self.stream.read_exact(&mut body).expect("a body");
        Answer { status, head, body: String::from_utf8(body).expect("text") }
    }

    fn post(&mut self, target: &str, body: &Value) -> Answer {
        self.ask("POST", target, "Content-Type: application/json\r\n", &body.to_string())
    }

    fn check(&mut self, body: &Value) -> Answer {
        self.post("/v1/check", body)
    }

    fn release(&mut self, body: &Value) -> Value {
        let answer = self.post("/v1/release", body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["refunded"].clone()
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().expect("a reason").to_owned())
    }
}

#[test]
fn leases_are_granted_and_given_back_by_their_names() {
    let server = server();
    let mut visitor = Visitor::of(&server);
    let wish = json!({"limits": [
        {"key": "calls", "limit": "FIXED 10 PER 3600000"},
        {"key": "exports", "limit": {"algorithm": "CONCURRENCY", "units": 2, "ttl_ms": 60_000}},
    ]});
    let granted: Vec<Value> = (0..2)
        .map(|_| {
            let answer = visitor.check(&wish);
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.json()["leases"].clone()
        })
        .collect();
    assert!(granted.iter().all(|leases| leases[0].is_null() && leases[1].is_u64()), "{granted:?}");
    assert_ne!(granted[0], granted[1]);
    let refused = visitor.check(&wish);
    let wait_s: u64 = refused.field("retry-after").and_then(|wait| wait.parse().ok()).expect("a wait");
    assert!(refused.status == 429 && (1..=60).contains(&wait_s), "{}", refused.body);
    assert_eq!(
        (&refused.json()["key"], &refused.json()["leases"]),
        (&json!("exports"), &json!([null, null]))
    );

    let lease = &granted[0][1];
    let error = visitor.check(&json!({"key": "exports", "lease": lease})).error();
    assert_eq!(error, (400, "ERR lease is for /v1/release".to_owned()));
    let error = visitor.post("/v1/release", &json!({"key": "exports"})).error();
    assert_eq!(error.0, 409, "{}", error.1);
    assert_eq!(visitor.release(&json!({"key": "exports", "lease": lease})), json!(1));
    assert_eq!(visitor.release(&json!({"key": "exports", "lease": lease})), json!(0));
    assert_eq!(visitor.check(&json!({"key": "exports"})).status, 200);
}

#[test]
fn what_the_original_s_clients_ask_takes_nothing_that_they_cannot_give_back() {
    let server = server();
    let mut visitor = Visitor::of(&server);
    let wish = json!({"key": "check:alice", "limit": "CONCURRENCY 2 TTL 60000", "amount": 0});
    assert_eq!(visitor.check(&wish).status, 200);
    let granted = visitor.check(&json!({"key": "check:alice", "limit": "CONCURRENCY 2 TTL 60000"}));
    assert_eq!(granted.json()["remaining"], json!(1));
    let error = visitor.ask("GET", "/check?api_key=alice", "", "").error();
    assert_eq!(error.0, 409, "{}", error.1);
    let left = visitor.check(&json!({"key": "check:alice", "peek": true, "amount": 0}));
    assert_eq!(left.json()["remaining"], json!(1));

    // A CORS preflight request takes nothing either.
    assert_eq!(visitor.ask("GET", "/check?api_key=bob", "", "").field("x-ratelimit-remaining"), Some("999"));
    let asked = visitor.ask("OPTIONS", "/check?api_key=bob", "", "");
    assert!(asked.status < 500, "{}", asked.body);
    let mut visitor = Visitor::of(&server);
    assert_eq!(visitor.ask("GET", "/check?api_key=bob", "", "").field("x-ratelimit-remaining"), Some("998"));
}

#[test]
fn a_list_is_answered_by_a_list_whatever_is_wrong_with_a_key() {
    let server = server();
    server.client().ask("SET text x", "+OK\r\n");
    let mut visitor = Visitor::of(&server);
    let one = visitor.release(&json!({"limits": [{"key": "text"}]}));
    let two = visitor.release(&json!({"limits": [{"key": "text"}, {"key": "none"}]}));
    assert!(one[0]["error"].is_string() && two[0]["error"].is_string(), "{one} {two}");
    assert_eq!((one.as_array().map(Vec::len), &two[1]), (Some(1), &json!(0)));
}

#[test]
fn a_limiter_comes_with_the_first_check() {
    let server = server();
    let mut visitor = Visitor::of(&server);
    let wish = json!({"key": "user:42", "amount": 2, "limit": "GCRA 1 PER 60000 BURST 3"});
    let answer = visitor.check(&wish);
    assert_eq!(
        (answer.status, answer.json()),
        (
            200,
            json!({"allowed": true, "key": "user:42", "limit": 3, "remaining": 1, "retry_after_ms": null,
                   "reset_after_ms": 120_000})
        )
    );
    assert_eq!(answer.field("ratelimit-policy"), Some("\"user:42\";q=3"));
    assert_eq!(answer.field("ratelimit"), Some("\"user:42\";r=1;t=120"));
    assert_eq!((answer.field("x-ratelimit-status"), answer.field("retry-after")), (Some("ok"), None));
    // The same connection stays usable.
    let refused = visitor.check(&wish);
    assert_eq!((refused.status, &refused.json()["allowed"]), (429, &json!(false)));
    let wait_ms = refused.json()["retry_after_ms"].as_u64().expect("a wait");
    assert!((1..=60_000).contains(&wait_ms), "{wait_ms}");
    assert_eq!(refused.field("retry-after"), Some(wait_ms.div_ceil(1000).to_string().as_str()));
    // No wait makes more than the limit possible.
    let never = visitor.check(&json!({"key": "user:42", "amount": 4}));
    assert_eq!((never.status, never.field("retry-after")), (429, None));
    assert_eq!(never.json()["retry_after_ms"], Value::Null);
    let peeked = visitor.check(&json!({"key": "user:42", "peek": true}));
    assert_eq!((peeked.status, &peeked.json()["remaining"]), (200, &json!(1)));
    // Clients of the Redis protocol see the same limiter.
    server.client().ask("LIMIT.CHECK user:42 AMOUNT 0", "*5\r\n:1\r\n:3\r\n:1\r\n:-1\r\n");
    assert_eq!(visitor.release(&json!({"key": "user:42", "amount": 9})), json!(2));
}

#[test]
fn tenant_user_route_and_plan_allow_together_or_none_does() {
    let server = server();
    let mut client = server.client();
    client.ask("LIMIT.CREATE tenant FIXED 100 PER 3600000", "+OK\r\n");
    client.ask("COUNTER.CREATE plan LIMIT 3", ":1\r\n");
    let mut visitor = Visitor::of(&server);
    let all = json!({"limits": [
        {"key": "tenant"},
        {"key": "user", "limit": {"units": 10, "per_ms": 3_600_000}},
        {"key": "route", "limit": {"algorithm": "LEAKY", "units": 500, "per_ms": 1000, "burst": 600}},
        {"key": "plan", "amount": 2},
    ]});
    let answer = visitor.check(&all);
    assert_eq!((answer.status, &answer.json()["key"]), (200, &json!("plan")), "{}", answer.body);
    let refused = visitor.check(&all);
    assert_eq!(
        (refused.status, refused.json()),
        (
            429,
            json!({"allowed": false, "key": "plan", "limit": 3, "remaining": 1, "retry_after_ms": null,
                   "reset_after_ms": null})
        )
    );
    assert_eq!(refused.field("retry-after"), None);
    assert_eq!(refused.field("ratelimit"), Some("\"plan\";r=1"));
    // The other limits have not counted the refused request.
    for (key, remaining) in [("tenant", 99), ("user", 9)] {
        let peeked = visitor.check(&json!({"key": key, "peek": true}));
        assert_eq!(peeked.json()["remaining"], json!(remaining), "{key}");
    }
    // The request body that took units also releases them, at most as many as are still taken.
    let refunded = visitor.release(&all);
    assert_eq!(refunded[0], json!(1));
    assert_eq!(refunded[3], json!(2));
    assert_eq!(visitor.release(&all)[3], json!(0));
    client.ask("COUNTER.GET plan", ":0\r\n");
}

#[test]
fn databases_and_keys_of_any_bytes_can_be_named() {
    let server = server();
    let mut visitor = Visitor::of(&server);
    let mut client = server.client();
    client.ask("SELECT 3", "+OK\r\n");
    client.ask("COUNTER.CREATE 7 LIMIT 5", ":1\r\n");
    assert_eq!(visitor.check(&json!({"key": 7, "db": 3})).json()["remaining"], json!(4));
    assert_eq!(visitor.check(&json!({"key": 7})).status, 404);
    let binary = json!({"key": {"base64": "/wA="}, "limit": "LOG 1 PER 60000"});
    let answer = visitor.check(&binary);
    assert_eq!(answer.json()["key"], json!({"base64": "/wA="}));
    assert_eq!(answer.field("ratelimit-policy"), Some("\"limit\";q=1"));
}

#[test]
fn what_is_wrong_is_said_and_the_connection_goes_on() {
    let server = TestServer::with_http(|config| config.http_max_body = 2048);
    let mut client = server.client();
    client.ask("SET text 1", "+OK\r\n");
    client.ask("LIMIT.CREATE leaky LEAKY 5 PER 1000", "+OK\r\n");
    let mut visitor = Visitor::of(&server);
    for (body, status, reason) in [
        ("", 400, "ERR the body is not what is expected"),
        ("{\"key\"", 400, "ERR the body is not what is expected"),
        ("{}", 400, "ERR give either key"),
        ("{\"key\": \"k\", \"cost\": 1}", 400, "ERR the body is not what is expected: unknown field `cost`"),
        ("{\"key\": \"k\", \"limit\": \"GCRA 0 PER 10\"}", 400, "ERR a limit must be a number of at least 1"),
        ("{\"key\": \"k\", \"limit\": \"BUCKET 1 PER 10\"}", 400, "ERR syntax error"),
        ("{\"key\": \"k\", \"db\": 99}", 400, "ERR DB index is out of range"),
        (
            "{\"limits\": [{\"key\": \"leaky\"}, {\"key\": \"leaky\"}]}",
            400,
            "ERR a key can be checked only once",
        ),
        ("{\"key\": \"none\"}", 404, "ERR no such limiter"),
        ("{\"limits\": [{\"key\": \"leaky\"}, {\"key\": \"none\"}]}", 404, "ERR no such limiter"),
        ("{\"key\": \"text\"}", 409, "WRONGTYPE"),
        (
            "{\"key\": \"leaky\", \"limit\": \"GCRA 1 PER 10\"}",
            409,
            "ERR the limiter is of the algorithm LEAKY",
        ),
    ] {
        let answer = visitor.ask("POST", "/v1/check", "", body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(answer.error().1.starts_with(reason), "{body}: {}", answer.body);
        assert_eq!(answer.field("connection"), None, "{body}");
    }
    for method in ["GET", "PUT", "DELETE"] {
        let answer = visitor.ask(method, "/v1/release", "", "");
        assert_eq!((answer.status, answer.field("allow")), (405, Some("post, options")));
        assert!(answer.error().1.starts_with("ERR this is asked by POST"));
    }
    assert_eq!(visitor.ask("POST", "/v1/release", "", "{\"key\": \"leaky\", \"peek\": true}").status, 400);
    assert_eq!(visitor.post("/v1/release", &json!({"key": "text"})).status, 409);
    let several = visitor.release(&json!({"limits": [{"key": "none"}, {"key": "text"}]}));
    assert_eq!(several[0], json!(0));
    assert!(several[1]["error"].as_str().is_some_and(|error| error.starts_with("WRONGTYPE")), "{several}");
    // The server does not read a body that is too long, so no request can follow it.
    let long = visitor.ask("POST", "/v1/check", "", &"x".repeat(2049));
    assert_eq!((long.status, long.field("connection")), (413, Some("close")));
    assert!(long.error().1.contains("2048 bytes"), "{}", long.body);
    let metrics = server.http("/metrics");
    assert!(metrics.contains("tidemark_error_replies_total 8"), "{metrics}");
}

#[test]
fn the_password_opens_it_and_pages_of_others_stay_out() {
    let server = TestServer::with_http(|config| config.requirepass = "secret".to_owned());
    let (mut client, wish) = (server.client(), "{\"key\": \"k\", \"limit\": \"FIXED 9 PER 60000\"}");
    for target in ["/v1/check", "/v1/release", "/check?api_key=k", "/release?api_key=k"] {
        let answer = Visitor::of(&server).ask("POST", target, "", wish);
        assert_eq!((answer.status, answer.field("connection")), (401, Some("close")), "{target}");
        assert_eq!(answer.field("www-authenticate"), Some("bearer"));
        let foreign = "Authorization: Bearer secret\r\nOrigin: https://a.example\r\n";
        assert_eq!(Visitor::of(&server).ask("POST", target, foreign, wish).status, 403, "{target}");
    }
    let embedded = "Authorization: Bearer secret\r\nSec-Fetch-Site: cross-site\r\n";
    assert_eq!(Visitor::of(&server).ask("GET", "/check?api_key=k", embedded, "").status, 403);
    client.ask("AUTH secret", "+OK\r\n");
    client.ask("DBSIZE", ":0\r\n");
    let mut visitor = Visitor::of(&server);
    assert_eq!(visitor.ask("POST", "/v1/check", "Authorization: Bearer secret\r\n", wish).status, 200);
    assert_eq!(visitor.ask("POST", "/v1/check?token=secret", "", wish).status, 200);
    assert_eq!(visitor.ask("GET", "/check?api_key=k&token=secret", "", "").status, 200);
}

#[test]
fn a_page_that_is_named_may_ask_and_read() {
    let server =
        TestServer::with_http(|config| config.http_allow_origin = vec!["https://app.example".to_owned()]);
    let mut visitor = Visitor::of(&server);
    let origin = "Origin: https://app.example\r\n";
    let preflight = visitor.ask("OPTIONS", "/v1/check", origin, "");
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.field("access-control-allow-methods"), Some("post"));
    assert_eq!(preflight.field("access-control-allow-headers"), Some("authorization, content-type"));
    let wish = "{\"key\": \"k\", \"limit\": \"FIXED 9 PER 60000\"}";
    let answer = visitor.ask("POST", "/v1/check", origin, wish);
    assert_eq!(
        (answer.status, answer.field("access-control-allow-origin")),
        (200, Some("https://app.example"))
    );
    assert!(answer.field("access-control-expose-headers").is_some_and(|names| names.contains("retry-after")));
    let foreign = visitor.ask("OPTIONS", "/v1/check", "Origin: https://b.example\r\n", "");
    assert_eq!(foreign.status, 403);
}

#[test]
fn the_original_s_clients_find_what_they_know() {
    let server = TestServer::with_http(|config| config.http_check_limit = 2);
    let mut visitor = Visitor::of(&server);
    for (method, status, text, remaining) in
        [("GET", 200, "OK", "1"), ("POST", 200, "OK", "0"), ("GET", 429, "Too Many Requests", "0")]
    {
        let answer = visitor.ask(method, "/check?api_key=alice", "", "");
        assert_eq!((answer.status, answer.body.as_str()), (status, text));
        assert_eq!(answer.field("x-ratelimit-limit"), Some("2"));
        assert_eq!(answer.field("x-ratelimit-remaining"), Some(remaining));
        let shown = if status == 200 { "ok" } else { "exceeded" };
        assert_eq!(answer.field("x-ratelimit-status"), Some(shown));
        assert_eq!(answer.field("retry-after"), None, "no wait helps");
    }
    let released = visitor.ask("POST", "/release?api_key=alice", "", "");
    assert_eq!((released.status, released.body.as_str()), (204, ""));
    assert_eq!(visitor.ask("GET", "/check?api_key=alice", "", "").status, 200);
    // Releasing units that no client has taken has no effect.
    assert_eq!(visitor.ask("GET", "/release?api_key=nobody", "", "").status, 204);
    for target in ["/check", "/check?api_key=", "/release?key=alice"] {
        let answer = visitor.ask("GET", target, "", "");
        assert_eq!(answer.error(), (400, "ERR api_key is missing".to_owned()), "{target}");
    }
    let long = visitor.ask("GET", &format!("/check?api_key={}", "k".repeat(1025)), "", "");
    assert_eq!(long.status, 400);
    // A key that a command has created keeps its kind: here a limiter with a time to wait.
    let mut client = server.client();
    client.ask("LIMIT.CREATE check:bob FIXED 1 PER 86400000000", "+OK\r\n");
    assert_eq!(visitor.ask("GET", "/check?api_key=bob", "", "").status, 200);
    let refused = visitor.ask("GET", "/check?api_key=bob", "", "");
    let wait: u64 = refused.field("retry-after").expect("a wait").parse().expect("seconds");
    assert!((1..=86_400_000).contains(&wait), "{wait}");
    // With a limit of 0 the server creates no more quotas, under any prefix.
    client.ask("CONFIG SET http-check-limit 0", "+OK\r\n");
    assert_eq!(visitor.ask("GET", "/check?api_key=carol", "", "").status, 404);
    client.ask("CONFIG SET http-check-prefix api/", "+OK\r\n");
    client.ask("COUNTER.CREATE api/carol LIMIT 1", ":1\r\n");
    assert_eq!(visitor.ask("GET", "/check?api_key=carol", "", "").status, 200);
    client.ask("COUNTER.GET api/carol", ":1\r\n");
}

#[test]
fn what_time_brings_is_done_while_only_http_is_used() {
    let server = server();
    let mut visitor = Visitor::of(&server);
    assert_eq!(visitor.check(&json!({"key": "brief", "limit": "GCRA 1 PER 300"})).status, 200);
    assert_eq!(visitor.ask("GET", "/check?api_key=a", "", "").status, 200);
    // The limiter is removed when it is idle; the quota stays.
    crate::common::eventually("a worker has looked", || {
        server.http("/metrics").contains("\ntidemark_keys 1.0\n")
    });
}

#[test]
fn answers_wait_for_the_disk_and_for_the_end_of_a_pause() {
    let server = TestServer::with_http(|config| config.durability = Durability::Always);
    let mut client = server.client();
    client.ask("COUNTER.CREATE seats LIMIT 5 EXACT 2", ":1\r\n");
    let mut visitor = Visitor::of(&server);
    for _ in 0..5 {
        assert_eq!(visitor.check(&json!({"key": "seats"})).status, 200);
    }
    assert_eq!(visitor.check(&json!({"key": "seats"})).status, 429);
    client.ask("CLIENT PAUSE 60000 WRITE", "+OK\r\n");
    // A peek takes no units, so it does not wait for the end of the pause.
    assert_eq!(visitor.check(&json!({"key": "seats", "peek": true})).status, 429);
    let mut other = Visitor::of(&server);
    let waiting = std::thread::spawn(move || other.release(&json!({"key": "seats", "amount": 2})));
    client.ask("COUNTER.GET seats", ":5\r\n");
    client.ask("CLIENT UNPAUSE", "+OK\r\n");
    assert_eq!(waiting.join().expect("an answer"), json!(2));
    client.ask("COUNTER.GET seats", ":3\r\n");
}

#[test]
fn quotas_of_unknown_keys_leave_when_idle_and_there_is_a_most_of_them() {
    let server = TestServer::with_http(|config| {
        config.http_check_max_keys = 2;
        config.http_check_idle = Duration::from_secs(1);
    });
    let (mut visitor, mut client) = (Visitor::of(&server), server.client());
    client.ask("COUNTER.CREATE check:known LIMIT 5", ":1\r\n");
    for key in ["a", "b", "known", "a"] {
        assert_eq!(visitor.ask("GET", &format!("/check?api_key={key}"), "", "").status, 200, "{key}");
    }
    let (status, reason) = visitor.ask("GET", "/check?api_key=c", "", "").error();
    assert!(status == 503 && reason.contains("http-check-max-keys"), "{status} {reason}");
    client.ask("EXISTS check:c", ":0\r\n");
    // No client uses the quotas any more. They are removed and make room for others; the one that a
    // command created stays.
    crate::common::eventually("idle quotas leave", || {
        visitor.ask("GET", "/check?api_key=c", "", "").status == 200
    });
    client.ask("COUNTER.GET check:known", ":1\r\n");
}
