# Runs one file of Redis's own test suite against a running server and writes the outcome of every test.
#
#   tclsh unit.tcl UNIT OUTCOMES OPTION...
#
# UNIT is a file below tests, without ".tcl"; the working directory is Redis's source tree. Each OPTION is one of the suite's
# own, such as "--host". Outcomes go to the file OUTCOMES, as ../README.md says; what failed is printed with its reason.
#
# In the suite a process that serves outcomes has others run the files. Here one process does both: it takes all of the
# suite's procedures, but for the one that sends an outcome away, and none of its main program.

set argv [lassign $argv unit outcomes_path]
set outcomes [open $outcomes_path w]
fconfigure $outcomes -encoding utf-8

set helper [open tests/test_helper.tcl]
set text [read $helper]
close $helper
set main [string first "\nif {\$::client} {" $text]
if {$main < 0} {
    error "tests/test_helper.tcl: the main program is not where it is in Redis 7.0"
}
eval [string range $text 0 $main]
set ::test_server_fd none

# Writes an outcome. Names repeat, as in loops over encodings: the second has "#2" behind it.
array set times_seen {}
proc outcome {outcome name} {
    set name [regsub -all {\s+} [string trim $name] " "]
    set seen [incr ::times_seen($name)]
    if {$seen > 1} {
        append name " #$seen"
    }
    puts $::outcomes "$outcome\t$::unit\t${::unit}::$name"
    flush $::outcomes
}

# Ends what a failed test may have left behind, so that the tests behind it do not fail because of it.
proc tidy {} {
    foreach command {discard {client unpause}} {
        if {[catch {suite_r {*}$command} error] && ![string match "ERR *" $error]} {
            reconnect
        }
    }
}

# The suite calls this with every outcome.
set current_test ""
proc send_data_packet {fd status data {elapsed 0}} {
    switch $status {
        testing {
            set ::current_test $data
        }
        ok {
            outcome passed $data
            set ::current_test ""
        }
        err {
            puts "--- failed: $data"
            flush stdout
            # What breaks off between two tests takes the rest of its block with it.
            if {$::current_test eq ""} {
                outcome failed "breaks off between tests"
            } else {
                outcome failed $::current_test
                tidy
            }
            set ::current_test ""
        }
        skip {
            outcome skipped $data
        }
        ignore {
            # One test, or a whole block, whose tests have no names then.
            if {[regexp {^(.+): (Tag: |Not supported |large memory)} $data all name]} {
                outcome skipped $name
            }
        }
    }
}

# A command refused between tests would end the whole block of tests. Most are settings of the size at which Redis changes a
# value's form: the tests behind them run with the form that the value has.
rename r suite_r
proc r args {
    if {$::cur_test ne ""} {
        return [suite_r {*}$args]
    }
    if {[catch {suite_r {*}$args} result]} {
        puts "refused between tests: $args: $result"
    }
    return $result
}

set ::curfile "tests/$unit.tcl"
if {[catch {source $::curfile} result]} {
    puts "--- $unit breaks off: $::errorInfo"
    outcome failed "breaks off"
}
close $outcomes
