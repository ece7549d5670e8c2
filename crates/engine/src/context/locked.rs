//! The shards locked for a command.

use crate::keyspace::Shard;
use std::sync::MutexGuard;

/// Locked shards, in the order of their indices.
pub(crate) enum Locked<'k> {
    One(usize, MutexGuard<'k, Shard>),
    Many(Vec<(usize, MutexGuard<'k, Shard>)>),
    All(Vec<MutexGuard<'k, Shard>>),
}

impl Locked<'_> {
    /// Whether a locked shard satisfies a condition by which shards may be missing: never if all are
    /// locked.
    #[inline]
    pub(crate) fn any(&self, condition: impl Fn(&Shard) -> bool) -> bool {
        match self {
            Self::One(_, guard) => condition(guard),
            Self::Many(guards) => guards.iter().any(|(_, guard)| condition(guard)),
            Self::All(_) => false,
        }
    }

    /// Whether a locked shard satisfies a condition.
    #[cold]
    pub(crate) fn has(&self, condition: impl Fn(&Shard) -> bool) -> bool {
        match self {
            Self::All(guards) => guards.iter().any(|guard| condition(guard)),
            some => some.any(condition),
        }
    }

    pub(crate) fn indices(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Self::One(index, _) => Box::new(std::iter::once(*index)),
            Self::Many(guards) => Box::new(guards.iter().map(|(index, _)| *index)),
            Self::All(guards) => Box::new(0..guards.len()),
        }
    }

    #[cold]
    pub(crate) fn each_mut(&mut self, mut visit: impl FnMut(&mut Shard)) {
        match self {
            Self::One(_, guard) => visit(guard),
            Self::Many(guards) => guards.iter_mut().for_each(|(_, guard)| visit(guard)),
            Self::All(guards) => guards.iter_mut().for_each(|guard| visit(guard)),
        }
    }

    /// A shard, if it is locked.
    pub(crate) fn shard(&self, index: usize) -> Option<&Shard> {
        match self {
            Self::One(own, guard) => (*own == index).then_some(&**guard),
            Self::Many(guards) => {
                let at = guards.binary_search_by_key(&index, |(index, _)| *index).ok()?;
                Some(&guards[at].1)
            }
            Self::All(guards) => guards.get(index).map(|guard| &**guard),
        }
    }

    pub(crate) fn shard_mut(&mut self, index: usize) -> Option<&mut Shard> {
        match self {
            Self::One(own, guard) => (*own == index).then_some(&mut **guard),
            Self::Many(guards) => {
                let at = guards.binary_search_by_key(&index, |(index, _)| *index).ok()?;
                Some(&mut guards[at].1)
            }
            Self::All(guards) => guards.get_mut(index).map(|guard| &mut **guard),
        }
    }
}
