//! Storage with injected faults: wraps another storage and makes its n-th call fail.

use fastrand::Rng;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{Storage, StorageFile, StorageLock};

/// Kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the method of the same name")]
pub enum Site {
    List,
    Create,
    Open,
    Rename,
    Remove,
    SyncDir,
    Lock,
    ReadAt,
    WriteAt,
    SyncData,
    Len,
    SetLen,
    Allocate,
}

impl Site {
    /// Every kind of call.
    pub const ALL: [Self; 13] = [
        Self::List,
        Self::Create,
        Self::Open,
        Self::Rename,
        Self::Remove,
        Self::SyncDir,
        Self::Lock,
        Self::ReadAt,
        Self::WriteAt,
        Self::SyncData,
        Self::Len,
        Self::SetLen,
        Self::Allocate,
    ];
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call does nothing and returns this error.
    Error(io::ErrorKind),
    /// A read or write does part of its work and reports that; other calls succeed.
    Short,
    /// A write stores a part and returns an error; other calls do nothing and return an error.
    Torn,
    /// A read or write inverts one bit and reports success; other calls succeed.
    BitFlip,
    /// A write or sync does nothing and reports success; other calls succeed.
    Lost,
    /// A sync returns an error and makes nothing durable; other calls succeed.
    SyncFailure,
    /// The call blocks until the plan is replaced, then succeeds.
    Hang,
}

/// Plan of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The fault.
    pub fault: Fault,
    /// Number of the call that fails; the first is 1.
    pub at: u64,
    /// Kind of calls that count; `None` counts all.
    pub site: Option<Site>,
    /// Whether all later counted calls fail as well.
    pub forever: bool,
    /// Seed for the flipped bit and the size of the written part.
    pub seed: u64,
}

/// A storage with a fault plan. Clones share the plan.
#[derive(Clone, Debug)]
pub struct FaultyStorage {
    inner: Arc<dyn Storage>,
    script: Arc<Script>,
    /// The one file whose calls count; `None` if all calls do.
    only: Option<&'static str>,
}

impl FaultyStorage {
    /// Wraps `inner`; without a plan it only counts calls.
    pub fn new(inner: Arc<dyn Storage>, plan: Option<Plan>) -> Self {
        let random = Mutex::new(Rng::with_seed(plan.map_or(0, |plan| plan.seed)));
        let script = Script {
            plan: Mutex::new(plan),
            replaced: Condvar::new(),
            calls: Default::default(),
            total: AtomicU64::new(0),
            fired: AtomicBool::new(false),
            random,
        };
        Self { inner, script: Arc::new(script), only: None }
    }

    /// Wraps `inner` and counts only reads, writes and syncs of the file `name`.
    pub fn of_file(inner: Arc<dyn Storage>, name: &'static str) -> Self {
        Self { only: Some(name), ..Self::new(inner, None) }
    }

    /// Replaces the plan; the call counts continue.
    pub fn set_plan(&self, plan: Option<Plan>) {
        *self.script.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        self.script.replaced.notify_all();
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.script.total.load(Ordering::Acquire)
    }

    /// Returns the number of calls of one kind so far.
    pub fn calls_at(&self, site: Site) -> u64 {
        self.script.calls[site as usize].load(Ordering::Acquire)
    }

    /// Returns whether a fault has occurred yet.
    pub fn fired(&self) -> bool {
        self.script.fired.load(Ordering::Acquire)
    }

    fn file(&self, name: &str, inner: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        if self.only.is_some_and(|only| only != name) {
            return inner;
        }
        Box::new(FaultyFile { inner, script: self.script.clone() })
    }

    /// Counts a directory call that can only succeed or return an error.
    fn plain(&self, site: Site) -> io::Result<()> {
        if self.only.is_some() { Ok(()) } else { self.script.plain(site) }
    }
}

