//! What can be said of anything: the words that the other vocabularies are lifted to.

vocabulary! {
    /// The condition of a subject, judged from what was observed of it.
    statuses Status {
        /// It is becoming reliable, after a start or a recovery.
        Converging converging Outcome => Converging;
        /// It works as expected.
        Stable stable Outcome => Stable;
        /// It is becoming unreliable.
        Diverging diverging Outcome => Diverging;
        /// It changes between conditions without a pattern.
        Erratic erratic Outcome => Erratic;
        /// It works in part, or worse than it should.
        Degraded degraded Outcome => Degraded;
        /// Most of what it does fails.
        Defective defective Outcome => Defective;
        /// It does nothing any more.
        Down down Outcome => Down;
    }
    ordered true {
        /// A first impression.
        Tentative;
        /// There is good evidence.
        Measured;
        /// There is no doubt.
        Confirmed;
    }
}

vocabulary! {
    /// How urgent a condition is.
    situations Situation {
        /// Nothing has to be done.
        Normal normal Outcome;
        /// Somebody should look at it.
        Warning warning Outcome;
        /// Somebody has to do something now.
        Critical critical Outcome;
    }
    ordered true {
        /// It stays as it is.
        Constant;
        /// It changes somewhat.
        Variable;
        /// It changes fast and much.
        Volatile;
    }
}

vocabulary! {
    /// The parts of something that takes time.
    operations Operation {
        /// It begins.
        Begin begin Operation;
        /// It goes on.
        Advance advance Operation;
        /// It ends.
        End end Operation;
    }
    episodes {
        Begin: Begin;
        Advance: Advance;
        End: End;
    }
}

vocabulary! {
    /// What came of something.
    outcomes Outcome {
        /// It succeeded.
        Success success Outcome;
        /// It failed.
        Fail fail Outcome;
        /// It cannot be said.
        Unknown unknown Outcome;
    }
    verdicts {
        Success: Success;
        Fail: Fail;
        Unknown: Unknown;
    }
}

vocabulary! {
    /// How near a system is to what constrains it.
    systems System {
        /// Within what it is made for.
        Normal normal Outcome;
        /// At the boundary.
        Limit limit Outcome;
        /// Beyond the boundary.
        Alarm alarm Outcome;
        /// The constraint has given way.
        Fault fault Outcome;
    }
    ordered false {
        /// What fits in.
        Space;
        /// How much passes.
        Flow;
        /// What is connected.
        Link;
        /// How long it takes.
        Time;
    }
}

vocabulary! {
    /// The shape of a series.
    trends Trend {
        /// No pattern but the usual variation.
        Stable stable Outcome;
        /// It moves away for good.
        Drift drift Outcome;
        /// One extreme value.
        Spike spike Outcome;
        /// It swings.
        Cycle cycle Outcome;
        /// No pattern at all.
        Chaos chaos Outcome;
    }
}
