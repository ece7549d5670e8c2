//! Delivery options: what a client may request after the `|` of a watched read.

use std::time::Duration;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::{self, is};
use tidemark_engine::watch::Guarantee;
use tidemark_log::Lsn;

/// Longest duration of an option, in milliseconds: a day.
const MOST_MS: i64 = 86_400_000;

/// How emissions are delivered. Unlike operators, these options concern one subscriber only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delivery {
    /// Deliver only the latest emission, and pause after each: `SQUASH [milliseconds]`.
    pub(crate) squash: Option<Duration>,
    /// Include the previous answer: `OLD`.
    pub(crate) old: bool,
    /// Send a progress frame after this time without an emission: `PROGRESS milliseconds`.
    pub(crate) progress: Option<Duration>,
    /// Send a frame after the missed emissions: `MARK`.
    pub(crate) mark: bool,
}

/// What a subscription begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Start {
    /// The current answer.
    #[default]
    Snapshot,
    /// Nothing: only later changes: `UPDATES`.
    Updates,
    /// The emissions after this LSN: `RESUME lsn`.
    Resume(Lsn),
}

/// Parsed options after `|`.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Options<'a> {
    pub(crate) delivery: Delivery,
    pub(crate) start: Start,
    /// Name under which the log keeps the position: `AS name`.
    pub(crate) name: Option<&'a [u8]>,
    /// Channel to publish emissions on: `CHANNEL name`.
    pub(crate) channel: Option<&'a [u8]>,
    /// Guarantee of a named subscription: `ATLEASTONCE`, `ATMOSTONCE`.
    pub(crate) guarantee: Option<Guarantee>,
    /// The remaining words, which are operators.
    pub(crate) operators: Vec<&'a [u8]>,
}

/// Parses the options after `|`.
///
/// # Errors
/// If an option lacks its argument, or options exclude each other.
pub(crate) fn read_options<'a>(words: &[&'a [u8]]) -> Result<Options<'a>, CommandError> {
    let Options { mut delivery, mut start, mut name, mut channel, mut guarantee, mut operators } =
        Options::default();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if is(word, "SQUASH") {
            // An argument that begins like a number is the duration: no option begins so.
            let is_number = rest
                .first()
                .and_then(|arg| arg.first())
                .is_some_and(|byte| matches!(byte, b'-' | b'0'..=b'9'));
            if is_number {
                delivery.squash = Some(duration(rest.first(), "SQUASH", 0)?);
                rest = &rest[1..];
            } else {
                delivery.squash = Some(Duration::ZERO);
            }
        } else if is(word, "PROGRESS") {
            delivery.progress = Some(duration(rest.first(), "PROGRESS", 10)?);
            rest = &rest[1..];
        } else if is(word, "OLD") {
            delivery.old = true;
        } else if is(word, "MARK") {
            delivery.mark = true;
        } else if is(word, "UPDATES") {
            start = Start::Updates;
        } else if is(word, "RESUME") {
            let lsn = rest.first().and_then(|arg| parse::canonical_integer(arg));
            let lsn = lsn.and_then(|lsn| u64::try_from(lsn).ok());
            start = Start::Resume(Lsn(
                lsn.ok_or(CommandError::text("ERR RESUME needs the LSN to resume after"))?
            ));
            rest = &rest[1..];
        } else if is(word, "AS") {
            if name.is_some() {
                return Err(CommandError::text("ERR AS is given twice"));
            }
            name = rest.first().copied();
            if name.is_none() {
                return Err(CommandError::text("ERR AS takes the name of the subscription"));
            }
            rest = &rest[1..];
        } else if is(word, "CHANNEL") {
            if channel.is_some() {
                return Err(CommandError::text("ERR CHANNEL is given twice"));
            }
            channel = rest.first().copied();
            if channel.is_none() {
                return Err(CommandError::text("ERR CHANNEL takes the channel to publish emissions on"));
            }
            rest = &rest[1..];
        } else if is(word, "ATLEASTONCE") {
            guarantee = Some(Guarantee::AtLeastOnce);
        } else if is(word, "ATMOSTONCE") {
            guarantee = Some(Guarantee::AtMostOnce);
        } else {
            operators.push(*word);
        }
    }
    if guarantee.is_some() && name.is_none() {
        return Err(CommandError::text("ERR ATLEASTONCE and ATMOSTONCE are only valid with AS and a name"));
    }
    let is_plain = delivery == Delivery::default() && start != Start::Updates && name.is_none();
    if channel.is_some() && !is_plain {
        return Err(CommandError::text(
            "ERR CHANNEL is only valid with RESUME and operators; remove the other options",
        ));
    }
    Ok(Options { delivery, start, name, channel, guarantee, operators })
}

