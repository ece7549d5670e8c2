//! `server`: what a server does to a request beside its work.

use super::options::TimeSeriesOptions;
use super::points::value_at;
use super::row::{Findings, Row, Work};
use anyhow::Context;
use std::hint::black_box;
use std::io::Write;
use tidemark_engine::{Protocol, Reply};
use tidemark_server::resp::request::{RequestLimits, RequestParser};
use tidemark_server::resp::{Decoder, Value, encode_request};
use tidemark_server::same_secret;

pub(super) fn rows(options: &TimeSeriesOptions) -> Vec<Row> {
    let (round_trips, verifications) = (options.round_trips, options.auth_verifications);
    vec![
        Row {
            name: "server/protocol_roundtrip".to_owned(),
            measures: "encoding TS.ADD and its reply, and parsing both, numbers as text included".to_owned(),
            operation: "round trip",
            operations: round_trips,
            iterations: options.iterations,
            start: Box::new(move || Ok(Box::new(RoundTrips { count: round_trips, replied: 0 }))),
        },
        Row {
            name: "server/auth_verify".to_owned(),
            measures: "comparing a password of 32 bytes as AUTH does: the SHA-256 of both, in constant time"
                .to_owned(),
            operation: "verification",
            operations: verifications,
            iterations: options.iterations,
            start: Box::new(move || Ok(Box::new(Verifications { count: verifications, accepted: 0 }))),
        },
    ]
}

/// Requests for points, and their replies, between a client and a server without a socket.
struct RoundTrips {
    count: u64,
    replied: u64,
}

impl Work for RoundTrips {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let (mut parser, limits) = (RequestParser::default(), RequestLimits::default());
        let (mut request, mut number, mut value) = (Vec::new(), itoa::Buffer::new(), Vec::new());
        let (mut reply, mut decoder) = (Reply::new(Protocol::Resp2), Decoder::default());
        let mut replied = 0;
        for time in 0..black_box(self.count) as i64 {
            request.clear();
            value.clear();
            write!(value, "{}", value_at(time))?;
            let arguments: [&[u8]; 4] = [b"TS.ADD", b"bench:series", number.format(time).as_bytes(), &value];
            encode_request(&mut request, &arguments);
            let received = black_box(&request[..]);
            let consumed = parser.next(received, &limits)?.context("the request is whole")?;
            anyhow::ensure!(consumed == received.len() && parser.len() == 4, "the request was parsed wrong");
            let parsed: i64 = std::str::from_utf8(parser.argument(2, received))?.parse()?;
            let point: f64 = std::str::from_utf8(parser.argument(3, received))?.parse()?;
            anyhow::ensure!(point.to_bits() == value_at(time).to_bits(), "the value was parsed wrong");
            reply.truncate(0);
            reply.integer(parsed);
            decoder.feed(black_box(reply.bytes()));
            let answer = decoder.next_value()?.context("the reply is whole")?;
            replied += u64::from(black_box(answer) == Value::Integer(time));
        }
        self.replied = replied;
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let (right, all) = (std::mem::take(&mut self.replied), self.count);
        anyhow::ensure!(right == all, "{} of {all} replies were wrong", all - right);
        Ok(Findings::default())
    }
}

/// Passwords of which one in 256 is right.
struct Verifications {
    count: u64,
    accepted: u64,
}

/// The password of the original's benchmark.
const EXPECTED: [u8; 32] = [0xAB; 32];

impl Work for Verifications {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut accepted = 0;
        for number in 0..black_box(self.count) {
            let given = [number as u8; 32];
            accepted += u64::from(same_secret(&black_box(given)[..], &black_box(EXPECTED)[..]));
        }
        self.accepted = black_box(accepted);
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let right = (0..self.count).filter(|number| *number as u8 == EXPECTED[0]).count() as u64;
        let accepted = std::mem::take(&mut self.accepted);
        anyhow::ensure!(accepted == right, "{accepted} passwords were accepted where {right} are right");
        Ok(Findings::default())
    }
}
