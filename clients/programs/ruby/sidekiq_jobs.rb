# Sidekiq: jobs with retries, a schedule, bulk pushes and a job that is given up, while the server is killed. Sidekiq takes a
# job from its queue before it does it: what its threads have in hand when the server is killed may be lost.

require "sidekiq"
require "sidekiq/api"

FOLDER = ENV.fetch("PROGRAM_FOLDER")
PATIENCE = ENV.fetch("PROGRAM_PATIENCE").to_i
THREADS = 4
redis = { url: "redis://127.0.0.1:#{ENV.fetch("PROGRAM_PORT")}/0" }
Sidekiq.configure_client { |config| config.redis = redis }
Sidekiq.configure_server do |config|
  config.redis = redis
  # How often scheduled jobs and retries are looked for.
  config.average_scheduled_poll_interval = 1
end

# Notes in a file that a job was done: the file does not depend on the server.
def note(line)
  File.open("#{FOLDER}/notes", "a") { |file| file.syswrite("#{line}\n") }
end

class Square
  include Sidekiq::Worker

  def perform(number)
    sleep 0.005
    note "square #{number}"
  end
end

class FailsOnce
  include Sidekiq::Worker
  sidekiq_options retry: 3
  sidekiq_retry_in { 0 }

  def perform(number)
    attempt = File.exist?("#{FOLDER}/failed #{number}") ? 1 : 0
    note "attempt #{number} #{attempt}"
    File.write("#{FOLDER}/failed #{number}", "")
    raise "this was to be tried again" if attempt.zero?
  end
end

class Fails
  include Sidekiq::Worker
  sidekiq_options retry: 0

  def perform
    raise "as wanted"
  end
end

class Later
  include Sidekiq::Worker

  def perform(sent)
    note "later #{Time.now.to_f - sent >= 1}"
  end
end

# The worker loads this file; the program is what runs it.
return unless $PROGRAM_NAME == __FILE__

def wait_for(what)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
  until yield
    raise "waited too long for #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep 0.02
  end
end

def notes(kind)
  File.exist?("#{FOLDER}/notes") ? File.readlines("#{FOLDER}/notes", chomp: true).select { |line| line.start_with?("#{kind} ") } : []
end

# Waits until each of the expected jobs is noted, save at most `missing`. At most `repeated` of them may have been done more
# than once, and no other job.
def expect_notes(kind, expected, repeated: 0, missing: 0)
  expected = expected.map { |item| "#{kind} #{item}" }
  wait_for("all jobs of #{kind}") { (expected - notes(kind)).size <= missing }
  counts = notes(kind).tally
  raise "not asked for: #{counts.keys - expected}" unless (counts.keys - expected).empty?
  again = counts.select { |_, count| count > 1 }
  raise "done more than once: #{again}" if again.size > repeated
end

# Has the server killed with SIGKILL and restarted on its data.
def kill_server
  File.write("#{FOLDER}/kill", "")
  wait_for("the server to be restarted") { !File.exist?("#{FOLDER}/kill") }
end

spawn("sidekiq", "-r", File.expand_path(__FILE__), "-c", THREADS.to_s, out: :err)

(0...5).each { |number| FailsOnce.perform_async(number) }
Fails.perform_async
Later.perform_in(1.5, Time.now.to_f)
expect_notes("attempt", (0...5).flat_map { |number| ["#{number} 0", "#{number} 1"] })
expect_notes("later", [true])
wait_for("the job that fails") { Sidekiq::DeadSet.new.size == 1 || Sidekiq::Stats.new.failed >= 6 }

Sidekiq::Client.push_bulk("class" => Square, "args" => (0...300).map { |number| [number] })
# An hour away: still there after the kill.
Later.perform_in(3600, Time.now.to_f)
wait_for("some of the jobs") { notes("square").size >= 60 }
kill_server
(300...400).each { |number| Square.perform_async(number) }
expect_notes("square", 0...400, repeated: THREADS, missing: THREADS)
wait_for("the queue to be empty") { Sidekiq::Queue.new.size.zero? }
raise "the scheduled job was lost" unless Sidekiq::ScheduledSet.new.size == 1
# A job whose end could not be reported is in the retries.
raise "#{Sidekiq::RetrySet.new.size} retries" if Sidekiq::RetrySet.new.size > THREADS
wait_for("the worker") { Sidekiq::ProcessSet.new.size == 1 }
Later.perform_in(1.5, Time.now.to_f)
wait_for("a scheduled job after the kill") { notes("later").size == 2 }
