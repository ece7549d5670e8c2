//! Lists: sequences that are pushed and popped at both ends.

use super::Command;

pub(super) const COMMANDS: &[Command] = &[];
