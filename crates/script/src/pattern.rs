//! Lua's patterns, with a limit of time and depth.
//!
//! The matcher of Lua 5.1 backtracks without end, and without a hook that could stop it, at patterns such as
//! `(.-)*x`. This one asks now and then whether the script must end, and is as deep as later versions of Lua
//! allow.

/// Most captures of a pattern.
const MAX_CAPTURES: usize = 32;
/// Most parts of a pattern that are matched in each other.
const MAX_DEPTH: usize = 200;
/// Steps between two questions whether the script must end.
const STEPS: u32 = 1 << 16;

const UNCLOSED: isize = -1;
const POSITION: isize = -2;

/// Why a pattern is not matched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// The pattern is malformed or too complex.
    Malformed(&'static str),
    /// The script must end.
    Interrupted,
}

use PatternError::Malformed;

type Found<T> = Result<T, PatternError>;

/// A part of the text that a pattern has captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// From a byte to another, which is not in it.
    Text(usize, usize),
    /// The position, from 1 on.
    Position(usize),
}

/// Where a pattern matches a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// What it has captured; the whole if the pattern captures nothing.
    pub(crate) captures: Vec<Capture>,
    /// Whether the pattern has captures.
    pub(crate) has_captures: bool,
}

/// Finds the first match at `from` or behind it. `stops` is asked now and then whether to give up.
pub(crate) fn find(
    text: &[u8],
    pattern: &[u8],
    from: usize,
    stops: &mut dyn FnMut() -> bool,
) -> Found<Option<Match>> {
    let (is_anchored, pattern) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        whole => (false, whole),
    };
    let mut matcher =
        Matcher { text, pattern, captures: [(0, 0); MAX_CAPTURES], level: 0, depth: 0, steps: 0, stops };
    let mut start = from;
    loop {
        matcher.level = 0;
        if let Some(end) = matcher.run(start, 0)? {
            return matcher.found(start, end).map(Some);
        }
        start += 1;
        if is_anchored || start > text.len() {
            return Ok(None);
        }
    }
}

/// Whether a pattern is only text.
pub(crate) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte))
}

struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    /// Start and length of each capture.
    captures: [(usize, isize); MAX_CAPTURES],
    level: usize,
    depth: usize,
    steps: u32,
    stops: &'a mut dyn FnMut() -> bool,
}

