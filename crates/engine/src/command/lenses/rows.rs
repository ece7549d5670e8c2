//! The rows of the command table for lenses.

use super::{compose, create, drop, info, list};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Lens, id, name, arity, flags, keys, Run::Keys(run))
}

/// Version in which the group came.
const SINCE: &str = "tidemark 0.1.0";

/// Syntax of a transform.
macro_rules! transform {
    () => {
        "IDENTITY | ABS | LOG | DELTA | INCREASE | RATE | RETURNS | LOG_RETURN | CELSIUS_TO_FAHRENHEIT | \
         FAHRENHEIT_TO_CELSIUS | CELSIUS_TO_KELVIN | KELVIN_TO_CELSIUS | METERS_TO_FEET | FEET_TO_METERS | \
         AFFINE factor offset | CLAMP lowest highest | EXPR expression [WITH key ASOF age] | \
         MOVING aggregator span | EWMA weight | RESAMPLE step [PREVIOUS | LINEAR] | \
         FILL step [PREVIOUS | LINEAR | constant] | SHIFT distance | <+ | - | * | /> key ASOF age"
    };
}

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(600, "lens.create", -3, WRITE | DENYOOM | MOVABLE_KEYS, KeySpec::TwoAndBesides, create)
        .using(&["OW insert", "RO", "RO"])
        .doc(
            SINCE,
            "O(N) with N the number of transforms and of lenses below",
            concat!("name source [<", transform!(), "> ...] [LABELS label value [label value ...]]"),
            "Creates a lens: a series or another lens seen through transforms, which nothing is computed for before it is read. Filters find it by its labels.",
        ),
    row(601, "lens.compose", -3, WRITE | DENYOOM, KeySpec::REST, compose).using(&["OW insert", "RO"]).doc(
        SINCE,
        "O(N) with N the number of transforms and of lenses below",
        "name lens [lens ...]",
        "Creates a lens with the source of the first lens and the transforms of all, one after the other.",
    ),
    row(602, "lens.drop", -2, WRITE, KeySpec::REST, drop).using(&["RM delete"]).doc(
        SINCE,
        "O(N) with N the number of lenses",
        "name [name ...]",
        "Removes lenses, all of them or none: answers their number.",
    ),
    row(603, "lens.list", -1, READONLY, KeySpec::All, list).answering(Answer::Ordered).visiting_all().doc(
        SINCE,
        "O(N) with N the number of keys",
        "[SOURCE key]",
        "Returns the names of all lenses, or of those that see a key.",
    ),
    row(604, "lens.info", 2, READONLY | FAST, KeySpec::ONE, info)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            SINCE,
            "O(N) with N the number of transforms and of lenses below",
            "name",
            "Returns what a lens sees, through which transforms, and its labels.",
        ),
];
