//! The directory of a single server becomes the first member of a cluster as it is, and others join it.

use crate::support::small_disk::SmallDisk;
use crate::support::{Answer, Client, Server, call, free_port, wait_until};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Times of a cluster on a machine that does other work.
const PATIENT: [&str; 6] =
    ["--cluster-heartbeat-ms", "50", "--cluster-election-min-ms", "300", "--cluster-election-max-ms", "600"];

/// Small segments, so that the log has some.
const SMALL: [&str; 2] = ["--log-segment-bytes", "65536"];

/// A cluster that begins with one member.
struct Grown {
    directory: tempfile::TempDir,
    /// The addresses of each member for other members and for clients.
    ports: BTreeMap<u64, [u16; 2]>,
    servers: BTreeMap<u64, Server>,
    /// The disks of members that have one of their own.
    disks: BTreeMap<u64, SmallDisk>,
}

impl Grown {
    /// A directory in which member 1 is still a single server.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ports = (1..=3).map(|number| (number, [free_port(), free_port()])).collect();
        Self { directory, ports, servers: BTreeMap::new(), disks: BTreeMap::new() }
    }

    fn dir(&self, number: u64) -> PathBuf {
        self.directory.path().join(number.to_string())
    }

    fn addresses(&self, number: u64) -> String {
        let [peers, clients] = self.ports[&number];
        format!("127.0.0.1:{peers}/127.0.0.1:{clients}")
    }

    /// The flags with which the directory of a single server becomes member 1.
    fn founding(&self) -> Vec<String> {
        let members = format!("1={}", self.addresses(1));
        ["--cluster-node", "1", "--cluster-members", &members].map(str::to_owned).to_vec()
    }

    /// Starts member 1, for the first time.
    fn found(&mut self) {
        let flags = self.founding();
        self.run(1, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Starts a member, and waits until it answers.
    fn run(&mut self, number: u64, flags: &[&str]) {
        let said = File::options().create(true).append(true).open(self.log_of(number)).expect("a file");
        let child = self.command(number, flags).stderr(said).spawn().expect("the binary starts");
        let port = self.ports[&number][1];
        self.servers.insert(number, Server { child, port, startup: Duration::ZERO });
        wait_until("the member answers", || {
            Client::connect(port)
                .and_then(|mut client| client.call(&["PING"]))
                .is_ok_and(|answer| answer == Answer::Status("PONG".into()))
        });
    }

    fn command(&self, number: u64, flags: &[&str]) -> Command {
        let (mut command, directory) = match self.disks.get(&number) {
            Some(disk) => (disk.command(), disk.data()),
            None => (Command::new(env!("CARGO_BIN_EXE_tidemark")), self.dir(number)),
        };
        command.args(["serve", "--enable-debug-command", "local", "--dir"]).arg(directory);
        command.args(["--port", &self.ports[&number][1].to_string()]).args(PATIENT).args(SMALL).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn log_of(&self, number: u64) -> PathBuf {
        self.directory.path().join(format!("{number}.log"))
    }

    /// What a member has said to its operator.
    fn said(&self, number: u64) -> String {
        std::fs::read_to_string(self.log_of(number)).expect("the file is there")
    }

    /// Runs `tidemark cluster` against a member. Returns whether all is good, and what it has printed.
    fn command_at(&self, number: u64, words: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .arg("cluster")
            .args(words)
            .args(["-p", &self.ports[&number][1].to_string()])
            .output()
            .expect("the binary starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts a new member, which asks the first one to take it in.
    fn begin_join(&mut self, number: u64) {
        let (name, address) = (number.to_string(), self.addresses(number));
        let asked = format!("127.0.0.1:{}", self.ports[&1][1]);
        self.run(number, &["--cluster-node", &name, "--cluster-address", &address, "--cluster-join", &asked]);
    }

    /// Lets a new member join, and waits until it votes.
    fn join(&mut self, number: u64) {
        self.begin_join(number);
        wait_until("the new member votes", || {
            let json = self.status(1);
            json.contains(&format!("\"node\": {number},")) && !json.contains("\"votes\": false")
        });
    }

    fn status(&self, number: u64) -> String {
        let asked = self.ports[&number][1].to_string();
        let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["cluster", "status", "--json", "-p", &asked])
            .output()
            .expect("the binary starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn client(&self, number: u64) -> Client {
        Client::connect(self.ports[&number][1]).expect("the member accepts")
    }

    /// Calls a command at a member. One that loads its data again accepts no client for a moment.
    fn try_call(&self, number: u64, command: &[&str]) -> Option<Answer> {
        Client::connect(self.ports[&number][1]).and_then(|mut client| client.call(command)).ok()
    }

    /// Calls a command at the leader, whichever that is.
    fn call(&self, command: &[&str]) -> Answer {
        let mut answer = None;
        wait_until("the leader answers", || {
            answer = self.servers.keys().find_map(|number| {
                let answer = self.try_call(*number, command)?;
                let is_refusal = |error: &str| {
                    ["MOVED", "CLUSTERDOWN", "TRYAGAIN", "LOADING"].iter().any(|code| error.starts_with(code))
                };
                (!matches!(&answer, Answer::Error(error) if is_refusal(error))).then_some(answer)
            });
            answer.is_some()
        });
        answer.expect("there is one")
    }

    /// Waits until all members that run have the same data.
    fn settle(&self) {
        wait_until("all members have the same data", || {
            self.call(&["SET", "settled", "1"]);
            let digest = |number: &u64| self.try_call(*number, &["DEBUG", "DIGEST"]);
            let digests: Vec<_> = self.servers.keys().map(digest).collect();
            digests.iter().all(|digest| digest.is_some() && *digest == digests[0])
        });
    }
}

/// A single server.
fn alone(dir: &Path) -> Server {
    Server::start(dir, &[&SMALL[..], &["--enable-debug-command", "local"]].concat())
}

/// Makes some of each kind of state that the log has in a way of its own.
fn fill(client: &mut Client, round: usize) {
    if round == 0 {
        for command in [
            &["COUNTER.CREATE", "hits", "RELAXED", "100"][..],
            &["COUNTER.CREATE", "seats", "LIMIT", "1000", "EXACT", "10"],
            &["POOL.CREATE", "prizes", "ITEMS", "car", "1", "500", "mug", "2", "90000"],
        ] {
            call(client, command);
        }
    }
    for number in 0..60 {
        let (key, time) = (format!("key:{number}"), (round * 60 + number + 1).to_string());
        call(client, &["SET", &key, &format!("{round}:{}", "v".repeat(2_000))]);
        call(client, &["COUNTER.ADD", "hits", "3"]);
        call(client, &["COUNTER.TAKE", "seats"]);
        call(client, &["TS.ADD", "series", &time, &number.to_string()]);
        call(client, &["RPUSH", "list", &time]);
    }
    call(client, &["POOL.DRAW", "prizes", "COUNT", "2"]);
    call(client, &["ONCE", "session", &(round + 1).to_string(), "INCR", "once"]);
}

/// What clients see of the state that `fill` makes.
fn shown(mut call: impl FnMut(&[&str]) -> Answer) -> Vec<Answer> {
    let reads: [&[&str]; 8] = [
        &["GET", "key:7"],
        &["COUNTER.GET", "hits"],
        &["COUNTER.GET", "seats"],
        &["POOL.STATE", "prizes"],
        &["TS.RANGE", "series", "-", "+"],
        &["LRANGE", "list", "0", "-1"],
        &["GET", "once"],
        &["DBSIZE"],
    ];
    reads.iter().map(|read| call(read)).collect()
}

/// Reads the stream of changes from a record on, up to the change that sets `last`: LSN and payload.
fn changes(client: &mut Client, from: u64, last: &str) -> Vec<(u64, String)> {
    call(client, &["CHANGES", "FROM", &from.to_string()]);
    let mut changes = Vec::new();
    loop {
        let change = client.read().expect("a change").array();
        let Answer::Bulk(payload) = &change[2] else { panic!("a payload") };
        changes.push((change[1].integer() as u64, payload.clone()));
        if payload.contains(&format!("\"args\":[\"{last}\",")) {
            return changes;
        }
    }
}

#[test]
fn a_single_servers_directory_becomes_the_first_member_with_everything() {
    let mut cluster = Grown::new();
    let server = alone(&cluster.dir(1));
    let mut client = server.client();
    fill(&mut client, 0);
    call(&mut client, &["SAVE"]);
    fill(&mut client, 1);
    // A consumer that has handled some of its emissions, and one that reads the changes.
    let begun = call(&mut client, &["GET.WATCH", "key:7", "|", "AS", "consumer"]).array();
    let handled = begun[3].integer().to_string();
    call(&mut client, &["EMITACK", "key:7", "consumer", &handled]);
    let mut writer = server.client();
    call(&mut writer, &["DURABLE", "SET", "key:7", "not handled"]);
    call(&mut writer, &["DURABLE", "SET", "alone", "1"]);
    let before = changes(&mut server.client(), 0, "alone");
    let seen = shown(|read| call(&mut writer, read));
    drop((client, writer));
    assert!(server.terminate().success());

    cluster.found();
    assert_eq!(shown(|read| cluster.call(read)), seen);
    let again = cluster.call(&["ONCE", "session", "2", "INCR", "once"]);
    assert_eq!(again, Answer::Integer(2), "it was executed before");
    assert_eq!(cluster.call(&["DURABLE", "SET", "in:cluster", "1"]), Answer::Status("OK".into()));
    let all = changes(&mut cluster.client(1), 0, "in:cluster");
    assert_eq!(all[..before.len()], before, "what was told stays");
    let (told, _) = before[before.len() / 2];
    let rest = changes(&mut cluster.client(1), told, "in:cluster");
    assert_eq!(rest, all[before.len() / 2 + 1..], "a reader goes on where it was");
    assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in the order of the log");
    let mut consumer = cluster.client(1);
    call(&mut consumer, &["GET.WATCH", "key:7", "|", "AS", "consumer"]);
    let emission = consumer.read().expect("an emission").array();
    assert_eq!(emission.last(), Some(&Answer::Bulk("not handled".into())));

    cluster.join(2);
    cluster.join(3);
    let seen = shown(|read| cluster.call(read));
    cluster.settle();
    // The new members have what the first one had before there was a cluster.
    cluster.servers.remove(&1).expect("it runs").kill();
    assert_eq!(shown(|read| cluster.call(read))[..7], seen[..7]);
    let again = cluster.call(&["ONCE", "session", "2", "INCR", "once"]);
    assert_eq!(again, Answer::Integer(2), "sessions are in snapshots");
    cluster.call(&["SET", "without", "1"]);
    cluster.run(1, &[]);
    cluster.settle();
}

#[test]
fn a_killed_single_server_becomes_the_first_member_with_what_its_log_has() {
    let mut cluster = Grown::new();
    let mut given = 0;
    for _ in 0..3 {
        let server = alone(&cluster.dir(1));
        let mut client = server.client();
        call(&mut client, &["DURABLE", "INCR", "number"]);
        call(&mut client, &["CHANGES", "FROM", "$"]);
        call(&mut server.client(), &["DURABLE", "SET", "given", "1"]);
        given = client.read().expect("a change").array()[1].integer() as u64;
        server.kill();
    }
    cluster.found();
    assert_eq!(cluster.call(&["GET", "number"]), Answer::Bulk("3".into()));
    cluster.call(&["DURABLE", "SET", "in:cluster", "1"]);
    let all = changes(&mut cluster.client(1), 0, "in:cluster");
    assert!(all.last().is_some_and(|(lsn, _)| *lsn > given), "no LSN comes again: {all:?}");
    cluster.join(2);
    cluster.settle();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    std::fs::set_permissions(to, std::fs::metadata(from).expect("it is there").permissions()).expect("set");
    for entry in std::fs::read_dir(from).expect("readable") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}

/// Starts member 1 for the first time, and kills it at a sync, or when it leads. Returns whether it has
/// come to that.
fn is_through(cluster: &Grown, calls: &str, at: u32) -> bool {
    let flags = cluster.founding();
    let program = cluster.command(1, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let fault = format!("inject={calls}:signal=KILL:when={at}");
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e", &fault]);
    command.arg(program.get_program()).args(program.get_args()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().expect("strace is installed");
    let leads = || {
        Client::connect(cluster.ports[&1][1])
            .and_then(|mut client| client.call(&["GET", "number"]))
            .is_ok_and(|answer| answer == Answer::Bulk("1".into()))
    };
    let mut is_through = false;
    wait_until("it ends or leads", || {
        is_through = leads();
        is_through || child.try_wait().expect("it can be asked").is_some()
    });
    let _ = child.kill();
    let _ = child.wait();
    is_through
}

#[test]
fn a_first_start_that_is_killed_at_any_sync_goes_on_at_the_next_one() {
    let template = Grown::new();
    let server = alone(&template.dir(1));
    let mut client = server.client();
    fill(&mut client, 0);
    call(&mut client, &["SAVE"]);
    call(&mut client, &["INCR", "number"]);
    drop(client);
    assert!(server.terminate().success());
    // Counters show what is committed once the server has stopped.
    let server = alone(&template.dir(1));
    let seen = shown(|read| call(&mut server.client(), read));
    assert!(server.terminate().success());
    for calls in ["fsync", "fdatasync"] {
        let mut at = 0;
        loop {
            at += 1;
            let mut cluster = Grown::new();
            copy(&template.dir(1), &cluster.dir(1));
            let is_through = is_through(&cluster, calls, at);
            // With the flags of the first start, and, if the directory is a member's, without.
            let is_member = cluster.dir(1).join("group").exists();
            if is_member && at % 2 == 0 {
                cluster.run(1, &[]);
            } else {
                cluster.found();
            }
            assert_eq!(shown(|read| cluster.call(read)), seen, "killed at {calls} {at}");
            cluster.call(&["INCR", "number"]);
            if is_through {
                break;
            }
        }
        println!("killed at {} calls of {calls}", at - 1);
        assert!(at > 5, "only {at} calls of {calls} are made");
    }
}

#[test]
fn data_is_taken_into_no_cluster_that_has_its_own() {
    let mut cluster = Grown::new();
    for number in [1, 2] {
        let server = alone(&cluster.dir(number));
        call(&mut server.client(), &["SET", "key", &number.to_string()]);
        assert!(server.terminate().success());
    }
    cluster.found();
    let refusal = |flags: &[&str]| {
        let output = cluster.command(2, flags).output().expect("the binary starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (address, asked) = (cluster.addresses(2), format!("127.0.0.1:{}", cluster.ports[&1][1]));
    let joining = refusal(&["--cluster-node", "2", "--cluster-address", &address, "--cluster-join", &asked]);
    let all = (1..=3).map(|number| format!("{number}={}", cluster.addresses(number)));
    let all = all.collect::<Vec<_>>().join(",");
    let founding = refusal(&["--cluster-node", "2", "--cluster-members", &all]);
    for refused in [joining, founding] {
        assert!(refused.contains("has data") && refused.contains("give it an empty directory"), "{refused}");
        assert!(refused.contains("cluster-join"), "{refused}");
    }
    // It is what it was.
    let server = alone(&cluster.dir(2));
    assert_eq!(call(&mut server.client(), &["GET", "key"]), Answer::Bulk("2".into()));
    assert_eq!(cluster.call(&["GET", "key"]), Answer::Bulk("1".into()));
    // And there is no way back: the log of a member is no single server's.
    cluster.servers.remove(&1).expect("it runs").kill();
    for name in ["group", "group.copy"] {
        std::fs::remove_file(cluster.dir(1).join(name)).expect("the file is there");
    }
    let output = cluster.command(1, &[]).output().expect("the binary starts");
    let refused = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && refused.contains("group"), "{refused}");
}

/// Half of the TLS settings: the operator corrects them and starts again.
#[test]
fn a_first_start_that_is_refused_leaves_the_directory_as_it_was() {
    let cluster = Grown::new();
    let (members, address) = (format!("1={}", cluster.addresses(1)), cluster.addresses(1));
    let founding = ["--cluster-node", "1", "--cluster-members", &members];
    let mut taken = std::net::TcpListener::bind(("127.0.0.1", cluster.ports[&1][0])).ok();
    assert!(taken.is_some(), "the port was free");
    for (flags, words) in [
        (&["--cluster-tls-cert-file", "/nowhere.pem"][..], "cluster-tls"),
        (&["--log-storage", "memory"], "log in memory"),
        (&[], "cannot listen for other members"),
    ] {
        let output = cluster.command(1, &[&founding[..], flags].concat()).output().expect("it starts");
        let refused = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && refused.contains(words), "{flags:?}: {refused}");
        let files = std::fs::read_dir(cluster.dir(1)).map_or(0, Iterator::count);
        assert_eq!(files, 0, "{flags:?}: nothing is written");
    }
    drop(taken.take());
    let mut cluster = cluster;
    cluster.found();
    cluster.call(&["SET", "key", &address]);
}

/// Its disk has no space for the snapshot that each new member needs here.
#[test]
fn a_new_member_that_cannot_catch_up_holds_no_other_change_up_and_leaves_for_good() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut cluster = Grown::new();
    cluster.disks.insert(2, disk);
    let mut single = alone(&cluster.dir(1));
    fill(&mut single.client(), 0);
    assert!(single.child.try_wait().expect("it can be asked").is_none());
    assert!(single.terminate().success());
    cluster.found();
    cluster.begin_join(2);
    wait_until("the new member says why it does not vote", || {
        cluster.said(2).contains("member 2 is taken in; it votes when it has everything")
            && cluster.said(2).contains("does not take it: the disk has")
    });
    let (is_good, said) = cluster.command_at(1, &["status"]);
    assert!(!is_good && said.contains("it does not take the snapshot that it needs"), "{said}");
    let (is_good, said) = cluster.command_at(1, &["replace", "1", "2", "--timeout", "2s"]);
    assert!(!is_good && said.contains("it does not get the snapshot that it needs"), "{said}");

    // Another one joins, and the lead moves, as if it were not there.
    cluster.join_beside(3);
    let (is_good, said) = cluster.command_at(1, &["transfer", "3"]);
    assert!(is_good, "{said}");
    let (is_good, said) = cluster.command_at(3, &["transfer", "1"]);
    assert!(is_good, "{said}");

    // It is removed while it runs, and stays removed.
    let (is_good, said) = cluster.command_at(1, &["remove", "2"]);
    assert!(is_good, "{said}");
    wait_until("it says that it was removed", || {
        cluster.said(2).contains("this member was removed from the cluster")
    });
    let lines = |cluster: &Grown| [1, 3].map(|number| cluster.said(number).lines().count());
    let before = lines(&cluster);
    std::thread::sleep(Duration::from_secs(8));
    let after = lines(&cluster);
    let said = cluster.said(1);
    assert!(after[0] <= before[0] + 3 && after[1] <= before[1] + 3, "{before:?}, then {after:?}:\n{said}");
    assert!(!cluster.status(1).contains("\"node\": 2,"), "{}", cluster.status(1));
    cluster.call(&["SET", "goes", "on"]);
}

impl Grown {
    /// Lets a new member join, and waits until it votes; others may not vote yet.
    fn join_beside(&mut self, number: u64) {
        self.begin_join(number);
        wait_until("the new member votes", || {
            self.said(number).contains("this member takes part in the cluster, and votes")
        });
    }
}
