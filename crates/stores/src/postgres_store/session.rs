//! A connection to `PostgreSQL` with its statements.

use std::fmt::Write;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

/// Advisory lock for the creation of the tables: concurrent creation can fail, even with IF NOT
/// EXISTS.
const MAKING: i64 = 0x7469_6465_6d61_726b;

/// Names of the two tables.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) schema: Option<String>,
    pub(crate) counters: String,
    pub(crate) writers: String,
}

impl Tables {
    /// Quotes the names: they are plain lowercase letters, digits and underscores, but may be
    /// keywords.
    pub(crate) fn new(schema: Option<&str>, prefix: &str) -> Self {
        let schema = schema.map(|schema| format!("\"{schema}\""));
        let within = schema.as_ref().map(|schema| format!("{schema}.")).unwrap_or_default();
        let table = |name: &str| format!("{within}\"{prefix}{name}\"");
        Self { counters: table("counters"), writers: table("writers"), schema }
    }

    fn made_by(&self) -> String {
        let Self { schema, counters, writers } = self;
        let mut script = format!("BEGIN; SELECT pg_advisory_xact_lock({MAKING});");
        if let Some(schema) = schema {
            let _ = write!(script, "CREATE SCHEMA IF NOT EXISTS {schema};");
        }
        // Free space in each page allows updates within it, without touching the index (HOT).
        let _ = write!(
            script,
            "CREATE TABLE IF NOT EXISTS {counters} (key bytea PRIMARY KEY, position bigint NOT NULL) WITH (fillfactor = 50);
             CREATE TABLE IF NOT EXISTS {writers}
             (writer text PRIMARY KEY, epoch bigint NOT NULL, last_sequence bigint NOT NULL) WITH (fillfactor = 50);
             COMMIT"
        );
        script
    }
}

/// A connection with its prepared statements.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// Writer ─► epoch, last sequence.
    pub(crate) claim: Statement,
    /// Writer, epoch, sequence, the one before it, keys, amounts ─► 1 if the batch was applied.
    pub(crate) commit: Statement,
    /// Writer ─► epoch, last sequence.
    pub(crate) known: Statement,
    /// Keys, amounts ─► ordinals of those that exceed 64 bits.
    pub(crate) overflowing: Statement,
    /// Keys ─► ordinals and positions of those that exist.
    pub(crate) load: Statement,
}

impl Session {
    /// Connects, creates the tables if they are missing, and prepares the statements. Must run in a
    /// runtime.
    pub(crate) async fn open(
        config: Config,
        tables: Tables,
        statement_timeout_ms: u128,
    ) -> Result<Self, Error> {
        let (client, connection) = config.connect(NoTls).await?;
        // It ends with the client, and its errors are returned by the calls.
        tokio::spawn(connection);
        // A statement whose caller has timed out must end as well. Conflicts are resolved by
        // waiting for rows, not by aborting whole transactions.
        let settings = format!(
            "SET statement_timeout = {statement_timeout_ms}; SET default_transaction_isolation = 'read committed'; \
             SET client_min_messages = warning"
        );
        client.batch_execute(&settings).await?;
        let Tables { counters, writers, .. } = &tables;
        let missing = "SELECT to_regclass($1) IS NULL OR to_regclass($2) IS NULL";
        if client.query_one(missing, &[counters, writers]).await?.try_get(0)? {
            client.batch_execute(&tables.made_by()).await?;
        }
        let claim = format!(
            "INSERT INTO {writers} AS known VALUES ($1, 1, 0)
             ON CONFLICT (writer) DO UPDATE SET epoch = known.epoch + 1 RETURNING epoch, last_sequence"
        );
        // In key order, so that concurrent batches wait for each other instead of deadlocking.
        let commit = format!(
            "WITH fence AS (
               UPDATE {writers} SET last_sequence = $3 WHERE writer = $1 AND epoch = $2 AND last_sequence = $4 RETURNING 1
             ), changes AS (
               INSERT INTO {counters} AS known (key, position)
               SELECT key, amount FROM unnest($5::bytea[], $6::bigint[]) AS batch (key, amount)
               WHERE EXISTS (SELECT FROM fence) ORDER BY key
               ON CONFLICT (key) DO UPDATE SET position = known.position + excluded.position
             ) SELECT count(*) FROM fence"
        );
        let known = format!("SELECT epoch, last_sequence FROM {writers} WHERE writer = $1");
        let overflowing = format!(
            "SELECT place FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS batch (key, amount, place)
             JOIN {counters} AS known USING (key)
             WHERE known.position::numeric + batch.amount NOT BETWEEN -9223372036854775808 AND 9223372036854775807
             ORDER BY place"
        );
        let load = format!(
            "SELECT place, position FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (key, place) JOIN {counters} USING (key)"
        );
        Ok(Self {
            claim: client.prepare(&claim).await?,
            commit: client.prepare(&commit).await?,
            known: client.prepare(&known).await?,
            overflowing: client.prepare(&overflowing).await?,
            load: client.prepare(&load).await?,
            client,
        })
    }
}
