//! Memory that the machine and its control groups allow the process.

use std::path::{Path, PathBuf};

/// Assumed if the system reports no size. Bytes.
const ASSUMED_BYTES: u64 = 1 << 30;

/// Returns the machine's memory, or the lowest limit of the process's control groups if that is
/// less. Bytes.
pub(crate) fn available_bytes() -> u64 {
    let machine = machine_bytes().unwrap_or(ASSUMED_BYTES);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    group_limit(&groups, read).map_or(machine, |limit| limit.min(machine))
}

/// Returns the machine's memory, without regard to control groups. Bytes.
pub(crate) fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the lowest limit of the control groups in `/proc/self/cgroup` and of their ancestors.
/// Each line is `number:controllers:path`. A container sees its own group as the root: then only
/// the last directory exists.
fn group_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut lowest = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = PathBuf::from(root).join(group.trim_start_matches('/'));
        // In version 2, `max` means no limit and does not parse. Version 1 uses a number above
        // every machine's memory.
        let limits = path
            .ancestors()
            .take_while(|directory| directory.starts_with(root))
            .filter_map(|directory| read(&directory.join(file))?.trim().parse::<u64>().ok());
        lowest = limits.chain(lowest).min();
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        group_limit(groups, |path| {
            files.iter().find(|(name, _)| path == Path::new(name)).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_lowest_limit_of_all_groups_around_the_process_holds() {
        let unified = [
            ("/sys/fs/cgroup/a/memory.max", "500\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/c/memory.max", "700\n"),
        ];
        assert_eq!(limit("0::/a/b/c\n", &unified), Some(500));
        assert_eq!(limit("0::/other\n", &unified), None);
        let version_1 = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "300\n"),
        ];
        assert_eq!(limit("9:name=systemd:/\n4:cpu,memory:/a\n0::/\n", &version_1), Some(300));
        // In a container, the path is the host's, and the files belong to the container's own
        // cgroup.
        assert_eq!(limit("0::/docker/1234\n", &[("/sys/fs/cgroup/memory.max", "200\n")]), Some(200));
        assert_eq!(limit("nonsense\n::\n", &unified), None);
    }

    #[test]
    fn this_machine_has_some_memory() {
        let bytes = available_bytes();
        assert!((1 << 20..1 << 50).contains(&bytes), "{bytes}");
    }
}
