//! Network namespaces of Linux: networks of their own for processes of this machine.
//!
//! A namespace belongs to a thread. What the thread starts is in it, so no program beside `ip` is
//! needed.

use anyhow::Context;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel, sync_channel};

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace. It ends with this value and the processes in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    jobs: Sender<Job>,
    thread: i32,
}

/// What lets a user create namespaces.
const ADVICE: &str = "run as root, or let users create namespaces (sysctl user.max_user_namespaces, \
                      kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)";

impl Namespace {
    /// Creates a namespace without any network. The caller needs the rights that [`enter_new`] gives.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let (jobs, queue) = channel::<Job>();
        let (made, is_made) = sync_channel(1);
        std::thread::Builder::new().name("namespace".to_owned()).spawn(move || {
            let thread =
                unshare(CloneFlags::CLONE_NEWNET).map(|()| rustix::thread::gettid().as_raw_nonzero().get());
            // The creator waits for it.
            let _ = made.send(thread);
            queue.into_iter().for_each(|job| job());
        })?;
        let thread = is_made.recv().context("the thread of a network namespace has ended")?;
        let thread = thread.with_context(|| format!("cannot create a network namespace; {ADVICE}"))?;
        Ok(Namespace { jobs, thread })
    }

    /// Returns the id of the thread that has this namespace, by which `ip` finds it.
    pub(crate) fn thread(&self) -> i32 {
        self.thread
    }

    /// Runs a job in this namespace, and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, is_done) = sync_channel(1);
        let job = move || {
            // The caller waits for it.
            let _ = done.send(job());
        };
        let ended = || io::Error::other("the thread of a network namespace has ended");
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        is_done.recv().map_err(|_| ended())?
    }

    /// Starts a process in this namespace.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.run(move || command.spawn())
    }
}

/// Moves the calling thread, and what it starts from now on, into a new network namespace in which it
/// has all rights. As a user other than root, the process must have no other thread.
pub(crate) fn enter_new() -> anyhow::Result<()> {
    let refused = || format!("cannot create a network namespace; {ADVICE}");
    match unshare(CloneFlags::CLONE_NEWNET) {
        Err(Errno::EPERM) => {}
        made => return made.with_context(refused),
    }
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).with_context(refused)?;
    // In this order: the kernel wants it.
    let files = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ];
    for (file, text) in files {
        std::fs::write(format!("/proc/self/{file}"), text).with_context(refused)?;
    }
    Ok(())
}

/// Runs `ip` of iproute2 in the calling thread's namespace, or in `inside`.
pub(crate) fn ip(inside: Option<&Namespace>, arguments: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    command.args(arguments.split_ascii_whitespace());
    let output = match inside {
        Some(namespace) => namespace.run(move || command.output()),
        None => command.output(),
    };
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            anyhow::bail!("the program `ip` is missing; install iproute2")
        }
        output => output.context("cannot run `ip`")?,
    };
    let text = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "`ip {arguments}` failed: {}", text.trim());
    Ok(())
}
