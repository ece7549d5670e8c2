//! What a run was made on: the server as it describes itself.

use crate::client::{Client, ClientError};
use crate::report::MeasuredServer;
use std::path::Path;
use std::time::Duration;
use tidemark_server::resp::Value;

/// A server as it describes itself; what it does not say is `None`.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    /// `redis 7.0.15`
    pub version: Option<String>,
    /// When a write is on the disk: `durability=always`, `appendonly=yes appendfsync=everysec`.
    pub durability: Option<String>,
}

impl ServerFacts {
    /// Asks the server. One that does not know the questions leaves the facts empty.
    pub fn ask(client: &mut Client) -> Result<Self, ClientError> {
        Ok(ServerFacts { version: version(client)?, durability: durability(client)? })
    }

    /// Returns the entry of this server in a report; `of` is its name there if there are several.
    pub(crate) fn entry(&self, of: Option<&str>, address: &str) -> MeasuredServer {
        MeasuredServer {
            of: of.map(str::to_owned),
            address: address.to_owned(),
            version: self.version.clone(),
            durability: self.durability.clone(),
        }
    }
}

/// Processor time that the server has used since it started, if its `INFO` says so.
pub fn server_cpu(client: &mut Client) -> Result<Option<Duration>, ClientError> {
    let text = info(client, "cpu")?;
    let field = |name| info_field(&text, name).and_then(|seconds| seconds.parse::<f64>().ok());
    let seconds = field("used_cpu_user").zip(field("used_cpu_sys")).map(|(user, system)| user + system);
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

/// The server's memory that is in RAM, if its `INFO` says so.
pub(crate) fn resident_bytes(client: &mut Client) -> Result<Option<u64>, ClientError> {
    let text = info(client, "memory")?;
    Ok(info_field(&text, "used_memory_rss").and_then(|bytes| bytes.parse().ok()))
}

/// The most memory that the server has had in RAM at once, if it is a process of this machine.
pub(crate) fn peak_resident_bytes(client: &mut Client) -> Result<Option<u64>, ClientError> {
    let text = info(client, "server")?;
    let process = info_field(&text, "process_id").and_then(|id| id.parse::<u32>().ok());
    let Some((process, program)) = process.zip(info_field(&text, "executable")) else { return Ok(None) };
    // Elsewhere the number may be that of another program.
    let is_here =
        std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|path| path == Path::new(program));
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    Ok(peak.filter(|_| is_here).map(|kibibytes: u64| kibibytes << 10))
}

/// Output that waits in the server for its clients, if its `CLIENT LIST` says so.
pub(crate) fn waiting_output_bytes(client: &mut Client) -> Result<Option<u64>, ClientError> {
    let reply = client.call(&["CLIENT", "LIST"])?;
    Ok(reply.as_bytes().and_then(|list| all_waiting_output(&String::from_utf8_lossy(list))))
}

/// The sum over the lines of `CLIENT LIST`. A list without lines is no answer: the asking client is in it.
fn all_waiting_output(list: &str) -> Option<u64> {
    if list.is_empty() { None } else { list.lines().map(waiting_output).sum() }
}

/// The value of `omem=` in a line of `CLIENT LIST`.
fn waiting_output(line: &str) -> Option<u64> {
    line.split(' ').find_map(|field| field.strip_prefix("omem="))?.parse().ok()
}

/// A setting of the server, if it has it.
pub(crate) fn setting(client: &mut Client, name: &str) -> Result<Option<String>, ClientError> {
    Ok(config_value(&client.call(&["CONFIG", "GET", name])?, name))
}

fn info(client: &mut Client, section: &str) -> Result<String, ClientError> {
    let reply = client.call(&["INFO", section])?;
    Ok(String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned())
}

fn version(client: &mut Client) -> Result<Option<String>, ClientError> {
    let text = info(client, "server")?;
    if let Some(version) = info_field(&text, "tidemark_version") {
        return Ok(Some(format!("Tidemark {version}")));
    }
    Ok(info_field(&text, "redis_version").map(|version| format!("Redis {version}")))
}

fn durability(client: &mut Client) -> Result<Option<String>, ClientError> {
    for names in [&["durability"][..], &["appendonly", "appendfsync"]] {
        let mut found = Vec::new();
        for name in names {
            found.extend(setting(client, name)?.map(|value| format!("{name}={value}")));
        }
        if !found.is_empty() {
            return Ok(Some(found.join(" ")));
        }
    }
    Ok(None)
}

fn config_value(reply: &Value, name: &str) -> Option<String> {
    let pairs = reply.as_pairs()?;
    let (_, value) = pairs.into_iter().find(|(key, _)| key.as_bytes() == Some(name.as_bytes()))?;
    Some(String::from_utf8_lossy(value.as_bytes()?).into_owned())
}

/// The value of `name:value` in an `INFO` text.
fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::{all_waiting_output, config_value, info_field, waiting_output};
    use tidemark_server::resp::Value;

    #[test]
    fn info_fields_are_found_by_their_whole_name() {
        let info = "# Server\r\nredis_version_long:9\r\nredis_version:7.0.15\r\n";
        assert_eq!(info_field(info, "redis_version"), Some("7.0.15"));
        assert_eq!(info_field(info, "version"), None);
    }

    #[test]
    fn waiting_output_is_in_a_line_of_the_list() {
        assert_eq!(waiting_output("id=3 obl=7 omem=9 tot-mem=1"), Some(9));
        assert_eq!(waiting_output("ERR unknown command"), None);
        assert_eq!(all_waiting_output("id=3 omem=9\nid=4 omem=2\n"), Some(11));
        assert_eq!(all_waiting_output("id=3 omem=9\nid=4\n"), None, "one line does not say");
        assert_eq!(all_waiting_output(""), None);
    }

    #[test]
    fn a_setting_is_read_from_map_and_flat_array() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let map = Value::Map(vec![(bulk("appendonly"), bulk("no"))]);
        assert_eq!(config_value(&map, "appendonly").as_deref(), Some("no"));
        let flat = Value::Array(vec![bulk("appendonly"), bulk("yes")]);
        assert_eq!(config_value(&flat, "appendonly").as_deref(), Some("yes"));
        assert_eq!(config_value(&Value::Array(vec![]), "appendonly"), None);
        assert_eq!(config_value(&Value::Simple(b"OK".to_vec()), "appendonly"), None);
    }
}
