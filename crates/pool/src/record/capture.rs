//! Capture of a pool: a copy-on-write snapshot. A block of items is copied before one of its items
//! changes, so the copy is the pool at one time while the pool continues.

use crate::draw::selector::Selector;
use crate::ending::Ending;
use crate::pool::Pool;
use crate::record::event::Event;
use std::ops::Range;

/// Number of items in a block: some kilobytes, unless ids are long.
pub const BLOCK_ITEMS: usize = 128;

/// A running capture of a pool's items as they were when it began. Each block is copied once; all
/// blocks and the [head](Pool::write_head) of that time are the pool's image.
///
/// ```
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::{Capture, Catalogue, Event, Item, Pool, PoolImage, Secret};
///
/// let catalogue = Catalogue::new((0..300).map(|item| Item::limited(item.to_string(), 1, 9)).collect()).unwrap();
/// let mut pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
/// let (mut head, mut blocks) = (Vec::new(), vec![Vec::new(); 3]);
/// pool.write_head(&mut head);
/// let mut capture = Capture::new(pool.urn().len());
///
/// let event = Event::Drew(Some(299));
/// capture.see(&pool, &event, |block, items| blocks[block].extend_from_slice(items));
/// pool.apply(&event).unwrap();
/// while capture.step(&pool, |block, items| blocks[block].extend_from_slice(items)) {}
///
/// let mut image = PoolImage::read(&head).unwrap();
/// blocks.iter().for_each(|items| image.read_items(items).unwrap());
/// assert_eq!(image.finish::<WideTree>().unwrap().next_draw(), 0, "the draw came behind the capture's begin");
/// ```
#[derive(Debug)]
pub struct Capture {
    /// Number of items at the beginning. Items added later are not captured.
    items: usize,
    /// Blocks already copied.
    seen: Vec<bool>,
    /// Next block of the walk; all before it are copied.
    next: usize,
    buffer: Vec<u8>,
}

impl Capture {
    /// Begins the capture of a pool with this number of items.
    pub fn new(items: usize) -> Self {
        Self { items, seen: vec![false; Self::blocks_of(items)], next: 0, buffer: Vec::new() }
    }

    /// Returns the number of blocks for a number of items.
    pub fn blocks_of(items: usize) -> usize {
        items.div_ceil(BLOCK_ITEMS)
    }

    /// Returns whether an event changes items that are not copied yet, or may do so.
    pub fn is_unseen(&self, event: &Event<'_>) -> bool {
        match event {
            Event::Drew(Some(item))
            | Event::Changed { item, .. }
            | Event::Removed { item }
            | Event::GivenBack { item, .. }
            | Event::GivenBackBy { item, .. } => self.is_unseen_item(*item),
            Event::DrewDifferent { items } | Event::Reserved { items, .. } => {
                items.iter().flatten().any(|&item| self.is_unseen_item(item))
            }
            Event::Asked(asked) => asked.items.iter().flatten().any(|&item| self.is_unseen_item(item)),
            // `see` looks up the items that they change.
            Event::Advanced { .. } | Event::Ended { how: Ending::Cancelled | Ending::Expired, .. } => true,
            Event::Drew(None)
            | Event::Added { .. }
            | Event::Epoch { .. }
            | Event::Ended { how: Ending::Confirmed, .. } => false,
        }
    }

    /// Copies the blocks that an event is about to change, unless they are copied already. Calls
    /// `write` with the index and the bytes of each block.
    pub fn see<S: Selector>(
        &mut self,
        pool: &Pool<S>,
        event: &Event<'_>,
        mut write: impl FnMut(usize, &[u8]),
    ) {
        match event {
            Event::Drew(Some(item))
            | Event::Changed { item, .. }
            | Event::Removed { item }
            | Event::GivenBack { item, .. }
            | Event::GivenBackBy { item, .. } => self.see_item(pool, *item, &mut write),
            Event::DrewDifferent { items } | Event::Reserved { items, .. } => {
                items.iter().flatten().for_each(|&item| self.see_item(pool, item, &mut write));
            }
            Event::Asked(asked) => {
                asked.items.iter().flatten().for_each(|&item| self.see_item(pool, item, &mut write));
            }
            Event::Advanced { now_ms } => {
                pool.urn().due_items(*now_ms).for_each(|item| self.see_item(pool, item, &mut write));
            }
            Event::Ended { number, how: Ending::Cancelled | Ending::Expired } => {
                let reservation = pool.reservation(*number);
                let items = reservation.into_iter().flat_map(|reservation| &reservation.draws);
                items.filter_map(|draw| draw.item).for_each(|item| self.see_item(pool, item, &mut write));
            }
            Event::Drew(None)
            | Event::Added { .. }
            | Event::Epoch { .. }
            | Event::Ended { how: Ending::Confirmed, .. } => {}
        }
    }

    /// Copies the next block that is not copied yet. Returns whether there was one.
    pub fn step<S: Selector>(&mut self, pool: &Pool<S>, mut write: impl FnMut(usize, &[u8])) -> bool {
        while let Some(&is_seen) = self.seen.get(self.next) {
            self.next += 1;
            if !is_seen {
                self.see_block(pool, self.next - 1, &mut write);
                return true;
            }
        }
        false
    }

    #[inline]
    fn is_unseen_item(&self, item: u32) -> bool {
        self.seen.get(item as usize / BLOCK_ITEMS) == Some(&false)
    }

    fn see_item<S: Selector>(&mut self, pool: &Pool<S>, item: u32, write: &mut impl FnMut(usize, &[u8])) {
        if self.is_unseen_item(item) {
            self.see_block(pool, item as usize / BLOCK_ITEMS, write);
        }
    }

    fn see_block<S: Selector>(&mut self, pool: &Pool<S>, block: usize, write: &mut impl FnMut(usize, &[u8])) {
        self.seen[block] = true;
        self.buffer.clear();
        pool.write_items(self.items_of(block), &mut self.buffer);
        write(block, &self.buffer);
    }

    fn items_of(&self, block: usize) -> Range<u32> {
        let first = block * BLOCK_ITEMS;
        first as u32..(first + BLOCK_ITEMS).min(self.items) as u32
    }
}