fn duration(arg: Option<&&[u8]>, name: &str, least: i64) -> Result<Duration, CommandError> {
    arg.and_then(|arg| parse::canonical_integer(arg))
        .filter(|milliseconds| (least..=MOST_MS).contains(milliseconds))
        .map(|milliseconds| Duration::from_millis(milliseconds as u64))
        .ok_or_else(|| {
            CommandError::Text(format!("ERR {name} takes milliseconds from {least} to {MOST_MS}").into())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Delivery, Start, String), String> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let Options { delivery, start, operators, .. } =
            read_options(&words).map_err(|error| error.to_string())?;
        let rest: Vec<_> = operators.into_iter().map(String::from_utf8_lossy).collect();
        Ok((delivery, start, rest.join(" ")))
    }

    #[test]
    fn a_name_is_an_option() {
        let words: Vec<&[u8]> = vec![b"HIGH", b"as", b"bill", b"AtMostOnce"];
        let options = read_options(&words).expect("options");
        assert_eq!((options.name, options.guarantee), (Some(&b"bill"[..]), Some(Guarantee::AtMostOnce)));
        assert_eq!(options.operators, [b"HIGH"]);
    }

    #[test]
    fn a_channel_goes_with_a_place_and_operators() {
        let words: Vec<&[u8]> = vec![b"HIGH", b"channel", b"c", b"RESUME", b"7"];
        let options = read_options(&words).expect("options");
        assert_eq!((options.channel, options.start), (Some(&b"c"[..]), Start::Resume(Lsn(7))));
        assert_eq!(options.operators, [b"HIGH"]);
    }

    #[test]
    fn options_are_distinguished_from_operators() {
        let none = Delivery::default();
        assert_eq!(read(""), Ok((none, Start::Snapshot, String::new())));
        assert_eq!(read("HIGH | updates"), Ok((none, Start::Updates, "HIGH |".to_owned())));
        let squash = |milliseconds| Delivery { squash: Some(Duration::from_millis(milliseconds)), ..none };
        assert_eq!(read("SQUASH 100 DIFF"), Ok((squash(100), Start::Snapshot, "DIFF".to_owned())));
        assert_eq!(read("SQUASH RANGE 1 5"), Ok((squash(0), Start::Snapshot, "RANGE 1 5".to_owned())));
        let all = Delivery { old: true, mark: true, progress: Some(Duration::from_secs(1)), ..none };
        assert_eq!(read("old RESUME 7 progress 1000 mark"), Ok((all, Start::Resume(Lsn(7)), String::new())));
        for (line, error) in [
            ("SQUASH -1", "ERR SQUASH takes milliseconds"),
            ("SQUASH 18446744073709551615", "ERR SQUASH takes milliseconds"),
            ("SQUASH 5x", "ERR SQUASH takes milliseconds"),
            ("PROGRESS", "ERR PROGRESS takes milliseconds"),
            ("PROGRESS 1", "ERR PROGRESS takes milliseconds from 10"),
            ("RESUME x", "ERR RESUME needs the LSN"),
            ("CHANNEL", "ERR CHANNEL takes the channel"),
            ("CHANNEL x CHANNEL y", "ERR CHANNEL is given twice"),
            ("CHANNEL x SQUASH", "ERR CHANNEL is only valid with RESUME and operators"),
            ("UPDATES CHANNEL x", "ERR CHANNEL is only valid with RESUME and operators"),
            ("AS y CHANNEL x", "ERR CHANNEL is only valid with RESUME and operators"),
            ("AS", "ERR AS takes the name"),
            ("AS x AS y", "ERR AS is given twice"),
            ("ATMOSTONCE", "ERR ATLEASTONCE and ATMOSTONCE are only valid with AS"),
        ] {
            assert!(read(line).expect_err(line).starts_with(error), "{line}");
        }
    }
}
