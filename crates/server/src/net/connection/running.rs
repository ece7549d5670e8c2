//! Runs the commands that a connection has received, until its turn is over.

use super::{Connection, Language};
use crate::command::{dispatch, postponing};
use crate::context::Context;
use crate::dice::Step;
use crate::net::pipelined_run::{PipelinedRun, RUN_COMMANDS};
use crate::net::time_slice::TimeSlice;
use crate::resp::request::RequestLimits;
use smallvec::SmallVec;
use tidemark_engine::Command;

/// A parser that holds more than this is shrunk. Bytes.
const KEPT_PARSER_BYTES: usize = 16 * 1024;
/// Number of arguments parsed without allocation.
const USUAL_ARGUMENTS: usize = 16;
/// Most bytes of the commands of one run: see [`dispatch::run_together`].
const RUN_BYTES: usize = 64 * 1024;

impl Connection {
    /// Runs the commands at the start of `bytes`. Returns how many bytes they took.
    pub(super) fn run_commands(&mut self, bytes: &[u8], cx: &Context<'_>) -> usize {
        let mut start = 0;
        self.has_command = true;
        self.limit_output(cx.config);
        self.session.settings_changed = false;
        let mut time_slice = TimeSlice::new(cx.turn);
        while self.may_run() && !self.session.settings_changed {
            let rest = &bytes[start..];
            let step = match &mut self.language {
                Language::Dice(conversation) => conversation.step(&mut self.session, rest, cx),
                Language::Unknown | Language::Resp => self.resp_step(rest, cx),
            };
            match step {
                Step::Ran(consumed) => {
                    start += consumed;
                    if time_slice.is_over(&cx.shared.clock) {
                        break;
                    }
                }
                Step::Postponed => break,
                Step::Incomplete => {
                    self.has_command = false;
                    break;
                }
                Step::Malformed => {
                    cx.counters.protocol_errors.add(1);
                    self.session.closing = true;
                    self.has_command = false;
                    return bytes.len();
                }
            }
        }
        if start > 0 && self.parser.capacity() > KEPT_PARSER_BYTES {
            self.parser.shrink();
        }
        start
    }

    /// Runs the command at the start of `rest`, if it is complete.
    #[inline]
    fn resp_step(&mut self, rest: &[u8], cx: &Context<'_>) -> Step {
        let limits = RequestLimits {
            arguments: cx.config.max_arguments,
            bulk_bytes: cx.config.max_bulk_bytes,
            authenticated: self.session.authenticated,
        };
        match self.parser.next(rest, &limits) {
            Ok(Some(consumed)) => {
                if !self.parser.is_empty() {
                    let args: SmallVec<[&[u8]; USUAL_ARGUMENTS]> = self.parser.arguments(rest).collect();
                    if postponing::postpone(&mut self.session, &args, consumed, cx) {
                        return Step::Postponed;
                    }
                    if consumed < rest.len()
                        && !self.parser.is_inline()
                        && let Some(command) = dispatch::joining(&self.session, args[0], args.len(), cx)
                    {
                        drop(args);
                        return self.run_together(command, consumed, rest, &limits, cx);
                    }
                    dispatch::run(&mut self.session, &args, cx);
                }
                Step::Ran(consumed)
            }
            Ok(None) => Step::Incomplete,
            Err(error) => {
                self.session.outbox.reply.error_text(&format!("ERR {error}"));
                Step::Malformed
            }
        }
    }

    /// Runs `command`, the `first` bytes of `rest`, with those after it that may share its locks and its
    /// record: see [`dispatch::run_together`].
    fn run_together(
        &mut self,
        command: &'static Command,
        first: usize,
        rest: &[u8],
        limits: &RequestLimits,
        cx: &Context<'_>,
    ) -> Step {
        let rest = &rest[..rest.len().min(RUN_BYTES).max(first)];
        let mut run = PipelinedRun::default();
        run.add(command, rest, self.parser.ranges());
        let mut end = first;
        while run.len() < RUN_COMMANDS && end < rest.len() {
            let frame = &rest[end..];
            match self.parser.next(frame, limits) {
                Ok(Some(consumed)) => {
                    let (name, len) = (self.parser.argument(0, frame), self.parser.len());
                    // Mostly the same name again.
                    let joining = if name == run.first()[0] && command.takes(len) {
                        Some(command)
                    } else {
                        dispatch::joining(&self.session, name, len, cx)
                    };
                    let Some(command) = joining else {
                        // It is read again on its turn.
                        break;
                    };
                    if self.parser.is_inline() {
                        break;
                    }
                    run.add(command, frame, self.parser.ranges());
                    end += consumed;
                }
                // The rest of the bytes is a part of a command, or belongs to later turns.
                Ok(None) => break,
                Err(_) => {
                    // The command before which it stands is answered first; then it is found again.
                    self.parser.restart();
                    break;
                }
            }
        }
        if run.len() > 1 && dispatch::run_together(&mut self.session, &run.commands(), cx) {
            return Step::Ran(end);
        }
        self.parser.restart();
        dispatch::run(&mut self.session, run.first(), cx);
        Step::Ran(first)
    }
}
