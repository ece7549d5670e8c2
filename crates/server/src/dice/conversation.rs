//! One connection that speaks DiceDB's protocol: reads frames, runs commands, writes frames.
//!
//! A command appends its RESP3 answer to the connection's output, where the equivalent frame
//! replaces it immediately. So limits on replies and the wait for durability apply to frames too.

use super::answer::{Answer, Answers};
use super::body::{self, Body, ElementContext, Rank};
use super::frame::{self, FRAME_LIMIT, Framed, HEADER_BYTES, STRANGER_FRAME_LIMIT};
use super::introduction::{self, Introduction};
use super::notice::Notice;
use super::request::{self, RequestError, RequestLimits, Words};
use super::result::{self, Head};
use super::sorted_sets::{self, FirstRank};
use super::table::{self, Plan, Row, WATCH_SUFFIX};
use super::{handing, watch};
use crate::command::gate;
use crate::command::{dispatch, postponing};
use crate::context::Context;
use crate::durability::hold::hold_position;
use crate::durability::loading::LOADING;
use crate::resp::request::{UNAUTHENTICATED_ARGUMENTS, UNAUTHENTICATED_BULK_BYTES};
use crate::session::Session;
use std::time::{Duration, Instant};
use tidemark_engine::{CommandError, Reply};
use tidemark_log::Clock;

/// A larger scratch buffer is freed after use. Bytes.
const KEPT_SCRATCH_BYTES: usize = 16 * 1024;

/// Delay of emissions after `EMITRECONNECT`, which the next command ends: clients take the next
/// frame for the answer to their next command, often a new watch of the same read.
const RESUME_PAUSE: Duration = Duration::from_millis(10);

/// Result of a step at the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command of this many bytes has run.
    Ran(usize),
    /// There is a command, which must wait.
    Postponed,
    /// The command is incomplete.
    Incomplete,
    /// The input is malformed and the next frame cannot be found. The client has received an error.
    Malformed,
}

/// State that a connection keeps between commands.
pub(crate) struct Conversation {
    /// Bytes of input that a frame needs at least.
    needed: usize,
    introduction: Introduction,
    /// Buffer in which frames are built.
    scratch: Vec<u8>,
    /// When delayed emissions may be sent.
    pause_until: Option<Instant>,
}

impl Conversation {
    pub(crate) fn new() -> Conversation {
        Conversation {
            needed: HEADER_BYTES,
            introduction: Introduction::default(),
            scratch: Vec::new(),
            pause_until: None,
        }
    }

    /// Returns the lower bound of the input that the next command needs, in bytes.
    pub(crate) fn needed(&self) -> usize {
        self.needed
    }

    /// Runs the command at the start of `input`, if it is complete.
    pub(crate) fn step(&mut self, session: &mut Session, input: &[u8], cx: &Context<'_>) -> Step {
        let limit = if session.authenticated { FRAME_LIMIT } else { STRANGER_FRAME_LIMIT };
        let payload = match frame::read(input, limit) {
            Ok(Framed::Whole(payload)) => payload,
            Ok(Framed::Needs(bytes)) => {
                self.needed = bytes;
                return Step::Incomplete;
            }
            Err(error) => {
                self.refuse(session, &error.to_string(), cx);
                return Step::Malformed;
            }
        };
        self.needed = HEADER_BYTES;
        let ran = Step::Ran(HEADER_BYTES + payload.len());
        match request::decode(payload, &limits(session, cx)) {
            Ok(words) => {
                if postponing::postpone(session, &words, payload.len(), cx) {
                    return Step::Postponed;
                }
                // The client has read the answer that emissions had to follow.
                self.pause_until = None;
                self.run(session, words, cx);
                ran
            }
            Err(error @ RequestError::NotText) => {
                self.refuse(session, &error.to_string(), cx);
                ran
            }
            Err(error) => {
                self.refuse(session, &error.to_string(), cx);
                Step::Malformed
            }
        }
    }

