//! Which series are exported.

use super::ExportArgs;
use crate::series_command::link::Link;
use anyhow::Context;
use std::os::unix::ffi::OsStrExt;
use tidemark_server::resp::Value;

/// Keys that the server scans per call.
const KEYS_AT_ONCE: &str = "1000";

/// Returns the keys, each once: those that were named in their order, others sorted.
pub(super) fn keys(args: &ExportArgs, link: &mut Link) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut keys: Vec<Vec<u8>> = if !args.keys.is_empty() {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for key in &args.keys {
            if !keys.iter().any(|known| known == key.as_bytes()) {
                keys.push(key.as_bytes().to_vec());
            }
        }
        return Ok(keys);
    } else if args.filters.is_empty() {
        scan(args.pattern.as_deref(), link)?
    } else {
        let mut command = vec!["TS.QUERYINDEX"];
        command.extend(args.filters.iter().map(String::as_str));
        elements(&link.ask(&command)?)?
    };
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

fn scan(pattern: Option<&str>, link: &mut Link) -> anyhow::Result<Vec<Vec<u8>>> {
    let (mut keys, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let mut command = vec!["SCAN", &cursor, "COUNT", KEYS_AT_ONCE, "TYPE", "TSDB-TYPE"];
        if let Some(pattern) = pattern {
            command.extend(["MATCH", pattern]);
        }
        let reply = link.ask(&command)?;
        let parts = reply.as_elements().and_then(|parts| Some((parts.first()?.as_bytes()?, parts.get(1)?)));
        let (next, found) = parts.context(UNKNOWN)?;
        keys.extend(elements(found)?);
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            return Ok(keys);
        }
    }
}

const UNKNOWN: &str = "the server lists keys in another way than this version does";

fn elements(reply: &Value) -> anyhow::Result<Vec<Vec<u8>>> {
    let elements = reply.as_elements().context(UNKNOWN)?;
    Ok(elements.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec)).collect())
}

/// Returns the server's time, from which ages count.
pub(super) fn now_nanoseconds(link: &mut Link) -> anyhow::Result<i128> {
    let reply = link.ask(&["TIME"])?;
    let number = |at: usize| -> Option<i128> {
        std::str::from_utf8(reply.as_elements()?.get(at)?.as_bytes()?).ok()?.parse().ok()
    };
    let (seconds, micros) =
        number(0).zip(number(1)).context("the server answers TIME with something else")?;
    Ok(seconds * 1_000_000_000 + micros * 1_000)
}
