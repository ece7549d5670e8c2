//! Hashes: fields with values.

use super::Command;

pub(super) const COMMANDS: &[Command] = &[];
