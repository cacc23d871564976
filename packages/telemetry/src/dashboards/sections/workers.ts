// The panels of workers: whether their slots are used, stuck or draining, and how their processes are.
import { POOL_STATE_LABELS, SLOT_STATE_LABELS } from '@bullpen/contract'
import { query, type Section } from '../panel.ts'
import { OF_QUEUE, OF_WORKER, RATE } from './selectors.ts'

/** Both ends of the scale need attention, because a saturated pool delays tasks and an idle one costs money. */
const IDLE_BELOW = 0.1
const SATURATED_ABOVE = 0.9

const OF_POOL = `${OF_QUEUE}, ${OF_WORKER}`
/** The workers that the dashboard's variables choose, among all scraped processes. */
const WORKERS = `on (job, instance) bullpen_build_info{role="worker", ${OF_WORKER}}`

export const slotSection: Section = {
  title: 'Slots',
  panels: [
    {
      title: 'Busy slots',
      description: 'Busy slots and all slots. A busy slot is running an attempt.',
      bad: 'None busy although tasks wait: nothing is running. Fewer slots than before: workers are gone.',
      runbook: 'nothing-is-running.md',
      unit: 'short',
      queries: [
        query(`sum by (queue) (bullpen_pool_slots_busy{${OF_POOL}})`, '{{queue}} busy'),
        query(`sum by (queue) (bullpen_pool_slots{${OF_POOL}})`, '{{queue}} all'),
      ],
    },
    {
      title: 'Utilisation',
      description: 'Share of slots that are busy.',
      bad: 'Above 90%, tasks have to wait. Below 10%, the queue has too many slots or too few tasks.',
      runbook: 'slots-idle.md',
      unit: 'percentunit',
      max: 1,
      thresholds: [
        { from: 0, colour: 'blue' },
        { from: IDLE_BELOW, colour: 'green' },
        { from: SATURATED_ABOVE, colour: 'red' },
      ],
      queries: [
        query(
          `sum by (queue) (bullpen_pool_slots_busy{${OF_POOL}}) / sum by (queue) (bullpen_pool_slots{${OF_POOL}})`,
          '{{queue}}',
        ),
      ],
    },
    {
      title: 'Slots by state',
      description: 'Slots of the chosen workers, by state.',
      bad: 'Any slots in the state "panicked": they cannot fetch tasks until fetching restarts.',
      runbook: 'redis-unreachable.md',
      unit: 'short',
      stacked: true,
      names: SLOT_STATE_LABELS,
      queries: [query(`sum by (state) (bullpen_slot_state{${OF_POOL}}) > 0`, '{{state}}')],
    },
    {
      title: 'Slots restarted',
      description: 'Slots per second that resumed after they had been unable to fetch tasks.',
      bad: 'Any: fetching had failed, usually because Redis was unreachable.',
      runbook: 'redis-unreachable.md',
      unit: 'ops',
      ifEmpty: 'no slot has restarted',
      queries: [query(`sum by (queue) (rate(bullpen_slots_restarted_total{${OF_POOL}}[${RATE}]))`, '{{queue}}')],
    },
  ],
}

