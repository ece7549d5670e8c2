//! Which bundle of the block file a block will be in, decided while a snapshot walks over the series.

use super::address::{Address, Where};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_series::{BUNDLE_BLOCKS, Block};

/// How a running snapshot writes blocks: by reference, or whole if it has no block file.
#[derive(Debug, Clone, Default)]
pub struct Blocks(Option<Arc<Placing>>);

/// Blocks of a running snapshot.
#[derive(Debug)]
pub(super) struct Placing {
    /// Number of the snapshot's own block file.
    pub number: u64,
    /// Files whose blocks are written again.
    rewritten: BTreeSet<u64>,
    state: Mutex<PlacingState>,
}

#[derive(Debug, Default)]
pub(super) struct PlacingState {
    /// Bundles so far.
    pub bundles: u32,
    /// Bundles that are not written yet, each with its number.
    pub waiting: Vec<(u32, Vec<Block>)>,
    /// Bytes that the snapshot refers to, by file.
    pub used: BTreeMap<u64, u64>,
}

impl Blocks {
    /// Begins with blocks of one series, which are to lie together; `None` if the snapshot writes them whole.
    pub(crate) fn bundler(&self) -> Option<Bundler<'_>> {
        self.0.as_ref().map(|placing| Bundler { placing, bundle: None })
    }

    pub(super) fn of(placing: &Arc<Placing>) -> Self {
        Self(Some(Arc::clone(placing)))
    }
}

impl Placing {
    pub(super) fn new(number: u64, rewritten: BTreeSet<u64>) -> Self {
        Self { number, rewritten, state: Mutex::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PlacingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts blocks of one series into bundles. They are written after it is dropped.
#[derive(Debug)]
pub(crate) struct Bundler<'b> {
    placing: &'b Placing,
    /// The bundle that gets blocks, and its number.
    bundle: Option<(u32, Vec<Block>)>,
}

impl Bundler<'_> {
    /// Returns where a block is or will be.
    pub(crate) fn refer(&mut self, block: &Block) -> Address {
        let known = block.with_place(|place| {
            let at = Where::of_position(place.position);
            (Address { file: place.source.number(), at }, u64::from(place.bytes))
        });
        if let Some((address, bytes)) = known.filter(|(at, _)| !self.placing.rewritten.contains(&at.file)) {
            *self.placing.lock().used.entry(address.file).or_default() += bytes;
            return address;
        }
        let (bundle, blocks) = self.bundle.get_or_insert_with(|| {
            let mut state = self.placing.lock();
            let number = state.bundles;
            state.bundles = number.checked_add(1).expect("a file has fewer than 2^32 bundles");
            (number, Vec::with_capacity(BUNDLE_BLOCKS))
        });
        let at = Where::Bundled { bundle: *bundle, index: blocks.len() as u8 };
        blocks.push(block.clone());
        if blocks.len() == BUNDLE_BLOCKS {
            self.finish();
        }
        Address { file: self.placing.number, at }
    }

    fn finish(&mut self) {
        if let Some(bundle) = self.bundle.take() {
            self.placing.lock().waiting.push(bundle);
        }
    }
}

impl Drop for Bundler<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}
