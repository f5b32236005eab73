# frozen_string_literal: true

require "jobq/active_job"

module ActiveJob
  module QueueAdapters
    # What `config.active_job.queue_adapter = :jobq` finds.
    JobqAdapter = Jobq::ActiveJobAdapter
  end
end
