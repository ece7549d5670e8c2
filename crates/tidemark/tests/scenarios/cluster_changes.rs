//! Changes of a running cluster: who leads, and who its members are.

use crate::support::{Answer, Client, Server, free_port, wait_until};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Times of a cluster on a machine that does other work.
const PATIENT: [&str; 6] =
    ["--cluster-heartbeat-ms", "50", "--cluster-election-min-ms", "300", "--cluster-election-max-ms", "600"];

/// Members by their numbers. They are processes.
struct Cluster {
    directory: tempfile::TempDir,
    founders: String,
    /// Where clients reach each member, whether it runs or not.
    clients: BTreeMap<u64, u16>,
    servers: BTreeMap<u64, Server>,
}

impl Cluster {
    /// Founds a cluster of three, and waits until it takes changes.
    fn found() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clients: BTreeMap<u64, u16> = (1..=3).map(|number| (number, free_port())).collect();
        let member = |(number, clients): (&u64, &u16)| {
            format!("{number}=127.0.0.1:{}/127.0.0.1:{clients}", free_port())
        };
        let founders = clients.iter().map(member).collect::<Vec<_>>().join(",");
        let mut cluster = Self { directory, founders, clients, servers: BTreeMap::new() };
        (1..=3).for_each(|number| cluster.run(number));
        wait_until("a change is acknowledged", || cluster.try_call(&["SET", "begin", "1"]).is_some());
        cluster
    }

    /// Starts a founder, for the first time or again.
    fn run(&mut self, number: u64) {
        let founders = self.founders.clone();
        self.run_with(number, &["--cluster-node", &number.to_string(), "--cluster-members", &founders]);
    }

    fn run_with(&mut self, number: u64, flags: &[&str]) {
        self.spawn(number, flags);
        wait_until("the member answers", || {
            self.client_of(number).is_some_and(|mut client| {
                client.call(&["PING"]).is_ok_and(|answer| answer == Answer::Status("PONG".into()))
            })
        });
    }

    /// Starts a member, and does not wait for it.
    fn spawn(&mut self, number: u64, flags: &[&str]) {
        let port = self.clients[&number];
        let said = File::options().create(true).append(true).open(self.log_of(number)).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["serve", "--enable-debug-command", "local", "--port", &port.to_string()])
            .arg("--dir")
            .arg(self.directory.path().join(number.to_string()))
            .args(PATIENT)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .expect("the binary starts");
        self.servers.insert(number, Server { child, port, startup: Duration::ZERO });
    }

    fn log_of(&self, number: u64) -> PathBuf {
        self.directory.path().join(format!("{number}.log"))
    }

    /// What a member has said to its operator.
    fn said(&self, number: u64) -> String {
        std::fs::read_to_string(self.log_of(number)).expect("the file is there")
    }

    fn client_of(&self, number: u64) -> Option<Client> {
        Client::connect(self.clients[&number]).ok()
    }

    /// Calls a command at the first member that does not answer it with an error.
    fn try_call(&self, command: &[&str]) -> Option<(u64, Answer)> {
        self.clients.keys().find_map(|number| {
            let answer = self.client_of(*number)?.call(command).ok()?;
            (!matches!(answer, Answer::Error(_))).then_some((*number, answer))
        })
    }

    /// Returns the leader.
    fn leader(&self) -> u64 {
        let mut leader = None;
        wait_until("there is a leader", || {
            leader = self.try_call(&["SET", "leader", "?"]).map(|(number, _)| number);
            leader.is_some()
        });
        leader.expect("there is one")
    }

    /// Has another member lead. It is asked again if the lead was not taken, as on a busy machine.
    fn transfer(&self, to: u64) {
        let number = to.to_string();
        wait_until("the member leads", || {
            if self.leader() == to {
                return true;
            }
            let _ = self.try_call(&["CLUSTER", "TRANSFER", &number]);
            false
        });
    }

    /// Waits until all members that run have the same data.
    fn settle(&self) {
        wait_until("all members have the same data", || {
            let _ = self.try_call(&["SET", "settled", "1"]);
            let digests: Vec<_> = self
                .servers
                .keys()
                .map(|number| self.client_of(*number)?.call(&["DEBUG", "DIGEST"]).ok())
                .collect();
            digests.iter().all(|digest| digest.is_some() && *digest == digests[0])
        });
    }

    /// Stops a member as an operator does, and waits for its end.
    fn stop(&mut self, number: u64) {
        let mut server = self.servers.remove(&number).expect("it runs");
        server.signal("TERM");
        assert!(server.child.wait().expect("it ends").success(), "{}", self.said(number));
    }
}

