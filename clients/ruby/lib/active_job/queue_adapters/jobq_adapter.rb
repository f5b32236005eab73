# frozen_string_literal: true

# Active Job's own name of the adapter, which is in jobq/active_job.
require "jobq/active_job"
