//! The log's changes as they arrive in Kafka, with the real programs, which are killed at bad
//! moments.
//!
//! `./check kafka` downloads Kafka and runs this test; to run it by hand, set `KAFKA_JARS` to the
//! directory of its jars.

use crate::support::changes::{changes, eventually, settle, sink, write_for};
use crate::support::{Server, free_port};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SETTINGS: &str = "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:CONTROL
listeners=PLAINTEXT://127.0.0.1:PORT,CONTROLLER://127.0.0.1:CONTROL
advertised.listeners=PLAINTEXT://127.0.0.1:PORT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=DIRECTORY
default.replication.factor=1
offsets.topic.replication.factor=1
";

/// A broker and controller in one process.
struct Kafka {
    child: Child,
    port: u16,
}

impl Kafka {
    /// Makes a broker's directory and settings, and returns its port.
    fn make(dir: &Path) -> u16 {
        let (port, control) = (free_port(), free_port());
        let settings = SETTINGS
            .replace("PORT", &port.to_string())
            .replace("127.0.0.1:CONTROL", &format!("127.0.0.1:{control}"))
            .replace("DIRECTORY", &dir.join("data").to_string_lossy());
        std::fs::create_dir_all(dir).expect("a folder");
        std::fs::write(dir.join("settings"), settings).expect("a file");
        let format = ["kafka.tools.StorageTool", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c"];
        let formatted = java(dir, &format).status().expect("java is installed");
        assert!(formatted.success(), "the folder is formatted");
        port
    }

    /// Starts the broker of a directory and waits until it answers.
    fn start(dir: &Path, port: u16) -> Self {
        let child = java(dir, &["kafka.Kafka"]).spawn().expect("java is installed");
        let broker = Self { child, port };
        eventually("Kafka answers", || broker.ask(async |client| client.list_topics().await.ok()).is_some());
        broker
    }

    /// Runs `work` with a client; returns `None` if there is no connection.
    fn ask<T>(&self, work: impl AsyncFnOnce(&rskafka::client::Client) -> Option<T>) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connect = ClientBuilder::new(vec![format!("127.0.0.1:{}", self.port)]).build();
        runtime.block_on(async {
            let connected = tokio::time::timeout(Duration::from_secs(5), connect).await;
            work(&connected.ok()?.ok()?).await
        })
    }

    /// Returns the topic's records: LSN and payload.
    fn records(&self, topic: &str) -> Vec<(u64, String)> {
        let read = async |client: &rskafka::client::Client| {
            let partition = client.partition_client(topic, 0, UnknownTopicHandling::Error).await.ok()?;
            Some(read_all(&partition).await)
        };
        self.ask(read).expect("Kafka answers")
    }

    /// Kills the broker with `kill -9`.
    fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.end();
    }
}

async fn read_all(partition: &PartitionClient) -> Vec<(u64, String)> {
    let (mut all, mut next) = (Vec::new(), 0);
    let end = partition.get_offset(OffsetAt::Latest).await.expect("an offset");
    while next < end {
        let (records, _) = partition.fetch_records(next, 1..16 << 20, 1_000).await.expect("records");
        for fetched in records {
            next = fetched.offset + 1;
            let lsn = std::str::from_utf8(&fetched.record.headers["Tidemark-Lsn"]).expect("text");
            let payload = String::from_utf8(fetched.record.value.expect("a value")).expect("text");
            all.push((lsn.parse().expect("an LSN"), payload));
        }
    }
    all
}

/// Returns the command of a Kafka program with the settings of a directory.
fn java(dir: &Path, words: &[&str]) -> Command {
    let jars = std::env::var("KAFKA_JARS").expect("KAFKA_JARS names a folder");
    let mut command = Command::new("java");
    command.args(["-Xmx400m", "-cp", &format!("{jars}/*")]).args(words).arg(dir.join("settings"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "needs Kafka, which ./check kafka fetches"]
fn after_kills_of_either_side_the_topic_has_every_durable_change_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, store) = (dir.path().join("data"), dir.path().join("kafka"));
    let port = Kafka::make(&store);
    let mut kafka = Kafka::start(&store, port);
    let url = format!("kafka://127.0.0.1:{port}/changes");
    let start = || Server::start(&data, &["--sink", &url]);
    let mut server = start();
    settle_first(&server);
    let while_busy = Duration::from_millis(200);
    write_for(&server, "all is well", while_busy);
    kafka.kill();
    write_for(&server, "without Kafka", while_busy);
    eventually("the sink waits", || sink(&mut server.client())["state"] == "retrying");
    kafka = Kafka::start(&store, port);
    write_for(&server, "while it catches up", while_busy);
    server.kill();
    server = start();
    settle(&server);
    let (expected, records) = (changes(&server), kafka.records("changes"));
    assert!(expected.len() > 400, "{}", expected.len());
    // Delivery is at least once: a consumer skips records whose LSN is not above the last one.
    let (mut seen, mut once) = (0, records.clone());
    once.retain(|(lsn, _)| {
        let is_new = *lsn > seen;
        seen = seen.max(*lsn);
        is_new
    });
    assert_eq!(once, expected);
    println!("{} records, {} of them twice", records.len(), records.len() - once.len());
    // A restart without new changes repeats nothing.
    assert!(server.terminate().success());
    let server = start();
    settle(&server);
    assert_eq!(kafka.records("changes").len(), records.len() + 1);
}

/// Waits until the sink is connected and has delivered a change.
fn settle_first(server: &Server) {
    server.client().call(&["DURABLE", "SET", "first", "one"]).expect("an answer");
    eventually("the sink passes changes on", || sink(&mut server.client())["messages"] == "1");
}
