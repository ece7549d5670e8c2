//! A script: its text, its name and what its first line says.

use sha1::{Digest, Sha1};
use std::sync::atomic::{AtomicBool, Ordering};

/// The SHA-1 of a script's text.
pub type ScriptId = [u8; 20];

/// Returns the SHA-1 of a text.
pub fn id_of(text: &[u8]) -> ScriptId {
    Sha1::digest(text).into()
}

/// Returns an id in lower-case hexadecimal digits.
pub fn hexadecimal(id: &ScriptId) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    id.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Reads an id, in digits of either case.
pub fn parse_id(text: &[u8]) -> Option<ScriptId> {
    if text.len() != 40 {
        return None;
    }
    let mut id = ScriptId::default();
    for (byte, digits) in id.iter_mut().zip(text.chunks(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(id)
}

/// What the first line of a script says, or the flags of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of Redis")]
pub struct Flags {
    /// It changes nothing.
    pub no_writes: bool,
    /// It may run while memory is short.
    pub allow_oom: bool,
    /// It may run on a replica that has lost its leader.
    pub allow_stale: bool,
    /// It does not run in a cluster.
    pub no_cluster: bool,
    /// Its keys may be in different slots.
    pub allow_cross_slot_keys: bool,
}

impl Flags {
    /// The names of flags, in Redis's order.
    pub const NAMES: [&'static str; 5] =
        ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

    /// Sets a flag by its name. Returns `false` if there is none.
    pub fn set(&mut self, name: &[u8]) -> bool {
        match name {
            b"no-writes" => self.no_writes = true,
            b"allow-oom" => self.allow_oom = true,
            b"allow-stale" => self.allow_stale = true,
            b"no-cluster" => self.no_cluster = true,
            b"allow-cross-slot-keys" => self.allow_cross_slot_keys = true,
            _ => return false,
        }
        true
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let set =
            [self.no_writes, self.allow_oom, self.allow_stale, self.no_cluster, self.allow_cross_slot_keys];
        Self::NAMES.into_iter().zip(set).filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

/// A script.
#[derive(Debug)]
pub struct Script {
    /// The SHA-1 of its text.
    pub id: ScriptId,
    /// The text, with its first line.
    pub text: Box<[u8]>,
    /// Bytes of the first line that are not part of the program, without its end.
    first_line: usize,
    /// What the first line says.
    pub flags: Flags,
    /// Whether it touches no keys but those that it is given, whatever they are.
    pub is_confined: bool,
    is_forgotten: AtomicBool,
    is_quick: AtomicBool,
    digits: Box<str>,
}

impl Script {
    /// Reads the first line of a text. `is_confined` says whether the program touches only its keys.
    ///
    /// # Errors
    /// The first line is malformed, in Redis's words.
    pub fn new(text: &[u8], is_confined: impl FnOnce(&[u8]) -> bool) -> Result<Self, String> {
        let (mut flags, mut first_line) = (Flags::default(), 0);
        if text.starts_with(b"#!") {
            let end = text.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or("Invalid script shebang")?;
            let line = String::from_utf8_lossy(&text[2..end]).into_owned();
            let mut words = line.split_ascii_whitespace();
            let engine = words.next().ok_or("Invalid engine in script shebang")?;
            if engine != "lua" {
                return Err(format!("Unexpected engine in script shebang: #!{engine}"));
            }
            for word in words {
                let Some(names) = word.strip_prefix("flags=") else {
                    return Err(format!("Unknown lua shebang option: {word}"));
                };
                for name in names.split(',').filter(|name| !name.is_empty()) {
                    if !flags.set(name.as_bytes()) {
                        return Err(format!("Unexpected flag in script shebang: {name}"));
                    }
                }
            }
            first_line = end;
        }
        let is_confined = is_confined(&text[first_line..]);
        let (id, [is_forgotten, is_quick]) = (id_of(text), [false, false].map(AtomicBool::new));
        let digits = hexadecimal(&id).into();
        Ok(Self { id, text: text.into(), first_line, flags, is_confined, is_forgotten, is_quick, digits })
    }

    /// The program.
    pub fn program(&self) -> &[u8] {
        &self.text[self.first_line..]
    }

    /// Whether a text is its id, in digits of either case.
    pub fn has_digits(&self, text: &[u8]) -> bool {
        self.digits.as_bytes().eq_ignore_ascii_case(text)
    }

    /// Notes whether it was quick when it ran last.
    pub fn note_pace(&self, is_quick: bool) {
        self.is_quick.store(is_quick, Ordering::Relaxed);
    }

    /// Whether it was quick when it ran last; `false` if it never ran.
    pub fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    /// Notes that it is to be run no more under its name.
    pub fn forget(&self) {
        self.is_forgotten.store(true, Ordering::Relaxed);
    }

    /// Whether it is to be run no more.
    pub fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_flags() {
        let flags = |text: &str| Script::new(text.as_bytes(), |_| false).map(|script| script.flags);
        assert_eq!(flags("return 1"), Ok(Flags::default()));
        let expected = Flags { no_writes: true, allow_stale: true, ..Flags::default() };
        assert_eq!(flags("#!lua flags=no-writes,allow-stale\nreturn 1"), Ok(expected));
        for (text, reason) in [
            ("#!lua", "Invalid script shebang"),
            ("#!\nx", "Invalid engine in script shebang"),
            ("#!python\nx", "Unexpected engine in script shebang: #!python"),
            ("#!lua name=x\nx", "Unknown lua shebang option: name=x"),
            ("#!lua flags=bad\nx", "Unexpected flag in script shebang: bad"),
        ] {
            assert_eq!(flags(text), Err(reason.to_owned()), "{text}");
        }
        let script = Script::new(b"#!lua\nreturn 1", |_| true).expect("a script");
        assert_eq!(script.program(), b"\nreturn 1", "lines keep their numbers");
    }

    #[test]
    fn ids_are_read_in_either_case() {
        let id = id_of(b"return 1");
        let text = hexadecimal(&id);
        assert_eq!(text, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(parse_id(text.as_bytes()), Some(id));
        assert_eq!(parse_id(text.to_uppercase().as_bytes()), Some(id));
        assert_eq!(parse_id(b"e0"), None);
        assert_eq!(parse_id("g".repeat(40).as_bytes()), None);
    }
}
