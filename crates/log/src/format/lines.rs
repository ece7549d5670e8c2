//! Common part of the two line formats: one record per line, its checksum at a fixed place in
//! front.

use super::codec::{Codec, MARKER_BYTES_MAX, Step};
use super::raw::{self, Marker};
use crate::checksum;
use crate::segment_header::{SegmentHeader, VERSION, VERSION_WITH_GAP};
use crate::{Lsn, Record};

/// Digits of the LSN in a marker: a fixed number, so that it can be filled in later.
const DURABLE_DIGITS: usize = 20;
/// Start value of header checksums, in every version.
const HEADER_SALT: u32 = 1;

/// The parts of a line format. A line is `OPENING crc BETWEEN body CLOSING newline`; the checksum
/// covers body and closing.
pub(crate) trait LineStyle: Sync {
    const NAME: &'static str;
    const OPENING: &'static str;
    const BETWEEN: &'static str;
    const CLOSING: &'static str;

    /// Writes a header. If there is a gap before the segment, it has version 2 and names the record
    /// before the gap.
    fn write_header(out: &mut Vec<u8>, header: &SegmentHeader);
    fn parse_header(body: &str) -> Option<SegmentHeader>;
    /// Writes LSN, time, kind and the start of the payload field.
    fn write_head(out: &mut Vec<u8>, record: &Record<'_>);
    fn write_payload(out: &mut Vec<u8>, payload: &[u8]);
    /// Writes the label of a marker's digits, which end the body.
    fn write_durable_label(out: &mut Vec<u8>);
    /// Appends the raw frame that the body encodes.
    fn parse_record(body: &[u8], out: &mut Vec<u8>) -> Option<()>;
    /// Parses a marker: the LSN of the record before it, and the LSN that it calls durable.
    fn parse_marker(body: &[u8]) -> Option<(Lsn, Lsn)>;
}

pub(crate) struct Lines<S>(pub(crate) S);

impl<S: LineStyle> Lines<S> {
    const CHECKSUM_DIGITS: usize = 8;
    const COVERED_AT: usize = S::OPENING.len() + Self::CHECKSUM_DIGITS + S::BETWEEN.len();

    fn open_line(out: &mut Vec<u8>) {
        out.extend_from_slice(S::OPENING.as_bytes());
        out.extend_from_slice(&[b'0'; 8]);
        out.extend_from_slice(S::BETWEEN.as_bytes());
    }

    /// Stores the checksum of a whole line, newline included.
    fn seal_line(line: &mut [u8], salt: u32) {
        let (front, covered) = line.split_at_mut(Self::COVERED_AT);
        let covered = covered.strip_suffix(b"\n").expect("a line ends with a newline");
        let checksum = format!("{:08x}", checksum::append(salt, covered));
        front[S::OPENING.len()..S::OPENING.len() + Self::CHECKSUM_DIGITS]
            .copy_from_slice(checksum.as_bytes());
    }

    /// Returns the body of a line without its newline, if its checksum matches.
    fn checked_body(line: &[u8], salt: u32) -> Result<&[u8], &'static str> {
        let (front, covered) = line.split_at_checked(Self::COVERED_AT).ok_or("the line is too short")?;
        let digits = front
            .strip_prefix(S::OPENING.as_bytes())
            .and_then(|rest| rest.strip_suffix(S::BETWEEN.as_bytes()))
            .ok_or("the line does not begin like a record")?;
        if digits != format!("{:08x}", checksum::append(salt, covered)).as_bytes() {
            return Err("the line's checksum does not match");
        }
        covered.strip_suffix(S::CLOSING.as_bytes()).ok_or("the line does not end like a record")
    }

    fn decode_line(line: &[u8], salt: u32, raw: &mut Vec<u8>) -> Step {
        let body = match Self::checked_body(line, salt) {
            Ok(body) => body,
            Err(why) => return Step::Invalid(why),
        };
        let consumed = line.len() + 1;
        if let Some((lsn, durable)) = S::parse_marker(body) {
            let marker = Some(Marker { durable, entry: None });
            return Step::Frame { consumed, lsn, marker };
        }
        let start = raw.len();
        if S::parse_record(body, raw).is_none() {
            raw.truncate(start);
            return Step::Invalid("the line does not spell a record");
        }
        raw::finish(raw, start);
        match raw.get(start..).and_then(raw::split) {
            Some((record, _)) if record.kind != raw::MARKER => {
                Step::Frame { consumed, lsn: record.lsn, marker: None }
            }
            _ => Step::Invalid("the line does not spell a record"),
        }
    }

    /// Writes one record as a line, with a checksum that starts from `salt`.
    pub(crate) fn write_line(out: &mut Vec<u8>, record: &Record<'_>, salt: u32) {
        let start = out.len();
        Self::open_line(out);
        S::write_head(out, record);
        if record.kind == raw::MARKER {
            let marker = Marker::parse(record.payload).expect("a marker has an LSN for a payload");
            S::write_durable_label(out);
            out.extend_from_slice(durable_digits(marker.durable).as_bytes());
        } else {
            S::write_payload(out, record.payload);
        }
        out.extend_from_slice(S::CLOSING.as_bytes());
        out.push(b'\n');
        Self::seal_line(&mut out[start..], salt);
    }
}

