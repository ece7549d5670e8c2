//! Ends the process when any thread panics.

use std::io::{self, Write as _};
use std::time::Duration;

/// Longest time for the panic report, in case standard error is a pipe that is not read.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// Makes a panic of any thread end the process by `SIGABRT`, after writing the thread's name and
/// the panic's text to standard error.
///
/// A panic means a broken invariant. Without this, a thread pool or an asynchronous runtime may
/// catch the panic, or a thread goes missing, and the server half works. A supervisor can restart
/// an ended process, and all acknowledged changes are in the log. Programs that embed
/// [`crate::Server`] choose for themselves.
pub fn abort_on_panic() {
    // The default hook writes `thread 'NAME' panicked at FILE:LINE:COLUMN:`, the text, and a
    // backtrace if RUST_BACKTRACE requests one.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // If no thread can be started, the report has no time limit.
        let _ = std::thread::Builder::new().spawn(|| {
            std::thread::sleep(REPORT_PATIENCE);
            std::process::abort();
        });
        report(panic);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        // Standard error may be closed.
        let _ = writeln!(
            io::stderr(),
            "fatal: thread {name} has panicked, so the process aborts: this is a defect of Tidemark, please report the \
             lines above"
        );
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    /// Environment variable that selects how the child process's thread panics.
    const HOW: &str = "TIDEMARK_TEST_PANIC";
    const SIGABRT: i32 = 6;

    fn panic_in_a_thread(how: &str) {
        let how = how.to_owned();
        let thread = std::thread::Builder::new().name(format!("tidemark-{how}")).spawn(move || {
            let text = format!("{how} met 3 apples");
            let defect = move || panic!("{text}");
            if how == "task" {
                // The runtime catches a task's panic.
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                let _ = runtime.block_on(async { tokio::spawn(async move { defect() }).await });
            } else if how == "caught" {
                let _ = std::panic::catch_unwind(defect);
            } else {
                defect();
            }
        });
        let _ = thread.expect("a thread").join();
    }

    #[test]
    fn a_panic_of_any_thread_ends_the_process_and_says_which() {
        if let Ok(how) = std::env::var(HOW) {
            abort_on_panic();
            panic_in_a_thread(&how);
            std::process::exit(0);
        }
        let name = "abort_on_panic::tests::a_panic_of_any_thread_ends_the_process_and_says_which";
        for how in ["worker-0", "task", "caught"] {
            let mut child = Command::new(std::env::current_exe().expect("this test's binary"));
            child.args(["--exact", name, "--nocapture", "--test-threads", "1"]).env(HOW, how);
            let ended = child.output().expect("a child process");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.signal(), Some(SIGABRT), "{how}: {said}");
            assert!(said.contains(&format!("thread tidemark-{how} has panicked")), "{said}");
            assert!(said.contains(&format!("{how} met 3 apples")), "{said}");
        }
    }
}
