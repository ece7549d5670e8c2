//! The JSON Lines format: one object per record, with its keys in this order.
//!
//! ```text
//! {"crc":"5b0c1a77","tidemark_log":1,"format":"jsonl","first_lsn":1,"salt":29198,"created_us":"1700000000000000"}
//! {"crc":"90e6ac12","lsn":1,"time_us":1700000000000000,"kind":1,"text":"SET greeting hello"}
//! {"crc":"0a417c35","lsn":2,"time_us":1700000000000100,"kind":1,"base64":"/wA="}
//! {"crc":"1c2f8bd0","lsn":2,"time_us":1700000000000210,"kind":0,"durable":"00000000000000000002"}
//! ```
//!
//! The header of a segment with a gap before it has version 2 and, after `"first_lsn"`, the key
//! `"follows"` with the record before the gap. A UTF-8 payload is `text`, any other is `base64`.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::lines::{LineStyle, follows_part, split_first_lsn, split_number, split_version};
use super::raw;
use crate::segment_header::SegmentHeader;
use crate::{Lsn, Record};

pub(crate) struct Jsonl;

impl LineStyle for Jsonl {
    const NAME: &'static str = "jsonl";
    const OPENING: &'static str = "{\"crc\":\"";
    const BETWEEN: &'static str = "\",";
    const CLOSING: &'static str = "\"}";

    fn write_header(out: &mut Vec<u8>, header: &SegmentHeader) {
        let SegmentHeader { first_lsn, salt, created_us, .. } = header;
        let (version, name, follows) = (header.version(), Self::NAME, follows_part(header, ",\"follows\":"));
        // `created_us` is a string because every line ends with a quote.
        let line = format!(
            "\"tidemark_log\":{version},\"format\":\"{name}\",\"first_lsn\":{first_lsn}{follows},\"salt\":{salt},\
             \"created_us\":\"{created_us}"
        );
        out.extend_from_slice(line.as_bytes());
    }

    fn parse_header(body: &str) -> Option<SegmentHeader> {
        let (version, rest) = split_version(body.strip_prefix("\"tidemark_log\":")?)?;
        let rest = rest.strip_prefix(",\"format\":\"jsonl\",\"first_lsn\":")?;
        let (first_lsn, follows, rest) = split_first_lsn(rest, version, ",\"follows\":", ",\"salt\":")?;
        let (salt, created_us) = rest.split_once(",\"created_us\":\"")?;
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
        let _ =
            write!(out, "\"lsn\":{},\"time_us\":{},\"kind\":{},", record.lsn, record.time_us, record.kind);
    }

    fn write_payload(out: &mut Vec<u8>, payload: &[u8]) {
        if let Ok(text) = std::str::from_utf8(payload) {
            out.extend_from_slice(b"\"text\":\"");
            write_escaped(out, text);
        } else {
            out.extend_from_slice(b"\"base64\":\"");
            write_base64(out, payload);
        }
    }

    fn write_durable_label(out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"durable\":\"");
    }

    fn parse_record(body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (lsn, time_us, kind, rest) = parse_head(body)?;
        raw::begin(out, lsn, time_us, kind);
        if let Some(text) = rest.strip_prefix(b"\"text\":\"") {
            parse_escaped(text, out)
        } else {
            parse_base64(rest.strip_prefix(b"\"base64\":\"")?, out)
        }
    }

    fn parse_marker(body: &[u8]) -> Option<(Lsn, Lsn)> {
        let (lsn, _, kind, rest) = parse_head(body)?;
        let (durable, rest) = split_number(rest.strip_prefix(b"\"durable\":\"")?)?;
        (kind == raw::MARKER && rest.is_empty()).then_some((lsn, Lsn(durable)))
    }
}

fn parse_head(body: &[u8]) -> Option<(Lsn, u64, u8, &[u8])> {
    let (lsn, rest) = split_number(body.strip_prefix(b"\"lsn\":")?)?;
    let (time_us, rest) = split_number(rest.strip_prefix(b",\"time_us\":")?)?;
    let (kind, rest) = split_number(rest.strip_prefix(b",\"kind\":")?)?;
    Some((Lsn(lsn), time_us, u8::try_from(kind).ok()?, rest.strip_prefix(b",")?))
}

fn write_escaped(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

/// Inverse of `write_escaped`; rejects escapes that it never writes.
fn parse_escaped(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first()?;
        rest = after;
        out.push(match escape {
            b'"' | b'\\' => escape,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (digits, after) = rest.split_first_chunk::<4>()?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(())
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    let most =
        base64::encoded_len(bytes.len(), true).expect("a payload is far smaller than the address space");
    out.resize(start + most, 0);
    let len = STANDARD.encode_slice(bytes, &mut out[start..]).expect("the size was computed for these bytes");
    out.truncate(start + len);
}

fn parse_base64(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    STANDARD.decode_vec(text, out).ok()
}
