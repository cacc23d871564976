// Defines the variables with which the reader of a dashboard chooses what it shows.
import type { Variable } from './panel.ts'

const NAMESPACE: Variable = {
  name: 'namespace',
  label: 'Namespace',
  description:
    'The installation, if one Prometheus scrapes several of them. The choices are the values of the label namespace, which pod discovery on Kubernetes adds.',
  query: 'label_values(bullpen_build_info, namespace)',
  // Two installations may have queues of the same name, whose numbers must not be mixed.
  multi: false,
}

const JOB: Variable = {
  name: 'job',
  label: 'Job',
  description: 'The scrape jobs of Prometheus, if the API and the workers are scraped by different jobs.',
  query: 'label_values(bullpen_build_info{namespace=~"$namespace"}, job)',
  multi: true,
}

/** The variables of every dashboard. */
export const COMMON_VARIABLES: readonly Variable[] = [NAMESPACE, JOB]

export const QUEUE: Variable = {
  name: 'queue',
  label: 'Queue',
  description: 'The queues whose panels are shown.',
  query: 'label_values(bullpen_queue_tasks{namespace=~"$namespace", job=~"$job"}, queue)',
  multi: true,
}

export const TASK: Variable = {
  name: 'task',
  label: 'Task',
  description: 'The task definitions whose panels are shown.',
  query: 'label_values(bullpen_attempts_started_total{namespace=~"$namespace", job=~"$job", queue=~"$queue"}, task)',
  multi: true,
}

export const WORKER: Variable = {
  name: 'worker',
  label: 'Worker',
  description: 'The workers whose panels are shown, by the address at which Prometheus scrapes them.',
  query: 'label_values(bullpen_build_info{namespace=~"$namespace", job=~"$job", role="worker"}, instance)',
  multi: true,
}
