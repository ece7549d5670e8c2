//! Positions in a text: the compact form that parsers keep, and the form that errors show.

use std::fmt;

/// Position in a text, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in its line, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// Position in a text, from a parser. Compact, because each item has one; an offset becomes a line
/// and a column only for an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParserPosition {
    /// Offset in bytes.
    Byte(u32),
    /// Line and column, both from 1.
    LineColumn(u32, u32),
}

impl ParserPosition {
    /// Creates the place of a byte. Offsets from 4 GiB on are clamped.
    pub(super) fn byte(offset: usize) -> Self {
        Self::Byte(narrow(offset))
    }

    /// Creates the place of a line and a column, both from 1. Both are clamped to `u32`.
    pub(super) fn line_column(line: usize, column: usize) -> Self {
        Self::LineColumn(narrow(line), narrow(column))
    }

    /// Returns the position in the text that the parser has read. An offset inside a character is
    /// at that character, an offset past the end is at the end. O(offset).
    pub(super) fn position(self, text: &str) -> Position {
        match self {
            Self::LineColumn(line, column) => Position { line: line as usize, column: column as usize },
            Self::Byte(offset) => {
                let before = &text[..text.floor_char_boundary(offset as usize)];
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                Position {
                    line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
                    column: before[line_start..].chars().count() + 1,
                }
            }
        }
    }
}

/// Converts a number; larger ones become `u32::MAX`.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_in_its_line_and_column() {
        let text = "ä: 1\nöü: 2\n";
        let at = |offset| ParserPosition::byte(offset).position(text);
        assert_eq!(at(0), Position { line: 1, column: 1 });
        assert_eq!(at(2), Position { line: 1, column: 2 });
        assert_eq!(at(1), Position { line: 1, column: 1 }, "inside a character, at its start");
        assert_eq!(at(6), Position { line: 2, column: 1 });
        assert_eq!(at(10), Position { line: 2, column: 3 });
        assert_eq!(at(usize::MAX), Position { line: 3, column: 1 }, "past the end, at the end");
    }
}