impl<S: LineStyle> Codec for Lines<S> {
    fn encode_header(&self, header: &SegmentHeader) -> Vec<u8> {
        assert!(!header.recycled, "line formats do not use files again");
        let mut line = Vec::new();
        Self::open_line(&mut line);
        S::write_header(&mut line, header);
        line.extend_from_slice(S::CLOSING.as_bytes());
        line.push(b'\n');
        Self::seal_line(&mut line, HEADER_SALT);
        line
    }

    fn decode_header(&self, bytes: &[u8]) -> Result<(SegmentHeader, usize), &'static str> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("the header has no end")?;
        let body = Self::checked_body(&bytes[..end], HEADER_SALT)?;
        let text = std::str::from_utf8(body).map_err(|_| "the header is no text")?;
        let header = S::parse_header(text).ok_or("the header does not describe a segment of this version")?;
        if header.follows >= header.first_lsn {
            return Err("the header names no record before its first");
        }
        Ok((header, end + 1))
    }

    fn preallocates(&self) -> bool {
        false
    }

    fn seal(&self, bytes: &mut Vec<u8>, start: usize, salt: u32) {
        raw::finish(bytes, start);
        let frame = bytes.split_off(start);
        let (record, _) = raw::split(&frame).expect("a finished frame is whole");
        Self::write_line(bytes, &record, salt);
    }

    fn reseal(&self, frame: &mut [u8], salt: u32) {
        Self::seal_line(frame, salt);
    }

    fn patch_marker(&self, bytes: &mut [u8], marker: &Marker, salt: u32) {
        assert!(marker.entry.is_none(), "a group's log has no lines");
        let end = bytes.len() - (S::CLOSING.len() + 1);
        bytes[end - DURABLE_DIGITS..end].copy_from_slice(durable_digits(marker.durable).as_bytes());
        Self::seal_line(bytes, salt);
    }

    fn check_sealed(&self, frames: &[u8], first: Lsn) -> Lsn {
        let is_whole = frames.last().is_none_or(|last| *last == b'\n');
        assert!(is_whole, "the last line behind record {first} is cut: {} bytes are written", frames.len());
        // Payloads are escaped, so no line contains a newline.
        let lines = frames.iter().fold(0, |lines, byte| lines + u64::from(*byte == b'\n'));
        Lsn(first.0 + lines)
    }

    fn decode(&self, bytes: &[u8], salt: u32, raw: &mut Vec<u8>) -> Step {
        if bytes.first() == Some(&0) {
            return Step::Unwritten;
        }
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => Self::decode_line(&bytes[..end], salt, raw),
            None => Step::Incomplete { needed: bytes.len() + 1 },
        }
    }

    fn salt_of(&self, bytes: &[u8]) -> Option<u32> {
        let line = bytes.split(|byte| *byte == b'\n').next().filter(|line| line.len() < bytes.len())?;
        let (front, covered) = line.split_at_checked(Self::COVERED_AT)?;
        let digits = front.get(S::OPENING.len()..)?.get(..Self::CHECKSUM_DIGITS)?;
        let checksum = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        Some(checksum::before(checksum, covered))
    }

    /// Searches for markers at every byte, because the newline before one may be damaged.
    fn find_proof(&self, window: &[u8], salt: u32, lsn: Lsn) -> Option<usize> {
        (0..window.len()).find(|start| {
            let rest = &window[*start..];
            let candidate = &rest[..rest.len().min(MARKER_BYTES_MAX)];
            let begins = candidate.starts_with(S::OPENING.as_bytes())
                && candidate
                    .get(..Self::COVERED_AT)
                    .is_some_and(|front| front.ends_with(S::BETWEEN.as_bytes()));
            let line = candidate.iter().position(|byte| *byte == b'\n').filter(|_| begins);
            line.and_then(|end| Self::checked_body(candidate.get(..end)?, salt).ok())
                .and_then(S::parse_marker)
                .is_some_and(|(_, durable)| durable >= lsn)
        })
    }
}

/// Returns the header field for the record before the gap, introduced by `label`; empty without a
/// gap.
pub(super) fn follows_part(header: &SegmentHeader, label: &str) -> String {
    if header.version() == VERSION_WITH_GAP { format!("{label}{}", header.follows) } else { String::new() }
}

/// Splits the version from the front of a header's body, if it is a known one.
pub(super) fn split_version(text: &str) -> Option<(u32, &str)> {
    [VERSION, VERSION_WITH_GAP]
        .into_iter()
        .find_map(|version| Some((version, text.strip_prefix(version.to_string().as_str())?)))
}

/// Splits the first LSN, and the record that it follows (introduced by `label` in version 2), from
/// the front of a header's rest. Also returns what follows `end`.
pub(super) fn split_first_lsn<'a>(
    text: &'a str,
    version: u32,
    label: &str,
    end: &str,
) -> Option<(Lsn, Lsn, &'a str)> {
    let (numbers, rest) = text.split_once(end)?;
    if version == VERSION {
        let first = Lsn(numbers.parse().ok()?);
        return Some((first, first.previous(), rest));
    }
    let (first, follows) = numbers.split_once(label)?;
    Some((Lsn(first.parse().ok()?), Lsn(follows.parse().ok()?), rest))
}

fn durable_digits(durable: Lsn) -> String {
    format!("{:0width$}", durable.0, width = DURABLE_DIGITS)
}

/// Splits a decimal number from the front of a body.
pub(super) fn split_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}
