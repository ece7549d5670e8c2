//! The text format: `crc lsn time_us kind payload`, one record per line.
//!
//! ```text
//! 5b0c1a77 tidemark-log version=1 format=text first=1 salt=2919840501 created_us=1700000000000000
//! 90e6ac12 1 1700000000000000 1 SET greeting hello\x00
//! 1c2f8bd0 1 1700000000000210 0 durable=00000000000000000001
//! ```
//!
//! The header of a segment with a gap before it has version 2 and, after `first=`, the field `
//! follows=` with the record before the gap.
//!
//! Payload bytes outside printable ASCII, and the backslash, are escaped: `\\`, `\n`, `\r`, `\t`,
//! `\xHH`.

use std::io::Write;

use super::lines::{LineStyle, follows_part, split_first_lsn, split_number, split_version};
use super::raw;
use crate::segment_header::SegmentHeader;
use crate::{Lsn, Record};

pub(crate) struct Text;

impl LineStyle for Text {
    const NAME: &'static str = "text";
    const OPENING: &'static str = "";
    const BETWEEN: &'static str = " ";
    const CLOSING: &'static str = "";

    fn write_header(out: &mut Vec<u8>, header: &SegmentHeader) {
        let SegmentHeader { first_lsn, salt, created_us, .. } = header;
        let (version, name, follows) = (header.version(), Self::NAME, follows_part(header, " follows="));
        let line = format!(
            "tidemark-log version={version} format={name} first={first_lsn}{follows} salt={salt} \
             created_us={created_us}"
        );
        out.extend_from_slice(line.as_bytes());
    }

    fn parse_header(body: &str) -> Option<SegmentHeader> {
        let (version, rest) = split_version(body.strip_prefix("tidemark-log version=")?)?;
        let rest = rest.strip_prefix(" format=text first=")?;
        let (first_lsn, follows, rest) = split_first_lsn(rest, version, " follows=", " salt=")?;
        let (salt, created_us) = rest.split_once(" created_us=")?;
        Some(SegmentHeader {
            first_lsn,
            follows,
            salt: salt.parse().ok()?,
            created_us: created_us.parse().ok()?,
            recycled: false,
            entry: None,
        })
    }

    fn write_head(out: &mut Vec<u8>, record: &Record<'_>) {
        // Writing to memory cannot fail.
        let _ = write!(out, "{} {} {} ", record.lsn, record.time_us, record.kind);
    }

    fn write_payload(out: &mut Vec<u8>, payload: &[u8]) {
        for &byte in payload {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                b' '..=b'~' => out.push(byte),
                _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            }
        }
    }

    fn write_durable_label(out: &mut Vec<u8>) {
        out.extend_from_slice(b"durable=");
    }

    fn parse_record(body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (lsn, time_us, kind, payload) = parse_head(body)?;
        raw::begin(out, lsn, time_us, kind);
        let mut rest = payload.iter();
        while let Some(&byte) = rest.next() {
            if byte != b'\\' {
                out.push(byte);
                continue;
            }
            out.push(match rest.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => hex_digit(*rest.next()?)? << 4 | hex_digit(*rest.next()?)?,
                _ => return None,
            });
        }
        Some(())
    }

    fn parse_marker(body: &[u8]) -> Option<(Lsn, Lsn)> {
        let (lsn, _, kind, payload) = parse_head(body)?;
        let (durable, rest) = split_number(payload.strip_prefix(b"durable=")?)?;
        (kind == raw::MARKER && rest.is_empty()).then_some((lsn, Lsn(durable)))
    }
}

fn parse_head(body: &[u8]) -> Option<(Lsn, u64, u8, &[u8])> {
    let (lsn, rest) = split_number(body)?;
    let (time_us, rest) = split_number(rest.strip_prefix(b" ")?)?;
    let (kind, rest) = split_number(rest.strip_prefix(b" ")?)?;
    Some((Lsn(lsn), time_us, u8::try_from(kind).ok()?, rest.strip_prefix(b" ")?))
}

fn hex_digit(byte: u8) -> Option<u8> {
    Some(char::from(byte).to_digit(16)? as u8)
}
