//! Syntax of values: sizes, durations, switches, addresses, output limits.

use crate::available_memory::available_bytes;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress {
    /// A numeric address, or `*` for all.
    pub host: String,
    /// Whether the server starts without this address if it is not available (`-::1`).
    pub optional: bool,
}

impl BindAddress {
    /// Creates an address that the server needs to start.
    pub fn required(host: &str) -> BindAddress {
        BindAddress { host: host.to_owned(), optional: false }
    }

    /// Creates an address that may be unavailable.
    pub fn optional(host: &str) -> BindAddress {
        BindAddress { host: host.to_owned(), optional: true }
    }

    /// Whether only this machine can reach the address.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Where the log and its snapshots are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogStorage {
    /// Files.
    #[default]
    File,
    /// Memory-mapped files: a write needs no system call.
    Mmap,
    /// Memory: nothing survives the process.
    Memory,
}

impl LogStorage {
    /// Returns its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Mmap => "mmap",
            Self::Memory => "memory",
        }
    }

    /// Parses a name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        [Self::File, Self::Mmap, Self::Memory]
            .into_iter()
            .find(|storage| storage.name().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| "must be file, mmap or memory".to_owned())
    }
}

/// Clients that may use `DEBUG`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugAccess {
    /// No client.
    No,
    /// All clients.
    Yes,
    /// Clients on this machine.
    Local,
}

/// Limit on the output buffered for a slow reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// Buffered bytes above which the client is disconnected; 0 means no limit.
    pub hard_bytes: usize,
    /// Bytes that disconnect the client if exceeded for `soft_time`; 0 means no limit.
    pub soft_bytes: usize,
    /// See `soft_bytes`.
    pub soft_time: Duration,
}

/// [`OutputLimit`] by class of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Clients that send commands and read replies.
    pub normal: OutputLimit,
    /// Clients with subscriptions.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        const MIB: usize = 1024 * 1024;
        OutputLimits {
            // Twice the longest value, so that every value fits.
            normal: OutputLimit { hard_bytes: 1024 * MIB, soft_bytes: 0, soft_time: Duration::ZERO },
            pubsub: OutputLimit {
                hard_bytes: 32 * MIB,
                soft_bytes: 8 * MIB,
                soft_time: Duration::from_mins(1),
            },
        }
    }
}

/// Limit on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// No limit.
    Unlimited,
    /// A number of bytes.
    Bytes(usize),
    /// Percentage of the memory that the process may use, from 1 to 100.
    Percent(u8),
}

impl MemoryLimit {
    /// Returns the limit in bytes; `usize::MAX` if there is none.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Unlimited => usize::MAX,
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (available_bytes() / 100 * u64::from(percent)) as usize,
        }
    }
}

/// Parses bytes or a percentage of the memory that the process may use: `512mb`, `25%`; 0 is no
/// limit.
pub(super) fn memory_limit(text: &str) -> Result<MemoryLimit, String> {
    if let Some(percent) = text.trim().strip_suffix('%') {
        return number(percent, 1, 100).map(|percent| MemoryLimit::Percent(percent as u8));
    }
    match bytes(text, 0, 1 << 60)? {
        0 => Ok(MemoryLimit::Unlimited),
        small if small < 1 << 20 => Err("must be at least 1mb, or 0 for no limit".to_owned()),
        bytes => Ok(MemoryLimit::Bytes(bytes as usize)),
    }
}

pub(super) fn show_memory_limit(limit: MemoryLimit) -> String {
    match limit {
        MemoryLimit::Unlimited => "0".to_owned(),
        MemoryLimit::Bytes(bytes) => bytes.to_string(),
        MemoryLimit::Percent(percent) => format!("{percent}%"),
    }
}

/// Parses `no` and `yes`, and the spellings of other tools.
pub(super) fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err("must be 'yes' or 'no'".to_owned()),
    }
}

pub(super) fn show_yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// Parses an integer in a closed range.
pub(super) fn number(text: &str, from: u64, to: u64) -> Result<u64, String> {
    let value: u64 =
        text.trim().parse().map_err(|_| format!("must be a whole number between {from} and {to}"))?;
    in_bounds(value, from, to)
}

fn in_bounds(value: u64, from: u64, to: u64) -> Result<u64, String> {
    if (from..=to).contains(&value) { Ok(value) } else { Err(format!("must be between {from} and {to}")) }
}

