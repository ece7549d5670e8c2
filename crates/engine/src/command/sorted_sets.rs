//! Sorted sets: members ordered by score.

use super::Command;

pub(super) const COMMANDS: &[Command] = &[];
