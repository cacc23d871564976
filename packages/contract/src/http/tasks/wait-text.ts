// Says in words what a task waits for. The API, the command line and the board show this text, which reads on from "waits for".
import { formatDuration } from '../../definition/units/duration.ts'
import type { TaskRecord } from '../../task/task-record.ts'
import { MAX_AHEAD, type WaitsFor } from '../../task/waits-for.ts'
import { timeText } from '../times.ts'

export function waitText(wait: WaitsFor, task: Pick<TaskRecord, 'queue' | 'concurrencyKey'>): string {
  const { queue } = task
  switch (wait.kind) {
    case 'scheduled':
      return `its due time, ${timeText(wait.until)}`
    case 'retry':
      return `attempt ${wait.attempt} of ${wait.maxAttempts}, which is due at ${timeText(wait.until)}`
    case 'unsupported':
      return `a worker that can run it, because ${wait.worker} could not (${wait.code}); it is due again at ${timeText(wait.until)}`
    case 'quarantine':
      return `a worker with room for quarantined tasks; it is due again at ${timeText(wait.until)}`
    case 'recovery':
      return 'the leader to return it to its queue, because its worker was lost'
    case 'paused':
      return `queue ${queue} to be resumed (paused${by(wait.by)}${since(wait.since)})`
    case 'drain':
      return `queue ${queue} to be resumed (${wait.mode} drain${by(wait.by)}${since(wait.since)})`
    case 'outbox':
      return `room in the outbox of queue ${queue}, which is full`
    case 'no_worker': {
      const none =
        wait.since === undefined
          ? 'no worker is known to have served it'
          : `none has served it since ${timeText(wait.since)}`
      return `a worker that serves queue ${queue}; ${none}`
    }
    case 'workers_draining':
      return `a worker that serves queue ${queue}; ${all(wait.workers)} shutting down`
    case 'workers_paused':
      return `a worker of queue ${queue} to be resumed; ${all(wait.workers)} paused`
    case 'workers_not_ready':
      return `a worker of queue ${queue} to become ready; ${all(wait.workers)} not ready (${wait.reason})`
    case 'workers_reserved':
      return `a worker that runs any task of queue ${queue}; ${all(wait.workers)} reserved for other tasks`
    case 'throttle':
      return `the end of the throttle of queue ${queue} at ${timeText(wait.until)}`
    case 'queue_rate':
      return `the rate limit of queue ${queue} (${wait.max} per ${formatDuration(wait.perMs)}), next start at ${timeText(wait.until)}`
    case 'queue_concurrency':
      return `the concurrency limit of queue ${queue} (${wait.limit})${after(wait.ahead)}`
    case 'slot': {
      const { slots, busy, ahead } = wait
      return busy < slots
        ? `a worker of queue ${queue} to fetch it (${busy} of ${slots} slots busy)${after(ahead)}`
        : `a free slot of queue ${queue} (${slots} of ${slots} busy)${after(ahead)}`
    }
    case 'turn':
      return `its turn${afterLike(wait, task)}`
    case 'concurrency':
      return `the concurrency limit of its concurrency key${afterLike(wait, task)}`
    case 'rate':
      return `the rate limit of its concurrency key${wait.until === undefined ? '' : `, next start at ${timeText(wait.until)}`}${afterLike(wait, task)}`
    case 'permits':
      return `${wait.limiter} permits${afterLike(wait, task)}`
    case 'definition':
      return `the concurrency limit of ${wait.limiter}${afterLike(wait, task)}`
    case 'breaker':
      return `the circuit breaker of ${wait.service}${wait.until === undefined ? '' : `, next probe at ${timeText(wait.until)}`}${afterLike(wait, task)}`
  }
}

const by = (name: string | undefined): string => (name === undefined ? '' : ` by ${name}`)
const since = (time: number | undefined): string => (time === undefined ? '' : ` since ${timeText(time)}`)
const all = (workers: number): string => (workers === 1 ? 'the only one is' : `all ${workers} workers are`)

function tasks(ahead: number): string {
  return `${ahead < MAX_AHEAD ? '' : 'at least '}${ahead} ${ahead === 1 ? 'task' : 'tasks'}`
}

const after = (ahead: number): string => (ahead === 0 ? '' : `, after ${tasks(ahead)}`)

/** Says how many tasks of the same concurrency key or with the same needs start first. */
function afterLike(
  { kind, ahead }: { readonly kind: WaitsFor['kind']; readonly ahead: number },
  { concurrencyKey }: Pick<TaskRecord, 'concurrencyKey'>,
): string {
  if (ahead === 0) return ''
  const isOfKey = concurrencyKey !== undefined && kind !== 'permits' && kind !== 'definition'
  return `${after(ahead)} ${isOfKey ? 'of the same concurrency key' : 'with the same needs'}`
}
