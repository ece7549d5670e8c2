//! Format of emissions for clients of this protocol.

use super::answer::{Answer, Answers};
use super::body::{self, Body, ElementContext, Rank};
use super::directory::Registration;
use super::result::{self, Head, Unanswerable};
use super::table;
use tidemark_engine::Reply;
use tidemark_engine::watch::Read;

/// Converts RESP3 answers of one read to results.
pub(crate) struct Form {
    fingerprint: u64,
    body: Body,
    first: Rank,
    member: Box<[u8]>,
    /// Whether the message of a result is the value itself, for reads of a single value.
    shows_value: bool,
    /// Makes the subscription visible to the client's other connections.
    registration: Option<Registration>,
}

impl Form {
    /// Returns the form for a read; `None` if the protocol does not support it.
    pub(super) fn of(read: &Read, fingerprint: u64) -> Option<Form> {
        let args: Vec<&[u8]> = read.args().collect();
        let row = table::find(args.first()?)?;
        let body = row.body;
        let (mut first, mut member) = (Rank::Unknown, [].as_slice());
        match args.as_slice() {
            [b"zrange", _, start, _, b"WITHSCORES"] => {
                let index: i64 = std::str::from_utf8(start).ok()?.parse().ok()?;
                if index >= 0 {
                    first = Rank::Ascending(index.saturating_add(1));
                }
            }
            [b"zrank", _, ranked, _] => member = ranked,
            _ => {}
        }
        let shows_value = row.name == "GET";
        Some(Form { fingerprint, body, first, member: member.into(), shows_value, registration: None })
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Keeps the registration for as long as this form is in use.
    pub(super) fn register(&mut self, registration: Option<Registration>) {
        self.registration = registration;
    }

    /// Replaces the buffer's content with the answer to the command that began the subscription.
    pub(super) fn begin(&self, buffer: &mut Vec<u8>, answer: &[u8]) -> Result<(), Unanswerable> {
        result::try_write(buffer, &self.head(b"OK"), |buffer| self.put_body(buffer, answer))
    }

    /// Writes an emission.
    pub(crate) fn emit(&self, answer: &[u8], reply: &mut Reply) {
        let mut buffer = Vec::new();
        match Answers::of(answer).next() {
            Some(Answer::Error(text)) => result::write_error(&mut buffer, text, self.fingerprint),
            first => {
                let message = match first {
                    Some(Answer::Text(value)) if self.shows_value => value,
                    _ if self.shows_value => b"",
                    _ => b"OK",
                };
                result::write(&mut buffer, &self.head(message), |buffer| self.put_body(buffer, answer));
            }
        }
        reply.encoded(&buffer);
    }

    /// Writes that the subscription has ended because its next emission is no longer retained.
    pub(crate) fn end(&self, reply: &mut Reply) {
        let mut buffer = Vec::new();
        result::write_error(&mut buffer, b"STALE_SEQUENCE", self.fingerprint);
        reply.encoded(&buffer);
    }

    fn head<'a>(&self, message: &'a [u8]) -> Head<'a> {
        Head { message, fingerprint: self.fingerprint }
    }

    fn put_body(&self, buffer: &mut Vec<u8>, answer: &[u8]) -> Result<(), Unanswerable> {
        let place = ElementContext { first: self.first, member: &self.member };
        body::put(buffer, self.body, &mut Answers::of(answer), &place)
    }
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Form").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}
