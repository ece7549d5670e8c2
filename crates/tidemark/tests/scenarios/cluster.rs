//! Clusters of three: real processes on real files.

use crate::support::{Answer, Client, Server, free_port, wait_until};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Times of a cluster on a machine that does other work.
const PATIENT: [&str; 6] =
    ["--cluster-heartbeat-ms", "50", "--cluster-election-min-ms", "300", "--cluster-election-max-ms", "600"];

struct Cluster {
    directory: tempfile::TempDir,
    /// The setting of all members.
    members: String,
    clients: [u16; 3],
    servers: [Option<Server>; 3],
}

impl Cluster {
    /// Founds a cluster, and waits until it takes changes.
    fn found() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clients = [free_port(), free_port(), free_port()];
        let member = |(number, clients): (usize, &u16)| {
            format!("{}=127.0.0.1:{}/127.0.0.1:{clients}", number + 1, free_port())
        };
        let members = clients.iter().enumerate().map(member).collect::<Vec<_>>().join(",");
        let mut cluster = Self { directory, members, clients, servers: [None, None, None] };
        (0..3).for_each(|member| cluster.run(member));
        cluster.set("begin", "1");
        cluster
    }

    /// Starts a member.
    fn run(&mut self, member: usize) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        let directory = self.directory.path().join(format!("member{member}"));
        command.arg("serve").arg("--dir").arg(directory);
        command.args(["--cluster-node", &(member + 1).to_string(), "--cluster-members", &self.members]);
        command
            .args(PATIENT)
            .args(["--enable-debug-command", "local"])
            .args(["--port", &self.clients[member].to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("the binary starts");
        self.servers[member] = Some(Server { child, port: self.clients[member], startup: Duration::ZERO });
        wait_until("the member answers", || {
            Client::connect(self.clients[member])
                .and_then(|mut client| client.call(&["PING"]))
                .is_ok_and(|answer| answer == Answer::Status("PONG".into()))
        });
    }

    fn kill(&mut self, member: usize) {
        self.servers[member].take().expect("the member runs").kill();
    }

    /// Stops a member's process until it gets `SIGCONT`.
    fn stop(&self, member: usize) {
        let server = self.servers[member].as_ref().expect("the member runs");
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
    fn set(&self, key: &str, value: &str) {
        wait_until("a change is acknowledged", || self.try_set(key, value).is_some());
    }

    /// Sets a key, if a member acknowledges it. Returns that member.
    fn try_set(&self, key: &str, value: &str) -> Option<usize> {
        (0..3).find(|member| {
            Client::connect(self.clients[*member])
                .and_then(|mut client| client.call(&["SET", key, value]))
                .is_ok_and(|answer| answer == Answer::Status("OK".into()))
        })
    }

    /// Returns the leader.
    fn leader(&self) -> usize {
        let mut leader = None;
        wait_until("there is a leader", || {
            leader = self.try_set("leader", "?");
            leader.is_some()
        });
        leader.expect("there is one")
    }

    /// Waits until all members have the same data, and returns a connection with each.
    fn settled(&self) -> Vec<Client> {
        let connect = |port: &u16| Client::connect(*port).expect("the member accepts");
        let mut digests = Vec::new();
        wait_until("all members have the same data", || {
            self.set("settled", "1");
            let mut clients: Vec<_> = self.clients.iter().map(connect).collect();
            digests = clients.iter_mut().map(|client| client.call(&["DEBUG", "DIGEST"]).ok()).collect();
            digests.iter().all(|digest| digest.is_some() && *digest == digests[0])
        });
        self.clients.iter().map(connect).collect()
    }
}

#[test]
fn followers_name_the_leader_and_answer_readers_that_ask_for_it() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    cluster.set("key", "value");
    let address = format!("127.0.0.1:{}", cluster.clients[leader]);
    for (member, mut client) in cluster.settled().into_iter().enumerate() {
        if member == leader {
            continue;
        }
        let moved = Answer::Error(format!("MOVED 12539 {address}"));
        assert_eq!(client.call(&["SET", "key", "other"]).expect("an answer"), moved);
        assert_eq!(client.call(&["GET", "key"]).expect("an answer"), moved);
        assert_eq!(client.call(&["READONLY"]).expect("an answer"), Answer::Status("OK".into()));
        assert_eq!(client.call(&["GET", "key"]).expect("an answer"), Answer::Bulk("value".into()));
        assert_eq!(client.call(&["SET", "key", "other"]).expect("an answer"), moved);
    }
}

#[test]
fn what_was_acknowledged_survives_the_end_of_its_leader() {
    let mut cluster = Cluster::found();
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let leader = cluster.leader();
        for number in 0..100 {
            let key = format!("key:{round}:{number}");
            if cluster.try_set(&key, "1").is_some() {
                acknowledged.push(key);
            }
        }
        cluster.kill(leader);
        let key = format!("without:{round}");
        cluster.set(&key, "1");
        acknowledged.push(key);
        cluster.run(leader);
    }
    assert!(acknowledged.len() > 300, "{}", acknowledged.len());
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        for key in &acknowledged {
            assert_eq!(client.call(&["GET", key]).expect("an answer"), Answer::Bulk("1".into()), "{key}");
        }
    }
}

#[test]
fn a_leader_that_was_stopped_tells_nothing_that_the_others_do_not_have() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    let mut stale = Client::connect(cluster.clients[leader]).expect("the leader accepts");
    cluster.stop(leader);
    // In its socket when it wakes up: another leads meanwhile.
    stale.send(&["SET", "stale", "1"]).expect("the kernel takes it");
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    wait_until("another member leads", || {
        others.iter().any(|member| {
            Client::connect(cluster.clients[*member])
                .and_then(|mut client| client.call(&["SET", "fresh", "1"]))
                .is_ok_and(|answer| answer == Answer::Status("OK".into()))
        })
    });
    cluster.servers[leader].as_ref().expect("it runs").signal("CONT");
    let answer = stale.read();
    assert_ne!(answer.as_ref().ok(), Some(&Answer::Status("OK".into())), "no quorum has it");
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        assert_eq!(client.call(&["GET", "stale"]).expect("an answer"), Answer::Null);
        assert_eq!(client.call(&["GET", "fresh"]).expect("an answer"), Answer::Bulk("1".into()));
    }
}
