// The series for which each alert fires, and those for which it does not. There is a sample per minute, in promtool's notation:
// `0+5x10` is 0, 5, 10, …, 50, and `_x5` is five missing samples.

/** The values of each series, by its name and labels. */
type Series = Readonly<Record<string, string>>

/** The series alone, or with what differs from the other cases of the alert. */
type Case = Series | ({ readonly series: Series } & Partial<Expected>)

interface Expected {
  /** When the alert is looked at. */
  readonly at: `${number}m`
  /** The labels of the alert, except its severity. */
  readonly labels: Readonly<Record<string, string>>
  /** The alert's figure as people read it. */
  readonly figure?: string
}

export interface AlertCases extends Expected {
  /** How often the rule is evaluated. Defaults to every minute, which takes long for windows of hours. */
  readonly evaluatedEvery?: `${number}m`
  readonly fires: Case
  /** Other cases in which it fires, by what is different. */
  readonly alsoFires?: Readonly<Record<string, Case>>
  /** Cases in which the alert does not fire, by what is different. */
  readonly quiet: Readonly<Record<string, Case>>
}

/** The series of a case, and what is expected of the alert. */
export interface FullCase extends Expected {
  readonly series: Series
}

export function fullCase({ at, labels, figure }: Expected, given: Case): FullCase {
  return { at, labels, ...(figure !== undefined && { figure }), ...(isSeries(given) ? { series: given } : given) }
}

const isSeries = (given: Case): given is Series => typeof given['series'] !== 'object'

const API = '{instance="api"}'
const WORKER = '{instance="w1"}'
const MAIL = { queue: 'mail' }
const waiting = (values: string): Series => ({ 'bullpen_queue_tasks{queue="mail", status="waiting"}': values })
const active = (values: string): Series => ({ 'bullpen_queue_tasks{queue="mail", status="active"}': values })
const slots = (busy: string, all: string): Series => ({
  'bullpen_pool_slots_busy{queue="mail"}': busy,
  'bullpen_pool_slots{queue="mail"}': all,
})
const blocked = (values: string): Series => ({ 'bullpen_queue_blocked_tasks{queue="mail"}': values })
const oldestBlocked = (values: string): Series => ({ 'bullpen_queue_oldest_blocked_seconds{queue="mail"}': values })
/** How long the oldest waiting task and the one that starts next have been ready. */
const ages = (oldest: string, next: string): Series => ({
  'bullpen_queue_oldest_seconds{queue="mail"}': oldest,
  'bullpen_queue_next_task_seconds{queue="mail"}': next,
})
const DRAINING = 'bullpen_queue_draining{queue="mail"}'
/** A worker whose pool may be paused. */
const pool = (instance: string, busy: string, all: string, paused: string): Series => ({
  [`bullpen_pool_slots_busy{queue="mail", instance="${instance}"}`]: busy,
  [`bullpen_pool_slots{queue="mail", instance="${instance}"}`]: all,
  [`bullpen_pool_paused{queue="mail", instance="${instance}"}`]: paused,
})
const limit = (tasks: string): Series => ({ 'bullpen_queue_limit_tasks{queue="mail"}': tasks })
/** All enqueues take between `from` and `to` seconds, which are bounds of the histogram's buckets. */
const enqueueSeconds = (from: string, to: string): Series => ({
  [`bullpen_enqueue_duration_seconds_bucket{queue="mail", le="${from}"}`]: '0x40',
  [`bullpen_enqueue_duration_seconds_bucket{queue="mail", le="${to}"}`]: '0+100x40',
  'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="+Inf"}': '0+100x40',
  'bullpen_enqueue_duration_seconds_count{queue="mail"}': '0+100x40',
})
/** All commands of a process take between `from` and `to` seconds, which are bounds of the histogram's buckets. */
const commandSeconds = (from: string, to: string): Series => ({
  [`bullpen_redis_command_duration_seconds_bucket{instance="a1", le="${from}"}`]: '0x40',
  [`bullpen_redis_command_duration_seconds_bucket{instance="a1", le="${to}"}`]: '0+100x40',
  'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="+Inf"}': '0+100x40',
  'bullpen_redis_command_duration_seconds_count{instance="a1"}': '0+100x40',
})
const STARTED = 'bullpen_attempts_started_total{queue="mail", task="receipt.send"}'
const FAILED = 'bullpen_attempt_failures_total{queue="mail", task="receipt.send", reason="declared"}'
const ENDED = 'bullpen_attempts_ended_total{queue="mail", task="receipt.send", state="DONE_SUCCESS"}'
const FAILED_ENDS = 'bullpen_attempts_ended_total{queue="mail", task="receipt.send", state="DONE_ERROR"}'
const OF_RECEIPTS = 'queue="mail", task="receipt.send"'
const RECEIPTS = { ...MAIL, task: 'receipt.send' }
/** A task with an SLO: this share should start in time, and these numbers of tasks have started and started late. */
const slo = (objective: string, started: string, late: string): Series => ({
  [`bullpen_slo_objective_ratio{${OF_RECEIPTS}}`]: objective,
  [`bullpen_slo_tasks_total{${OF_RECEIPTS}}`]: started,
  [`bullpen_slo_late_tasks_total{${OF_RECEIPTS}}`]: late,
})
const BUILD = 'bullpen_build_info{job="bullpen", instance="w1", role="worker"}'
const WORKER_STARTED = 'process_start_time_seconds{job="bullpen", instance="w1"}'
const DEAD_ON_WORKER = 'bullpen_tasks_dead_total{job="bullpen", instance="w1", queue="mail", task="receipt.send"}'
const UP = 'up{job="bullpen", instance="w1"}'

