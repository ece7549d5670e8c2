//! The arguments of LMPOP, ZMPOP and their blocking kin: several keys, the first of which that exists is popped from.

use super::parse::{self, is};
use crate::error::CommandError;

/// `numkeys key [key ...] END [COUNT count]`, where `END` names one of two ends.
pub(super) struct FirstOf<'a, 'b, E> {
    pub(super) keys: &'a [&'b [u8]],
    pub(super) end: E,
    /// How many elements to pop at most; at least 1.
    pub(super) count: usize,
}

impl<'a, 'b, E> FirstOf<'a, 'b, E> {
    /// Reads the arguments, `end` that of the end.
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
