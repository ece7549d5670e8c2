//! A cluster of three real processes on real files.

use super::small_disk::SmallDisk;
use super::{Answer, Client, Server, free_port, wait_until};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Times of a cluster on a machine that does other work.
const PATIENT: [&str; 6] =
    ["--cluster-heartbeat-ms", "50", "--cluster-election-min-ms", "300", "--cluster-election-max-ms", "600"];

pub(crate) struct Cluster {
    /// The setting of all members.
    members: String,
    /// Port of each member for clients.
    pub(crate) clients: [u16; 3],
    /// Port of each member for HTTP.
    pub(crate) http: [u16; 3],
    /// The members that run.
    pub(crate) servers: [Option<Server>; 3],
    /// Flags of all members.
    flags: Vec<String>,
    /// Environment variables of members that are started from now on.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Where members have a disk of their own, that disk.
    pub(crate) disks: [Option<SmallDisk>; 3],
    /// Behind the servers: it is removed when they have ended.
    pub(crate) directory: tempfile::TempDir,
}

impl Cluster {
    /// Founds a cluster, and waits until it takes changes.
    pub(crate) fn found() -> Self {
        Self::found_with(&[])
    }

    /// Founds a cluster whose members have these flags too.
    pub(crate) fn found_with(flags: &[&str]) -> Self {
        Self::found_in(&[], flags)
    }