    /// Returns until when emissions must wait, if they must.
    pub(crate) fn pause_until(&self, clock: &Clock) -> Option<Instant> {
        self.pause_until.filter(|until| clock.now() < *until)
    }

    /// Handles a notice of another connection of the same client.
    pub(crate) fn heed(session: &mut Session, notice: Notice, cx: &Context<'_>) {
        handing::heed(session, notice, cx);
    }

    /// Writes an error that answers no command.
    pub(crate) fn write_error(&mut self, reply: &mut Reply, text: &str) {
        result::write_error(&mut self.scratch, text.as_bytes(), 0);
        reply.encoded(&self.scratch);
        self.tidy();
    }

    fn run(&mut self, session: &mut Session, mut words: Words<'_>, cx: &Context<'_>) {
        let name = words.first().copied().unwrap_or_default();
        let Some(row) = table::find(name) else {
            cx.counters.commands.add(1);
            let name = String::from_utf8_lossy(name.get(..128).unwrap_or(name)).into_owned();
            self.refuse(session, &format!("ERROR unknown command '{name}'"), cx);
            return;
        };
        if let Some(name) = words.first_mut() {
            *name = row.name.as_bytes();
        }
        if !cx.shared.engine.is_loaded() && !matches!(row.plan, Plan::Auth | Plan::Hello | Plan::Handshake) {
            return self.refuse_command(session, LOADING, cx);
        }
        let needs_lead =
            matches!(row.plan, Plan::Watch | Plan::Unwatch | Plan::EmitReconnect | Plan::EmitAck);
        if needs_lead && let Some(error) = cx.shared.group.as_ref().and_then(gate::objection_to_watching) {
            return self.refuse_command(session, &error.to_string(), cx);
        }
        match row.plan {
            Plan::Plain => self.run_as(session, row.body, &words, &ElementContext::default(), cx),
            Plan::Auth => {
                self.run_as(session, row.body, &words, &ElementContext::default(), cx);
                self.introduction.announce(session, cx);
            }
            Plan::Zadd => match sorted_sets::check_scores(&words) {
                Ok(()) => self.run_as(session, row.body, &words, &ElementContext::default(), cx),
                Err(text) => self.refuse_command(session, &text, cx),
            },
            Plan::Zrank => {
                let member = words.get(2).copied().unwrap_or_default();
                // Add WITHSCORE, unless the client has given an option.
                if words.len() == 3 {
                    words.push(b"WITHSCORE");
                }
                self.run_as(
                    session,
                    row.body,
                    &words,
                    &ElementContext { member, ..ElementContext::default() },
                    cx,
                );
            }
            Plan::Zrange => self.range(session, row, &words, cx),
            Plan::Zpop { from_end } => self.pop(session, row, words, from_end, cx),
            Plan::Hello => {
                cx.counters.commands.add(1);
                match introduction::hello(&self.introduction, session, &words) {
                    Ok(text) => {
                        let head = Head { message: text.as_bytes(), fingerprint: 0 };
                        result::write(&mut self.scratch, &head, |_| Ok(()));
                        session.outbox.reply.encoded(&self.scratch);
                    }
                    Err(text) => self.refuse(session, text, cx),
                }
            }
            Plan::Handshake => {
                cx.counters.commands.add(1);
                match self.introduction.handshake(session, &words, cx) {
                    Ok(()) => self.answer(session, row.body, b"OK"),
                    Err(text) => self.refuse(session, text, cx),
                }
            }
            Plan::Watch | Plan::Unwatch | Plan::EmitReconnect | Plan::EmitAck => {
                cx.counters.commands.add(1);
                if let Err(error) = self.run_watching(session, row, &words, cx) {
                    self.refuse(session, &error.to_string(), cx);
                }
            }
        }
        self.tidy();
    }