/// Parses the address of a service, or `off`. `example` is for the error message.
pub(super) fn address_or_off(text: &str, example: &str) -> Result<Option<SocketAddr>, String> {
    match text {
        "" | "off" => Ok(None),
        address => {
            let parsed = address.parse().map(Some);
            parsed.map_err(|_| format!("must be an address and a port, such as {example}, or off"))
        }
    }
}

/// Parses a number of bytes: `1024`, `1kb` (1024), `1k` (1000), `512mb`, `1gb`.
pub(super) fn bytes(text: &str, from: u64, to: u64) -> Result<u64, String> {
    let text = text.trim().to_ascii_lowercase();
    let digits_end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let factor: u64 = match unit {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return Err("must be a number of bytes such as 4096, 64kb, 512mb or 1gb".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "must be a number of bytes such as 4096, 64kb, 512mb or 1gb".to_owned())?;
    let value = number.checked_mul(factor).ok_or_else(|| format!("must be between {from} and {to}"))?;
    in_bounds(value, from, to)
}

/// Parses seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    // A century, which no clock arithmetic exceeds.
    number(text, 0, 100 * 366 * 86_400).map(Duration::from_secs)
}

/// Parses permission bits in octal, as `chmod` does.
pub(super) fn permissions(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text.trim(), 8)
        .ok()
        .filter(|bits| *bits <= 0o777)
        .ok_or_else(|| "must be permission bits in octal, such as 700".to_owned())
}

/// Parses addresses separated by spaces or commas; a leading `-` makes one optional.
pub(super) fn bind_addresses(text: &str) -> Result<Vec<BindAddress>, String> {
    let addresses = text.split([' ', ',']).filter(|word| !word.is_empty());
    let addresses: Result<Vec<BindAddress>, String> = addresses.map(bind_address).collect();
    addresses.and_then(|addresses| {
        if addresses.is_empty() {
            Err("must name at least one address, such as 127.0.0.1".to_owned())
        } else {
            Ok(addresses)
        }
    })
}

fn bind_address(word: &str) -> Result<BindAddress, String> {
    let (optional, host) = match word.strip_prefix('-') {
        Some(host) => (true, host),
        None => (false, word),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host == "*" || host == "localhost" || host.parse::<std::net::IpAddr>().is_ok() {
        Ok(BindAddress { host: host.to_owned(), optional })
    } else {
        Err(format!("'{host}' is not a numeric address such as 127.0.0.1, ::1 or 0.0.0.0"))
    }
}

pub(super) fn show_bind_addresses(addresses: &[BindAddress]) -> String {
    let words: Vec<String> = addresses
        .iter()
        .map(|address| format!("{}{}", if address.optional { "-" } else { "" }, address.host))
        .collect();
    words.join(" ")
}

/// Parses origins of web pages separated by spaces or commas.
pub(super) fn origins(text: &str) -> Result<Vec<String>, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            // `null` is the origin of pages that have none.
            let host = word.split_once("://").filter(|(scheme, _)| !scheme.is_empty()).map(|(_, host)| host);
            if matches!(word, "*" | "null")
                || host.is_some_and(|host| !host.is_empty() && !host.contains('/'))
            {
                Ok(word.to_owned())
            } else {
                Err(format!("'{word}' is not an origin such as https://app.example or http://127.0.0.1:8000"))
            }
        })
        .collect()
}

/// Most sinks: each has a connection and reads the log.
const SINKS_MAX: usize = 16;

/// Parses addresses of sinks separated by spaces.
pub(super) fn sinks(text: &str) -> Result<Vec<String>, String> {
    let addresses: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if addresses.len() > SINKS_MAX {
        return Err(format!("has more than {SINKS_MAX} addresses"));
    }
    match addresses.iter().find_map(|address| crate::sinks::objection(address)) {
        Some(objection) => Err(objection),
        None => Ok(addresses),
    }
}

/// Returns addresses of sinks for messages: without logins, and without the part after a `?`.
pub(super) fn sinks_without_secrets(text: &str) -> String {
    let shown: Vec<String> = text.split_whitespace().map(sink_without_secrets).collect();
    shown.join(" ")
}

fn sink_without_secrets(address: &str) -> String {
    // The last `@`: an invalid address may have others, slashes and question marks in its password.
    let (login, place) =
        address.rsplit_once('@').map_or((None, address), |(login, place)| (Some(login), place));
    let place = match place.split_once('?') {
        Some((place, _)) => format!("{place}?..."),
        None => place.to_owned(),
    };
    match login.map(|login| login.split_once("://")) {
        None => place,
        Some(Some((scheme, _))) if scheme.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            format!("{scheme}://...@{place}")
        }
        Some(_) => format!("...@{place}"),
    }
}

