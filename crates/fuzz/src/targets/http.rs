//! Requests over HTTP and gRPC: targets with their parameters, and bodies. The server answers each
//! of them.
//!
//! ```text
//! input   requests behind each other, with a line of nothing but `%` between them
//! request target, end of line, body
//! ```
//!
//! A gRPC body is a message without its frame; `/message` is a message on a WebSocket.

use super::{Target, words_of};
use tidemark_server::fuzzing::Bench;
use tidemark_server::resp::encode_request;

/// Most requests of one input that are run.
const REQUESTS_MAX: usize = 16;
const BETWEEN: &[u8] = b"\n%\n";

pub(super) const TARGET: Target = Target {
    name: "http",
    run,
    corpus,
    words: &[
        b"/v1/check\n",
        b"/v1/release\n",
        b"/check?api_key=k\n",
        b"/release?api_key=k\n",
        b"/v1/watch?command=GET&arg=k\n",
        b"/v1/changes?from=0\n",
        b"/message\n",
        b"/grpc/Draw\n",
        b"/grpc/GetState\n",
        b"\n%\n",
        b"{\"key\": \"a\"}",
        b"{\"limits\": [",
        b"\"amount\": ",
        b"\"limit\": ",
        b"\"lease\": ",
        b"\"peek\": true",
        b"\"db\": ",
        b"\"GCRA 10 PER 1000 BURST 20\"",
        b"\"CONCURRENCY 2 TTL 60000\"",
        b"{\"units\": 10, \"per_ms\": 1000}",
        b"\"algorithm\": \"SLIDING\"",
        b"\"ttl_ms\": ",
        b"{\"base64\": \"/wA=\"}",
        b"18446744073709551615",
        b"-1",
        b"1e400",
        b"null",
        b"\\ud800",
        b"%00",
        b"%ff",
        b"&arg=",
        b"&prefix=a",
        b"&type=string",
        b"&db=1",
        b"&progress=1",
        b"&resume=1-0",
        b"&from=newest",
        b"%7C",
        b"\x08\x03",
        b"\x12\x04pool",
    ],
};

fn run(data: &[u8]) -> bool {
    let bench = Bench::new();
    let mut setup = Vec::new();
    for line in SETUP.lines() {
        encode_request(&mut setup, &words_of(line.as_bytes()));
    }
    let answers = bench.talk(&setup, setup.len());
    debug_assert!(!answers.starts_with(b"-"), "{}", answers.escape_ascii());
    let (mut rest, mut is_accepted) = (data, false);
    for _ in 0..REQUESTS_MAX {
        let end = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN);
        let (request, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let target_end = request.iter().position(|byte| *byte == b'\n').unwrap_or(request.len());
        let (target, body) = request.split_at(target_end);
        if let Ok(target) = std::str::from_utf8(target) {
            let status = bench.request(target, body.strip_prefix(b"\n").unwrap_or(body));
            assert!(status != Some(500), "{target} is answered with 500");
            is_accepted |= status.is_some_and(|status| status < 300);
        }
        if end.is_none() {
            break;
        }
        rest = &behind[BETWEEN.len()..];
    }
    is_accepted
}

/// Commands that run before the requests.
const SETUP: &str = "POOL.CREATE pool JSON {\"items\":[{\"id\":\"car\",\"weight\":1,\"quantity\":3},{\"id\":\"mug\",\"weight\":9,\"quantity\":\"unlimited\"}]}\nSET k v\nHSET h f v\nZADD z 1 a";

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let requests = |requests: &[(&str, &[u8])]| {
        let each: Vec<Vec<u8>> =
            requests.iter().map(|(target, body)| [target.as_bytes(), b"\n", body].concat()).collect();
        each.join(BETWEEN)
    };
    vec![
        (
            "check",
            requests(&[
                ("/v1/check", br#"{"key": "a", "amount": 2, "limit": "GCRA 10 PER 1000 BURST 20"}"#),
                ("/v1/release", br#"{"key": "a"}"#),
                ("/v1/check?token=x", br#"{"key": 7, "limit": {"algorithm": "FIXED", "units": 1, "per_ms": 1000}, "peek": true, "db": 3}"#),
            ]),
        ),
        (
            "check-many",
            requests(&[
                ("/v1/check", br#"{"limits": [{"key": "t", "limit": "SLIDING 5 PER 60000"}, {"key": {"base64": "/wA="}, "limit": {"units": 10, "per_ms": 1000, "burst": 20}}]}"#),
                ("/v1/release", br#"{"limits": [{"key": "t"}, {"key": {"base64": "/wA="}, "amount": 1}]}"#),
            ]),
        ),
        (
            "leases",
            requests(&[
                ("/v1/check", br#"{"key": "e", "limit": "CONCURRENCY 2 TTL 60000"}"#),
                ("/v1/release", br#"{"key": "e", "lease": 1763906655000000}"#),
            ]),
        ),
        ("api-key", requests(&[("/check?api_key=k%2f1", b""), ("/release?api_key=k%2f1", b"")])),
        (
            "watch",
            requests(&[
                ("/v1/watch?command=GET&arg=k", b""),
                ("/v1/watch?command=ZRANGE&arg=z&arg=0&arg=-1&arg=WITHSCORES&db=0&resume=3-0", b""),
            ]),
        ),
        ("changes", requests(&[("/v1/changes?from=0&prefix=k&type=string&db=0&progress=1000", b"")])),
        (
            "messages",
            requests(&[
                ("/message", br#"{"watch": ["GET", "k"], "id": 1.50, "db": 0}"#),
                ("/message", br#"{"watch": ["HGETALL", {"base64": "aA=="}, "|", "DIFF"], "id": null}"#),
            ]),
        ),
        ("grpc", requests(&[("/grpc/Draw", b"\x08\x02\x12\x04pool\x18\x01\x22\x01u\x2a\x01r"), ("/grpc/GetState", b"\x0a\x04pool"), ("/grpc/Draw", b"")])),
    ]
}
