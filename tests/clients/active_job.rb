# Jobs of Active Job: what its own adapter tests ask of an adapter, and jobq's transactions.
$LOAD_PATH.unshift File.expand_path("../../clients/ruby/lib", __dir__)
require "jobq/active_job"
require "json"

ActiveJob::Base.logger = Logger.new(IO::NULL)
ActiveJob::Base.queue_adapter = :jobq
# A connection for each thread, as Active Record has it: a job that is retried enqueues in its thread.
Jobq.active_job_connection = -> { Thread.current[:connection] ||= PG.connect(ENV.fetch("DATABASE_URL")) }
CONNECTION = Jobq.active_job_connection.call
RAN = Queue.new
Thread.new { sleep 240; warn "a job did not run"; exit! 3 }

class Busy < StandardError; end

class GreetJob < ActiveJob::Base
  def perform(name = "nobody", title: nil)
    RAN << ["greet", [title, name].compact.join(" "), provider_job_id]
  end
end

class PickyJob < ActiveJob::Base
  queue_as :picky
  queue_with_priority 3
  discard_on(KeyError) { |job, _error| RAN << ["discarded", job.arguments.first] }
  retry_on Busy, wait: ->(_executions) { 0.1 }, attempts: 3 do |job, _error|
    RAN << ["gave up", job.executions]
  end

  def perform(what)
    RAN << ["try", executions]
    raise Busy if what == "busy" || (what == "once" && executions == 1)
    raise KeyError, "gone" if what == "gone"
    raise "broken" if what == "broken"
  end
end

class StepJob < ActiveJob::Base
  def perform
    RAN << ["step", Jobq.current_job.step("first") { { "n" => 1 } }]
  end
end

def heard(count) = Array.new(count) { RAN.pop }

worker = Jobq::Worker.new(ENV.fetch("DATABASE_URL"), queues: %w[default picky], poll: 0.2)
worker.handle_active_jobs

# The caller's transaction decides.
CONNECTION.transaction { GreetJob.perform_later("lost"); raise PG::RollbackTransaction } rescue nil
job = CONNECTION.transaction { GreetJob.perform_later("Ada", title: "Countess") }
row = CONNECTION.exec("select job_id, kind, queue, state from jobq.job").to_a
later = GreetJob.set(wait: 3600, queue: "slow").perform_later("tomorrow")
delayed = CONNECTION.exec_params(
  "select queue, round(extract(epoch from run_at - created_at)) as wait from jobq.job where job_id = $1",
  [later.provider_job_id]
).first
picky = PickyJob.perform_later("once")
priority = CONNECTION.exec_params(
  "select priority from jobq.job where job_id = $1", [picky.provider_job_id]
).getvalue(0, 0)

worker.start
first = heard(3).sort_by(&:to_s)
PickyJob.perform_later("busy")
busy = heard(4)
PickyJob.perform_later("gone")
gone = heard(2)
broken = PickyJob.perform_later("broken")
heard(1)
state = nil
300.times do
  state = CONNECTION.exec_params(
    "select state, last_error_code from jobq.job where job_id = $1", [broken.provider_job_id]
  ).first
  break if state["state"] == "dead"

  sleep 0.1
end
StepJob.perform_later
step = heard(1)
many = ActiveJob::Base.queue_adapter.enqueue_all([GreetJob.new("a"), GreetJob.new("b")])
greeted = heard(2).map { |one| one[1] }.sort
worker.stop

puts JSON.generate(
  is_row: row == [{ "job_id" => job.provider_job_id, "kind" => "GreetJob", "queue" => "default", "state" => "queued" }],
  delayed: delayed, priority: priority, first: first.map { |one| one.first(2) },
  is_own: first.any? { |one| one[2] == job.provider_job_id },
  busy: busy, gone: gone, broken: state, step: step, many: many, greeted: greeted
)
