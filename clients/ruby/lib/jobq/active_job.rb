# frozen_string_literal: true

require "active_job"
require "jobq"

module Jobq
  # Active Job on jobq. A job class is a kind of its name.
  #
  #   config.active_job.queue_adapter = :jobq
  #
  #   worker = Jobq::Worker.new(ENV["DATABASE_URL"], queues: ["default", "mailers"])
  #   worker.handle_active_jobs
  #   exit worker.run
  class << self
    # Returns the connection to enqueue on; by default that of Active Record, in whose transaction
    # the job then is. Each thread needs its own: a job that is retried enqueues in its thread.
    attr_writer :active_job_connection

    def active_job_connection
      @active_job_connection ||= -> { ::ActiveRecord::Base.connection.raw_connection }
    end

    # The jobq job that this thread runs for Active Job, for steps and progress; nil outside.
    def current_job = Thread.current[:jobq_job]
  end

  class Worker
    # Run the jobs of these classes; of all that are loaded by default, so load them before:
    # Rails.application.eager_load!
    #
    # Active Job decides about retries: an exception that leaves a job ends it as dead.
    def handle_active_jobs(classes = ::ActiveJob::Base.descendants)
      classes.select(&:name).each do |each|
        handle(each.name) { |payload, job| perform_active_job(payload, job) }
      end
    end

    private

    def perform_active_job(payload, job)
      Thread.current[:jobq_job] = job
      ::ActiveJob::Base.execute(payload.merge("provider_job_id" => job.job_id))
      nil
    rescue Retry, Permanent, Snooze, Suspended, Stopped
      raise
    rescue StandardError => error
      raise Permanent.new(error.class.name, Jobq.text_of(error))
    ensure
      Thread.current[:jobq_job] = nil
    end
  end
end

module ActiveJob
  module QueueAdapters
    # Enqueues jobs of Active Job: what `config.active_job.queue_adapter = :jobq` finds.
    class JobqAdapter
      def enqueue(job) = enqueue_all([job])

      def enqueue_at(job, timestamp)
        job.scheduled_at = timestamp
        enqueue_all([job])
      end

      # Enqueue many jobs with one call; return how many.
      def enqueue_all(jobs)
        made = Jobq.enqueue_many(Jobq.active_job_connection.call, jobs.map { |job| options_of(job) })
        jobs.zip(made) do |job, one|
          job.provider_job_id = one.job_id
          job.successfully_enqueued = true if job.respond_to?(:successfully_enqueued=)
        end
        made.size
      end

      # The job is part of the transaction, so there is nothing to wait for.
      def enqueue_after_transaction_commit? = false

      # Whether the worker wants the running job to stop, for continuations.
      def stopping? = Jobq.current_job&.stopped? || false

      private

      def options_of(job)
        at = job.scheduled_at
        {
          kind: job.class.name, payload: job.serialize, queue: job.queue_name,
          # In Active Job lower numbers run first.
          priority: job.priority && -job.priority,
          run_at: at && Time.at(at.to_f).utc.strftime("%FT%T.%6NZ")
        }.compact
      end
    end
  end
end
