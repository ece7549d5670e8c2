//! Profiles of a run, in a folder: processor time from the system's `perf`, and allocations by
//! size.

use crate::allocations::Allocations;
use anyhow::{Context, bail};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Samples per second of a thread's processor time.
const FREQUENCY: &str = "999";
/// Number of attempts to start `perf`.
const ATTEMPTS: u32 = 3;
/// Timeout for `perf`.
const PATIENCE: Duration = Duration::from_secs(10);
const ASK_INTERVAL: Duration = Duration::from_millis(1);

/// A `perf` process next to this one. It records only when instructed to, so that the profile
/// covers exactly the measured part.
#[derive(Debug)]
pub(super) struct Profiler {
    directory: PathBuf,
    perf: Child,
    control: Pipe,
    acknowledged: Pipe,
}

impl Profiler {
    /// Attaches `perf` to this process, and creates the folder if it is missing.
    pub(super) fn attach(directory: &Path) -> anyhow::Result<Self> {
        // `perf` fails if a thread of this process ends while it lists them.
        let tries = (1..ATTEMPTS).find_map(|_| Self::try_attach(directory).ok());
        tries.map_or_else(|| Self::try_attach(directory), Ok)
    }

    fn try_attach(directory: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let control = Pipe::make(directory.join("perf.control"))?;
        let acknowledged = Pipe::make(directory.join("perf.acknowledged"))?;
        let said = directory.join("perf.log");
        let said = File::create(&said).with_context(|| format!("cannot write {}", said.display()))?;
        let perf = Command::new("perf")
            .args(["record", "--quiet", "-F", FREQUENCY, "-g", "--delay=-1"])
            .args(["-p", &std::process::id().to_string()])
            .arg(format!("--control=fifo:{},{}", control.path.display(), acknowledged.path.display()))
            .arg("-o")
            .arg(directory.join("cpu.perf.data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .context("--profile needs the system's perf, which cannot be started (Debian: apt-get install linux-perf)")?;
        let mut profiler = Profiler { directory: directory.to_owned(), perf, control, acknowledged };
        // It answers when it is ready.
        profiler.send("ping")?;
        Ok(profiler)
    }

    /// Starts recording.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        self.send("enable")
    }

    /// Stops recording.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.send("disable")
    }

    fn send(&mut self, what: &str) -> anyhow::Result<()> {
        writeln!(self.control.file, "{what}").context("telling perf")?;
        let (clock, mut said) = (Instant::now(), Vec::new());
        while !said.contains(&b'\n') {
            let mut buffer = [0; 64];
            match self.acknowledged.file.read(&mut buffer) {
                Ok(count) => said.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(ASK_INTERVAL),
                Err(error) => return Err(error).context("what perf says"),
            }
            let log = || self.directory.join("perf.log").display().to_string();
            if let Some(status) = self.perf.try_wait()? {
                bail!("perf has ended with {status}; see {}", log());
            }
            if clock.elapsed() > PATIENCE {
                bail!("perf does not answer; see {}", log());
            }
        }
        Ok(())
    }

    /// Writes the profiles: `cpu.perf.data` and `cpu.txt`, and `heap.tsv` if the program's
    /// allocator counts.
    pub(super) fn write(mut self, allocations: Option<&Allocations>) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.perf), Signal::INT).context("ending perf")?;
        self.perf.wait()?;
        let text = File::create(self.directory.join("cpu.txt"))?;
        let status = Command::new("perf")
            .args(["report", "--stdio", "--no-children", "-i"])
            .arg(self.directory.join("cpu.perf.data"))
            .stdin(Stdio::null())
            .stdout(text)
            .stderr(Stdio::null())
            .status()?;
        anyhow::ensure!(status.success(), "perf report has ended with {status}");
        if let Some(allocations) = allocations {
            fs::write(self.directory.join("heap.tsv"), heap(allocations))?;
        }
        Ok(())
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.perf.kill();
        let _ = self.perf.wait();
    }
}

/// A named pipe, open at both ends, so that neither opening nor reading it blocks. It is removed on
/// drop.
#[derive(Debug)]
struct Pipe {
    path: PathBuf,
    file: File,
}

impl Pipe {
    fn make(path: PathBuf) -> anyhow::Result<Self> {
        // A killed run may have left one.
        let _ = fs::remove_file(&path);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot create {}", path.display()))?;
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
        Ok(Pipe { file: file.with_context(|| format!("cannot open {}", path.display()))?, path })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Best effort: removal of the folder removes the rest.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns allocations by size, and the bytes that remain of them.
fn heap(allocations: &Allocations) -> String {
    let mut table = "BytesFrom\tBytesTo\tAllocations\tBytes\tBlocksKept\n".to_owned();
    for (class, sizes) in allocations.sizes.iter().enumerate().filter(|(_, sizes)| sizes.count > 0) {
        let to = (1_u128 << class) - 1;
        let from = to.div_ceil(2);
        let _ = writeln!(table, "{from}\t{to}\t{}\t{}\t{}", sizes.count, sizes.bytes, sizes.kept);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::heap;
    use crate::allocations::{Allocations, OfSize};

    #[test]
    fn a_heap_profile_has_a_line_for_each_power_of_two_that_was_asked_for() {
        let mut allocations = Allocations::default();
        allocations.sizes[1] = OfSize { count: 3, bytes: 3, kept: -1 };
        allocations.sizes[7] = OfSize { count: 2, bytes: 200, kept: 2 };
        let lines =
            "BytesFrom\tBytesTo\tAllocations\tBytes\tBlocksKept\n1\t1\t3\t3\t-1\n64\t127\t2\t200\t2\n";
        assert_eq!(heap(&allocations), lines);
    }
}
