//! Changes of a string that depend on what it is: `SET` with `IFEQ` and its kind, `DELEX`, `DIGEST`.

use super::parse::is;
use super::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::persist::level;
use crate::value::{Text, Type};
use xxhash_rust::xxh3::xxh3_64;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(Group::String, id, name, arity, flags, KeySpec::ONE, Run::Keys(run))
        .at_level(level::FIELD_TIMES)
}

pub(super) const COMMANDS: &[Command] = &[
    row(23, "delex", -2, WRITE | FAST, delex).using(&["RW delete"]).doc(
        "8.4.0",
        "O(1) for IFEQ and IFNE, O(N) for IFDEQ and IFDNE with N the length of the value",
        "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
        "Deletes a key if its string value, or the digest of that, is or is not a given one.",
    ),
    row(24, "digest", 2, READONLY | FAST, digest).answering(Answer::Ordered).using(&["RO access"]).doc(
        "8.4.0",
        "O(N) with N the length of the value",
        "key",
        "Returns the digest of a string value: XXH3 with 64 bits, in hexadecimal.",
    ),
];

/// What a string must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison<'a> {
    operand: &'a [u8],
    by_digest: bool,
    is_equal: bool,
}

impl<'a> Comparison<'a> {
    /// Returns what an option and the argument behind it ask for; `None` if it is another option.
    pub(super) fn of_option(word: &[u8], operand: Option<&'a [u8]>) -> Option<Result<Self, CommandError>> {
        let (by_digest, is_equal) = match () {
            () if is(word, "IFEQ") => (false, true),
            () if is(word, "IFNE") => (false, false),
            () if is(word, "IFDEQ") => (true, true),
            () if is(word, "IFDNE") => (true, false),
            () => return None,
        };
        Some(operand.map(|operand| Self { operand, by_digest, is_equal }).ok_or(CommandError::Syntax))
    }

    /// Whether a string is what it must be. One that does not exist equals nothing.
    pub(super) fn is_met(&self, text: Option<&Text<'_>>) -> Result<bool, CommandError> {
        let Some(text) = text else { return Ok(!self.is_equal) };
        let equals = if self.by_digest {
            let is_digest = self.operand.len() == DIGITS && self.operand.iter().all(u8::is_ascii_hexdigit);
            if !is_digest {
                return Err(CommandError::text("ERR digest must be exactly 16 hexadecimal characters"));
            }
            self.operand.eq_ignore_ascii_case(digest_of(text).as_bytes())
        } else {
            self.operand == &text[..]
        };
        Ok(equals == self.is_equal)
    }

    /// As [`Comparison::is_met`], of the string of a key.
    pub(super) fn is_met_by(&self, keys: &Keys<'_>, key: &[u8]) -> Result<bool, CommandError> {
        self.is_met(keys.string(key)?.as_ref())
    }
}

/// Digits of a digest.
const DIGITS: usize = 16;

fn digest_of(text: &[u8]) -> String {
    format!("{:016x}", xxh3_64(text))
}

fn delex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let is_met = match &args[2..] {
        [] => ctx.keys.exists(key),
        [option, operand] => {
            let comparison = Comparison::of_option(option, Some(operand))
                .ok_or(CommandError::text("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))??;
            match ctx.keys.type_of(key) {
                None => false,
                Some(Type::String) => comparison.is_met_by(ctx.keys, key)?,
                Some(_) => {
                    return Err(CommandError::text(
                        "ERR Key should be of string type if conditions are specified",
                    ));
                }
            }
        }
        _ => return Err(CommandError::Arity("delex".into())),
    };
    let is_removed = is_met && ctx.keys.remove(key);
    if is_removed {
        ctx.keys.log_instead("del", &[key]);
        ctx.keys.changed(key, "del");
    }
    ctx.reply.integer(i64::from(is_removed));
    Ok(())
}

fn digest(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    match ctx.keys.string(args[1])? {
        Some(text) => ctx.reply.bulk(digest_of(&text).as_bytes()),
        None => ctx.reply.null(),
    }
    Ok(())
}
