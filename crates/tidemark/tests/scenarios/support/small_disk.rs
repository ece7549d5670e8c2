//! A disk that is soon full.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A mount namespace with a tmpfs of 16 MiB, held by a process that does nothing else.
pub(crate) struct SmallDisk {
    holder: Child,
    directory: tempfile::TempDir,
    as_root: bool,
}

impl SmallDisk {
    /// Returns `None`, or panics with the reason, where the system does not permit mounting.
    pub(crate) fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        for as_root in [true, false] {
            let script = r#"mount -t tmpfs -o size=16m tmpfs "$0" && echo mounted && exec sleep 3600"#;
            let mut holder = Command::new("unshare")
                .args([if as_root { "-m" } else { "-rm" }, "sh", "-c", script])
                .arg(directory.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("unshare (util-linux) is installed");
            let mut line = String::new();
            let stdout = holder.stdout.take().expect("a pipe");
            BufReader::new(stdout).read_line(&mut line).expect("the pipe can be read");
            if line == "mounted\n" {
                return Some(Self { holder, directory, as_root });
            }
            let _ = holder.wait();
        }
        assert!(
            std::env::var("TIDEMARK_WITHOUT_NAMESPACES").is_ok_and(|value| value == "1"),
            "cannot mount a tmpfs in a namespace of its own, so the full disk was NOT tested: run as root or allow user \
             namespaces, or accept this with TIDEMARK_WITHOUT_NAMESPACES=1"
        );
        None
    }

    /// Returns a file on the disk, as seen from outside the namespace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let inside = self.directory.path().strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.holder.id().to_string()).join("root").join(inside).join(name)
    }

    /// Uses up all remaining space, more each time it is called.
    pub(crate) fn fill(&self) {
        let path = self.path("filler");
        let mut filler = File::options().create(true).append(true).open(path).expect("a file");
        let mut block = vec![1; 1 << 20];
        while !block.is_empty() {
            // A short write leaves less than a block; the rest is filled in smaller pieces.
            if filler.write_all(&block).is_err() {
                block.truncate(block.len() / 2);
            }
        }
    }

    pub(crate) fn free(&self) {
        std::fs::remove_file(self.path("filler")).expect("space is freed");
    }

    /// Makes it a large disk.
    pub(crate) fn grow(&self) {
        let status = self
            .inside()
            .args(["mount", "-o", "remount,size=1g"])
            .arg(self.directory.path())
            .status()
            .expect("nsenter (util-linux) is installed");
        assert!(status.success(), "the disk has grown");
    }

    /// Returns a command that runs another one where the disk is mounted.
    fn inside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-m"]);
        if !self.as_root {
            command.args(["-U", "--preserve-credentials"]);
        }
        command.arg("--");
        command
    }

    /// Returns the command that runs the binary where the disk is mounted.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.inside();
        command.arg(env!("CARGO_BIN_EXE_tidemark"));
        command
    }

    /// Returns a data directory on the disk, as a process of [`command`](Self::command) sees it.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
