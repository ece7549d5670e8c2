//! A part of a series that gets no more points: a block, or columns that wait to become one.

use super::columns::Columns;
use crate::BLOCK_POINTS;
use crate::block::{Beside, Block};
use crate::sample::Sample;
use crate::unreadable::Unreadable;
use std::sync::Arc;

/// Points between two times. Cloning it copies no points.
#[derive(Debug, Clone)]
pub(crate) struct Piece<V> {
    pub first: i64,
    pub last: i64,
    pub body: Body<V>,
}

/// Where a piece's points are.
#[derive(Debug, Clone)]
pub(crate) enum Body<V> {
    /// Compressed.
    Sealed(Block),
    /// Not compressed yet.
    Open(Arc<Columns<V>>),
}

/// Room for the points of a block.
#[derive(Debug)]
pub(crate) struct Scratch<V> {
    pub times: [i64; BLOCK_POINTS],
    pub values: [V; BLOCK_POINTS],
    /// What was read with a block's points.
    pub beside: Beside,
}

impl<V: Sample> Scratch<V> {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            times: [0; BLOCK_POINTS],
            values: [V::from_bits(0); BLOCK_POINTS],
            beside: Beside::default(),
        })
    }
}

impl<V: Sample> Piece<V> {
    /// Wraps columns that have points.
    pub(crate) fn open(columns: Columns<V>) -> Self {
        let first = columns.first_time().expect("a piece has points");
        let (last, _) = columns.last().expect("a piece has points");
        Self { first, last, body: Body::Open(Arc::new(columns)) }
    }

    /// Wraps a block.
    pub(crate) fn sealed(block: Block) -> Self {
        Self { first: block.first_time(), last: block.last_time(), body: Body::Sealed(block) }
    }

    /// Returns the number of points, at least 1.
    pub(crate) fn len(&self) -> usize {
        match &self.body {
            Body::Sealed(block) => block.len(),
            Body::Open(columns) => columns.len(),
        }
    }

    /// Returns the bytes of the points, without the piece's own.
    pub(crate) fn bytes(&self) -> usize {
        match &self.body {
            Body::Sealed(block) => block.bytes(),
            Body::Open(columns) => columns.bytes(),
        }
    }

    /// Returns the value at exactly `time`.
    #[inline]
    pub(crate) fn get(&self, time: i64) -> Result<Option<V>, Unreadable> {
        match &self.body {
            Body::Sealed(block) if block.has_points() => Ok(block.get(time)),
            Body::Sealed(block) if (self.first..=self.last).contains(&time) => {
                Ok(block.fetch(&mut Beside::default())?.get(time))
            }
            Body::Sealed(_) => Ok(None),
            Body::Open(columns) => Ok(columns.get_between(self.first, self.last, time)),
        }
    }

    /// Returns the points. A block's are decoded into `scratch`.
    pub(crate) fn points<'a>(
        &'a self,
        scratch: &'a mut Scratch<V>,
    ) -> Result<(&'a [i64], &'a [V]), Unreadable> {
        let count = match &self.body {
            Body::Open(columns) => return Ok((columns.times(), columns.values())),
            Body::Sealed(block) if block.has_points() => {
                block.decode(&mut scratch.times, &mut scratch.values)
            }
            Body::Sealed(block) => {
                block.fetch(&mut scratch.beside)?.decode(&mut scratch.times, &mut scratch.values)
            }
        };
        Ok((&scratch.times[..count], &scratch.values[..count]))
    }

    /// Brings the points into memory, if they are not.
    pub(crate) fn bring_points(&mut self, beside: &mut Beside) -> Result<(), Unreadable> {
        if let Body::Sealed(block) = &self.body
            && !block.has_points()
        {
            self.body = Body::Sealed(block.fetch(beside)?);
        }
        Ok(())
    }

    /// Looks whether the points can be read, if they are not in memory.
    pub(crate) fn check_points(&self, beside: &mut Beside) -> Result<(), Unreadable> {
        match &self.body {
            Body::Sealed(block) if !block.has_points() => block.fetch(beside).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Whether the points are in memory.
    pub(crate) fn has_points(&self) -> bool {
        match &self.body {
            Body::Sealed(block) => block.has_points(),
            Body::Open(_) => true,
        }
    }

    /// Whether this is a block with room for more points that are in memory.
    pub(crate) fn is_small_block(&self) -> bool {
        match &self.body {
            Body::Sealed(block) => block.len() < BLOCK_POINTS && block.has_points(),
            Body::Open(_) => false,
        }
    }

    /// Whether both share the same points in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            (Body::Sealed(block), Body::Sealed(other)) => block.is_same(other),
            (Body::Open(columns), Body::Open(other)) => Arc::ptr_eq(columns, other),
            _ => false,
        }
    }
}
