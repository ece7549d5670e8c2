//! Sink to one partition of a Kafka topic.

use crate::address::KafkaTarget;
use crate::outlet::{LSN_HEADER, Message, Outlet, PROGRESS_HEADER, Trouble};
use rskafka::BackoffConfig;
use rskafka::chrono::DateTime;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record, RecordAndOffset};
use std::collections::BTreeMap;
use std::time::Duration;
use tidemark_log::Lsn;

/// Longest time that a broker may wait for a topic or a record, in milliseconds.
const PATIENCE_MS: i32 = 5_000;
/// Offsets tried to find the last readable record.
const LOOKED_AT: i64 = 100;
/// Largest fetch. Bytes.
const FETCH_BYTES: i32 = 64 << 20;

/// Connection to a partition.
pub(crate) struct Kafka {
    partition: PartitionClient,
    last: Option<Lsn>,
}

impl Outlet for Kafka {
    type Target = KafkaTarget;

    async fn open(target: &KafkaTarget) -> Result<Kafka, Trouble> {
        // A request that may have been carried out is not repeated: the relay reconnects and
        // determines what has arrived.
        let once = BackoffConfig { deadline: Some(Duration::ZERO), ..BackoffConfig::default() };
        let client = ClientBuilder::new(target.brokers.clone()).client_id("tidemark").backoff_config(once);
        let client = client.build().await.map_err(|error| Trouble::while_("connecting", error))?;
        provide_topic(&client, target).await?;
        let partition = client
            .partition_client(target.topic.clone(), target.partition, UnknownTopicHandling::Error)
            .await
            .map_err(|error| Trouble::while_("looking for the partition", error))?;
        let last = last_record(&partition).await?;
        Ok(Kafka { partition, last })
    }

    fn last(&self) -> Option<Lsn> {
        self.last
    }

    async fn append(&mut self, messages: Vec<Message>) -> Result<(), Trouble> {
        let records = messages.into_iter().map(record).collect();
        let produced = self.partition.produce(records, Compression::NoCompression).await;
        produced.map(|_| ()).map_err(|error| Trouble::while_("producing", error))
    }

    async fn lost(&self) -> Trouble {
        // A lost connection is noticed only when producing.
        std::future::pending().await
    }
}

fn record(message: Message) -> Record {
    let lsn = message.lsn.to_string().into_bytes();
    let mut headers = BTreeMap::from([(LSN_HEADER.to_owned(), lsn)]);
    if message.is_progress {
        headers.insert(PROGRESS_HEADER.to_owned(), b"1".to_vec());
    }
    let time_us = i64::try_from(message.time_us).unwrap_or(i64::MAX);
    // The clock of the log may have shown a year that the timestamp cannot represent.
    let timestamp = DateTime::from_timestamp_micros(time_us).unwrap_or_default();
    Record { key: None, value: Some(message.payload), headers, timestamp }
}

/// Creates the topic, with partitions up to the target's, unless it exists.
async fn provide_topic(client: &Client, target: &KafkaTarget) -> Result<(), Trouble> {
    let topics = client.list_topics().await.map_err(|error| Trouble::while_("listing topics", error))?;
    if topics.iter().any(|topic| topic.name == target.topic) {
        return Ok(());
    }
    let controller = client.controller_client();
    let controller = controller.map_err(|error| Trouble::while_("looking for the controller", error))?;
    // -1: the cluster's default number of replicas.
    let created = controller.create_topic(target.topic.clone(), target.partition + 1, -1, PATIENCE_MS).await;
    created.map_err(|error| Trouble::while_("making the topic", error))
}

/// Returns the record of the last message; `None` if there is no message.
async fn last_record(partition: &PartitionClient) -> Result<Option<Lsn>, Trouble> {
    let offset = async |at| {
        let offset = partition.get_offset(at).await;
        offset.map_err(|error| Trouble::while_("asking for an offset", error))
    };
    let (first, end) = (offset(OffsetAt::Earliest).await?, offset(OffsetAt::Latest).await?);
    // The last offsets may belong to deleted records or to the broker's control records.
    for back in 1..=LOOKED_AT.min(end - first) {
        let fetched = partition.fetch_records(end - back, 1..FETCH_BYTES, PATIENCE_MS).await;
        let (records, _) = fetched.map_err(|error| Trouble::while_("reading the last record", error))?;
        if let Some(RecordAndOffset { record, .. }) = records.last() {
            return lsn_of(record).map(Some);
        }
    }
    if end == first {
        return Ok(None);
    }
    Err(Trouble(format!("none of the last {LOOKED_AT} records can be read: begin with an empty topic")))
}

fn lsn_of(record: &Record) -> Result<Lsn, Trouble> {
    let text = record.headers.get(LSN_HEADER).and_then(|value| std::str::from_utf8(value).ok());
    text.and_then(|text| text.parse().ok()).map(Lsn).ok_or_else(|| {
        Trouble(format!(
            "the last record has no {LSN_HEADER}, so another writer is active there: choose another topic or partition"
        ))
    })
}