/// What became of the changes of one client.
#[derive(Default)]
struct Outcome {
    acknowledged: u64,
    /// The connection ended before the answer.
    unknown: u64,
    newest: i64,
}

/// Adds to a key and to a counter at the leader, until `is_done`, and counts what is acknowledged.
fn add(cluster: &Cluster, writer: usize, is_done: &AtomicBool, total: &AtomicU64) -> [Outcome; 2] {
    let (key, counter) = (format!("key:{writer}"), format!("counter:{writer}"));
    let commands: [&[&str]; 2] = [&["INCR", &key], &["COUNTER.ADD", &counter, "1"]];
    wait_until("the counter is there", || cluster.try_call(&["COUNTER.CREATE", &counter]).is_some());
    let (mut client, mut members) = (None, cluster.clients.keys().cycle());
    let mut outcomes = [Outcome::default(), Outcome::default()];
    while !is_done.load(Ordering::Relaxed) {
        let Some(connected) = &mut client else {
            client = cluster.client_of(*members.next().expect("it has no end"));
            continue;
        };
        for (command, outcome) in commands.iter().zip(&mut outcomes) {
            match connected.call(command) {
                Ok(Answer::Integer(value)) => {
                    assert!(value > outcome.newest, "{value} behind {}", outcome.newest);
                    outcome.newest = value;
                    outcome.acknowledged += 1;
                    total.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Answer::Error(error)) => {
                    let is_refusal =
                        ["MOVED", "TRYAGAIN", "CLUSTERDOWN"].iter().any(|code| error.starts_with(code));
                    assert!(is_refusal, "{error}");
                    client = None;
                    break;
                }
                Ok(other) => panic!("{command:?}: {other:?}"),
                Err(_) => {
                    outcome.unknown += 1;
                    client = None;
                    break;
                }
            }
        }
    }
    outcomes
}

#[test]
fn a_lead_that_moves_loses_nothing_doubles_nothing_and_keeps_memory() {
    let cluster = Cluster::found();
    let (is_done, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcomes: Vec<[Outcome; 2]> = std::thread::scope(|scope| {
        let (cluster, is_done, total) = (&cluster, &is_done, &total);
        let writers: Vec<_> =
            (0..3).map(|writer| scope.spawn(move || add(cluster, writer, is_done, total))).collect();
        let work = |more: u64| {
            let until = total.load(Ordering::Relaxed) + more;
            wait_until("clients go on", || total.load(Ordering::Relaxed) >= until);
        };
        for _ in 0..5 {
            work(50);
            cluster.transfer(cluster.leader() % 3 + 1);
        }
        work(50);
        is_done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("it ends")).collect()
    });
    for (writer, outcomes) in outcomes.iter().enumerate() {
        for (outcome, command) in outcomes.iter().zip([["GET", "key"], ["COUNTER.GET", "counter"]]) {
            let key = format!("{}:{writer}", command[1]);
            let (_, value) = cluster.try_call(&[command[0], &key]).expect("the leader answers");
            let (value, known) = (value.integer().unsigned_abs(), outcome.acknowledged);
            assert!(
                (known..=known + outcome.unknown).contains(&value),
                "{key} is {value}, with {known} acknowledged and {} unknown",
                outcome.unknown
            );
        }
    }
    cluster.settle();
    for number in 1..=3 {
        let said = cluster.said(number);
        assert!(!said.contains("loads its data again"), "memory of member {number} was dropped:\n{said}");
    }
}

