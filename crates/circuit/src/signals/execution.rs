//! Vocabularies of work that is done.

vocabulary! {
    /// A piece of work and its stages.
    tasks Task {
        /// It was handed in.
        Submit submit Operation;
        /// It was not accepted.
        Reject reject Outcome => Degraded;
        /// It was given its turn.
        Schedule schedule Operation;
        /// It began.
        Start start Operation;
        /// It is getting on.
        Progress progress Operation;
        /// It was paused.
        Suspend suspend Operation;
        /// It goes on after a pause.
        Resume resume Operation;
        /// It is done.
        Complete complete Outcome => Stable;
        /// It ended with an error.
        Fail fail Outcome => Degraded;
        /// It was called off.
        Cancel cancel Operation;
        /// It took longer than it may.
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
    /// What services do for each other.
    services Service {
        /// Work began.
        Start start Operation;
        /// Work ended, well or not.
        Stop stop Operation;
        /// Another service was asked.
        Call call Operation;
        /// The work succeeded.
        Success success Outcome => Stable;
        /// The work failed.
        Fail fail Outcome => Degraded;
        /// A lesser way was taken after a failure.
        Recourse recourse Operation => Degraded;
        /// The work was passed on to another service.
        Redirect redirect Operation;
        /// The work took longer than it may.
        Expire expire Outcome => Degraded;
        /// The work was tried again.
        Retry retry Operation;
        /// The work was not accepted.
        Reject reject Outcome => Degraded;
        /// The work was thrown away on purpose.
        Discard discard Operation;
        /// The work was put off.
        Delay delay Operation;
        /// The work was queued for later.
        Schedule schedule Operation;
        /// The work was paused.
        Suspend suspend Operation;
        /// The work goes on after a pause.
        Resume resume Operation;
        /// The service could not be reached.
        Disconnect disconnect Outcome => Degraded;
    }
    ordered false {
        /// As who asks sees it.
        Caller;
        /// As who is asked sees it.
        Callee;
    }
}

vocabulary! {
    /// The life of a process.
    processes Process {
        /// It was made.
        Spawn spawn Operation;
        /// It began to run.
        Start start Operation;
        /// It ended well.
        Stop stop Outcome => Stable;
        /// It ended with an error.
        Fail fail Outcome => Degraded;
        /// It ended as no program should.
        Crash crash Outcome => Defective;
        /// It was made to end.
        Kill kill Operation => Degraded;
        /// It is being started again.
        Restart restart Operation;
        /// It was paused.
        Suspend suspend Operation;
        /// It goes on after a pause.
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
    /// The life of a transaction.
    transactions Transaction {
        /// It began.
        Start start Operation;
        /// The parties were asked whether they can commit.
        Prepare prepare Operation;
        /// It took effect.
        Commit commit Outcome => Stable;
        /// It was undone.
        Rollback rollback Outcome => Degraded;
        /// It was made to end.
        Abort abort Outcome => Defective;
        /// It took longer than it may.
        Expire expire Outcome => Degraded;
        /// It met another one, or broke a rule.
        Conflict conflict Outcome => Degraded;
        /// What had taken effect is being made good.
        Compensate compensate Operation;
    }
    ordered false {
        /// As who leads it sees it.
        Coordinator;
        /// As who takes part sees it.
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
    /// Whether something was in time.
    timers Timer {
        /// It was.
        Meet meet Outcome => Stable;
        /// It was not.
        Miss miss Outcome => Degraded;
    }
    ordered false {
        /// By a point in time.
        Deadline;
        /// Within a duration.
        Threshold;
    }
}

vocabulary! {
    /// A change to a system, as it is rolled out.
    changes Change {
        /// It began.
        Start start Operation;
        /// It took effect.
        Apply apply Outcome => Stable;
        /// It could not be applied.
        Fail fail Outcome => Degraded;
        /// It was refused by a rule.
        Reject reject Outcome;
        /// It was taken back before it had taken effect.
        Revert revert Outcome => Degraded;
        /// It reached another stage.
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
