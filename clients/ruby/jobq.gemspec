# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = "jobq"
  spec.version = "1.1.0"
  spec.summary = "Client and worker for jobq, a job queue in PostgreSQL."
  spec.authors = ["the jobq authors"]
  spec.license = "PostgreSQL"
  spec.files = ["lib/jobq.rb", "lib/jobq/active_job.rb", "lib/active_job/queue_adapters/jobq_adapter.rb", "README.md"]
  spec.required_ruby_version = ">= 3.1"
  spec.add_dependency "pg", ">= 1.4"
end
