//! Vocabularies of the execution of work.

vocabulary! {
    /// The life cycle of a task.
    tasks Task {
        /// It was submitted.
        Submit submit Operation;
        /// It was rejected.
        Reject reject Outcome => Degraded;
        /// It was scheduled.
        Schedule schedule Operation;
        /// It started.
        Start start Operation;
        /// It made progress.
        Progress progress Operation;
        /// It was suspended.
        Suspend suspend Operation;
        /// It was resumed.
        Resume resume Operation;
        /// It completed.
        Complete complete Outcome => Stable;
        /// It failed.
        Fail fail Outcome => Degraded;
        /// It was cancelled.
        Cancel cancel Operation;
        /// It exceeded its time limit.
        Timeout timeout Outcome => Degraded;
    }
    episodes {
        Begin: Submit;
        Advance: Schedule Start Progress Suspend Resume;
        End: Reject Complete Fail Cancel Timeout;
    }
    verdicts {
        Success: Complete;
        Fail: Reject Fail Timeout;
    }
}

vocabulary! {
    /// Calls between services.
    services Service {
        /// Work started.
        Start start Operation;
        /// Work ended, successfully or not.
        Stop stop Operation;
        /// Another service was called.
        Call call Operation;
        /// The work succeeded.
        Success success Outcome => Stable;
        /// The work failed.
        Fail fail Outcome => Degraded;
        /// A fallback was used after a failure.
        Recourse recourse Operation => Degraded;
        /// The work was redirected to another service.
        Redirect redirect Operation;
        /// The work exceeded its time limit.
        Expire expire Outcome => Degraded;
        /// The work was retried.
        Retry retry Operation;
        /// The work was rejected.
        Reject reject Outcome => Degraded;
        /// The work was discarded.
        Discard discard Operation;
        /// The work was delayed.
        Delay delay Operation;
        /// The work was scheduled for later.
        Schedule schedule Operation;
        /// The work was suspended.
        Suspend suspend Operation;
        /// The work was resumed.
        Resume resume Operation;
        /// The service could not be reached.
        Disconnect disconnect Outcome => Degraded;
    }
    ordered false {
        /// As the caller sees it.
        Caller;
        /// As the callee sees it.
        Callee;
    }
}

vocabulary! {
    /// The life cycle of a process.
    processes Process {
        /// It was created.
        Spawn spawn Operation;
        /// It started to run.
        Start start Operation;
        /// It stopped normally.
        Stop stop Outcome => Stable;
        /// It ended with an error.
        Fail fail Outcome => Degraded;
        /// It crashed.
        Crash crash Outcome => Defective;
        /// It was killed.
        Kill kill Operation => Degraded;
        /// It is being restarted.
        Restart restart Operation;
        /// It was suspended.
        Suspend suspend Operation;
        /// It was resumed.
        Resume resume Operation;
    }
    episodes {
        Begin: Spawn;
        Advance: Start Restart Suspend Resume;
        End: Stop Fail Crash Kill;
    }
    verdicts {
        Success: Stop;
        Fail: Fail Crash;
    }
}

vocabulary! {
    /// The life cycle of a transaction.
    transactions Transaction {
        /// It started.
        Start start Operation;
        /// The participants were asked to prepare the commit.
        Prepare prepare Operation;
        /// It was committed.
        Commit commit Outcome => Stable;
        /// It was rolled back.
        Rollback rollback Outcome => Degraded;
        /// It was aborted.
        Abort abort Outcome => Defective;
        /// It exceeded its time limit.
        Expire expire Outcome => Degraded;
        /// It conflicted with another one, or violated a constraint.
        Conflict conflict Outcome => Degraded;
        /// A committed effect is being compensated.
        Compensate compensate Operation;
    }
    ordered false {
        /// As the coordinator sees it.
        Coordinator;
        /// As a participant sees it.
        Participant;
    }
    episodes {
        Begin: Start;
        Advance: Prepare Compensate;
        End: Commit Rollback Abort Expire Conflict;
    }
    verdicts {
        Success: Commit;
        Fail: Rollback Abort Expire;
        Unknown: Conflict;
    }
}

vocabulary! {
    /// Compliance with time constraints.
    timers Timer {
        /// The constraint was met.
        Meet meet Outcome => Stable;
        /// The constraint was missed.
        Miss miss Outcome => Degraded;
    }
    ordered false {
        /// A point in time.
        Deadline;
        /// A maximum duration.
        Threshold;
    }
}

vocabulary! {
    /// The rollout of a change to a system.
    changes Change {
        /// It started.
        Start start Operation;
        /// It was applied.
        Apply apply Outcome => Stable;
        /// It could not be applied.
        Fail fail Outcome => Degraded;
        /// It was rejected by a policy.
        Reject reject Outcome;
        /// It was reverted before it had taken effect.
        Revert revert Outcome => Degraded;
        /// It reached the next stage.
        Progress progress Operation;
    }
    episodes {
        Begin: Start;
        Advance: Progress;
        End: Apply Fail Reject Revert;
    }
    verdicts {
        Success: Apply;
        Fail: Fail Reject Revert;
    }
}