#[test]
fn a_leader_that_is_stopped_hands_the_lead_over_first() {
    let mut cluster = Cluster::found();
    for round in 0..3 {
        let leader = cluster.leader();
        let key = format!("round:{round}");
        cluster.try_call(&["SET", &key, "1"]).expect("the leader takes it");
        cluster.stop(leader);
        let said = cluster.said(leader);
        assert!(said.contains("leads the cluster, before this one stops"), "{said}");
        wait_until("another leads", || cluster.try_call(&["GET", &key]).is_some());
        assert_eq!(cluster.try_call(&["GET", &key]).expect("it leads").1, Answer::Bulk("1".into()));
        cluster.run(leader);
    }
    cluster.settle();
}

#[test]
fn a_follower_that_is_asked_for_a_failover_asks_the_leader() {
    let cluster = Cluster::found();
    let follower = cluster.leader() % 3 + 1;
    wait_until("the follower leads", || {
        // Another member may be elected meanwhile.
        let _ = cluster.client_of(follower).map(|mut client| client.call(&["CLUSTER", "FAILOVER"]));
        cluster.leader() == follower
    });
}

#[test]
fn what_cannot_be_transferred_is_refused_in_words() {
    let cluster = Cluster::found();
    let leader = cluster.leader();
    let follower = leader % 3 + 1;
    let error_of = |number: u64, command: &[&str]| match cluster
        .client_of(number)
        .expect("it accepts")
        .call(command)
        .expect("an answer")
    {
        Answer::Error(error) => error,
        other => panic!("{command:?}: {other:?}"),
    };
    let address = format!("127.0.0.1:{}", cluster.clients[&leader]);
    let named = leader.to_string();
    assert!(error_of(leader, &["CLUSTER", "TRANSFER", &named]).contains("leads already"));
    assert!(
        error_of(leader, &["CLUSTER", "TRANSFER", "9"]).contains("9 is no member; the members are 1, 2, 3")
    );
    assert!(error_of(leader, &["CLUSTER", "TRANSFER", "x"]).contains("'x' is no member"));
    assert!(error_of(leader, &["CLUSTER", "FORGET", &named]).contains("transfer the lead first"));
    assert_eq!(error_of(follower, &["CLUSTER", "TRANSFER", "1"]), format!("MOVED 0 {address}"));
    let forced = error_of(follower, &["CLUSTER", "FAILOVER", "TAKEOVER"]);
    assert!(forced.contains("never forced"), "{forced}");
    assert!(error_of(leader, &["CLUSTER", "FAILOVER"]).contains("to a replica"));
    cluster.settle();
}

impl Cluster {
    /// Starts a new member, which asks member `asked` to take it in, and waits until it votes.
    fn join(&mut self, number: u64, asked: u64) {
        self.begin_join(number, asked);
        let asked = self.clients[&asked];
        wait_until("the new member votes", || {
            let (_, status) = cluster_command(&["status", "--json"], asked);
            status.contains(&format!("\"node\": {number},")) && !status.contains("\"votes\": false")
        });
    }

    /// Starts a new member, which asks member `asked` to take it in. Returns its address for members.
    fn begin_join(&mut self, number: u64, asked: u64) -> String {
        let (own, flags) = self.joining(number, asked);
        self.run_with(number, &flags.iter().map(String::as_str).collect::<Vec<_>>());
        own
    }

    /// Returns the address of a new member for members, and its flags.
    fn joining(&mut self, number: u64, asked: u64) -> (String, Vec<String>) {
        self.clients.insert(number, free_port());
        let own = format!("127.0.0.1:{}", free_port());
        let address = format!("{own}/127.0.0.1:{}", self.clients[&number]);
        let asked = format!("127.0.0.1:{}", self.clients[&asked]);
        let number = number.to_string();
        let flags = ["--cluster-node", &number, "--cluster-address", &address, "--cluster-join", &asked];
        let flags = flags.map(str::to_owned).to_vec();
        (own, flags)
    }
}