    /// Founds a cluster whose members have these environment variables and flags.
    pub(crate) fn found_in(environment: &[(&'static str, String)], flags: &[&str]) -> Self {
        Self::found_of(environment, [None, None, None], flags)
    }

    /// Founds a cluster of which some members have a disk of their own.
    pub(crate) fn found_on(disks: [Option<SmallDisk>; 3], flags: &[&str]) -> Self {
        Self::found_of(&[], disks, flags)
    }

    fn found_of(
        environment: &[(&'static str, String)],
        disks: [Option<SmallDisk>; 3],
        flags: &[&str],
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let [clients, http] = [(); 2].map(|()| [free_port(), free_port(), free_port()]);
        let member = |(number, clients): (usize, &u16)| {
            format!("{}=127.0.0.1:{}/127.0.0.1:{clients}", number + 1, free_port())
        };
        let members = clients.iter().enumerate().map(member).collect::<Vec<_>>().join(",");
        let flags = flags.iter().map(ToString::to_string).collect();
        let (servers, environment) = ([None, None, None], environment.to_vec());
        let mut cluster = Self { members, clients, http, servers, flags, environment, disks, directory };
        (0..3).for_each(|member| cluster.run(member));
        cluster.set("begin", "1");
        cluster
    }

    /// Starts a member.
    pub(crate) fn run(&mut self, member: usize) {
        let flags = self.flags.clone();
        self.run_with(member, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Starts a member with these flags in the place of those of all.
    pub(crate) fn run_with(&mut self, member: usize, flags: &[&str]) {
        self.run_telling(member, flags, Stdio::inherit());
    }

    /// Returns the command that starts a member.
    pub(crate) fn start_command(&self, member: usize, flags: &[&str]) -> Command {
        let (mut command, directory) = match &self.disks[member] {
            Some(disk) => (disk.command(), disk.data()),
            None => (Command::new(env!("CARGO_BIN_EXE_tidemark")), self.member_directory(member)),
        };
        command.arg("serve").arg("--dir").arg(directory);
        command.args(["--cluster-node", &(member + 1).to_string(), "--cluster-members", &self.members]);
        command
            .args(PATIENT)
            .args(["--enable-debug-command", "local"])
            .args(flags)
            .args(["--port", &self.clients[member].to_string()])
            .args(["--http", &format!("127.0.0.1:{}", self.http[member])]);
        command.envs(self.environment.iter().map(|(name, value)| (*name, value.as_str())));
        command.stdin(Stdio::null());
        command
    }

    /// Does the same; what the member tells its operator goes to `errors`.
    pub(crate) fn run_telling(&mut self, member: usize, flags: &[&str], errors: Stdio) {
        let mut command = self.start_command(member, flags);
        command.stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().expect("the binary starts");
        self.servers[member] = Some(Server { child, port: self.clients[member], startup: Duration::ZERO });
        wait_until("the member answers", || {
            Client::connect(self.clients[member])
                .and_then(|mut client| client.call(&["PING"]))
                .is_ok_and(|answer| answer == Answer::Status("PONG".into()))
        });
    }

    /// Starts a member with the lines for its operator in a file, which is returned.
    pub(crate) fn run_noting(&mut self, member: usize, flags: &[&str]) -> PathBuf {
        let path = self.directory.path().join(format!("errors{member}"));
        let errors = File::create(&path).expect("a file");
        self.run_telling(member, flags, errors.into());
        path
    }

    /// Returns the directory of a member that has no disk of its own.
    pub(crate) fn member_directory(&self, member: usize) -> PathBuf {
        self.directory.path().join(format!("member{member}"))
    }

    /// Starts a member that joins the cluster of another one.
    pub(crate) fn join(&mut self, member: usize, asked: usize) {
        let number = format!("{}=", member + 1);
        let own = self.members.split(',').find_map(|own| own.strip_prefix(&number)).expect("it is listed");
        let (own, asked) = (own.to_owned(), format!("127.0.0.1:{}", self.clients[asked]));
        self.run_with(member, &["--cluster-address", &own, "--cluster-join", &asked]);
    }

    /// Runs `tidemark cluster` against a member. Returns whether all is good, and what it has printed.
    pub(crate) fn command(&self, words: &[&str], member: usize) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .arg("cluster")
            .args(words)
            .args(["-p", &self.clients[member].to_string()])
            .output()
            .expect("the binary starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns a member that runs.
    pub(crate) fn server(&self, member: usize) -> &Server {
        self.servers[member].as_ref().expect("the member runs")
    }

    pub(crate) fn kill(&mut self, member: usize) {
        self.servers[member].take().expect("the member runs").kill();
    }

    /// Stops a member's process until it gets `SIGCONT`.
    pub(crate) fn stop(&self, member: usize) {
        let server = self.server(member);
        server.signal("STOP");
        // Its threads go on until the one that got the signal has run.
        let tasks = format!("/proc/{}/task", server.child.id());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = task.and_then(|task| std::fs::read_to_string(task.path().join("stat")));
            stat.is_ok_and(|stat| stat.contains(") T "))
        };
        wait_until("all threads are stopped", || {
            std::fs::read_dir(&tasks).expect("the process is there").all(is_stopped)
        });
    }

    /// Sets a key at the leader, whichever that is. Repeats it until it is acknowledged.
    pub(crate) fn set(&self, key: &str, value: &str) {
        wait_until("a change is acknowledged", || self.try_set(key, value).is_some());
    }

    /// Sets a key at another member than this one, as soon as one leads.
    pub(crate) fn set_at_others(&self, member: usize, key: &str, value: &str) {
        wait_until("another member leads", || {
            (0..3).filter(|other| *other != member).any(|other| self.try_set_at(other, key, value))
        });
    }

    /// Sets a key, if a member acknowledges it. Returns that member.
    pub(crate) fn try_set(&self, key: &str, value: &str) -> Option<usize> {
        (0..3).find(|member| self.try_set_at(*member, key, value))
    }

    fn try_set_at(&self, member: usize, key: &str, value: &str) -> bool {
        Client::connect(self.clients[member])
            .and_then(|mut client| client.call(&["SET", key, value]))
            .is_ok_and(|answer| answer == Answer::Status("OK".into()))
    }

    /// Returns the leader.
    pub(crate) fn leader(&self) -> usize {
        let mut leader = None;
        wait_until("there is a leader", || {
            leader = self.try_set("leader", "?");
            leader.is_some()
        });
        leader.expect("there is one")
    }

    /// Waits until all members have the same data, and returns a connection with each.
    pub(crate) fn settled(&self) -> Vec<Client> {
        let connect = |port: &u16| Client::connect(*port).expect("the member accepts");
        let mut digests = Vec::new();
        wait_until("all members have the same data", || {
            self.set("settled", "1");
            // One that loads its data again does not accept for a moment.
            let digest = |port: &u16| Client::connect(*port).ok()?.call(&["DEBUG", "DIGEST"]).ok();
            digests = self.clients.iter().map(digest).collect::<Vec<_>>();
            digests.iter().all(|digest| digest.is_some() && *digest == digests[0])
        });
        // A follower answers readers once it knows how old its data is.
        for port in &self.clients {
            let mut reader = connect(port);
            let _ = reader.call(&["READONLY"]);
            wait_until(
                "readers are answered",
                || !matches!(reader.call(&["GET", "settled"]), Ok(Answer::Error(error)) if error.starts_with("MASTERDOWN")),
            );
        }
        self.clients.iter().map(connect).collect()
    }
}
