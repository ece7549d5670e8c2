//! How the points of a block become words.
//!
//! `words` ◄─ `packing` ◄─ `positions`, `line` ◄─ `window` ◄─ `integers` ◄─ `decimals`, `split`,
//! `dictionary`, `runs` ◄─ `values`.

mod decimals;
mod dictionary;
mod integers;
mod line;
mod packing;
mod positions;
mod runs;
mod sections;
mod split;
mod values;
mod window;
mod words;

pub(crate) use integers::{Integers, encode as encode_integers};
pub(crate) use sections::{Section, sections_of_integers, sections_of_values};
pub(crate) use values::{Hints, Values, encode as encode_values, value_at};
pub(crate) use window::{unzigzag, zigzag};
pub(crate) use words::{Reader, Words};
