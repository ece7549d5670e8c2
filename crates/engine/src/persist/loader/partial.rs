//! A value in parts, of which some are loaded.

use crate::keyspace::form::{Head, Part};
use crate::persist::apply_error::shown;
use crate::persist::loader::Wrong;
use crate::persist::record::Cursor;
use crate::value::{Collection, Hash, InParts, List, Object, Pool, Set, SortedSet, Type};
use std::collections::BTreeMap;

/// A value of which some parts are loaded.
pub(super) struct Partial {
    kind: Type,
    gathered: Gathered,
    /// Number of loaded elements, and the total once it is known.
    loaded: u64,
    count: Option<u64>,
    place: Option<Place>,
}

/// Destination of a value.
pub(super) struct Place {
    pub(super) db: u8,
    pub(super) key: Box<[u8]>,
    pub(super) deadline: Option<u64>,
}

/// The loaded parts of a value.
enum Gathered {
    /// Elements whose parts have no order.
    Unordered(Object),
    /// Parts by their index.
    Ordered(BTreeMap<u64, Piece>),
}

/// Content of one ordered part.
pub(super) enum Piece {
    /// Consecutive elements of a list.
    List(List),
    /// A piece of a pool's image.
    Pool(Box<[u8]>),
}

impl Piece {
    /// Reads the content of a part; an error if the bytes are not valid for its type.
    pub(super) fn decode(part: &Part, bytes: &mut Cursor<'_>) -> Result<Self, Wrong> {
        match part.kind {
            Type::List => {
                let mut run = List::default();
                decode_elements(&mut run, part, bytes)?;
                Ok(Self::List(run))
            }
            Type::Pool if part.count == 1 => {
                let piece =
                    bytes.bytes().ok_or_else(|| format!("a piece of pool {} is cut off", part.number))?;
                Ok(Self::Pool(piece.into()))
            }
            kind => {
                let (number, count, kind) = (part.number, part.count, kind.name());
                Err(format!("a part of value {number}, a {kind}, has {count} pieces").into())
            }
        }
    }
}

impl Partial {
    /// Creates an empty partial value; an error if values of this type do not come in parts.
    pub(super) fn new(kind: Type) -> Result<Self, Wrong> {
        let gathered = match kind {
            Type::String | Type::Counter | Type::Limit => {
                return Err(format!("a {} does not come in parts", kind.name()).into());
            }
            Type::List | Type::Pool => Gathered::Ordered(BTreeMap::new()),
            Type::Hash => Gathered::Unordered(Hash::default().into_object()),
            Type::Set => Gathered::Unordered(Set::default().into_object()),
            Type::SortedSet => Gathered::Unordered(SortedSet::default().into_object()),
        };
        Ok(Self { kind, gathered, loaded: 0, count: None, place: None })
    }

    /// Reads and discards a part of a value that is outside the scope.
    pub(super) fn pass_over(part: &Part, bytes: &mut Cursor<'_>) -> Result<(), Wrong> {
        let mut passed_over = Self::new(part.kind)?;
        match passed_over.gathered {
            Gathered::Unordered(_) => passed_over.load(part, bytes),
            Gathered::Ordered(_) => Piece::decode(part, bytes).map(drop),
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
        self.place = Some(Place { db, key: head.key.into(), deadline: head.deadline });
        self.count = Some(head.count);
        Ok(())
    }

    /// Adds the content of an ordered part; an error if it was added before, or if the type
    /// differs.
    pub(super) fn add(&mut self, part: &Part, piece: Piece) -> Result<(), Wrong> {
        self.check_kind(part.number, part.kind)?;
        self.loaded += u64::from(part.count);
        let Gathered::Ordered(pieces) = &mut self.gathered else {
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
        let Gathered::Unordered(object) = &mut self.gathered else {
            // The value was complete, and another thread has read a surplus part.
            return Err(format!("value {} goes on behind its end", part.number).into());
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
    pub(super) fn complete(&mut self, number: u64) -> Result<Option<(Object, Place)>, Wrong> {
        let Some(count) = self.count else { return Ok(None) };
        if self.loaded < count {
            return Ok(None);
        }
        if self.loaded != count || count == 0 {
            let loaded = self.loaded;
            return Err(format!("value {number} has {loaded} elements, and its key says {count}").into());
        }
        let place = self.place.take().ok_or_else(|| format!("value {number} goes on behind its end"))?;
        let object = match std::mem::replace(&mut self.gathered, Gathered::Ordered(BTreeMap::new())) {
            Gathered::Unordered(object) => object,
            Gathered::Ordered(pieces) => assemble(self.kind, pieces).ok_or_else(|| {
                format!("the parts of value {number}, a {}, do not make one value", self.kind.name())
            })?,
        };
        Ok(Some((object, place)))
    }
}

/// Assembles ordered parts; `None` if one is missing.
fn assemble(kind: Type, pieces: BTreeMap<u64, Piece>) -> Option<Object> {
    if !pieces.keys().copied().eq(0..pieces.len() as u64) {
        return None;
    }
    if kind == Type::List {
        let mut list = List::default();
        for piece in pieces.into_values() {
            let Piece::List(run) = piece else { return None };
            list.append(run);
        }
        return Some(list.into_object());
    }
    let mut images = pieces.values().map(|piece| match piece {
        Piece::Pool(image) => &**image,
        Piece::List(_) => unreachable!("a part of a list among those of a {}", kind.name()),
    });
    Some(Pool::assemble(images.next()?, images)?.into_object())
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
