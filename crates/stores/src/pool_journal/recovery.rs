//! Recovery: the newest valid snapshot, and all frames after it.

use super::error::PoolLogError;
use super::record;
use tidemark_log::{Log, Lsn, Record, Recovery, Snapshot, SnapshotError, Snapshots};
use tidemark_pool::{Chain, ChainedPool, Frame, NotFollowed, Pool, PoolImage, Selector};

/// What was found when a pool's log was opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolRecovery {
    /// The log's own recovery: its first and last record, and the torn end that was truncated, if
    /// any.
    pub log: Recovery,
    /// Whether there was no pool, so a new one was created.
    pub is_new: bool,
    /// The LSN of the snapshot that was used, if any.
    pub snapshot: Option<Lsn>,
    /// If that one is incremental: the LSN of its full base.
    pub snapshot_base: Option<Lsn>,
    /// Newer snapshots that were damaged and set aside. No data is lost by that.
    pub damaged_snapshots: Vec<SnapshotError>,
    /// Frames that were replayed.
    pub frames: u64,
    /// Their bytes.
    pub bytes_behind_snapshot: u64,
}

/// Recovers the pool from the snapshot and the log, or creates a new one.
pub(super) fn recover<S: Selector>(
    log: &Log,
    recovered: Recovery,
    create: impl FnOnce() -> Pool<S>,
    selector: impl Fn(&[u64]) -> S,
) -> Result<(ChainedPool<S>, PoolRecovery), PoolLogError> {
    let snapshots = Snapshots::new(log.storage().clone());
    let (snapshot, damaged_snapshots) = snapshots.latest(log.floor())?;
    let mut recovery = PoolRecovery {
        log: recovered,
        is_new: false,
        snapshot: snapshot.as_ref().map(Snapshot::lsn),
        snapshot_base: snapshot.as_ref().and_then(Snapshot::base),
        damaged_snapshots,
        frames: 0,
        bytes_behind_snapshot: 0,
    };
    let mut found = Found::Nothing;
    if let Some(snapshot) = &snapshot {
        found = Found::Image(Box::new(load(snapshot)?));
    }
    let mut selector = Some(selector);
    let from = recovery.snapshot.map_or(Lsn::FIRST, Lsn::next);
    follow(log, from, &mut found, &mut selector, &mut recovery)?;
    let pool = match found.pool(&mut selector)? {
        Some(pool) => *pool,
        None => {
            recovery.is_new = true;
            begin(log, create())?
        }
    };
    // Without the damaged snapshot, what it covers is needed again.
    log.retain(from);
    snapshots.set_aside(recovery.snapshot)?;
    Ok((pool, recovery))
}

/// What has been read so far.
enum Found<S> {
    Nothing,
    /// A pool of which items may be missing.
    Image(Box<Image>),
    Pool(Box<ChainedPool<S>>),
}

struct Image {
    read: PoolImage,
    chain: Chain,
    /// The last LSN that it includes.
    lsn: Lsn,
    /// Whether it is the beginning of a log, which may have been interrupted.
    is_origin: bool,
}

impl<S: Selector> Found<S> {
    /// Returns the pool, if it is complete. A pool whose creation was interrupted was never used.
    fn pool(
        self,
        selector: &mut Option<impl Fn(&[u64]) -> S>,
    ) -> Result<Option<Box<ChainedPool<S>>>, PoolLogError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Pool(pool) => Ok(Some(pool)),
            Self::Image(image) => {
                let Image { read, chain, lsn, is_origin } = *image;
                if is_origin && !read.is_complete() {
                    return Ok(None);
                }
                let make = selector.take().expect("one image becomes the pool");
                let pool =
                    read.finish_with(make).map_err(|reason| PoolLogError::Unreadable { lsn, reason })?;
                Ok(Some(Box::new(ChainedPool { pool, chain })))
            }
        }
    }
}