    /// Runs a Redis command and answers with this body.
    fn run_as(
        &mut self,
        session: &mut Session,
        body: Body,
        words: &[&[u8]],
        place: &ElementContext<'_>,
        cx: &Context<'_>,
    ) {
        let mark = session.outbox.reply.len();
        dispatch::run_in_place(session, words, cx);
        self.replace(session, mark, |answers, buffer| body::put(buffer, body, answers, place));
    }

    fn range(&mut self, session: &mut Session, row: &Row, words: &Words<'_>, cx: &Context<'_>) {
        let range = match sorted_sets::range(words) {
            Ok(range) => range,
            Err(text) => return self.refuse_command(session, text, cx),
        };
        let key = words.get(1).copied().unwrap_or_default();
        let mut redis: Words<'_> =
            [row.name.as_bytes(), key, &range.start, &range.stop].into_iter().collect();
        if range.by_score {
            redis.push(b"BYSCORE");
        }
        redis.push(b"WITHSCORES");
        match &range.first {
            first @ FirstRank::Is(_) => {
                let place = ElementContext { first: first.resolve(0), ..ElementContext::default() };
                self.run_as(session, row.body, &redis, &place, cx);
            }
            first @ FirstRank::FromEnd(_) => {
                self.run_with_count(
                    session,
                    row.body,
                    &[b"ZCARD", key],
                    &redis,
                    |count| first.resolve(count),
                    cx,
                );
            }
            first @ FirstRank::Above(bound) => {
                let count: [&[u8]; 4] = [b"ZCOUNT", key, b"-inf", bound];
                self.run_with_count(session, row.body, &count, &redis, |count| first.resolve(count), cx);
            }
        }
    }

    fn pop(
        &mut self,
        session: &mut Session,
        row: &Row,
        mut words: Words<'_>,
        from_end: bool,
        cx: &Context<'_>,
    ) {
        // With a count, the answer is always an array of elements.
        if words.len() == 2 {
            words.push(b"1");
        }
        if from_end {
            let count: Words<'_> = [b"ZCARD".as_slice()].into_iter().chain(words.get(1).copied()).collect();
            self.run_with_count(session, row.body, &count, &words, Rank::Descending, cx);
        } else {
            let place = ElementContext { first: Rank::Ascending(1), ..ElementContext::default() };
            self.run_as(session, row.body, &words, &place, cx);
        }
    }

    /// Runs two commands as one transaction: a count, and one whose ranks follow from it.
    fn run_with_count(
        &mut self,
        session: &mut Session,
        body: Body,
        count: &[&[u8]],
        words: &[&[u8]],
        rank: impl FnOnce(i64) -> Rank,
        cx: &Context<'_>,
    ) {
        let mark = session.outbox.reply.len();
        for words in [&[b"MULTI".as_slice()], count, words, &[b"EXEC"]] {
            dispatch::run_in_place(session, words, cx);
        }
        self.replace(session, mark, |answers, buffer| {
            // Skip the answers to MULTI and to queueing, and the head of EXEC's answer.
            answers.by_ref().take(4).for_each(drop);
            let Some(Answer::Integer(count)) = answers.next() else {
                return Err(result::Unanswerable::Unexpected);
            };
            body::put(
                buffer,
                body,
                answers,
                &ElementContext { first: rank(count), ..ElementContext::default() },
            )
        });
    }

