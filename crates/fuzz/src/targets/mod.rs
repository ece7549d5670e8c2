//! The targets, and what they have in common.

mod catalogue;
mod circuit_journal;
mod commands;
mod dice;
mod http;
mod log_recovery;
mod original;
mod records;
mod resp_request;
mod snapshot;
mod state;

/// One kind of bytes from outside.
#[derive(Debug)]
pub struct Target {
    /// Its name: that of its folder in `fuzz/corpus/` and of its program in `fuzz/`.
    pub name: &'static str,
    /// Feeds it one input and panics where a property does not hold; whether the input was
    /// accepted, which means that it got behind the checks that refuse malformed bytes.
    pub run: fn(&[u8]) -> bool,
    /// The inputs that its corpus begins with, by name.
    pub corpus: fn() -> Vec<(&'static str, Vec<u8>)>,
    /// What mutations insert.
    pub words: &'static [&'static [u8]],
}

/// All targets.
pub static TARGETS: &[Target] = &[
    log_recovery::TARGET,
    snapshot::TARGET,
    records::TARGET,
    catalogue::TARGET,
    original::TARGET,
    dice::TARGET,
    commands::TARGET,
    http::TARGET,
    resp_request::TARGET,
    circuit_journal::TARGET,
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn find(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target '{name}'"))
}

/// Commands as lines of words: a word is text without spaces, and `\xHH` in it stands for a byte.
fn words_of(line: &[u8]) -> Vec<Vec<u8>> {
    line.split(|byte| *byte == b' ').map(unescaped).collect()
}

fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(word.len()), word);
    while let Some((&byte, after)) = rest.split_first() {
        let escape = rest.strip_prefix(b"\\x").and_then(|digits| digits.split_first_chunk::<2>());
        let escaped = escape.and_then(|(digits, after)| {
            let value = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            Some((value, after))
        });
        let (value, after) = escaped.unwrap_or((byte, after));
        bytes.push(value);
        rest = after;
    }
    bytes
}
