# frozen_string_literal: true

require "json"
require "monitor"
require "pg"
require "securerandom"
require "socket"

# A producer and a worker for jobq, on ruby-pg. It speaks docs/protocol.md.
#
#   Jobq.enqueue(connection, "send_email", { to: "ada@example.org" })   # in its transaction
#
#   worker = Jobq::Worker.new(url, queues: ["default"])
#   worker.handle("send_email") { |payload, job| ... }
#   exit worker.run
module Jobq
  Enqueued = Struct.new(:job_id, :created)

  # A handler raises one of these to say what follows; anything else is tried again.
  class Retry < StandardError
    attr_reader :code, :seconds

    def initialize(message, code: "ERROR", seconds: nil)
      super(message)
      @code, @seconds = code, seconds
    end
  end

  class Permanent < StandardError
    attr_reader :code

    def initialize(code, message)
      super(message)
      @code = code
    end
  end

  class Snooze < StandardError
    attr_reader :seconds

    def initialize(seconds)
      super("put off")
      @seconds = seconds
    end
  end

  # Raised by Job#check! in a handler that should stop.
  class Stopped < StandardError; end

  # The job waits for an event and has been given back; the handler must end.
  class Suspended < StandardError; end

  class << self
    # Add a job in the connection's transaction; it exists when that commits.
    def enqueue(connection, kind, payload = {}, **options)
      enqueue_many(connection, [{ kind: kind, payload: payload, **options }]).first
    end

    # Add many jobs with one call, all or none.
    def enqueue_many(connection, jobs)
      sql = "select job_id, created from jobq.enqueue_many($1::jsonb)"
      connection.exec_params(sql, [JSON.generate(jobs)]).map { |row| Enqueued.new(row["job_id"], row["created"] == "t") }
    end

    # Enqueue a job of each kind that has subscribed to an event: the ids of the jobs, by kind.
    def publish(connection, event, payload = {}, metadata: nil, idempotency_key: nil)
      sql = "select kind, job_id from jobq.publish($1, $2::jsonb, $3::jsonb, $4)"
      given = [event, JSON.generate(payload), metadata && JSON.generate(metadata), idempotency_key]
      connection.exec_params(sql, given).to_h { |row| [row["kind"], row["job_id"]] }
    end

    # Emit an event for the jobs that wait for it now or later: whether it is the first of its name.
    def emit(connection, event, payload = nil)
      connection.exec_params("select jobq.emit($1, $2::jsonb)", [event, JSON.generate(payload)]).getvalue(0, 0) == "t"
    end

    # Cancel a waiting job, or ask the worker of a running one: what came of it.
    def cancel(connection, job_id, reason = nil)
      connection.exec_params("select jobq.cancel($1, $2)", [job_id, reason]).getvalue(0, 0)
    end

    # The symbolic code of an error of jobq, such as LEASE_LOST; nil for any other.
    def code_of(error)
      result = error.is_a?(PG::Error) ? error.result : nil
      result.error_field(PG::PG_DIAG_CONSTRAINT_NAME) if sqlstate_of(error).start_with?("JQ")
    end

    # The SQLSTATE of an error, empty where there was no answer.
    def sqlstate_of(error)
      (error.is_a?(PG::Error) && error.result&.error_field(PG::PG_DIAG_SQLSTATE)) || ""
    end

    # Whether there was no answer, or another transaction was first: the call may be repeated.
    def away?(error)
      error.is_a?(PG::Error) && sqlstate_of(error).match?(/\A(|08...|57P..|53...|40001|40P01|25006)\z/)
    end

    # Whether the database refuses a result for what it is.
    def unfit?(error) = sqlstate_of(error).match?(/\A(JQ00[56]|22...)\z/)

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # An error's text, whatever was raised, as the database takes it.
    def text_of(error)
      error.message.to_s.scrub.tr("\0", "\ufffd")[0, 512]
    rescue Exception # rubocop:disable Lint/RescueException
      "an error that cannot be shown"
    end
  end

  # Which exceptions of a handler are retried, and when. Outcomes, such as Permanent, and an
  # unreachable database are not affected.
  class RetryRules
    LONGEST = 365 * 24 * 3600

    def initialize(retry_on, discard_on, delay)
      @retry_on, @discard_on, @delay = retry_on && Array(retry_on), Array(discard_on), delay
      classes = [*@retry_on, *@discard_on]
      raise TypeError, "retry_on and discard_on are classes of exceptions" unless classes.all?(Module)
    end

    # Whether it is retried. Exceptions that are no StandardError are, unless discard_on has them.
    def retry?(error)
      return false if @discard_on.any? { |one| one === error }

      @retry_on.nil? || !error.is_a?(StandardError) || @retry_on.any? { |one| one === error }
    end

    # Seconds until the retry; nil for the kind's backoff.
    def seconds(error, attempt)
      wait = @delay.respond_to?(:call) ? @delay.call(error, attempt) : @delay
      wait && Float(wait).clamp(0, LONGEST)
    end
  end

  # One connection, opened when it is needed, for one thread at a time. It may have been lost since
  # it was last used, so what has no answer is repeated once on a new one: all that a worker
  # calls may be repeated, but on a session that listens.
  class Link
    # A server that is gone is noticed within seconds.
    PATIENCE = { connect_timeout: 5, keepalives_idle: 4, keepalives_interval: 2, keepalives_count: 2,
                 tcp_user_timeout: 8000, application_name: "jobq worker" }.freeze

    def initialize(url, is_repeating: true)
      @url, @is_repeating, @lock = url, is_repeating, Monitor.new
    end

    def exec(sql, params = [])
      @lock.synchronize do
        is_old = !@connection.nil?
        begin
          @connection ||= PG.connect(@url, PATIENCE)
          @connection.exec_params(sql, params)
        rescue PG::Error => error
          raise unless Jobq.away?(error)

          close
          raise unless is_old && @is_repeating

          is_old = false
          retry
        end
      end
    end

    # Wait until a pipe can be read or notifications come: yield their channels and payloads.
    def wait(pipe, seconds)
      IO.select([@connection.socket_io, pipe], nil, nil, seconds)
      @connection.consume_input
      while (heard = @connection.notifies)
        yield heard[:relname], heard[:extra]
      end
    end

    def close
      @connection&.close
    rescue PG::Error
      nil
    ensure
      @connection = nil
    end
  end

  # A claimed job, as its handler sees it.
  class Job
    attr_reader :job_id, :attempt, :kind, :queue, :metadata, :lease, :timeout
    attr_accessor :held_at, :settlement, :is_cancel_requested, :is_stopped

    def initialize(row, held_at, link)
      @job_id, @attempt, @kind, @queue = row["job_id"], row["attempt"].to_i, row["kind"], row["queue"]
      @metadata, @lease, @timeout = JSON.parse(row["metadata"]), row["lease"].to_f, row["timeout"].to_f
      @held_at, @started_at, @link = held_at, held_at, link
    end

    def key = [job_id, attempt]

    # Whether the handler should stop: cancelled, timed out, lost, or the end of the worker.
    def stopped? = is_stopped

    # Raise Stopped if the handler should stop.
    def check! = (raise Stopped, "stopped" if stopped?)

    def overdue? = Jobq.now - @started_at > timeout

    # Complete the job in the connection's transaction, that of the handler's own rows: they
    # commit together or not at all. Nothing that the handler returns after it is recorded; when
    # it returns without a commit, the attempt fails.
    def complete(connection, result = nil)
      connection.exec_params("select jobq.complete($1, $2, $3)", [*key, JSON.generate(result)])
      @is_completed = true
    rescue PG::Error => error
      raise Jobq.unfit?(error) ? Permanent.new("RESULT_REFUSED", error.message) : error
    end

    def completed? = @is_completed

    # Do something once, whatever becomes of the attempt.
    def step(name)
      return steps[name] if steps.key?(name)

      saved = @link.exec("select jobq.save_step($1, $2, $3, $4)", [*key, name, JSON.generate(yield)])
      JSON.parse(saved.getvalue(0, 0))
    end

    # Wait for an event, for so many seconds at most; the job is given back until it comes.
    def wait_for(event, seconds = nil)
      ended = steps["event:#{event}"]
      return arrived(event, ended["outcome"], ended["payload"]) if ended

      sql = "select outcome, payload from jobq.wait_for($1, $2, $3, make_interval(secs => $4::float8))"
      row = @link.exec(sql, [*key, event, seconds]).first
      arrived(event, row["outcome"], row["payload"] && JSON.parse(row["payload"]))
    end

    def progress(value) = @link.exec("select jobq.set_progress($1, $2, $3)", [*key, JSON.generate(value)])

    # Report what the attempt has really cost, in place of the job's cost. The last report counts.
    def spend(cost) = @link.exec("select jobq.spend($1, $2, $3)", [*key, cost])

    def log(message, level = "INFO") = @link.exec("select jobq.log($1, $2, $3, $4)", [*key, level, message])

    private

    def arrived(event, outcome, payload)
      raise Suspended if outcome == "waiting"
      raise Permanent.new("EVENT_TIMEOUT", "#{event} did not come in time") if outcome == "timed_out"

      payload
    end

    def steps
      @steps ||= if attempt == 1
                   {}
                 else
                   @link.exec("select name, value from jobq.list_steps($1)", [job_id])
                        .to_h { |row| [row["name"], JSON.parse(row["value"])] }
                 end
    end
  end

  # Claims jobs, has each run by a thread, settles them.
  class Worker
    JOB = "outcome, job_id, attempt, kind, payload, metadata, queue, " \
          "extract(epoch from lease) as lease, extract(epoch from timeout) as timeout"
    EXCHANGE = "select #{JOB} from jobq.exchange($1, $2, $3, $4, $5, $6, $7, except_kinds => $8)"
    LEAST_PAUSE = 0.002

    attr_reader :name

    # url::         a libpq URL
    # queues::      in the order in which to look at them
    # concurrency:: how many jobs run at a time
    # poll::        seconds between looks when nothing happens
    # grace::       seconds that running jobs have after #stop
    # listen::      whether to be woken by notifications; a URL leads past a pooler
    def initialize(url, queues: ["default"], concurrency: 10, poll: 5, grace: 30, listen: true, name: nil, log: $stderr)
      @name = name || "#{Socket.gethostname}:#{Process.pid}:#{SecureRandom.hex(3)}"
      @queues, @concurrency, @poll, @grace, @log = queues, concurrency, poll, grace, log
      @calls, @vital, @own = Link.new(url), Link.new(url), Link.new(url)
      @listener = Link.new(listen.is_a?(String) ? listen : url, is_repeating: false) if listen
      @handlers, @rules, @running, @settled, @later, @unknown = {}, {}, {}, [], [], []
      @lock, @news = Mutex.new, ConditionVariable.new
      @is_stopping = @is_over = @is_awake = @is_announced = @is_listening = @is_beat_wanted = false
      @beat_at = -Float::INFINITY
      @question, @ask = IO.pipe
    end

    # retry_on::    classes of exceptions: jobs are retried only after these
    # discard_on::  classes of exceptions after which a job is dead at once
    # retry_delay:: seconds before a retry, or a function of the exception and the attempt; nil
    #               is the kind's backoff
    def handle(kind, retry_on: nil, discard_on: nil, retry_delay: nil, &handler)
      @rules[kind] = RetryRules.new(retry_on, discard_on, retry_delay)
      @handlers[kind] = handler
    end

    # Work until SIGTERM or SIGINT; return the exit status.
    def run
      %w[TERM INT].each { |signal| trap(signal) { Thread.new { stop } } }
      start.join
      0
    end

    # Begin to work; return the thread that does.
    def start
      beside = [Thread.new { beat }, Thread.new { maintain }]
      beside << Thread.new { listen } if @listener
      @thread = Thread.new do
        work
      ensure
        @is_over = true
        wake
        attempt { @calls.exec("select jobq.retire_worker($1)", [@name]) }
        beside.each { |thread| thread.join(1) || thread.kill }
        [@calls, @vital, @own, @listener].compact.each(&:close)
      end
    end

    # Claim nothing more; let jobs finish for the grace period, give back the others, and end.
    def stop
      @is_stopping = true
      @ask.write(".")
      wake
      @thread.join(@grace)
      @lock.synchronize { @running.values }.each { |job| settle(job, { end: :released, seconds: 0 }) }
      @thread.join
    end

    private

    # ---- claiming and settling

    def work
      failures, quiet = 0, LEAST_PAUSE
      until done?
        batch, room = take
        next pause(@poll) if batch.empty? && room.zero?

        begin
          claimed = exchange(batch, room)
          failures = 0
          if claimed.positive? || batch.any?
            quiet = LEAST_PAUSE
            announce("end_wait()") if claimed.positive? && @is_announced
          elsif @is_listening && !@is_announced
            pause(quiet = [quiet * 2, 0.25].min) unless announce("begin_wait($1)", [array(@queues)])
          else
            due = @calls.exec("select extract(epoch from jobq.due_in($1, $2))", [array(@queues), left]).getvalue(0, 0)
            pause([due&.to_f, jitter(@poll)].compact.min)
          end
        rescue StandardError => error
          complain(error)
          sleep jitter([0.1 * 2**failures, 5].min)
          failures += 1
        end
      end
    end

    def done? = @lock.synchronize { @is_stopping && @running.empty? && @settled.empty? && @later.empty? }

    def take
      @lock.synchronize do
        @is_awake = false
        due, @later = @later.partition { |at, _| Jobq.now >= at }
        [@settled.slice!(0..) + due.map(&:last), @is_stopping ? 0 : @concurrency - @running.size]
      end
    end

    # Settle a batch and claim; return how many jobs came. What has no answer is settled again.
    def exchange(batch, room)
      left = batch.dup
      batch.each do |job|
        case job.settlement
        in { end: :cancelled }
          attempt { @calls.exec("select jobq.confirm_cancel($1, $2)", job.key) }
        in { end: :released, seconds: }
          attempt { @calls.exec("select jobq.release($1, $2, now() + make_interval(secs => $3))", [*job.key, seconds]) }
        else
          next
        end
        left.delete(job)
      end
      rest = left.dup
      begin
        claimed = settle_and_claim(rest, room)
        left.clear
        return claimed
      rescue PG::Error => error
        raise if Jobq.away?(error) || rest.empty?

        complain(error)
      end
      rest.each { |job| settle_alone(job) && left.delete(job) } # one of them was refused: find it
      0
    ensure
      @lock.synchronize { @settled.unshift(*left) }
    end

    def settle_and_claim(batch, room)
      done, failed = batch.partition { |job| job.settlement[:end] == :succeeded }
      sent_at = Jobq.now
      failures = JSON.generate(failed.map { |job| failure(job) }) if failed.any?
      results = "[#{done.map { |job| job.settlement[:result] }.join(",")}]"
      rows = @calls.exec(EXCHANGE, [array(@queues), @name, room, array(done.map(&:job_id)), array(done.map(&:attempt)), results, failures, left])
      rows.count do |row|
        case row["outcome"]
        when "claimed" then begin_job(row, sent_at)
        when "held" # another transaction has the row: settle it later
          job = batch.find { |one| one.key == [row["job_id"], row["attempt"].to_i] }
          @lock.synchronize { @later << [Jobq.now + 0.25, job] } unless left_open?(job)
        end
        row["outcome"] == "claimed"
      end
    end

    # Whether a handler has left its transaction open for as long as a lease: there is no waiting
    # for it; the job comes back by its lease when that transaction has ended.
    def left_open?(job) = job.completed? && Jobq.now - job.held_at > job.lease

    def settle_alone(job)
      settle_and_claim([job], 0)
    rescue PG::Error => error
      raise if Jobq.away?(error)

      job.settlement = failed(error, "RESULT_REFUSED", retryable: false)
      settle_and_claim([job], 0)
    end

    # Make a call whose refusal is no matter: a job that was lost is none of ours.
    def attempt
      yield
    rescue PG::Error => error
      raise if Jobq.away?(error) && !@is_over

      complain(error)
    end

    # ---- handlers

    def begin_job(row, held_at)
      job = Job.new(row, held_at, @own)
      @lock.synchronize { @running[job.key] = job }
      return leave(job) unless @handlers.key?(job.kind)

      Thread.new { perform(job, row["payload"]) }
    end

    # Give a job back, and leave its kind to workers that have a handler for it from now on.
    def leave(job)
      is_new = !@unknown.include?(job.kind)
      @unknown |= [job.kind]
      settle(job, { end: :released, seconds: is_new ? 0 : 30 })
    end

    def left = @unknown.empty? ? nil : array(@unknown)

    def perform(job, payload)
      settlement = { end: :failed, error: "the handler ended its thread", code: "ERROR", retryable: true }
      result = @handlers[job.kind].call(JSON.parse(payload), job)
      settlement = job.completed? ? uncommitted : { end: :succeeded, result: JSON.generate(result) }
    rescue Exception => error # rubocop:disable Lint/RescueException -- whatever a handler raises
      settlement = settlement_of(error, job)
    ensure
      settle(job, settlement)
    end

    def settlement_of(error, job)
      return if error.is_a?(Suspended) || Jobq.code_of(error) == "LEASE_LOST"
      return { end: :released, seconds: error.seconds } if error.is_a?(Snooze)
      return { end: :cancelled } if job.is_cancel_requested

      case error
      when Permanent then failed(error, error.code, retryable: false)
      when Retry then failed(error, error.code).merge(seconds: error.seconds)
      when JSON::GeneratorError then failed(error, "RESULT_INVALID", retryable: false)
      else failed_by_rules(error, job)
      end
    end

    def failed_by_rules(error, job)
      return failed(error, "ERROR") if Jobq.away?(error)

      rules = @rules[job.kind]
      return failed(error, "ERROR", retryable: false) unless rules.retry?(error)

      failed(error, "ERROR").merge(seconds: rules.seconds(error, job.attempt))
    rescue StandardError => broken # the function of the delay
      failed(broken, "ERROR")
    end

    def failed(error, code, retryable: true) = { end: :failed, error: Jobq.text_of(error), code: code, retryable: retryable }

    # What settles a job that its handler has completed: a failure, which is lost and changes
    # nothing when that has committed.
    def uncommitted = { end: :failed, error: "the handler completed the job, and did not commit", code: "NOT_COMMITTED", retryable: true }

    def failure(job)
      job.settlement => { error:, code:, retryable: }
      seconds = job.settlement[:seconds]
      { job_id: job.job_id, attempt: job.attempt, error: error, error_code: code, retryable: retryable, retry_in: seconds && "#{seconds} s" }
    end

    # Note how an attempt has ended, unless that is known; nil when nothing is to be settled.
    def settle(job, settlement)
      job.is_stopped = true
      @lock.synchronize do
        return unless @running.delete(job.key)

        job.settlement = settlement
        @settled << job if settlement
      end
      wake
    end

    # ---- heartbeats and upkeep

    def beat
      until @is_over
        sent_at = Jobq.now
        is_asked, @is_beat_wanted = @is_beat_wanted, false
        jobs = @lock.synchronize { @running.values }
        jobs.select(&:overdue?).each { |job| settle(job, failed(RuntimeError.new("it took longer than #{job.timeout} s"), "TIMEOUT")) }
        due = jobs.select { |job| is_asked || sent_at - job.held_at > job.lease / 3 - 0.1 }
        begin
          heartbeat(due, sent_at) if due.any? || sent_at - @beat_at > 15
        rescue PG::Error => error
          complain(error)
          due.each { |job| settle(job, nil) if Jobq.now - job.held_at > job.lease }
        end
        sleep 0.1 unless @is_beat_wanted
      end
    end

    def heartbeat(jobs, sent_at)
      sql = "select outcome from jobq.heartbeat($1, $2, $3, $4, $5)"
      rows = @vital.exec(sql, [@name, array(jobs.map(&:job_id)), array(jobs.map(&:attempt)), array(@queues), left])
      @beat_at = sent_at
      jobs.zip(rows.column_values(0)).each do |job, outcome|
        case outcome
        when "lost" then settle(job, nil)
        when "held" then next
        else
          job.held_at = sent_at
          job.is_cancel_requested = job.is_stopped = true if outcome == "cancel_requested"
        end
      end
    end

    def maintain
      until @is_over
        seconds = jitter(3)
        begin
          has_more = @own.exec("select has_more from jobq.maintain()").column_values(0).include?("t")
          slot = @own.exec("select extract(epoch from jobq.maintain_in())").getvalue(0, 0)
          seconds = has_more ? 0 : [seconds, slot && [slot.to_f, 0.1].max].compact.min
        rescue PG::Error => error
          complain(error)
        end
        till = Jobq.now + seconds
        sleep 0.1 until @is_over || Jobq.now > till
      end
    end

    # ---- sleeping and waking

    def wake
      @lock.synchronize do
        @is_awake = true
        @news.signal
      end
    end

    def pause(seconds)
      till = Jobq.now + [seconds, 0.25].min
      return if seconds <= 0

      till = Jobq.now + seconds unless @lock.synchronize { @later.any? }
      @lock.synchronize { @news.wait(@lock, [till - Jobq.now, 0.001].max) until @is_awake || Jobq.now >= till }
    end

    # Say on the listening session whether the worker sleeps; true when it may.
    def announce(call, params = [])
      @is_announced = false
      @asked = [call, params]
      @ask.write(".")
      till = Jobq.now + 3
      sleep 0.001 while @asked && @is_listening && Jobq.now < till
      @is_announced
    end

    # The listening session is one thread's: it waits for notifications, and speaks when asked to.
    def listen
      until @is_stopping
        begin
          @listener.exec("listen jobq")
          @listener.exec("listen jobq_cancel")
          @is_listening = @is_beat_wanted = true
          wake
          hear until @is_stopping
        rescue PG::Error => error
          complain(error)
        end
        @is_listening = @is_announced = false
        @listener.close
        sleep jitter(0.2)
      end
    end

    def hear
      @question.read_nonblock(100, exception: false)
      if @asked
        answer = @listener.exec("select jobq.#{@asked[0]}", @asked[1]).getvalue(0, 0)
        @is_announced, @asked = answer == "t", nil
      end
      @listener.wait(@question, 1) do |channel, queue|
        next unless @queues.include?(queue)

        channel == "jobq" ? wake : @is_beat_wanted = true
      end
    end

    def array(values) = PG::TextEncoder::Array.new.encode(values.map(&:to_s))

    def jitter(seconds) = seconds * (0.5 + rand)

    def complain(error) = @log.puts("jobq: #{Jobq.text_of(error)}")
  end
end