/// Replays all records from `from` on.
fn follow<S: Selector>(
    log: &Log,
    from: Lsn,
    found: &mut Found<S>,
    selector: &mut Option<impl Fn(&[u64]) -> S>,
    recovery: &mut PoolRecovery,
) -> Result<(), PoolLogError> {
    if recovery.log.last_lsn < from {
        return Ok(());
    }
    let mut frame = Vec::new();
    let mut replay = log.replay(from)?;
    while let Some(records) = replay.next_batch()? {
        for record in records {
            let Record { lsn, kind, payload, .. } = record;
            match kind {
                record::HEAD => *found = Found::Image(Box::new(origin(lsn, payload, found)?)),
                record::ITEMS => match found {
                    Found::Image(image) if image.is_origin => {
                        let read = image.read.read_items(payload);
                        read.map_err(|reason| PoolLogError::Unreadable { lsn, reason })?;
                    }
                    _ => return Err(PoolLogError::Foreign { lsn }),
                },
                record::FRAME | record::WORDS => {
                    let pool = std::mem::replace(found, Found::Nothing).pool(selector)?;
                    let mut pool = pool.ok_or(PoolLogError::Foreign { lsn })?;
                    let bytes = frame_bytes(&record, &mut frame)?;
                    let followed = pool.follow(bytes);
                    followed.map_err(|reason| PoolLogError::NotFollowed { lsn, reason })?;
                    *found = Found::Pool(pool);
                    recovery.frames += 1;
                    recovery.bytes_behind_snapshot += payload.len() as u64;
                }
                _ => return Err(PoolLogError::Foreign { lsn }),
            }
        }
    }
    Ok(())
}

/// Reads a pool's first record. Earlier ones, whose writing was interrupted, may precede it.
fn origin<S>(lsn: Lsn, payload: &[u8], found: &Found<S>) -> Result<Image, PoolLogError> {
    let may_begin = match found {
        Found::Nothing => true,
        Found::Image(image) => image.is_origin && !image.read.is_complete(),
        Found::Pool(_) => false,
    };
    let head = record::read_head(payload).filter(|_| may_begin).ok_or(PoolLogError::Foreign { lsn })?;
    let (chain, image) = head.map_err(|reason| PoolLogError::Unreadable { lsn, reason })?;
    Ok(Image { read: image, chain, lsn, is_origin: true })
}

fn frame_bytes<'a>(record: &Record<'a>, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], PoolLogError> {
    if record.kind == record::FRAME {
        return Ok(record.payload);
    }
    buffer.clear();
    let words = std::str::from_utf8(record.payload).map_err(|_| PoolLogError::Foreign { lsn: record.lsn })?;
    let not_followed =
        |error| PoolLogError::NotFollowed { lsn: record.lsn, reason: NotFollowed::Frame(error) };
    Frame::read_words(words, buffer).map_err(not_followed)?;
    Ok(buffer)
}

/// Logs a new pool.
fn begin<S: Selector>(log: &Log, pool: Pool<S>) -> Result<ChainedPool<S>, PoolLogError> {
    let pool = ChainedPool::new(pool);
    let mut head = Vec::new();
    pool.pool.write_head(&mut head);
    let head = record::put_head(pool.chain, &head);
    let mut lsn = log.append(0, record::HEAD, |buffer| buffer.extend_from_slice(&head))?;
    for items in record::items(&pool.pool) {
        lsn = log.append(0, record::ITEMS, |buffer| buffer.extend_from_slice(&items))?;
    }
    log.wait_durable(lsn)?;
    Ok(pool)
}

/// Loads the pool of a snapshot: its sections in order.
fn load(snapshot: &Snapshot) -> Result<Image, PoolLogError> {
    let lsn = snapshot.lsn();
    let mut frames = snapshot.frames().to_vec();
    frames.sort_by_key(|frame| frame.section);
    let mut image: Option<(Chain, PoolImage)> = None;
    let mut bytes = Vec::new();
    for frame in &frames {
        snapshot.read_frame(frame, &mut bytes)?;
        match &mut image {
            None => {
                let head = record::read_head(&bytes).ok_or(PoolLogError::Foreign { lsn })?;
                image = Some(head.map_err(|reason| PoolLogError::Unreadable { lsn, reason })?);
            }
            Some((_, image)) => {
                image.read_items(&bytes).map_err(|reason| PoolLogError::Unreadable { lsn, reason })?;
            }
        }
    }
    let (chain, image) = image.ok_or(PoolLogError::Foreign { lsn })?;
    Ok(Image { read: image, chain, lsn, is_origin: false })
}