/** An API of an installation whose queues are not paused. */
const IDLE_API: Series = {
  'bullpen_build_info{role="api"}': '1x10',
  'bullpen_queue_paused{queue="mail"}': '0x10',
  'bullpen_queue_paused{queue="files"}': '0x10',
  [DRAINING]: '0x10',
  'bullpen_queue_draining{queue="files"}': '0x10',
}
/**
 * Ten attempts a minute, or as many as given, which take between `from` and `to` seconds in the first day, and between `later` and `latest`
 * seconds after it. These are bounds of the histogram's buckets, from the lowest to the highest.
 */
const attemptSeconds = (
  [from, to, later, latest]: readonly [from: string, to: string, later: string, latest: string],
  eachMinute = 10,
): Series => {
  const bucket = (le: string): string => `bullpen_attempt_duration_seconds_bucket{${OF_RECEIPTS}, le="${le}"}`
  const all = `0+${eachMinute}x1600`
  const ofFirstDay = `0+${eachMinute}x1440 ${1_440 * eachMinute}x160`
  return {
    [bucket(from)]: '0x1600',
    [bucket(to)]: ofFirstDay,
    [bucket(later)]: ofFirstDay,
    [bucket(latest)]: all,
    [bucket('+Inf')]: all,
    [`bullpen_attempt_duration_seconds_count{${OF_RECEIPTS}}`]: all,
  }
}