impl Matcher<'_> {
    fn found(&self, start: usize, end: usize) -> Found<Match> {
        let mut captures = Vec::with_capacity(self.level.max(1));
        for (from, len) in &self.captures[..self.level] {
            captures.push(match *len {
                POSITION => Capture::Position(from + 1),
                UNCLOSED => return Err(Malformed("unfinished capture")),
                len => Capture::Text(*from, from + len as usize),
            });
        }
        let has_captures = !captures.is_empty();
        if !has_captures {
            captures.push(Capture::Text(start, end));
        }
        Ok(Match { start, end, captures, has_captures })
    }

    fn step(&mut self) -> Found<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) && (self.stops)() {
            Err(PatternError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Matches the pattern from `p` on to the text from `s` on. Returns where the match ends.
    fn run(&mut self, s: usize, p: usize) -> Found<Option<usize>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Malformed("pattern too complex"));
        }
        let found = self.run_here(s, p);
        self.depth -= 1;
        found
    }

    fn run_here(&mut self, mut s: usize, mut p: usize) -> Found<Option<usize>> {
        loop {
            self.step()?;
            let Some(&first) = self.pattern.get(p) else { return Ok(Some(s)) };
            match first {
                b'(' if self.pattern.get(p + 1) == Some(&b')') => return self.open(s, p + 2, POSITION),
                b'(' => return self.open(s, p + 1, UNCLOSED),
                b')' => return self.close(s, p + 1),
                b'%' => match self.pattern.get(p + 1) {
                    Some(b'b') => {
                        let Some(end) = self.balanced(s, p + 2)? else { return Ok(None) };
                        (s, p) = (end, p + 4);
                        continue;
                    }
                    Some(b'f') => {
                        p += 2;
                        if self.pattern.get(p) != Some(&b'[') {
                            return Err(Malformed("missing '[' after '%f' in pattern"));
                        }
                        let end = self.class_end(p)?;
                        let before = if s == 0 { 0 } else { self.text[s - 1] };
                        let here = self.text.get(s).copied().unwrap_or(0);
                        if self.in_set(before, p, end - 1) || !self.in_set(here, p, end - 1) {
                            return Ok(None);
                        }
                        p = end;
                        continue;
                    }
                    Some(digit) if digit.is_ascii_digit() => {
                        let Some(end) = self.repeated(s, *digit)? else { return Ok(None) };
                        (s, p) = (end, p + 2);
                        continue;
                    }
                    _ => {}
                },
                b'$' if p + 1 == self.pattern.len() => {
                    return Ok((s == self.text.len()).then_some(s));
                }
                _ => {}
            }
            let end = self.class_end(p)?;
            let is_here = s < self.text.len() && self.matches(self.text[s], p, end);
            match self.pattern.get(end) {
                Some(b'?') => {
                    if is_here && let Some(found) = self.run(s + 1, end + 1)? {
                        return Ok(Some(found));
                    }
                    p = end + 1;
                }
                Some(b'*') => return self.most(s, p, end),
                Some(b'+') => return if is_here { self.most(s + 1, p, end) } else { Ok(None) },
                Some(b'-') => return self.least(s, p, end),
                _ if is_here => (s, p) = (s + 1, end),
                _ => return Ok(None),
            }
        }
    }

    fn open(&mut self, s: usize, p: usize, what: isize) -> Found<Option<usize>> {
        if self.level >= MAX_CAPTURES {
            return Err(Malformed("too many captures"));
        }
        self.captures[self.level] = (s, what);
        self.level += 1;
        let found = self.run(s, p)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Found<Option<usize>> {
        let open = (0..self.level).rev().find(|level| self.captures[*level].1 == UNCLOSED);
        let level = open.ok_or(Malformed("invalid pattern capture"))?;
        self.captures[level].1 = (s - self.captures[level].0) as isize;
        let found = self.run(s, p)?;
        if found.is_none() {
            self.captures[level].1 = UNCLOSED;
        }
        Ok(found)
    }

    fn balanced(&mut self, s: usize, p: usize) -> Found<Option<usize>> {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Malformed("unbalanced pattern"));
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for at in s + 1..self.text.len() {
            self.step()?;
            if self.text[at] == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if self.text[at] == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    fn repeated(&mut self, s: usize, digit: u8) -> Found<Option<usize>> {
        let level = usize::from(digit.wrapping_sub(b'1'));
        let (start, len) = match self.captures[..self.level].get(level) {
            Some((start, len)) if *len >= 0 => (*start, *len as usize),
            Some((_, POSITION)) => return Ok(None),
            _ => return Err(Malformed("invalid capture index")),
        };
        let is_equal = self.text.get(s..s + len) == Some(&self.text[start..start + len]);
        Ok(is_equal.then_some(s + len))
    }

    fn most(&mut self, s: usize, p: usize, end: usize) -> Found<Option<usize>> {
        let mut count = 0;
        while s + count < self.text.len() && self.matches(self.text[s + count], p, end) {
            self.step()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.run(s + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn least(&mut self, mut s: usize, p: usize, end: usize) -> Found<Option<usize>> {
        loop {
            if let Some(found) = self.run(s, end + 1)? {
                return Ok(Some(found));
            }
            if s >= self.text.len() || !self.matches(self.text[s], p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    /// Returns where the class that begins at `p` ends.
    fn class_end(&self, p: usize) -> Found<usize> {
        match self.pattern[p] {
            b'%' if p + 1 >= self.pattern.len() => Err(Malformed("malformed pattern (ends with '%')")),
            b'%' => Ok(p + 2),
            b'[' => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                loop {
                    match self.pattern.get(at) {
                        None => return Err(Malformed("malformed pattern (missing ']')")),
                        Some(b'%') if at + 1 < self.pattern.len() => at += 2,
                        Some(_) => at += 1,
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    fn matches(&self, byte: u8, p: usize, end: usize) -> bool {
        match self.pattern[p] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, end - 1),
            own => own == byte,
        }
    }

    /// Whether a byte is in the set from `p`, its `[`, to `close`, its `]`.
    fn in_set(&self, byte: u8, p: usize, close: usize) -> bool {
        let is_negated = self.pattern.get(p + 1) == Some(&b'^');
        let mut at = p + 1 + usize::from(is_negated);
        while at < close {
            if self.pattern[at] == b'%' && at + 1 < close {
                if in_class(byte, self.pattern[at + 1]) {
                    return !is_negated;
                }
                at += 2;
            } else if self.pattern.get(at + 1) == Some(&b'-') && at + 2 < close {
                if (self.pattern[at]..=self.pattern[at + 2]).contains(&byte) {
                    return !is_negated;
                }
                at += 3;
            } else {
                if self.pattern[at] == byte {
                    return !is_negated;
                }
                at += 1;
            }
        }
        is_negated
    }
}

fn in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, pattern: &str) -> Vec<String> {
        let found = find(text.as_bytes(), pattern.as_bytes(), 0, &mut || false).expect("a valid pattern");
        let shown = |capture: &Capture| match capture {
            Capture::Text(from, to) => text[*from..*to].to_owned(),
            Capture::Position(at) => format!("@{at}"),
        };
        found.map_or_else(Vec::new, |found| found.captures.iter().map(shown).collect())
    }

    #[test]
    fn patterns_match_as_in_lua() {
        for (text, pattern, captures) in [
            ("hello world", "o w", &["o w"][..]),
            ("key = value", "^(%w+)%s*=%s*(%w+)$", &["key", "value"]),
            ("  x", "^%s*()", &["@3"]),
            ("THE (quick) fox", "%((%a+)%)", &["quick"]),
            ("f(a(b)c)d", "%b()", &["(a(b)c)"]),
            ("THE fox", "%f[%a]%a+%f[%A]", &["THE"]),
            ("abcabc", "(abc)%1", &["abc"]),
            ("a]b", "[]]", &["]"]),
            ("a-b", "[a%-]+", &["a-"]),
            ("aaa", "a-$", &["aaa"]),
            ("x", "y?x", &["x"]),
            ("0x1F", "^0[xX](%x+)$", &["1F"]),
            ("abc", "^b", &[]),
            ("", "^$", &[""]),
            ("[[x]]", "[^%[%]]+", &["x"]),
        ] {
            assert_eq!(texts(text, pattern), captures, "{text} {pattern}");
        }
    }

    #[test]
    fn malformed_patterns_are_refused_with_the_words_of_lua() {
        for (pattern, reason) in [
            ("%", "malformed pattern (ends with '%')"),
            ("[a", "malformed pattern (missing ']')"),
            ("(a", "unfinished capture"),
            ("a)", "invalid pattern capture"),
            ("%1", "invalid capture index"),
            ("%f", "missing '[' after '%f' in pattern"),
            ("%b", "unbalanced pattern"),
        ] {
            let found = find(b"aaa", pattern.as_bytes(), 0, &mut || false);
            assert_eq!(found, Err(Malformed(reason)), "{pattern}");
        }
        let captures = "()".repeat(33);
        assert_eq!(find(b"", captures.as_bytes(), 0, &mut || false), Err(Malformed("too many captures")));
        let deep = "a?".repeat(100_000);
        let text = "a".repeat(100_000);
        let found = find(text.as_bytes(), deep.as_bytes(), 0, &mut || false);
        assert_eq!(found, Err(Malformed("pattern too complex")));
    }

    #[test]
    fn a_pattern_that_backtracks_for_ever_can_be_stopped() {
        let text = "a".repeat(10_000);
        let mut questions = 0;
        let mut stops = || {
            questions += 1;
            questions > 3
        };
        let found = find(text.as_bytes(), b".-.-.-.-.-b", 0, &mut stops);
        assert_eq!(found, Err(PatternError::Interrupted));
    }
}
