//! Arguments of LMPOP, ZMPOP and their blocking variants: several keys, of which the first that
//! exists is popped.

use super::parse::{self, is};
use crate::error::CommandError;

/// `numkeys key [key ...] END [COUNT count]`, where `END` is one of two ends.
pub(super) struct FirstOf<'a, 'b, E> {
    pub(super) keys: &'a [&'b [u8]],
    pub(super) end: E,
    /// Most elements to pop; at least 1.
    pub(super) count: usize,
}

impl<'a, 'b, E> FirstOf<'a, 'b, E> {
    /// Parses the arguments. `end` parses the end.
    pub(super) fn parse(
        args: &'a [&'b [u8]],
        end: impl FnOnce(&[u8]) -> Result<E, CommandError>,
    ) -> Result<Self, CommandError> {
        let (number, rest) = args.split_first().ok_or(CommandError::Syntax)?;
        let number = parse::at_least(1, number, "ERR numkeys should be greater than 0")?;
        let (keys, rest) = rest.split_at_checked(number).ok_or(CommandError::Syntax)?;
        let (named, options) = rest.split_first().ok_or(CommandError::Syntax)?;
        let end = end(named)?;
        let count = match options {
            [] => 1,
            [option, count, rest @ ..] if is(option, "COUNT") => {
                let count = parse::at_least(1, count, "ERR count should be greater than 0")?;
                if !rest.is_empty() {
                    return Err(CommandError::Syntax);
                }
                count
            }
            _ => return Err(CommandError::Syntax),
        };
        Ok(Self { keys, end, count })
    }
}