export const ALERT_CASES: Readonly<Record<string, AlertCases>> = {
  BullpenQueueStuck: {
    at: '12m',
    labels: MAIL,
    figure: '5 waiting',
    fires: { ...waiting('5x30'), ...slots('0x30', '4x30') },
    alsoFires: {
      'the queue is full, too': {
        series: { ...waiting('90x30'), ...slots('3x30', '4x30'), 'bullpen_blocked_requests{queue="mail"}': '2x30' },
        figure: '90 waiting',
      },
      'some tasks are blocked, but others could start': {
        ...waiting('5x30'),
        ...blocked('4x30'),
        ...slots('1x30', '4x30'),
      },
      'one worker is paused, and another one has free slots': {
        ...waiting('5x30'),
        ...pool('w1', '0x30', '4x30', '1x30'),
        ...pool('w2', '1x30', '4x30', '0x30'),
      },
    },
    quiet: {
      'every waiting task is blocked by a limit': { ...waiting('5x30'), ...blocked('5x30'), ...slots('1x30', '4x30') },
      'the queue was drained by command': { ...waiting('5x30'), ...slots('0x30', '4x30'), [DRAINING]: '1x30' },
      'every pool is paused': {
        ...waiting('5x30'),
        ...pool('w1', '0x30', '4x30', '1x30'),
        ...pool('w2', '1x30', '4x30', '1x30'),
      },
      'only paused pools have free slots': {
        ...waiting('5x30'),
        ...pool('w1', '0x30', '4x30', '1x30'),
        ...pool('w2', '4x30', '4x30', '0x30'),
      },
      'tasks start': { ...waiting('5x30'), ...slots('2x30', '4x30'), [STARTED]: '0+10x30' },
      'the first task has just started': { ...waiting('5x30'), ...slots('1x30', '4x30'), [STARTED]: '_x10 1x20' },
      'every slot is busy': { ...waiting('5x30'), ...slots('4x30', '4x30') },
      'the queue is paused': {
        ...waiting('5x30'),
        ...slots('0x30', '4x30'),
        'bullpen_queue_paused{queue="mail"}': '1x30',
      },
      'workers do not keep up, and producers are slowed down': {
        ...waiting('90x40'),
        ...enqueueSeconds('1', '2.5'),
        ...slots('3x40', '4x40'),
        [STARTED]: '0+10x40',
      },
      'the queue is full, and every slot is busy': {
        ...waiting('90x30'),
        ...slots('4x30', '4x30'),
        'bullpen_blocked_requests{queue="mail"}': '2x30',
      },
      'no worker of the queue is scraped, so that its slots are unknown': { ...waiting('5x30'), ...active('2x30') },
      'no task is waiting': { ...waiting('0x30'), ...slots('0x30', '4x30') },
      'tasks have been waiting for three minutes': { ...waiting('0x9 5x20'), ...slots('0x30', '4x30') },
    },
  },
  BullpenQueueUnserved: {
    at: '12m',
    labels: MAIL,
    figure: '5 waiting',
    // The worker that is scraped serves another queue.
    fires: { series: { ...waiting('5x30'), ...active('0x30'), 'bullpen_pool_slots{queue="files"}': '4x30' }, at: '6m' },
    alsoFires: {
      'some tasks are blocked, but others could start': { ...waiting('5x30'), ...blocked('4x30') },
      'its last worker is gone': { ...waiting('5x30'), ...slots('0x5 stale', '4x5 stale') },
    },
    quiet: {
      'every slot is busy': { ...waiting('5x30'), ...slots('4x30', '4x30') },
      'workers that are not scraped run tasks': { ...waiting('5x30'), ...active('2x30') },
      'the queue is paused': { ...waiting('5x30'), 'bullpen_queue_paused{queue="mail"}': '1x30' },
      'the queue was drained by command, so that no pool has slots': {
        ...waiting('5x30'),
        ...slots('0x30', '0x30'),
        [DRAINING]: '1x30',
      },
      'every pool is paused': { ...waiting('5x30'), ...pool('w1', '0x30', '4x30', '1x30') },
      'every waiting task is blocked, so that an autoscaler has removed the workers': {
        ...waiting('5x30'),
        ...blocked('5x30'),
      },
      'no task is waiting': waiting('0x30'),
    },
  },
  // The backlog grows and enqueueing is slow: backpressure. If only the backlog grows, the queue is stuck.
  BullpenBackpressure: {
    at: '12m',
    labels: MAIL,
    fires: { ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5'), [STARTED]: '0+10x40' },
    alsoFires: {
      'every slot is busy with a task that takes an hour': {
        ...waiting('90x40'),
        ...slots('4x40', '4x40'),
        'bullpen_blocked_requests{queue="mail"}': '2x40',
      },
    },
    quiet: {
      'only the backlog grows': {
        ...waiting('90x40'),
        ...limit('100x40'),
        ...enqueueSeconds('0.001', '0.005'),
        [STARTED]: '0+10x40',
      },
      'enqueueing is slow, but the queue is not full': {
        ...waiting('5x40'),
        ...limit('100x40'),
        ...enqueueSeconds('1', '2.5'),
        [STARTED]: '0+10x40',
      },
      'the queue is stuck': {
        ...{ ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5') },
        ...{ ...slots('3x40', '4x40'), [STARTED]: '7x40' },
      },
      'an API key has reached its rate': {
        'bullpen_tasks_refused_total{queue="mail", task="receipt.send", limit="enqueueRate", action="rejected"}':
          '0+9x40',
        [STARTED]: '0+10x40',
      },
    },
  },
  BullpenQueueNearlyFull: {
    at: '6m',
    labels: MAIL,
    figure: '81%',
    fires: {
      ...waiting('10x10'),
      ...limit('100x10'),
      'bullpen_queue_bytes{queue="mail"}': '81x10',
      'bullpen_queue_limit_bytes{queue="mail"}': '100x10',
    },
    quiet: { 'three quarters are used': { ...waiting('75x10'), ...limit('100x10') } },
  },
  BullpenEnqueueSlow: {
    at: '12m',
    labels: MAIL,
    figure: '2.485s',
    fires: { ...waiting('5x40'), ...enqueueSeconds('1', '2.5') },
    quiet: {
      'the queue is full': { ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5') },
      'enqueueing takes milliseconds': enqueueSeconds('0.001', '0.005'),
      'four enqueues are slow, and there are no others': {
        'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="1"}': '0x20',
        'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="2.5"}': '0x3 1x3 2x3 3x3 4x8',
        'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="+Inf"}': '0x3 1x3 2x3 3x3 4x8',
        'bullpen_enqueue_duration_seconds_count{queue="mail"}': '0x3 1x3 2x3 3x3 4x8',
      },
    },
  },
  BullpenOldestTaskWaits: {
    at: '6m',
    labels: MAIL,
    figure: '11m 1s',
    fires: ages('301+60x10', '301+60x10'),
    quiet: {
      'each task waits for four minutes': ages('240x10', '240x10'),
      'only blocked tasks wait for longer': ages('3000x10', '0x10'),
      'the queue is paused': { ...ages('301+60x10', '301+60x10'), 'bullpen_queue_paused{queue="mail"}': '1x10' },
    },
  },
  BullpenQueueLimited: {
    at: '6m',
    labels: MAIL,
    figure: '21m 1s',
    fires: oldestBlocked('901+60x20'),
    alsoFires: {
      'another task, which could start, is older': {
        ...ages('2000+60x20', '2000+60x20'),
        ...oldestBlocked('901+60x20'),
      },
    },
    quiet: {
      'every task waits for its turn, and the oldest one is not the next': {
        ...ages('901+60x20', '3x20'),
        ...blocked('0x20'),
        ...oldestBlocked('0x20'),
      },
      'an old task with a lower priority waits, and others have just been blocked': {
        ...ages('901+60x20', '3x20'),
        ...blocked('2x20'),
        ...oldestBlocked('5x20'),
      },
      'the oldest blocked task has been waiting for ten minutes': oldestBlocked('600x20'),
      'the queue is paused': { ...oldestBlocked('901+60x20'), 'bullpen_queue_paused{queue="mail"}': '1x20' },
      'the queue was drained by command': { ...oldestBlocked('901+60x20'), [DRAINING]: '1x20' },
      'a circuit breaker is open, which has an alert of its own': {
        ...oldestBlocked('901+60x20'),
        'bullpen_breaker_state{queue="mail",service="smtp",state="open"}': '1x20',
      },
    },
  },
  BullpenBreakerOpen: {
    at: '6m',
    labels: { ...MAIL, service: 'smtp' },
    fires: {
      'bullpen_breaker_state{queue="mail",service="smtp",state="open"}': '1 1 0 1x8',
      'bullpen_breaker_state{queue="mail",service="smtp",state="half_open"}': '0 0 1 0x8',
    },
    quiet: {
      'the breaker has closed again': { 'bullpen_breaker_state{queue="mail",service="smtp",state="open"}': '1x3 0x8' },
    },
  },
  BullpenQueuePaused: {
    at: '61m',
    labels: MAIL,
    figure: '5 waiting',
    fires: { ...waiting('5x70'), 'bullpen_queue_paused{queue="mail"}': '1x70' },
    alsoFires: {
      'the queue was drained by command': { ...waiting('5x70'), ...slots('0x70', '0x70'), [DRAINING]: '1x70' },
      'every pool is paused': { ...waiting('5x70'), ...pool('w1', '0x70', '4x70', '1x70') },
    },
    quiet: {
      'one pool of two is paused': {
        ...waiting('5x70'),
        ...pool('w1', '0x70', '4x70', '1x70'),
        ...pool('w2', '4x70', '4x70', '0x70'),
      },
      'no task is waiting': { ...waiting('0x70'), 'bullpen_queue_paused{queue="mail"}': '1x70' },
    },
  },
  BullpenScheduleInTrouble: {
    at: '6m',
    labels: { ...MAIL, trouble: 'missed' },
    fires: { 'bullpen_troubled_schedules{queue="mail", trouble="missed"}': '1x20' },
    quiet: { 'every schedule is well': { 'bullpen_troubled_schedules{queue="mail", trouble="missed"}': '0x20' } },
  },
  BullpenSloBurnsFast: {
    evaluatedEvery: '5m',
    at: '80m',
    labels: RECEIPTS,
    figure: '95% late',
    // 14.4 times the 20% that may be late are more than all tasks.
    fires: slo('0.8x90', '0+100x90', '0+95x90'),
    quiet: {
      'a tenth is late': slo('0.99x90', '0+100x90', '0+10x90'),
      'tasks start in time again': slo('0.99x90', '0+100x90', '0+100x60 6000x30'),
      'tasks have been late for a few minutes': { series: slo('0.99x90', '0+100x90', '0x70 0+100x20'), at: '75m' },
      'nine tasks of a rare kind are late': slo('0.99x90', '0x70 1+1x8 9x9', '0x70 1+1x8 9x9'),
    },
  },
  BullpenSloBurnsSlowly: {
    evaluatedEvery: '10m',
    at: '380m',
    labels: RECEIPTS,
    figure: '7% late',
    // More than 6 times the 1% that may be late.
    fires: slo('0.99x400', '0+100x400', '0+7x400'),
    quiet: {
      'one in twenty is late': slo('0.99x400', '0+100x400', '0+5x400'),
      'tasks start in time again': slo('0.99x400', '0+100x400', '0+7x340 2380x60'),
      'the objective is lower': slo('0.98x400', '0+100x400', '0+7x400'),
      'four tasks of a rare kind are late': slo('0.99x400', '0x370 1+1x3 4x9', '0x370 1+1x3 4x9'),
    },
  },
  BullpenOutboxDelayed: {
    at: '1m',
    labels: MAIL,
    figure: '5m 1s',
    fires: { 'bullpen_outbox_oldest_seconds{queue="mail"}': '301x5' },
    quiet: { 'entries are forwarded in time': { 'bullpen_outbox_oldest_seconds{queue="mail"}': '3x5' } },
  },
  BullpenUnaccountedTasks: {
    at: '16m',
    labels: MAIL,
    figure: '2',
    fires: { 'bullpen_unaccounted_tasks{queue="mail"}': '-2x20' },
    quiet: { 'the leader has corrected it': { 'bullpen_unaccounted_tasks{queue="mail"}': '2x5 0x15' } },
  },
  BullpenUnattachedWorkers: {
    at: '6m',
    labels: MAIL,
    figure: '2',
    fires: { 'bullpen_unattached_workers{queue="mail"}': '2x20' },
    quiet: { 'the Workers have gone': { 'bullpen_unattached_workers{queue="mail"}': '2x3 0x15' } },
  },
  BullpenAttemptsFail: {
    at: '25m',
    labels: RECEIPTS,
    figure: '30%',
    fires: { [FAILED]: '0+30x40', [ENDED]: '0+100x40' },
    quiet: {
      'a tenth fails': { [FAILED]: '0+10x40', [ENDED]: '0+100x40' },
      'all four attempts of a rare task fail': {
        [FAILED]: '0x10 1x3 2x3 3x3 4x30',
        [FAILED_ENDS]: '0x10 1x3 2x3 3x3 4x30',
      },
    },
  },
  BullpenAttemptsSlower: {
    evaluatedEvery: '5m',
    at: '1530m',
    labels: RECEIPTS,
    figure: '4.975s',
    fires: attemptSeconds(['0.5', '1', '2.5', '5']),
    quiet: {
      'attempts have been slower for half an hour': { series: attemptSeconds(['0.5', '1', '2.5', '5']), at: '1445m' },
      'they take little longer': attemptSeconds(['0.5', '1', '1', '2']),
      'they take milliseconds': attemptSeconds(['0.005', '0.01', '0.025', '0.05']),
      'there are few of them': attemptSeconds(['0.5', '1', '2.5', '5'], 1),
      'there were none the day before': Object.fromEntries(
        Object.entries(attemptSeconds(['0.5', '1', '2.5', '5'])).map(([name, values]) => [
          name,
          values.includes('0+') && !values.includes(' ') ? '_x1440 0+10x160' : '_x1440 0x160',
        ]),
      ),
    },
  },
  BullpenDeadTasksGrow: {
    at: '12m',
    labels: MAIL,
    figure: '10',
    // The series appears with the first dead task.
    fires: { 'bullpen_tasks_dead_total{queue="mail", task="receipt.send"}': '_x10 10x30' },
    alsoFires: {
      'the process has been scraped for long': {
        series: { [DEAD_ON_WORKER]: '_x28 12x30', [WORKER_STARTED]: '-7200+0x60' },
        at: '30m',
        figure: '12',
      },
      'the process has just started': {
        series: { [DEAD_ON_WORKER]: '_x10 12x30', [WORKER_STARTED]: '_x10 600x30' },
        figure: '12',
      },
    },
    quiet: {
      'Prometheus has just begun to scrape an older process': {
        [DEAD_ON_WORKER]: '_x10 500x30',
        [WORKER_STARTED]: '_x10 -7200+0x30',
      },
      'Prometheus was down for longer than the window': {
        series: { [DEAD_ON_WORKER]: '500x10 _x30 500x30', [WORKER_STARTED]: '-7200+0x10 _x30 -7200+0x30' },
        at: '42m',
      },
      'nine are dead': { 'bullpen_tasks_dead_total{queue="mail", task="receipt.send"}': '_x10 9x30' },
      'they have been dead for long': {
        series: { 'bullpen_tasks_dead_total{queue="mail", task="receipt.send"}': '500x40' },
        at: '35m',
      },
    },
  },
  BullpenPoisonTask: {
    at: '12m',
    labels: MAIL,
    fires: { 'bullpen_tasks_dead_by_code_total{queue="mail", code="poison"}': '_x10 1x10' },
    quiet: {
      'tasks are dead with another code': {
        'bullpen_tasks_dead_by_code_total{queue="mail", code="card_declined"}': '_x10 1x10',
      },
    },
  },
  BullpenResultsDropped: {
    at: '12m',
    labels: MAIL,
    figure: '5',
    fires: { 'bullpen_commits_refused_total{queue="mail", task="receipt.send", reason="lock_lost"}': '_x10 5x10' },
    quiet: {
      'a single result was dropped': {
        'bullpen_commits_refused_total{queue="mail", task="receipt.send", reason="lock_lost"}': '_x10 1x10',
      },
    },
  },
  BullpenSlotsSaturated: {
    at: '25m',
    labels: MAIL,
    figure: '100%',
    fires: slots('4x40', '4x40'),
    quiet: { 'a quarter of the slots is idle': slots('3x40', '4x40') },
  },
  BullpenSlotsIdle: {
    at: '70m',
    labels: MAIL,
    figure: '5%',
    fires: { ...slots('1x90', '20x90'), [STARTED]: '0+1x90' },
    alsoFires: {
      'the queue was used before, and no task has started for an hour': {
        series: { ...slots('0x90', '20x90'), [STARTED]: '3x90' },
        figure: '0%',
      },
    },
    quiet: {
      'a fifth of the slots is busy': { ...slots('4x90', '20x90'), [STARTED]: '0+1x90' },
      'the workers have been scraped for 45 minutes': {
        series: { ...slots('1x90', '20x90'), [STARTED]: '0+1x90' },
        at: '45m',
      },
      'no task has ever started': { ...slots('0x90', '20x90'), [STARTED]: '0x90' },
    },
  },
  BullpenDrainOverrun: {
    at: '6m',
    labels: { ...MAIL, instance: 'w1' },
    fires: { 'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '1x10' },
    alsoFires: {
      'its time limit was a minute': {
        series: {
          'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '1x10',
          'bullpen_drain_deadline_timestamp_seconds{instance="w1", queue="mail"}': '60x10',
        },
        at: '8m',
      },
    },
    quiet: {
      'its time limit is an hour': {
        series: {
          'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '1x10',
          'bullpen_drain_deadline_timestamp_seconds{instance="w1", queue="mail"}': '3600x10',
        },
        at: '10m',
      },
      'the drain ends after two minutes': {
        'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0 1 1 stale',
      },
    },
  },
  BullpenDrainAbandonsTasks: {
    at: '12m',
    labels: MAIL,
    figure: '20 tasks',
    // The worker is killed after a minute, with 20 tasks. It drained all of its pools.
    fires: {
      'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x4 1 stale',
      'bullpen_pool_state{instance="w2", queue="mail", state="SHUTTING_DOWN"}': '0x20',
      'bullpen_queue_tasks_recovered_total{instance="a1", queue="mail"}': '7x5 27x20',
      'bullpen_queue_tasks_recovered_total{instance="a2", queue="mail"}': '7x5 27x20',
    },
    quiet: {
      'the drain requeues all tasks': {
        'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x4 1 stale',
        'bullpen_queue_tasks_recovered_total{queue="mail"}': '7x25',
      },
      'a worker dies, and none drains': {
        'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x20',
        'bullpen_queue_tasks_recovered_total{queue="mail"}': '7x5 27x20',
      },
      'the drain ended long before': {
        series: {
          'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x4 1 stale',
          'bullpen_queue_tasks_recovered_total{queue="mail"}': '7x25 27x20',
        },
        at: '30m',
      },
    },
  },
  BullpenProcessRestarts: {
    at: '14m',
    labels: { instance: 'w1' },
    figure: '3 restarts',
    fires: { [BUILD]: '1x20', [WORKER_STARTED]: '0x4 200x3 400x4 600x10' },
    alsoFires: {
      'it is down at the moment': { [BUILD]: '1x10 stale', [WORKER_STARTED]: '0x3 200x2 400x2 540x0 stale' },
    },
    quiet: {
      'a deploy has restarted it in place': { [BUILD]: '1x20', [WORKER_STARTED]: '0x4 200x15' },
      'it has restarted three times within an hour': {
        series: { [BUILD]: '1x60', [WORKER_STARTED]: '0x10 600x19 1800x19 3000x10' },
        at: '55m',
      },
      'the process is not one of Bullpen': { [WORKER_STARTED]: '0x4 200x3 400x4 600x10' },
    },
  },
  BullpenTasksRecovered: {
    at: '14m',
    labels: MAIL,
    figure: '3 times',
    // Every API process reports the total of the fleet.
    fires: {
      series: {
        'bullpen_queue_tasks_recovered_total{instance="a1", queue="mail"}': '40x4 60x4 61x4 81x10',
        'bullpen_queue_tasks_recovered_total{instance="a2", queue="mail"}': '_x8 61x4 81x10',
      },
      at: '17m',
    },
    quiet: {
      'one worker with many slots has died': { 'bullpen_queue_tasks_recovered_total{queue="mail"}': '0x4 31 50x15' },
      'an API process has just started': { 'bullpen_queue_tasks_recovered_total{queue="mail"}': '_x10 81x10' },
    },
  },
  BullpenStuckHandlers: {
    at: '6m',
    labels: { ...MAIL, instance: 'w1' },
    figure: '1',
    fires: { 'bullpen_stuck_handlers{instance="w1", queue="mail"}': '1x10' },
    quiet: {
      'the handler returns after two minutes': { 'bullpen_stuck_handlers{instance="w1", queue="mail"}': '1 1 0x10' },
    },
  },
  BullpenEventLoopStalled: {
    at: '6m',
    labels: { instance: 'w1', task: 'cpu.slow' },
    figure: '3',
    fires: { 'bullpen_event_loop_stalls_total{instance="w1", task="cpu.slow"}': '_x5 3x10' },
    quiet: { 'a single stall': { 'bullpen_event_loop_stalls_total{instance="w1", task="cpu.slow"}': '_x5 1x10' } },
  },
  BullpenLockThreadFails: {
    at: '6m',
    labels: { instance: 'w1' },
    figure: '3',
    fires: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '0x5 3x10' },
    alsoFires: {
      'the thread could never be started': {
        series: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '_x5 4x10' },
        figure: '4',
      },
    },
    quiet: {
      'the thread was restarted once': { 'bullpen_lock_threads_restarted_total{instance="w1"}': '0x5 1x10' },
      'it was restarted three times within hours': {
        series: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '0x5 1x60 2x60 3x60' },
        at: '130m',
      },
    },
  },
  BullpenClockSkew: {
    at: '11m',
    labels: { instance: 'w1' },
    figure: '800ms',
    fires: { [`bullpen_clock_skew_seconds${WORKER}`]: '-0.8x20' },
    quiet: { 'the clocks agree': { [`bullpen_clock_skew_seconds${WORKER}`]: '-0.01x20' } },
  },
  BullpenRedisUnreachable: {
    at: '2m',
    labels: {},
    fires: { 'bullpen_redis_up{instance="a1"}': '1x10', 'bullpen_redis_up{instance="a2"}': '0x10' },
    alsoFires: {
      'only a worker is cut off': {
        series: {
          'bullpen_redis_up{instance="a1"}': '1x10',
          'bullpen_redis_connections{instance="w1", state="not_ready"}': '0 3x9',
        },
        at: '3m',
      },
    },
    quiet: {
      'every process reaches it': {
        [`bullpen_redis_up${API}`]: '1x10',
        'bullpen_redis_connections{instance="w1", state="not_ready"}': '0x10',
      },
    },
  },
  BullpenRedisSlow: {
    at: '12m',
    labels: {},
    figure: '37.5ms',
    fires: commandSeconds('0.025', '0.05'),
    quiet: {
      'commands take a millisecond': commandSeconds('0.0005', '0.001'),
      'four commands were timed': {
        'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="0.025"}': '0x20',
        'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="0.05"}': '0x3 1x3 2x3 3x3 4x8',
        'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="+Inf"}': '0x3 1x3 2x3 3x3 4x8',
        'bullpen_redis_command_duration_seconds_count{instance="a1"}': '0x3 1x3 2x3 3x3 4x8',
      },
      'only one process of several is slow': {
        ...commandSeconds('0.025', '0.05'),
        'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="0.001"}': '0+500x40',
        'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="0.025"}': '0+500x40',
        'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="0.05"}': '0+500x40',
        'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="+Inf"}': '0+500x40',
      },
    },
  },
  BullpenRedisMemoryHigh: {
    at: '6m',
    labels: {},
    figure: '75%',
    fires: { [`bullpen_redis_memory_used_bytes${API}`]: '75x10', [`bullpen_redis_memory_limit_bytes${API}`]: '100x10' },
    quiet: {
      'half of the memory is used': {
        [`bullpen_redis_memory_used_bytes${API}`]: '50x10',
        [`bullpen_redis_memory_limit_bytes${API}`]: '100x10',
      },
    },
  },
  BullpenRedisRefusesTasks: {
    at: '6m',
    labels: { code: 'redis_full' },
    figure: '1',
    fires: { 'bullpen_enqueues_refused_total{queue="mail", code="redis_full"}': '_x5 1x5' },
    quiet: {
      'the queue is draining': { 'bullpen_enqueues_refused_total{queue="mail", code="queue_draining"}': '_x5 1x5' },
    },
  },
  BullpenRedisLostTasks: {
    at: '50m',
    labels: MAIL,
    figure: '15',
    // Each process counts the tasks that it had acknowledged.
    fires: {
      series: {
        'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x5 12x5',
        'bullpen_redis_lost_tasks_total{queue="mail", instance="a2"}': '0x5 3x5',
        'bullpen_redis_lost_tasks_total{queue="files", instance="a1"}': '0x10',
      },
      at: '7m',
    },
    quiet: {
      'Redis kept every acknowledged task': { 'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x60' },
      'the loss was 30 minutes ago': { 'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x5 12x60' },
      'the processes restart afterwards': {
        'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x5 12x34 0x20',
      },
    },
  },
  BullpenRedisUnsafe: {
    at: '6m',
    labels: { check: 'persistence' },
    fires: { 'bullpen_redis_unsafe{check="persistence"}': '1x10' },
    quiet: { 'only a setting that saves memory differs': { 'bullpen_redis_unsafe{check="listpack"}': '1x10' } },
  },
  BullpenRedisWriteFailed: {
    at: '2m',
    labels: { write: 'aof' },
    fires: { 'bullpen_redis_write_failed{write="aof"}': '1x10' },
    quiet: { 'the next write succeeds': { 'bullpen_redis_write_failed{write="snapshot"}': '1 0x10' } },
  },
  BullpenNoLeader: {
    at: '2m',
    labels: { namespace: 'live' },
    // Another installation has a leader.
    fires: {
      'bullpen_leader{namespace="live", instance="a1"}': '0x10',
      'bullpen_leader{namespace="live", instance="w1"}': '0x10',
      'bullpen_leader{namespace="staging", instance="a2"}': '1x10',
    },
    quiet: {
      'the leader changes': {
        series: { 'bullpen_leader{instance="a1"}': '1 1 0 0', 'bullpen_leader{instance="w1"}': '0 0 1 1' },
        at: '3m',
      },
    },
  },
  BullpenHousekeepingFails: {
    at: '6m',
    labels: { ...MAIL, duty: 'expire' },
    figure: '3',
    fires: { 'bullpen_housekeeping_failures_total{queue="mail", duty="expire"}': '_x5 3x5' },
    quiet: { 'it failed once': { 'bullpen_housekeeping_failures_total{queue="mail", duty="expire"}': '_x5 1x5' } },
  },
  BullpenHttpErrors: {
    at: '12m',
    labels: {},
    figure: '10%',
    fires: {
      'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="202"}': '0+90x20',
      'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="500"}': '0+10x20',
    },
    quiet: {
      'four requests fail, and there are no others': {
        'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="202"}': '0x20',
        'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="500"}': '0x3 1x3 2x3 3x3 4x8',
      },
      'requests are refused with 429': {
        'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="202"}': '0+90x20',
        'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="429"}': '0+10x20',
      },
    },
  },
  BullpenApiMissing: {
    at: '6m',
    labels: { namespace: 'live' },
    // Another installation has an API.
    fires: {
      'bullpen_build_info{namespace="live", instance="w1", role="worker"}': '1x10',
      'bullpen_build_info{namespace="staging", instance="a1", role="api"}': '1x10',
    },
    alsoFires: {
      'its last process is gone': {
        series: {
          'bullpen_build_info{namespace="live", instance="a1", role="api"}': '1x10 stale',
          'bullpen_build_info{namespace="staging", instance="a2", role="api"}': '1x30',
        },
        at: '20m',
      },
      'nothing was ever scraped': { series: { [UP]: '1x10' }, labels: { role: 'api' } },
    },
    quiet: {
      'an API is scraped': { 'bullpen_build_info{role="api"}': '1x10' },
      'the installation was removed': {
        series: {
          'bullpen_build_info{namespace="live", instance="a1", role="api"}': '1x10 stale',
          'bullpen_build_info{namespace="staging", instance="a2", role="api"}': '1x90',
        },
        at: '80m',
      },
    },
  },
  BullpenWorkersMissing: {
    at: '6m',
    labels: {},
    fires: { 'bullpen_build_info{role="api"}': '1x10' },
    alsoFires: {
      'a task is waiting in one of the queues': {
        ...IDLE_API,
        ...waiting('1x10'),
        'bullpen_queue_tasks{queue="files", status="waiting"}': '0x10',
      },
      'every waiting task is blocked, and another one is active': {
        ...IDLE_API,
        ...waiting('5x10'),
        ...active('1x10'),
        ...blocked('5x10'),
      },
      'it is unknown whether the queue with a waiting task is paused': {
        'bullpen_build_info{role="api"}': '1x10',
        ...waiting('1x10'),
        'bullpen_queue_tasks{queue="files", status="waiting"}': '0x10',
        'bullpen_queue_paused{queue="files"}': '0x10',
      },
    },
    quiet: {
      'a worker is scraped': { [BUILD]: '1x10' },
      'the workers are scaled to zero, and no task is waiting': { ...IDLE_API, ...waiting('0x10'), ...active('0x10') },
      'the workers are scaled to zero, and the queue is paused': {
        ...IDLE_API,
        ...waiting('5x10'),
        'bullpen_queue_paused{queue="mail"}': '1x10',
      },
      'the workers are scaled to zero, and every waiting task is blocked': {
        ...IDLE_API,
        ...waiting('5x10'),
        ...active('0x10'),
        ...blocked('5x10'),
      },
      'the workers are scaled to zero, and the queue is drained': {
        ...IDLE_API,
        ...waiting('5x10'),
        [DRAINING]: '1x10',
      },
    },
  },
  BullpenScrapeFails: {
    at: '12m',
    labels: { job: 'bullpen', instance: 'w1' },
    fires: { [UP]: '1x5 0x20', [BUILD]: '1x5 stale' },
    quiet: {
      'the target is not one of Bullpen': { [UP]: '1x5 0x20' },
      'the worker was removed': { [UP]: '1x5 stale', [BUILD]: '1x5 stale' },
    },
  },
  BullpenGaugesMissing: {
    at: '8m',
    labels: { instance: 'api' },
    figure: '3 scrapes',
    fires: { [`bullpen_scrape_failures_total${API}`]: '0x5 3 5 8x5' },
    quiet: {
      'one read failed': { [`bullpen_scrape_failures_total${API}`]: '0x5 1x5' },
      'every read of one scrape failed': { [`bullpen_scrape_failures_total${API}`]: '0x5 28x5' },
    },
  },
}