export const drainSection: Section = {
  title: 'Drains and handlers',
  panels: [
    {
      title: 'Pools by state',
      description: 'Number of pools in each state. "draining" is normal during a deploy.',
      bad: '"draining" for longer than the drain timeout, "drain timed out" or "panicked".',
      runbook: 'drain-stuck.md',
      unit: 'short',
      stacked: true,
      names: POOL_STATE_LABELS,
      queries: [query(`sum by (state) (bullpen_pool_state{${OF_POOL}}) > 0`, '{{state}}')],
    },
    {
      title: 'Draining workers',
      description: 'Pools that are draining, by worker, and the attempts that still run on them.',
      bad: 'A worker that drains for longer than its drain timeout. If its busy slots do not fall, its handlers ignore the drain.',
      runbook: 'drain-stuck.md',
      unit: 'short',
      ifEmpty: 'no worker is draining',
      queries: [
        query(
          `sum by (instance, queue) (bullpen_pool_state{${OF_POOL}, state="SHUTTING_DOWN"}) > 0`,
          '{{instance}} {{queue}} draining',
        ),
        query(
          `sum by (instance, queue) (bullpen_pool_slots_busy{${OF_POOL}}) and on (instance, queue) bullpen_pool_state{${OF_POOL}, state="SHUTTING_DOWN"} == 1`,
          '{{instance}} {{queue}} busy',
        ),
      ],
    },
    {
      title: 'Time left to drain',
      description: 'Time until the time limit and the grace period of a drain are over.',
      bad: '0 for longer than a few seconds: the worker does not finish. A worker that is killed before 0 has a terminationGracePeriodSeconds that is too short.',
      runbook: 'drain-stuck.md',
      unit: 's',
      ifEmpty: 'no worker drains with a time limit',
      queries: [
        query(
          `clamp_min(max by (instance, queue) (bullpen_drain_deadline_timestamp_seconds{${OF_POOL}}) - time(), 0)`,
          '{{instance}} {{queue}}',
        ),
      ],
    },
    {
      title: 'Locks renewed late',
      description: 'Locks of running tasks per second that were not renewed for half of their duration.',
      bad: 'Any: if a lock expires, another worker starts the task again. Redis is slow or unreachable, or the machine has too little CPU time.',
      runbook: 'duplicates.md',
      unit: 'ops',
      ifEmpty: 'no lock was late',
      queries: [
        query(
          `sum by (instance, queue) (rate(bullpen_late_lock_renewals_total{${OF_POOL}}[${RATE}]))`,
          '{{instance}} {{queue}}',
        ),
      ],
    },
    {
      title: 'Restarts of the lock-renewal thread',
      description: 'Number of times per second that the thread that renews the locks ended or could not be started.',
      bad: 'Any for minutes: the main thread renews the locks meanwhile, so that a blocked event loop loses them. The log says why the thread ended.',
      runbook: 'duplicates.md',
      unit: 'ops',
      queries: [
        query(`sum by (instance) (rate(bullpen_lock_threads_restarted_total{${OF_WORKER}}[${RATE}]))`, '{{instance}}'),
      ],
    },
    {
      title: 'Requeued attempts',
      description:
        'Attempts per second that ended early and whose tasks were returned to their queue: because of a drain, a closed parent or a rate limit.',
      bad: 'Many during a deploy: the drain timeout is shorter than the tasks. Many at other times: handlers exceed the rate limit of a service.',
      runbook: 'drain-stuck.md',
      unit: 'ops',
      ifEmpty: 'no attempt was requeued',
      queries: [
        query(
          `sum by (instance, queue) (rate(bullpen_attempts_ended_total{${OF_POOL}, verdict="requeued"}[${RATE}]))`,
          '{{instance}} {{queue}}',
        ),
      ],
    },
    {
      title: 'Recovered tasks',
      description:
        'Tasks per second that were returned to their queue because their worker had died or had not renewed their locks in time.',
      bad: 'Any: a process was killed, ran out of memory, or was blocked. Peaks again and again: workers restart in a loop.',
      runbook: 'worker-restarts.md',
      unit: 'ops',
      queries: [query(`max by (queue) (rate(bullpen_queue_tasks_recovered_total{${OF_QUEUE}}[${RATE}]))`, '{{queue}}')],
    },
    {
      title: 'Lost workers',
      description: 'Workers per second that stopped sending heartbeats without leaving the fleet.',
      bad: "Any: a process was killed, its machine is gone, or it cannot reach Redis. The leader's log names the worker and its tasks.",
      runbook: 'worker-not-ready.md',
      unit: 'ops',
      queries: [query(`sum(rate(bullpen_lost_workers_total[${RATE}]))`, 'lost')],
    },
    {
      title: 'Stuck handlers',
      description: 'Handlers that are running although their attempts have ended.',
      bad: 'Any for more than a few seconds: they use memory and connections until they return.',
      runbook: 'stuck-handlers.md',
      unit: 'short',
      queries: [query(`sum by (queue, instance) (bullpen_stuck_handlers{${OF_POOL}})`, '{{queue}} {{instance}}')],
    },
    {
      title: 'Isolates replaced',
      description: 'Threads and child processes per second that were replaced.',
      bad: 'Any that a cancel or a timeout does not explain: handlers crash their isolate, or use too much memory.',
      runbook: 'poison-tasks.md',
      unit: 'ops',
      ifEmpty: 'no isolate was replaced',
      queries: [
        query(
          `sum by (instance, isolation) (rate(bullpen_isolates_replaced_total{${OF_WORKER}}[${RATE}]))`,
          '{{instance}} {{isolation}}',
        ),
      ],
    },
  ],
}

export const workerProcessSection: Section = {
  title: 'Processes',
  panels: [
    {
      title: 'Event-loop lag of workers, p99',
      description: 'How late timers run, in the slowest 1% of cases.',
      bad: 'Above a few tens of milliseconds: a handler is blocking its process, and its task should be isolated.',
      runbook: 'event-loop-stalled.md',
      unit: 's',
      queries: [query(`nodejs_eventloop_lag_p99_seconds and ${WORKERS}`, '{{instance}}')],
    },
    {
      title: 'Event-loop stalls',
      description: 'How often per second a task blocked the event loop for longer than eventLoopStallWarning.',
      bad: 'Any: the log names the function, the file and the line.',
      runbook: 'event-loop-stalled.md',
      unit: 'ops',
      ifEmpty: 'no stalls',
      queries: [
        query(
          `sum by (instance, task) (rate(bullpen_event_loop_stalls_total{${OF_WORKER}}[${RATE}]))`,
          '{{instance}} {{task}}',
        ),
      ],
    },
    {
      title: 'CPU of workers',
      description: 'CPU time that each worker uses per second. 1 is one core.',
      bad: 'Near 1, unless its tasks are isolated: the event loop has no time left, so locks and timeouts are late.',
      runbook: 'event-loop-stalled.md',
      unit: 'short',
      queries: [query(`rate(process_cpu_seconds_total[${RATE}]) and ${WORKERS}`, '{{instance}}')],
    },
    {
      title: 'Memory of workers',
      description: 'Resident memory.',
      bad: 'Steady growth: a handler leaks memory. A sudden fall to a low value: the process was killed, and its tasks start again elsewhere.',
      runbook: 'poison-tasks.md',
      unit: 'bytes',
      queries: [query(`process_resident_memory_bytes and ${WORKERS}`, '{{instance}}')],
    },
    {
      title: 'Restarts of workers',
      description: 'How often the process at each address has restarted within the last 15 minutes.',
      bad: '2 or more: the process exits or is killed again and again. A deploy on Kubernetes does not count, because new pods have new addresses.',
      runbook: 'worker-restarts.md',
      unit: 'short',
      queries: [query(`changes(process_start_time_seconds[15m]) and ${WORKERS}`, '{{instance}}')],
    },
    {
      title: 'Clock skew',
      description: "How far each machine's clock is ahead of Redis's clock. Tasks use Redis's clock.",
      bad: "More than 0.5 s in either direction: log times and the handlers' own clock are wrong.",
      runbook: 'clock-skew.md',
      unit: 's',
      signed: true,
      queries: [query(`bullpen_clock_skew_seconds and ${WORKERS}`, '{{instance}}')],
    },
  ],
}
