//! All targets, and the code that they share.

mod bundle;
mod catalogue;
mod circuit_journal;
mod commands;
mod dice;
mod dumps;
mod http;
mod log_recovery;
mod original;
mod records;
mod resp_request;
mod series;
mod snapshot;
mod state;

/// A fuzz target: one format of outside bytes.
#[derive(Debug)]
pub struct Target {
    /// Name of the target, of its directory in `fuzz/corpus/` and of its program in `fuzz/`.
    pub name: &'static str,
    /// Runs one input and panics if a property does not hold. Returns whether the input was
    /// accepted: it got past the checks that refuse malformed bytes.
    pub run: fn(&[u8]) -> bool,
    /// Returns the initial inputs of its corpus, with names.
    pub corpus: fn() -> Vec<(&'static str, Vec<u8>)>,
    /// Words that mutations insert.
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
    dumps::TARGET,
    commands::TARGET,
    http::TARGET,
    resp_request::TARGET,
    circuit_journal::TARGET,
    series::TARGET,
    bundle::TARGET,
];

/// Returns the target with this name.
///
/// # Panics
/// If no target has the name.
pub fn find(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target '{name}'"))
}

/// Splits a line into the words of a command: a word is text without spaces, and `\xHH` in it
/// stands for a byte.
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