/// Runs `tidemark cluster` against a member's port. Returns whether all is good, and what it has printed.
fn cluster_command(words: &[&str], port: u16) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .arg("cluster")
        .args(words)
        .args(["-p", &port.to_string()])
        .output()
        .expect("the binary starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn commands_and_new_members_wait_for_a_member_that_is_not_there_yet() {
    let mut cluster = Cluster::found();
    cluster.settle();
    let leader = cluster.leader();
    let asked = leader % 3 + 1;
    cluster.stop(asked);
    let port = cluster.clients[&asked].to_string();
    let command = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["cluster", "transfer", &asked.to_string(), "-p", &port])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let (_, flags) = cluster.joining(4, asked);
    cluster.spawn(4, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    wait_until("the new member says what it waits for", || {
        cluster.said(4).contains("no member of cluster-join can be asked")
    });
    // Longer than the command is silent.
    std::thread::sleep(Duration::from_secs(2));
    assert!(cluster.said(4).contains("it is tried again"), "{}", cluster.said(4));
    cluster.run(asked);
    let output = command.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("more seconds: no member answers at"), "{errors}");
    assert!(output.status.success(), "{errors}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("member {asked} leads")));
    wait_until("the new member votes", || {
        let (_, status) = cluster_command(&["status", "--json"], cluster.clients[&leader]);
        status.contains("\"node\": 4,") && !status.contains("\"votes\": false")
    });
    // What does not pass is said at once.
    let nowhere = ["transfer", "9", "--timeout", "5s"];
    let (is_good, said) = cluster_command(&nowhere, cluster.clients[&leader]);
    assert!(!is_good && said.contains("9 is no member"), "{said}");
    let (is_good, said) = cluster_command(&["transfer", "1", "--timeout", "1s"], free_port());
    assert!(!is_good && said.contains("no member answers at"), "{said}");
}

#[test]
fn a_member_joins_and_takes_the_place_of_another() {
    let mut cluster = Cluster::found();
    for number in 0..200 {
        cluster.try_call(&["SET", &format!("key:{number}"), "1"]).expect("the leader takes it");
    }
    cluster.join(4, 2);
    let port = cluster.clients[&1];
    let (is_good, said) = cluster_command(&["replace", "3", "4"], port);
    assert!(is_good && said.contains("member 4 has taken the place of 3"), "{said}");
    drop(cluster.servers.remove(&3));
    cluster.clients.remove(&3);
    let (is_good, said) = cluster_command(&["transfer", "4"], port);
    assert!(is_good && said.contains("member 4 leads"), "{said}");
    for number in 0..200 {
        let (member, value) = cluster.try_call(&["GET", &format!("key:{number}")]).expect("it answers");
        assert_eq!((member, value), (4, Answer::Bulk("1".into())));
    }
    cluster.settle();
    wait_until("nothing is wrong", || cluster_command(&["status"], port).0);
    // It starts again without the flags of its first start, and is who it was.
    cluster.stop(4);
    cluster.run_with(4, &[]);
    cluster.settle();
    let leader = cluster.leader().to_string();
    let (is_good, said) = cluster_command(&["remove", &leader], port);
    assert!(is_good && said.contains("is removed: stop its process"), "{said}");
}

#[test]
fn a_member_that_was_away_finds_a_leader_that_has_joined_since() {
    let mut cluster = Cluster::found();
    cluster.stop(3);
    cluster.join(4, 1);
    cluster.transfer(4);
    cluster.try_call(&["SET", "while", "away"]).expect("the new member leads");
    cluster.run(3);
    cluster.settle();
}

