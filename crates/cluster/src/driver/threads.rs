//! The threads of a driver.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tidemark_log::Durability;

use super::{Driver, Next, Worker};

/// The writer, the sync thread and the reader. They end when the driver is closed.
pub(crate) struct Threads(Vec<JoinHandle<()>>);

/// Ends the sync thread with the writer, which alone gives it jobs.
struct NoMoreSyncs<'a>(&'a Driver);

impl Drop for NoMoreSyncs<'_> {
    fn drop(&mut self) {
        self.0.syncs.close();
    }
}

impl Threads {
    /// Starts the threads.
    pub(crate) fn start(driver: &Arc<Driver>) -> io::Result<Self> {
        let mut threads = Self(Vec::new());
        let started = threads.start_all(driver);
        if started.is_err() {
            driver.writes.close();
            driver.reads.close();
            driver.syncs.close();
            threads.join();
        }
        started.map(|()| threads)
    }

    fn start_all(&mut self, driver: &Arc<Driver>) -> io::Result<()> {
        self.spawn(driver, "tidemark-write", |driver| {
            let _no_more = (NoMoreSyncs(driver), Worker(&driver.writes));
            while let Next::Job(job) = driver.writes.pop(None) {
                driver.write(job);
            }
        })?;
        self.spawn(driver, "tidemark-sync", |driver| {
            let _no_more = Worker(&driver.syncs);
            loop {
                let interval = match driver.mode() {
                    Durability::Interval(interval) => Some(interval),
                    Durability::Always | Durability::Off => None,
                };
                match driver.syncs.pop(interval) {
                    Next::Job(job) => driver.sync(job),
                    Next::Nothing => driver.sync_interval(),
                    Next::Closed => return,
                }
            }
        })?;
        self.spawn(driver, "tidemark-read", |driver| {
            let _no_more = Worker(&driver.reads);
            while let Next::Job(job) = driver.reads.pop(None) {
                driver.read(job);
            }
        })
    }

    fn spawn(
        &mut self,
        driver: &Arc<Driver>,
        name: &str,
        run: impl FnOnce(&Driver) + Send + 'static,
    ) -> io::Result<()> {
        let driver = driver.clone();
        self.0.push(std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&driver))?);
        Ok(())
    }

    /// Waits until the threads have ended, after the driver was closed.
    pub(crate) fn join(&mut self) {
        for thread in self.0.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
