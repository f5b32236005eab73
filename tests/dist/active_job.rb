# Runs a job of Active Job with the adapter of the gem, and prints what it got.
require "active_job"

ActiveJob::Base.logger = Logger.new(IO::NULL)
ActiveJob::Base.queue_adapter = :jobq
url = ENV.fetch("DATABASE_URL")
Jobq.active_job_connection = -> { Thread.current[:connection] ||= PG.connect(url) }
RAN = Queue.new

class GreetJob < ActiveJob::Base
  queue_as :mailers

  def perform(name) = RAN << name
end

worker = Jobq::Worker.new(url, queues: ["mailers"])
worker.handle_active_jobs
worker.start
GreetJob.perform_later("Ada")
puts RAN.pop
worker.stop