/// Parses `class hard soft seconds` once or more; other classes keep their present limits.
pub(super) fn output_limits(text: &str, present: OutputLimits) -> Result<OutputLimits, String> {
    let usage = "must be 'class hard-bytes soft-bytes soft-seconds', once or more; class is normal, replica or pubsub";
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err(usage.to_owned());
    }
    let mut limits = present;
    for group in words.chunks_exact(4) {
        let [class, hard, soft, time] = group else { return Err(usage.to_owned()) };
        let limit = OutputLimit {
            hard_bytes: bytes(hard, 0, u64::MAX)? as usize,
            soft_bytes: bytes(soft, 0, u64::MAX)? as usize,
            soft_time: seconds(time)?,
        };
        match class.to_ascii_lowercase().as_str() {
            "normal" => limits.normal = limit,
            "pubsub" => limits.pubsub = limit,
            // Accepted for Redis's configurations; a replica here has no output buffer.
            "replica" | "slave" => {}
            _ => return Err(usage.to_owned()),
        }
    }
    Ok(limits)
}

pub(super) fn show_output_limits(limits: OutputLimits) -> String {
    let mut text = String::new();
    for (class, limit) in [("normal", limits.normal), ("pubsub", limits.pubsub)] {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(
            text,
            "{separator}{class} {} {} {}",
            limit.hard_bytes,
            limit.soft_bytes,
            limit.soft_time.as_secs()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_as_in_redis() {
        for (text, value) in
            [("0", 0), ("10b", 10), ("1k", 1000), ("1kb", 1024), ("2MB", 2 << 20), ("1gb", 1 << 30)]
        {
            assert_eq!(bytes(text, 0, u64::MAX), Ok(value), "{text}");
        }
        for text in ["", "kb", "-1", "1tb", "1.5mb", "99999999999999999999", "99999999999gb"] {
            assert!(bytes(text, 0, u64::MAX).is_err(), "{text}");
        }
        assert!(bytes("5", 6, 7).is_err());
    }

    #[test]
    fn memory_is_limited_by_bytes_or_by_a_share() {
        for (text, shown) in [("0", "0"), ("25%", "25%"), ("100%", "100%"), ("64mb", "67108864")] {
            assert_eq!(memory_limit(text).map(show_memory_limit), Ok(shown.to_owned()));
        }
        for text in ["", "0%", "101%", "-1", "%", "1kb", "1.5%"] {
            assert!(memory_limit(text).is_err(), "{text}");
        }
        assert_eq!(MemoryLimit::Percent(100).bytes(), (available_bytes() / 100 * 100) as usize);
    }

    #[test]
    fn bind_takes_several_addresses_and_optional_ones() {
        let addresses = bind_addresses("127.0.0.1 -::1,0.0.0.0").expect("valid");
        assert_eq!(show_bind_addresses(&addresses), "127.0.0.1 -::1 0.0.0.0");
        assert!(addresses[0].is_loopback() && addresses[1].is_loopback() && !addresses[2].is_loopback());
        assert!(bind_addresses("").is_err());
        assert!(bind_addresses("example.org").is_err());
    }

    #[test]
    fn output_limits_keep_the_classes_that_are_not_named() {
        let limits = output_limits("pubsub 1mb 2kb 3", OutputLimits::default()).expect("valid");
        assert_eq!(limits.normal, OutputLimits::default().normal);
        assert_eq!(show_output_limits(limits), "normal 1073741824 0 0 pubsub 1048576 2048 3");
        assert!(output_limits("pubsub 1mb", limits).is_err());
        assert!(output_limits("other 1 2 3", limits).is_err());
    }

    #[test]
    fn origins_have_a_scheme_and_no_path() {
        let several = origins("https://a.example, http://127.0.0.1:8000 null *").expect("valid");
        assert_eq!(several, ["https://a.example", "http://127.0.0.1:8000", "null", "*"]);
        assert_eq!(origins(""), Ok(vec![]));
        for text in ["a.example", "https://", "://a", "https://a.example/", "https://a/b"] {
            assert!(origins(text).is_err(), "{text}");
        }
    }

    #[test]
    fn permissions_are_octal() {
        assert_eq!(permissions("700"), Ok(0o700));
        assert!(permissions("888").is_err());
        assert!(permissions("7000").is_err());
    }
}