    /// Replaces the RESP3 answers from `mark` by one frame: their first error, or the body that
    /// `put_body` writes.
    fn replace(
        &mut self,
        session: &mut Session,
        mark: usize,
        put_body: impl FnOnce(&mut Answers<'_>, &mut Vec<u8>) -> Result<(), result::Unanswerable>,
    ) {
        let reply = &session.outbox.reply;
        if reply.has_overflowed() {
            // The output ends within an answer; the connection is closed.
            return;
        }
        let mut answers = Answers::of(&reply.bytes()[mark..]);
        match answers.first_error() {
            Some(text) => result::write_error(&mut self.scratch, text, 0),
            None => result::write(&mut self.scratch, &Head::OK, |buffer| put_body(&mut answers, buffer)),
        }
        session.outbox.rewrite(mark);
        session.outbox.reply.encoded(&self.scratch);
    }

    /// Runs a command for watched reads.
    fn run_watching(
        &mut self,
        session: &mut Session,
        row: &Row,
        words: &Words<'_>,
        cx: &Context<'_>,
    ) -> Result<(), CommandError> {
        if !session.authenticated {
            return Err(CommandError::text(introduction::NOT_AUTHENTICATED));
        }
        if session.is_reserved {
            session.closing = true;
            return Err(CommandError::text("ERR max number of clients reached"));
        }
        match row.plan {
            Plan::Unwatch => {
                watch::unwatch(session, words, cx)?;
                self.answer(session, row.body, b"OK");
            }
            Plan::EmitReconnect => {
                let mark = session.outbox.reply.len();
                watch::reconnect(session, words, cx)?;
                if session.wait.is_none() {
                    self.resumed(session, mark, cx);
                }
            }
            Plan::EmitAck => {
                watch::acknowledge(session, words, cx)?;
                self.answer(session, row.body, b"OK");
            }
            _ => {
                let read = row.name.strip_suffix(WATCH_SUFFIX).and_then(|name| table::find(name.as_bytes()));
                watch::watch(session, read.unwrap_or(row), words, &mut self.scratch, cx)?;
                let mark = session.outbox.reply.len();
                session.outbox.reply.encoded(&self.scratch);
                hold_position(session, mark, cx.shared.engine.log().appended(), cx);
            }
        }
        Ok(())
    }

    /// Replaces the RESP3 answer to `EMITRECONNECT` after `mark`, if there is one.
    pub(crate) fn resumed(&mut self, session: &mut Session, mark: usize, cx: &Context<'_>) {
        let answered = &session.outbox.reply.bytes()[mark..];
        match Answers::of(answered).next() {
            Some(Answer::Text(message)) => {
                result::write(&mut self.scratch, &Head { message, fingerprint: 0 }, |_| Ok(()));
                self.pause_until = Some(cx.shared.clock.now() + RESUME_PAUSE);
            }
            Some(Answer::Error(text)) => {
                cx.shared.errors.count(text);
                result::write_error(&mut self.scratch, text, 0);
            }
            _ => return,
        }
        session.outbox.rewrite(mark);
        session.outbox.reply.encoded(&self.scratch);
    }

    /// Answers with an empty body, if the command's answers have one.
    fn answer(&mut self, session: &mut Session, body: Body, message: &[u8]) {
        let head = Head { message, fingerprint: 0 };
        result::write(&mut self.scratch, &head, |buffer| {
            body::put(buffer, body, &mut Answers::of(&[]), &ElementContext::default())
        });
        session.outbox.reply.encoded(&self.scratch);
    }

    /// Refuses a command before dispatch. An unauthenticated client gets that error instead.
    fn refuse_command(&mut self, session: &mut Session, text: &str, cx: &Context<'_>) {
        cx.counters.commands.add(1);
        let text = if session.authenticated { text } else { introduction::NOT_AUTHENTICATED };
        self.refuse(session, text, cx);
    }

    fn refuse(&mut self, session: &mut Session, text: &str, cx: &Context<'_>) {
        cx.shared.errors.count(text.as_bytes());
        self.write_error(&mut session.outbox.reply, text);
    }

    /// Frees the memory of an unusually long answer.
    fn tidy(&mut self) {
        if self.scratch.capacity() > KEPT_SCRATCH_BYTES {
            self.scratch = Vec::new();
        }
    }
}

fn limits(session: &Session, cx: &Context<'_>) -> RequestLimits {
    if session.authenticated {
        RequestLimits { words: cx.config.max_arguments, word_bytes: cx.config.max_bulk_bytes }
    } else {
        RequestLimits {
            words: cx.config.max_arguments.min(UNAUTHENTICATED_ARGUMENTS),
            word_bytes: cx.config.max_bulk_bytes.min(UNAUTHENTICATED_BULK_BYTES),
        }
    }
}
