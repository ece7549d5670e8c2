//! A value in parts, of which some are loaded.

use crate::keyspace::form::{Head, Part};
use crate::persist::apply_error::shown;
use crate::persist::record::Cursor;
use crate::value::{InParts, Object, SnapshotForm, Type};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Description of a malformed frame.
pub(super) type Wrong = Cow<'static, str>;

/// A value of which some parts are loaded.
pub(super) struct Partial {
    kind: Type,
    gathered: Gathered,
    /// Number of loaded elements, and the total once it is known.
    loaded: u64,
    count: Option<u64>,
    place: Option<Destination>,
}

/// Destination of a value.
pub(super) struct Destination {
    pub(super) db: u8,
    pub(super) key: Box<[u8]>,
    pub(super) deadline: Option<u64>,
}

/// The loaded parts of a value.
enum Gathered {
    /// Elements whose parts have no order.
    Elements(Object),
    /// Parts by their index.
    Pieces(BTreeMap<u64, Object>),
}

/// Parses an ordered part; an error if the bytes are not valid for its type.
pub(super) fn decode_piece(part: &Part, bytes: &mut Cursor<'_>) -> Result<Object, Wrong> {
    let (place, number, count, kind) = (part.place, part.number, part.count, part.kind.name());
    let SnapshotForm::Pieces { decode, .. } = part.kind.snapshot_form() else {
        unreachable!("the parts of a {kind} have no order");
    };
    decode(bytes, count).ok_or_else(|| {
        format!("part {place} of value {number}, a {kind}, with {count} elements, cannot be read").into()
    })
}

impl Partial {
    /// Creates an empty partial value; an error if values of this type do not come in parts.
    pub(super) fn new(kind: Type) -> Result<Self, Wrong> {
        let gathered = match kind.snapshot_form() {
            SnapshotForm::Whole => return Err(format!("a {} does not come in parts", kind.name()).into()),
            SnapshotForm::Elements { empty } => Gathered::Elements(empty()),
            SnapshotForm::Pieces { .. } => Gathered::Pieces(BTreeMap::new()),
        };
        Ok(Self { kind, gathered, loaded: 0, count: None, place: None })
    }

    /// Reads and discards a part of a value that is outside the scope.
    pub(super) fn pass_over(part: &Part, bytes: &mut Cursor<'_>) -> Result<(), Wrong> {
        let mut passed_over = Self::new(part.kind)?;
        match passed_over.gathered {
            Gathered::Elements(_) => passed_over.load(part, bytes),
            Gathered::Pieces(_) => decode_piece(part, bytes).map(drop),
        }
    }

    /// Sets the value's destination; an error if it was set before, or if the type differs.
    pub(super) fn set_place(&mut self, db: u8, head: &Head<'_>) -> Result<(), Wrong> {
        self.check_kind(head.number, head.kind)?;
        if let Some(place) = &self.place {
            let (number, known) = (head.number, shown(&place.key));
            return Err(
                format!("value {number} is that of key {known} and of key {}", shown(head.key)).into()
            );
        }
        self.place = Some(Destination { db, key: head.key.into(), deadline: head.deadline });
        self.count = Some(head.count);
        Ok(())
    }

    /// Adds an ordered part; an error if it was added before, or if the type
    /// differs.
    pub(super) fn add(&mut self, part: &Part, piece: Object) -> Result<(), Wrong> {
        self.check_kind(part.number, part.kind)?;
        self.loaded += u64::from(part.count);
        let Gathered::Pieces(pieces) = &mut self.gathered else {
            unreachable!("the parts of a {} have no order", part.kind.name());
        };
        match pieces.insert(part.place, piece) {
            None => Ok(()),
            Some(_) => Err(format!("part {} of value {} comes twice", part.place, part.number).into()),
        }
    }

    /// Reads a part's elements; an error if they are malformed or were loaded before.
    pub(super) fn load(&mut self, part: &Part, bytes: &mut Cursor<'_>) -> Result<(), Wrong> {
        self.check_kind(part.number, part.kind)?;
        self.loaded += u64::from(part.count);
        let Gathered::Elements(object) = &mut self.gathered else {
            // The value was complete, and another thread has read a surplus part.
            return Err(format!("value {} continues after its end", part.number).into());
        };
        let value = object.in_parts_mut().expect("a value whose parts are gathered comes in parts");
        decode_elements(value, part, bytes)
    }

    pub(super) fn loaded(&self) -> u64 {
        self.loaded
    }

    /// The value in the form for errors.
    pub(super) fn shown(&self, number: u64) -> String {
        let kind = self.kind.name();
        match (&self.place, self.count) {
            (Some(place), Some(count)) => {
                format!("value {number}, a {kind} of {count} elements at key {}", shown(&place.key))
            }
            _ => format!("value {number}, a {kind} whose key is missing"),
        }
    }

    fn check_kind(&self, number: u64, kind: Type) -> Result<(), Wrong> {
        if self.kind == kind {
            return Ok(());
        }
        Err(format!("value {number} is a {} and a {}", self.kind.name(), kind.name()).into())
    }

    /// Returns the value and its destination if all parts are loaded; an error if they form no
    /// value.
    pub(super) fn complete(&mut self, number: u64) -> Result<Option<(Object, Destination)>, Wrong> {
        let Some(count) = self.count else { return Ok(None) };
        if self.loaded < count {
            return Ok(None);
        }
        if self.loaded != count || count == 0 {
            let loaded = self.loaded;
            return Err(format!("value {number} has {loaded} elements, and its key says {count}").into());
        }
        let place = self.place.take().ok_or_else(|| format!("value {number} continues after its end"))?;
        let object = match std::mem::replace(&mut self.gathered, Gathered::Pieces(BTreeMap::new())) {
            Gathered::Elements(object) => object,
            Gathered::Pieces(pieces) => join(self.kind, pieces).ok_or_else(|| {
                format!("the parts of value {number}, a {}, do not make one value", self.kind.name())
            })?,
        };
        Ok(Some((object, place)))
    }
}

/// Joins ordered parts; `None` if one is missing, or if they form no value.
fn join(kind: Type, pieces: BTreeMap<u64, Object>) -> Option<Object> {
    let SnapshotForm::Pieces { join, .. } = kind.snapshot_form() else {
        unreachable!("the parts of a {} have no order", kind.name());
    };
    let is_complete = pieces.keys().copied().eq(0..pieces.len() as u64);
    is_complete.then(|| join(pieces.into_values().collect())).flatten()
}

fn decode_elements(value: &mut dyn InParts, part: &Part, bytes: &mut Cursor<'_>) -> Result<(), Wrong> {
    (0..part.count).try_for_each(|index| {
        value.decode_element(bytes).ok_or_else(|| {
            let (number, count, kind) = (part.number, part.count, part.kind.name());
            format!(
                "element {index} of {count} in a part of value {number}, a {kind}, is none or is there twice"
            )
            .into()
        })
    })
}