#[test]
fn strangers_are_refused_in_words() {
    let cluster = Cluster::found();
    let leader = cluster.clients[&cluster.leader()];
    let refusal = |flags: &[&str]| {
        let directory = tempfile::tempdir().expect("a directory");
        let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["serve", "--port", &free_port().to_string(), "--dir"])
            .arg(directory.path())
            .args(flags)
            .stdin(Stdio::null())
            .output()
            .expect("the binary starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (asked, address) = (format!("127.0.0.1:{leader}"), format!("127.0.0.1:{}/127.0.0.1:9", free_port()));
    let nowhere = format!("127.0.0.1:{}", free_port());
    for (flags, words) in [
        (["--cluster-node", "2", "--cluster-address", &address, "--cluster-join", &asked], "has a member 2"),
        (
            ["--cluster-node", "0", "--cluster-address", &address, "--cluster-join", &asked],
            "set cluster-node",
        ),
        (["--cluster-node", "9", "--cluster-address", "", "--cluster-join", &asked], "set cluster-address"),
        (["--cluster-node", "9", "--cluster-address", &address, "--cluster-join", &nowhere], "can be asked"),
    ] {
        let refused = refusal(&flags);
        assert!(refused.contains("cannot join a cluster") && refused.contains(words), "{flags:?}: {refused}");
    }
    let id = "0".repeat(32);
    let join = ["CLUSTER", "JOIN", "9", "127.0.0.1:1", "127.0.0.1:2", &id, &id];
    let answer = Client::connect(leader).and_then(|mut client| client.call(&join)).expect("an answer");
    assert!(matches!(&answer, Answer::Error(error) if error.contains("this is another one")), "{answer:?}");
}

#[test]
fn a_new_member_that_only_a_leader_without_followers_took_in_asks_the_next_leader() {
    let mut cluster = Cluster::found();
    cluster.settle();
    let leader = cluster.leader();
    let followers: Vec<u64> = (1..=3).filter(|member| *member != leader).collect();
    // The entry of the leader that takes it in reaches the new member alone.
    followers.iter().for_each(|member| drop(cluster.servers.remove(member)));
    let own = cluster.begin_join(4, leader);
    wait_until("the new member has the entry that takes it in", || {
        let told = cluster.client_of(4).and_then(|mut client| client.call(&["CLUSTER", "STATUS"]).ok());
        format!("{told:?}").contains(&own)
    });
    drop(cluster.servers.remove(&leader));
    followers.iter().for_each(|member| cluster.run(*member));
    wait_until("the new member votes", || {
        let (_, status) = cluster_command(&["status", "--json"], cluster.clients[&followers[0]]);
        status.contains("\"node\": 4,") && !status.contains("\"votes\": false")
    });
    cluster.run(leader);
    cluster.settle();
}

#[test]
fn status_says_what_is_wrong_and_what_to_do() {
    let mut cluster = Cluster::found();
    cluster.settle();
    let leader = cluster.leader();
    let (port, silent) = (cluster.clients[&leader], leader % 3 + 1);
    wait_until("nothing is wrong", || cluster_command(&["status"], port).0);
    let (_, text) = cluster_command(&["status"], port);
    assert!(
        text.contains(&format!("led by member {leader}")) && text.contains("3 members vote, 1 may fail"),
        "{text}"
    );
    drop(cluster.servers.remove(&silent));
    let (is_good, text) = cluster_command(&["status"], port);
    assert!(!is_good && text.contains(&format!("member {silent} does not answer")), "{text}");
    assert!(text.contains(&format!("tidemark cluster replace {silent} NEW")), "{text}");
    let other = (1..=3).find(|member| *member != leader && *member != silent).expect("a third one");
    drop(cluster.servers.remove(&other));
    wait_until("the quorum is missed", || {
        let (is_good, text) = cluster_command(&["status"], port);
        !is_good && text.contains("no quorum: 1 of 3 voting members answer")
    });
    let (is_good, json) = cluster_command(&["status", "--json"], port);
    assert!(!is_good && json.contains("\"findings\""), "{json}");
}