impl Storage for FaultyStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        self.plain(Site::List)?;
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.plain(Site::Create)?;
        self.inner.create(name).map(|file| self.file(name, file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.plain(Site::Open)?;
        self.inner.open(name).map(|file| self.file(name, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.plain(Site::Rename)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.plain(Site::Remove)?;
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.only.is_some() || self.script.sync(Site::SyncDir)? { self.inner.sync_dir() } else { Ok(()) }
    }

    fn lock(&self) -> io::Result<StorageLock> {
        self.plain(Site::Lock)?;
        self.inner.lock()
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        self.inner.free_bytes()
    }

    fn path(&self, name: &str) -> String {
        self.inner.path(name)
    }
}

#[derive(Debug)]
struct Script {
    plan: Mutex<Option<Plan>>,
    /// Blocked calls wait here.
    replaced: Condvar,
    calls: [AtomicU64; Site::ALL.len()],
    total: AtomicU64,
    fired: AtomicBool,
    random: Mutex<Rng>,
}

impl Script {
    /// Counts a call and returns its fault, if any.
    fn next(&self, site: Site) -> Option<Fault> {
        let total = self.total.fetch_add(1, Ordering::AcqRel) + 1;
        let here = self.calls[site as usize].fetch_add(1, Ordering::AcqRel) + 1;
        let mut plans = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = (*plans)?;
        let number = match plan.site {
            None => total,
            Some(counted) if counted == site => here,
            Some(_) => return None,
        };
        let hit = if plan.forever { number >= plan.at } else { number == plan.at };
        if !(hit && plan.fault.concerns(site)) {
            return None;
        }
        self.fired.store(true, Ordering::Release);
        if plan.fault != Fault::Hang {
            return Some(plan.fault);
        }
        while plans.is_some_and(|plan| plan.fault == Fault::Hang) {
            plans = self.replaced.wait(plans).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Counts a call that can only succeed or return an error.
    fn plain(&self, site: Site) -> io::Result<()> {
        self.next(site).map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// Counts a sync; returns whether to perform it.
    fn sync(&self, site: Site) -> io::Result<bool> {
        match self.next(site) {
            None => Ok(true),
            Some(Fault::Lost) => Ok(false),
            Some(fault) => Err(fault.error()),
        }
    }

    fn below(&self, bound: u64) -> usize {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).u64(..bound.max(1)) as usize
    }

    fn flip(&self, bytes: &mut [u8]) {
        let bit = self.below(bytes.len() as u64 * 8);
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

impl Fault {
    /// Returns whether the fault affects such a call.
    fn concerns(self, site: Site) -> bool {
        match self {
            Self::Error(_) | Self::Torn | Self::Hang => true,
            Self::Short | Self::BitFlip => matches!(site, Site::ReadAt | Site::WriteAt),
            Self::Lost => matches!(site, Site::WriteAt | Site::SyncData | Site::SyncDir),
            Self::SyncFailure => matches!(site, Site::SyncData | Site::SyncDir),
        }
    }

    fn error(self) -> io::Error {
        match self {
            Self::Error(kind) => kind.into(),
            _ => io::Error::other("injected fault"),
        }
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn StorageFile>,
    script: Arc<Script>,
}

impl StorageFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.script.next(Site::ReadAt) {
            None => self.inner.read_at(buffer, offset),
            Some(Fault::Short) => {
                let part = buffer.len().div_ceil(2);
                self.inner.read_at(&mut buffer[..part], offset)
            }
            Some(Fault::BitFlip) => {
                let read = self.inner.read_at(buffer, offset)?;
                self.script.flip(&mut buffer[..read]);
                Ok(read)
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        match self.script.next(Site::WriteAt) {
            None => self.inner.write_at(data, offset),
            Some(Fault::Short) => {
                let part = data.len().div_ceil(2);
                self.inner.write_at(&data[..part], offset)
            }
            Some(Fault::Torn) => {
                let part = self.script.below(data.len() as u64 + 1);
                self.inner.write_at(&data[..part], offset)?;
                Err(Fault::Torn.error())
            }
            Some(Fault::BitFlip) => {
                let mut data = data.to_vec();
                self.script.flip(&mut data);
                self.inner.write_at(&data, offset)
            }
            Some(Fault::Lost) => Ok(data.len()),
            Some(fault) => Err(fault.error()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.script.sync(Site::SyncData)? { self.inner.sync_data() } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        self.script.plain(Site::Len)?;
        self.inner.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.script.plain(Site::SetLen)?;
        self.inner.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.script.plain(Site::Allocate)?;
        self.inner.allocate(bytes)
    }
}
