// The series for which each alert fires, and those for which it does not. There is a sample per minute, in promtool's notation:
// `0+5x10` is 0, 5, 10, …, 50, and `_x5` is five missing samples.

/** The values of each series, by its name and labels. */
type Series = Readonly<Record<string, string>>

interface Case {
  readonly series: Series
  /** When the alert is looked at. */
  readonly at: `${number}m`
}

export interface Firing extends Case {
  /** The labels of the alert, except its severity. */
  readonly labels: Readonly<Record<string, string>>
  /** The alert's figure as people read it. */
  readonly figure?: string
}

export interface AlertCases {
  /** How often the rule is evaluated. Defaults to every minute, which takes long for windows of hours. */
  readonly evaluatedEvery?: `${number}m`
  readonly fires: Firing
  /** Other cases in which it fires, by what is different. */
  readonly alsoFires?: Readonly<Record<string, Firing>>
  /** Cases in which the alert does not fire, by what is different. */
  readonly quiet: Readonly<Record<string, Case>>
}

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
    fires: { series: { ...waiting('5x30'), ...slots('0x30', '4x30') }, at: '12m', labels: MAIL, figure: '5 waiting' },
    alsoFires: {
      'the queue is full, too': {
        series: { ...waiting('90x30'), ...slots('3x30', '4x30'), 'bullpen_blocked_requests{queue="mail"}': '2x30' },
        at: '12m',
        labels: MAIL,
        figure: '90 waiting',
      },
      'some tasks are blocked, but others could start': {
        series: { ...waiting('5x30'), ...blocked('4x30'), ...slots('1x30', '4x30') },
        at: '12m',
        labels: MAIL,
        figure: '5 waiting',
      },
      'one worker is paused, and another one has free slots': {
        series: { ...waiting('5x30'), ...pool('w1', '0x30', '4x30', '1x30'), ...pool('w2', '1x30', '4x30', '0x30') },
        at: '12m',
        labels: MAIL,
        figure: '5 waiting',
      },
    },
    quiet: {
      'every waiting task is blocked by a limit': {
        series: { ...waiting('5x30'), ...blocked('5x30'), ...slots('1x30', '4x30') },
        at: '12m',
      },
      'the queue was drained by command': {
        series: { ...waiting('5x30'), ...slots('0x30', '4x30'), [DRAINING]: '1x30' },
        at: '12m',
      },
      'every pool is paused': {
        series: { ...waiting('5x30'), ...pool('w1', '0x30', '4x30', '1x30'), ...pool('w2', '1x30', '4x30', '1x30') },
        at: '12m',
      },
      'only paused pools have free slots': {
        series: { ...waiting('5x30'), ...pool('w1', '0x30', '4x30', '1x30'), ...pool('w2', '4x30', '4x30', '0x30') },
        at: '12m',
      },
      'tasks start': { series: { ...waiting('5x30'), ...slots('2x30', '4x30'), [STARTED]: '0+10x30' }, at: '12m' },
      'the first task has just started': {
        series: { ...waiting('5x30'), ...slots('1x30', '4x30'), [STARTED]: '_x10 1x20' },
        at: '12m',
      },
      'every slot is busy': { series: { ...waiting('5x30'), ...slots('4x30', '4x30') }, at: '12m' },
      'the queue is paused': {
        series: { ...waiting('5x30'), ...slots('0x30', '4x30'), 'bullpen_queue_paused{queue="mail"}': '1x30' },
        at: '12m',
      },
      'workers do not keep up, and producers are slowed down': {
        series: { ...waiting('90x40'), ...enqueueSeconds('1', '2.5'), ...slots('3x40', '4x40'), [STARTED]: '0+10x40' },
        at: '12m',
      },
      'the queue is full, and every slot is busy': {
        series: { ...waiting('90x30'), ...slots('4x30', '4x30'), 'bullpen_blocked_requests{queue="mail"}': '2x30' },
        at: '12m',
      },
      'no worker of the queue is scraped, so that its slots are unknown': {
        series: { ...waiting('5x30'), ...active('2x30') },
        at: '12m',
      },
      'no task is waiting': { series: { ...waiting('0x30'), ...slots('0x30', '4x30') }, at: '12m' },
      'tasks have been waiting for three minutes': {
        series: { ...waiting('0x9 5x20'), ...slots('0x30', '4x30') },
        at: '12m',
      },
    },
  },
  BullpenQueueUnserved: {
    // The worker that is scraped serves another queue.
    fires: {
      series: { ...waiting('5x30'), ...active('0x30'), 'bullpen_pool_slots{queue="files"}': '4x30' },
      at: '6m',
      labels: MAIL,
      figure: '5 waiting',
    },
    alsoFires: {
      'some tasks are blocked, but others could start': {
        series: { ...waiting('5x30'), ...blocked('4x30') },
        at: '12m',
        labels: MAIL,
        figure: '5 waiting',
      },
      'its last worker is gone': {
        series: { ...waiting('5x30'), ...slots('0x5 stale', '4x5 stale') },
        at: '12m',
        labels: MAIL,
        figure: '5 waiting',
      },
    },
    quiet: {
      'every slot is busy': { series: { ...waiting('5x30'), ...slots('4x30', '4x30') }, at: '12m' },
      'workers that are not scraped run tasks': { series: { ...waiting('5x30'), ...active('2x30') }, at: '12m' },
      'the queue is paused': {
        series: { ...waiting('5x30'), 'bullpen_queue_paused{queue="mail"}': '1x30' },
        at: '12m',
      },
      'the queue was drained by command, so that no pool has slots': {
        series: { ...waiting('5x30'), ...slots('0x30', '0x30'), [DRAINING]: '1x30' },
        at: '12m',
      },
      'every pool is paused': { series: { ...waiting('5x30'), ...pool('w1', '0x30', '4x30', '1x30') }, at: '12m' },
      'every waiting task is blocked, so that an autoscaler has removed the workers': {
        series: { ...waiting('5x30'), ...blocked('5x30') },
        at: '12m',
      },
      'no task is waiting': { series: waiting('0x30'), at: '12m' },
    },
  },
  // The backlog grows and enqueueing is slow: backpressure. If only the backlog grows, the queue is stuck.
  BullpenBackpressure: {
    fires: {
      series: { ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5'), [STARTED]: '0+10x40' },
      at: '12m',
      labels: MAIL,
    },
    alsoFires: {
      'every slot is busy with a task that takes an hour': {
        series: { ...waiting('90x40'), ...slots('4x40', '4x40'), 'bullpen_blocked_requests{queue="mail"}': '2x40' },
        at: '12m',
        labels: MAIL,
      },
    },
    quiet: {
      'only the backlog grows': {
        series: { ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('0.001', '0.005'), [STARTED]: '0+10x40' },
        at: '12m',
      },
      'enqueueing is slow, but the queue is not full': {
        series: { ...waiting('5x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5'), [STARTED]: '0+10x40' },
        at: '12m',
      },
      'the queue is stuck': {
        series: {
          ...{ ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5') },
          ...{ ...slots('3x40', '4x40'), [STARTED]: '7x40' },
        },
        at: '12m',
      },
      'an API key has reached its rate': {
        series: {
          'bullpen_tasks_refused_total{queue="mail", task="receipt.send", limit="enqueueRate", action="rejected"}':
            '0+9x40',
          [STARTED]: '0+10x40',
        },
        at: '12m',
      },
    },
  },
  BullpenQueueNearlyFull: {
    fires: {
      series: {
        ...waiting('10x10'),
        ...limit('100x10'),
        'bullpen_queue_bytes{queue="mail"}': '81x10',
        'bullpen_queue_limit_bytes{queue="mail"}': '100x10',
      },
      at: '6m',
      labels: MAIL,
      figure: '81%',
    },
    quiet: { 'three quarters are used': { series: { ...waiting('75x10'), ...limit('100x10') }, at: '6m' } },
  },
  BullpenEnqueueSlow: {
    fires: { series: { ...waiting('5x40'), ...enqueueSeconds('1', '2.5') }, at: '12m', labels: MAIL, figure: '2.485s' },
    quiet: {
      'the queue is full': {
        series: { ...waiting('90x40'), ...limit('100x40'), ...enqueueSeconds('1', '2.5') },
        at: '12m',
      },
      'enqueueing takes milliseconds': { series: enqueueSeconds('0.001', '0.005'), at: '12m' },
      'four enqueues are slow, and there are no others': {
        series: {
          'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="1"}': '0x20',
          'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="2.5"}': '0x3 1x3 2x3 3x3 4x8',
          'bullpen_enqueue_duration_seconds_bucket{queue="mail", le="+Inf"}': '0x3 1x3 2x3 3x3 4x8',
          'bullpen_enqueue_duration_seconds_count{queue="mail"}': '0x3 1x3 2x3 3x3 4x8',
        },
        at: '12m',
      },
    },
  },
  BullpenOldestTaskWaits: {
    fires: { series: ages('301+60x10', '301+60x10'), at: '6m', labels: MAIL, figure: '11m 1s' },
    quiet: {
      'each task waits for four minutes': { series: ages('240x10', '240x10'), at: '6m' },
      'only blocked tasks wait for longer': { series: ages('3000x10', '0x10'), at: '6m' },
      'the queue is paused': {
        series: { ...ages('301+60x10', '301+60x10'), 'bullpen_queue_paused{queue="mail"}': '1x10' },
        at: '6m',
      },
    },
  },
  BullpenQueueLimited: {
    fires: { series: oldestBlocked('901+60x20'), at: '6m', labels: MAIL, figure: '21m 1s' },
    alsoFires: {
      'another task, which could start, is older': {
        series: { ...ages('2000+60x20', '2000+60x20'), ...oldestBlocked('901+60x20') },
        at: '6m',
        labels: MAIL,
        figure: '21m 1s',
      },
    },
    quiet: {
      'every task waits for its turn, and the oldest one is not the next': {
        series: { ...ages('901+60x20', '3x20'), ...blocked('0x20'), ...oldestBlocked('0x20') },
        at: '6m',
      },
      'an old task with a lower priority waits, and others have just been blocked': {
        series: { ...ages('901+60x20', '3x20'), ...blocked('2x20'), ...oldestBlocked('5x20') },
        at: '6m',
      },
      'the oldest blocked task has been waiting for ten minutes': { series: oldestBlocked('600x20'), at: '6m' },
      'the queue is paused': {
        series: { ...oldestBlocked('901+60x20'), 'bullpen_queue_paused{queue="mail"}': '1x20' },
        at: '6m',
      },
      'the queue was drained by command': { series: { ...oldestBlocked('901+60x20'), [DRAINING]: '1x20' }, at: '6m' },
      'a circuit breaker is open, which has an alert of its own': {
        series: {
          ...oldestBlocked('901+60x20'),
          'bullpen_breaker_state{queue="mail",service="smtp",state="open"}': '1x20',
        },
        at: '6m',
      },
    },
  },
  BullpenBreakerOpen: {
    fires: {
      series: {
        'bullpen_breaker_state{queue="mail",service="smtp",state="open"}': '1 1 0 1x8',
        'bullpen_breaker_state{queue="mail",service="smtp",state="half_open"}': '0 0 1 0x8',
      },
      at: '6m',
      labels: { ...MAIL, service: 'smtp' },
    },
    quiet: {
      'the breaker has closed again': {
        series: { 'bullpen_breaker_state{queue="mail",service="smtp",state="open"}': '1x3 0x8' },
        at: '6m',
      },
    },
  },
  BullpenQueuePaused: {
    fires: {
      series: { ...waiting('5x70'), 'bullpen_queue_paused{queue="mail"}': '1x70' },
      at: '61m',
      labels: MAIL,
      figure: '5 waiting',
    },
    alsoFires: {
      'the queue was drained by command': {
        series: { ...waiting('5x70'), ...slots('0x70', '0x70'), [DRAINING]: '1x70' },
        at: '61m',
        labels: MAIL,
        figure: '5 waiting',
      },
      'every pool is paused': {
        series: { ...waiting('5x70'), ...pool('w1', '0x70', '4x70', '1x70') },
        at: '61m',
        labels: MAIL,
        figure: '5 waiting',
      },
    },
    quiet: {
      'one pool of two is paused': {
        series: { ...waiting('5x70'), ...pool('w1', '0x70', '4x70', '1x70'), ...pool('w2', '4x70', '4x70', '0x70') },
        at: '61m',
      },
      'no task is waiting': {
        series: { ...waiting('0x70'), 'bullpen_queue_paused{queue="mail"}': '1x70' },
        at: '61m',
      },
    },
  },
  BullpenScheduleInTrouble: {
    fires: {
      series: { 'bullpen_troubled_schedules{queue="mail", trouble="missed"}': '1x20' },
      at: '6m',
      labels: { ...MAIL, trouble: 'missed' },
    },
    quiet: {
      'every schedule is well': {
        series: { 'bullpen_troubled_schedules{queue="mail", trouble="missed"}': '0x20' },
        at: '6m',
      },
    },
  },
  BullpenSloBurnsFast: {
    evaluatedEvery: '5m',
    // 14.4 times the 20% that may be late are more than all tasks.
    fires: { series: slo('0.8x90', '0+100x90', '0+95x90'), at: '80m', labels: RECEIPTS, figure: '95% late' },
    quiet: {
      'a tenth is late': { series: slo('0.99x90', '0+100x90', '0+10x90'), at: '80m' },
      'tasks start in time again': { series: slo('0.99x90', '0+100x90', '0+100x60 6000x30'), at: '80m' },
      'tasks have been late for a few minutes': { series: slo('0.99x90', '0+100x90', '0x70 0+100x20'), at: '75m' },
      'nine tasks of a rare kind are late': { series: slo('0.99x90', '0x70 1+1x8 9x9', '0x70 1+1x8 9x9'), at: '80m' },
    },
  },
  BullpenSloBurnsSlowly: {
    evaluatedEvery: '10m',
    // More than 6 times the 1% that may be late.
    fires: { series: slo('0.99x400', '0+100x400', '0+7x400'), at: '380m', labels: RECEIPTS, figure: '7% late' },
    quiet: {
      'one in twenty is late': { series: slo('0.99x400', '0+100x400', '0+5x400'), at: '380m' },
      'tasks start in time again': { series: slo('0.99x400', '0+100x400', '0+7x340 2380x60'), at: '380m' },
      'the objective is lower': { series: slo('0.98x400', '0+100x400', '0+7x400'), at: '380m' },
      'four tasks of a rare kind are late': {
        series: slo('0.99x400', '0x370 1+1x3 4x9', '0x370 1+1x3 4x9'),
        at: '380m',
      },
    },
  },
  BullpenOutboxDelayed: {
    fires: {
      series: { 'bullpen_outbox_oldest_seconds{queue="mail"}': '301x5' },
      at: '1m',
      labels: MAIL,
      figure: '5m 1s',
    },
    quiet: {
      'entries are forwarded in time': { series: { 'bullpen_outbox_oldest_seconds{queue="mail"}': '3x5' }, at: '1m' },
    },
  },
  BullpenUnaccountedTasks: {
    fires: { series: { 'bullpen_unaccounted_tasks{queue="mail"}': '-2x20' }, at: '16m', labels: MAIL, figure: '2' },
    quiet: {
      'the leader has corrected it': { series: { 'bullpen_unaccounted_tasks{queue="mail"}': '2x5 0x15' }, at: '16m' },
    },
  },
  BullpenUnattachedWorkers: {
    fires: { series: { 'bullpen_unattached_workers{queue="mail"}': '2x20' }, at: '6m', labels: MAIL, figure: '2' },
    quiet: {
      'the Workers have gone': { series: { 'bullpen_unattached_workers{queue="mail"}': '2x3 0x15' }, at: '6m' },
    },
  },
  BullpenAttemptsFail: {
    fires: {
      series: { [FAILED]: '0+30x40', [ENDED]: '0+100x40' },
      at: '25m',
      labels: { ...MAIL, task: 'receipt.send' },
      figure: '30%',
    },
    quiet: {
      'a tenth fails': { series: { [FAILED]: '0+10x40', [ENDED]: '0+100x40' }, at: '25m' },
      'all four attempts of a rare task fail': {
        series: { [FAILED]: '0x10 1x3 2x3 3x3 4x30', [FAILED_ENDS]: '0x10 1x3 2x3 3x3 4x30' },
        at: '25m',
      },
    },
  },
  BullpenAttemptsSlower: {
    evaluatedEvery: '5m',
    fires: { series: attemptSeconds(['0.5', '1', '2.5', '5']), at: '1530m', labels: RECEIPTS, figure: '4.975s' },
    quiet: {
      'attempts have been slower for half an hour': {
        series: attemptSeconds(['0.5', '1', '2.5', '5']),
        at: '1445m',
      },
      'they take little longer': { series: attemptSeconds(['0.5', '1', '1', '2']), at: '1530m' },
      'they take milliseconds': { series: attemptSeconds(['0.005', '0.01', '0.025', '0.05']), at: '1530m' },
      'there are few of them': { series: attemptSeconds(['0.5', '1', '2.5', '5'], 1), at: '1530m' },
      'there were none the day before': {
        series: Object.fromEntries(
          Object.entries(attemptSeconds(['0.5', '1', '2.5', '5'])).map(([name, values]) => [
            name,
            values.includes('0+') && !values.includes(' ') ? '_x1440 0+10x160' : '_x1440 0x160',
          ]),
        ),
        at: '1530m',
      },
    },
  },
  BullpenDeadTasksGrow: {
    // The series appears with the first dead task.
    fires: {
      series: { 'bullpen_tasks_dead_total{queue="mail", task="receipt.send"}': '_x10 10x30' },
      at: '12m',
      labels: MAIL,
      figure: '10',
    },
    alsoFires: {
      'the process has been scraped for long': {
        series: { [DEAD_ON_WORKER]: '_x28 12x30', [WORKER_STARTED]: '-7200+0x60' },
        at: '30m',
        labels: MAIL,
        figure: '12',
      },
      'the process has just started': {
        series: { [DEAD_ON_WORKER]: '_x10 12x30', [WORKER_STARTED]: '_x10 600x30' },
        at: '12m',
        labels: MAIL,
        figure: '12',
      },
    },
    quiet: {
      'Prometheus has just begun to scrape an older process': {
        series: { [DEAD_ON_WORKER]: '_x10 500x30', [WORKER_STARTED]: '_x10 -7200+0x30' },
        at: '12m',
      },
      'Prometheus was down for longer than the window': {
        series: { [DEAD_ON_WORKER]: '500x10 _x30 500x30', [WORKER_STARTED]: '-7200+0x10 _x30 -7200+0x30' },
        at: '42m',
      },
      'nine are dead': {
        series: { 'bullpen_tasks_dead_total{queue="mail", task="receipt.send"}': '_x10 9x30' },
        at: '12m',
      },
      'they have been dead for long': {
        series: { 'bullpen_tasks_dead_total{queue="mail", task="receipt.send"}': '500x40' },
        at: '35m',
      },
    },
  },
  BullpenPoisonTask: {
    fires: {
      series: { 'bullpen_tasks_dead_by_code_total{queue="mail", code="poison"}': '_x10 1x10' },
      at: '12m',
      labels: MAIL,
    },
    quiet: {
      'tasks are dead with another code': {
        series: { 'bullpen_tasks_dead_by_code_total{queue="mail", code="card_declined"}': '_x10 1x10' },
        at: '12m',
      },
    },
  },
  BullpenResultsDropped: {
    fires: {
      series: { 'bullpen_commits_refused_total{queue="mail", task="receipt.send", reason="lock_lost"}': '_x10 5x10' },
      at: '12m',
      labels: MAIL,
      figure: '5',
    },
    quiet: {
      'a single result was dropped': {
        series: { 'bullpen_commits_refused_total{queue="mail", task="receipt.send", reason="lock_lost"}': '_x10 1x10' },
        at: '12m',
      },
    },
  },
  BullpenSlotsSaturated: {
    fires: { series: slots('4x40', '4x40'), at: '25m', labels: MAIL, figure: '100%' },
    quiet: { 'a quarter of the slots is idle': { series: slots('3x40', '4x40'), at: '25m' } },
  },
  BullpenSlotsIdle: {
    fires: { series: { ...slots('1x90', '20x90'), [STARTED]: '0+1x90' }, at: '70m', labels: MAIL, figure: '5%' },
    alsoFires: {
      'the queue was used before, and no task has started for an hour': {
        series: { ...slots('0x90', '20x90'), [STARTED]: '3x90' },
        at: '70m',
        labels: MAIL,
        figure: '0%',
      },
    },
    quiet: {
      'a fifth of the slots is busy': { series: { ...slots('4x90', '20x90'), [STARTED]: '0+1x90' }, at: '70m' },
      'the workers have been scraped for 45 minutes': {
        series: { ...slots('1x90', '20x90'), [STARTED]: '0+1x90' },
        at: '45m',
      },
      'no task has ever started': { series: { ...slots('0x90', '20x90'), [STARTED]: '0x90' }, at: '70m' },
    },
  },
  BullpenDrainOverrun: {
    alsoFires: {
      'its time limit was a minute': {
        series: {
          'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '1x10',
          'bullpen_drain_deadline_timestamp_seconds{instance="w1", queue="mail"}': '60x10',
        },
        at: '8m',
        labels: { ...MAIL, instance: 'w1' },
      },
    },
    fires: {
      series: { 'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '1x10' },
      at: '6m',
      labels: { ...MAIL, instance: 'w1' },
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
        series: { 'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0 1 1 stale' },
        at: '6m',
      },
    },
  },
  BullpenDrainAbandonsTasks: {
    // The worker is killed after a minute, with 20 tasks. It drained all of its pools.
    fires: {
      series: {
        'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x4 1 stale',
        'bullpen_pool_state{instance="w2", queue="mail", state="SHUTTING_DOWN"}': '0x20',
        'bullpen_queue_tasks_recovered_total{instance="a1", queue="mail"}': '7x5 27x20',
        'bullpen_queue_tasks_recovered_total{instance="a2", queue="mail"}': '7x5 27x20',
      },
      at: '12m',
      labels: MAIL,
      figure: '20 tasks',
    },
    quiet: {
      'the drain requeues all tasks': {
        series: {
          'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x4 1 stale',
          'bullpen_queue_tasks_recovered_total{queue="mail"}': '7x25',
        },
        at: '12m',
      },
      'a worker dies, and none drains': {
        series: {
          'bullpen_pool_state{instance="w1", queue="mail", state="SHUTTING_DOWN"}': '0x20',
          'bullpen_queue_tasks_recovered_total{queue="mail"}': '7x5 27x20',
        },
        at: '12m',
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
    fires: {
      series: { [BUILD]: '1x20', [WORKER_STARTED]: '0x4 200x3 400x4 600x10' },
      at: '14m',
      labels: { instance: 'w1' },
      figure: '3 restarts',
    },
    alsoFires: {
      'it is down at the moment': {
        series: { [BUILD]: '1x10 stale', [WORKER_STARTED]: '0x3 200x2 400x2 540x0 stale' },
        at: '14m',
        labels: { instance: 'w1' },
        figure: '3 restarts',
      },
    },
    quiet: {
      'a deploy has restarted it in place': {
        series: { [BUILD]: '1x20', [WORKER_STARTED]: '0x4 200x15' },
        at: '14m',
      },
      'it has restarted three times within an hour': {
        series: { [BUILD]: '1x60', [WORKER_STARTED]: '0x10 600x19 1800x19 3000x10' },
        at: '55m',
      },
      'the process is not one of Bullpen': {
        series: { [WORKER_STARTED]: '0x4 200x3 400x4 600x10' },
        at: '14m',
      },
    },
  },
  BullpenTasksRecovered: {
    // Every API process reports the total of the fleet.
    fires: {
      series: {
        'bullpen_queue_tasks_recovered_total{instance="a1", queue="mail"}': '40x4 60x4 61x4 81x10',
        'bullpen_queue_tasks_recovered_total{instance="a2", queue="mail"}': '_x8 61x4 81x10',
      },
      at: '17m',
      labels: MAIL,
      figure: '3 times',
    },
    quiet: {
      'one worker with many slots has died': {
        series: { 'bullpen_queue_tasks_recovered_total{queue="mail"}': '0x4 31 50x15' },
        at: '14m',
      },
      'an API process has just started': {
        series: { 'bullpen_queue_tasks_recovered_total{queue="mail"}': '_x10 81x10' },
        at: '14m',
      },
    },
  },
  BullpenStuckHandlers: {
    fires: {
      series: { 'bullpen_stuck_handlers{instance="w1", queue="mail"}': '1x10' },
      at: '6m',
      labels: { ...MAIL, instance: 'w1' },
      figure: '1',
    },
    quiet: {
      'the handler returns after two minutes': {
        series: { 'bullpen_stuck_handlers{instance="w1", queue="mail"}': '1 1 0x10' },
        at: '6m',
      },
    },
  },
  BullpenEventLoopStalled: {
    fires: {
      series: { 'bullpen_event_loop_stalls_total{instance="w1", task="cpu.slow"}': '_x5 3x10' },
      at: '6m',
      labels: { instance: 'w1', task: 'cpu.slow' },
      figure: '3',
    },
    quiet: {
      'a single stall': {
        series: { 'bullpen_event_loop_stalls_total{instance="w1", task="cpu.slow"}': '_x5 1x10' },
        at: '6m',
      },
    },
  },
  BullpenLockThreadFails: {
    fires: {
      series: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '0x5 3x10' },
      at: '6m',
      labels: { instance: 'w1' },
      figure: '3',
    },
    alsoFires: {
      'the thread could never be started': {
        series: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '_x5 4x10' },
        at: '6m',
        labels: { instance: 'w1' },
        figure: '4',
      },
    },
    quiet: {
      'the thread was restarted once': {
        series: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '0x5 1x10' },
        at: '6m',
      },
      'it was restarted three times within hours': {
        series: { 'bullpen_lock_threads_restarted_total{instance="w1"}': '0x5 1x60 2x60 3x60' },
        at: '130m',
      },
    },
  },
  BullpenClockSkew: {
    fires: {
      series: { [`bullpen_clock_skew_seconds${WORKER}`]: '-0.8x20' },
      at: '11m',
      labels: { instance: 'w1' },
      figure: '800ms',
    },
    quiet: { 'the clocks agree': { series: { [`bullpen_clock_skew_seconds${WORKER}`]: '-0.01x20' }, at: '11m' } },
  },
  BullpenRedisUnreachable: {
    fires: {
      series: { 'bullpen_redis_up{instance="a1"}': '1x10', 'bullpen_redis_up{instance="a2"}': '0x10' },
      at: '2m',
      labels: {},
    },
    alsoFires: {
      'only a worker is cut off': {
        series: {
          'bullpen_redis_up{instance="a1"}': '1x10',
          'bullpen_redis_connections{instance="w1", state="not_ready"}': '0 3x9',
        },
        at: '3m',
        labels: {},
      },
    },
    quiet: {
      'every process reaches it': {
        series: {
          [`bullpen_redis_up${API}`]: '1x10',
          'bullpen_redis_connections{instance="w1", state="not_ready"}': '0x10',
        },
        at: '2m',
      },
    },
  },
  BullpenRedisSlow: {
    fires: { series: commandSeconds('0.025', '0.05'), at: '12m', labels: {}, figure: '37.5ms' },
    quiet: {
      'commands take a millisecond': { series: commandSeconds('0.0005', '0.001'), at: '12m' },
      'four commands were timed': {
        series: {
          'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="0.025"}': '0x20',
          'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="0.05"}': '0x3 1x3 2x3 3x3 4x8',
          'bullpen_redis_command_duration_seconds_bucket{instance="a1", le="+Inf"}': '0x3 1x3 2x3 3x3 4x8',
          'bullpen_redis_command_duration_seconds_count{instance="a1"}': '0x3 1x3 2x3 3x3 4x8',
        },
        at: '12m',
      },
      'only one process of several is slow': {
        series: {
          ...commandSeconds('0.025', '0.05'),
          'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="0.001"}': '0+500x40',
          'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="0.025"}': '0+500x40',
          'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="0.05"}': '0+500x40',
          'bullpen_redis_command_duration_seconds_bucket{instance="a2", le="+Inf"}': '0+500x40',
        },
        at: '12m',
      },
    },
  },
  BullpenRedisMemoryHigh: {
    fires: {
      series: {
        [`bullpen_redis_memory_used_bytes${API}`]: '75x10',
        [`bullpen_redis_memory_limit_bytes${API}`]: '100x10',
      },
      at: '6m',
      labels: {},
      figure: '75%',
    },
    quiet: {
      'half of the memory is used': {
        series: {
          [`bullpen_redis_memory_used_bytes${API}`]: '50x10',
          [`bullpen_redis_memory_limit_bytes${API}`]: '100x10',
        },
        at: '6m',
      },
    },
  },
  BullpenRedisRefusesTasks: {
    fires: {
      series: { 'bullpen_enqueues_refused_total{queue="mail", code="redis_full"}': '_x5 1x5' },
      at: '6m',
      labels: { code: 'redis_full' },
      figure: '1',
    },
    quiet: {
      'the queue is draining': {
        series: { 'bullpen_enqueues_refused_total{queue="mail", code="queue_draining"}': '_x5 1x5' },
        at: '6m',
      },
    },
  },
  BullpenRedisLostTasks: {
    // Each process counts the tasks that it had acknowledged.
    fires: {
      series: {
        'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x5 12x5',
        'bullpen_redis_lost_tasks_total{queue="mail", instance="a2"}': '0x5 3x5',
        'bullpen_redis_lost_tasks_total{queue="files", instance="a1"}': '0x10',
      },
      at: '7m',
      labels: MAIL,
      figure: '15',
    },
    quiet: {
      'Redis kept every acknowledged task': {
        series: { 'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x60' },
        at: '50m',
      },
      'the loss was 30 minutes ago': {
        series: { 'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x5 12x60' },
        at: '50m',
      },
      'the processes restart afterwards': {
        series: { 'bullpen_redis_lost_tasks_total{queue="mail", instance="a1"}': '0x5 12x34 0x20' },
        at: '50m',
      },
    },
  },
  BullpenRedisUnsafe: {
    fires: {
      series: { 'bullpen_redis_unsafe{check="persistence"}': '1x10' },
      at: '6m',
      labels: { check: 'persistence' },
    },
    quiet: {
      'only a setting that saves memory differs': {
        series: { 'bullpen_redis_unsafe{check="listpack"}': '1x10' },
        at: '6m',
      },
    },
  },
  BullpenRedisWriteFailed: {
    fires: {
      series: { 'bullpen_redis_write_failed{write="aof"}': '1x10' },
      at: '2m',
      labels: { write: 'aof' },
    },
    quiet: {
      'the next write succeeds': {
        series: { 'bullpen_redis_write_failed{write="snapshot"}': '1 0x10' },
        at: '2m',
      },
    },
  },
  BullpenNoLeader: {
    // Another installation has a leader.
    fires: {
      series: {
        'bullpen_leader{namespace="live", instance="a1"}': '0x10',
        'bullpen_leader{namespace="live", instance="w1"}': '0x10',
        'bullpen_leader{namespace="staging", instance="a2"}': '1x10',
      },
      at: '2m',
      labels: { namespace: 'live' },
    },
    quiet: {
      'the leader changes': {
        series: { 'bullpen_leader{instance="a1"}': '1 1 0 0', 'bullpen_leader{instance="w1"}': '0 0 1 1' },
        at: '3m',
      },
    },
  },
  BullpenHousekeepingFails: {
    fires: {
      series: { 'bullpen_housekeeping_failures_total{queue="mail", duty="expire"}': '_x5 3x5' },
      at: '6m',
      labels: { ...MAIL, duty: 'expire' },
      figure: '3',
    },
    quiet: {
      'it failed once': {
        series: { 'bullpen_housekeeping_failures_total{queue="mail", duty="expire"}': '_x5 1x5' },
        at: '6m',
      },
    },
  },
  BullpenHttpErrors: {
    fires: {
      series: {
        'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="202"}': '0+90x20',
        'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="500"}': '0+10x20',
      },
      at: '12m',
      labels: {},
      figure: '10%',
    },
    quiet: {
      'four requests fail, and there are no others': {
        series: {
          'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="202"}': '0x20',
          'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="500"}': '0x3 1x3 2x3 3x3 4x8',
        },
        at: '12m',
      },
      'requests are refused with 429': {
        series: {
          'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="202"}': '0+90x20',
          'bullpen_http_requests_total{method="POST", route="/v1/tasks", status="429"}': '0+10x20',
        },
        at: '12m',
      },
    },
  },
  BullpenApiMissing: {
    // Another installation has an API.
    fires: {
      series: {
        'bullpen_build_info{namespace="live", instance="w1", role="worker"}': '1x10',
        'bullpen_build_info{namespace="staging", instance="a1", role="api"}': '1x10',
      },
      at: '6m',
      labels: { namespace: 'live' },
    },
    alsoFires: {
      'its last process is gone': {
        series: {
          'bullpen_build_info{namespace="live", instance="a1", role="api"}': '1x10 stale',
          'bullpen_build_info{namespace="staging", instance="a2", role="api"}': '1x30',
        },
        at: '20m',
        labels: { namespace: 'live' },
      },
      'nothing was ever scraped': { series: { [UP]: '1x10' }, at: '6m', labels: { role: 'api' } },
    },
    quiet: {
      'an API is scraped': { series: { 'bullpen_build_info{role="api"}': '1x10' }, at: '6m' },
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
    fires: { series: { 'bullpen_build_info{role="api"}': '1x10' }, at: '6m', labels: {} },
    alsoFires: {
      'a task is waiting in one of the queues': {
        series: { ...IDLE_API, ...waiting('1x10'), 'bullpen_queue_tasks{queue="files", status="waiting"}': '0x10' },
        at: '6m',
        labels: {},
      },
      'every waiting task is blocked, and another one is active': {
        series: { ...IDLE_API, ...waiting('5x10'), ...active('1x10'), ...blocked('5x10') },
        at: '6m',
        labels: {},
      },
      'it is unknown whether the queue with a waiting task is paused': {
        series: {
          'bullpen_build_info{role="api"}': '1x10',
          ...waiting('1x10'),
          'bullpen_queue_tasks{queue="files", status="waiting"}': '0x10',
          'bullpen_queue_paused{queue="files"}': '0x10',
        },
        at: '6m',
        labels: {},
      },
    },
    quiet: {
      'a worker is scraped': { series: { [BUILD]: '1x10' }, at: '6m' },
      'the workers are scaled to zero, and no task is waiting': {
        series: { ...IDLE_API, ...waiting('0x10'), ...active('0x10') },
        at: '6m',
      },
      'the workers are scaled to zero, and the queue is paused': {
        series: { ...IDLE_API, ...waiting('5x10'), 'bullpen_queue_paused{queue="mail"}': '1x10' },
        at: '6m',
      },
      'the workers are scaled to zero, and every waiting task is blocked': {
        series: { ...IDLE_API, ...waiting('5x10'), ...active('0x10'), ...blocked('5x10') },
        at: '6m',
      },
      'the workers are scaled to zero, and the queue is drained': {
        series: { ...IDLE_API, ...waiting('5x10'), [DRAINING]: '1x10' },
        at: '6m',
      },
    },
  },
  BullpenScrapeFails: {
    fires: {
      series: { [UP]: '1x5 0x20', [BUILD]: '1x5 stale' },
      at: '12m',
      labels: { job: 'bullpen', instance: 'w1' },
    },
    quiet: {
      'the target is not one of Bullpen': { series: { [UP]: '1x5 0x20' }, at: '12m' },
      'the worker was removed': { series: { [UP]: '1x5 stale', [BUILD]: '1x5 stale' }, at: '12m' },
    },
  },
  BullpenGaugesMissing: {
    fires: {
      series: { [`bullpen_scrape_failures_total${API}`]: '0x5 3 5 8x5' },
      at: '8m',
      labels: { instance: 'api' },
      figure: '3 scrapes',
    },
    quiet: {
      'one read failed': { series: { [`bullpen_scrape_failures_total${API}`]: '0x5 1x5' }, at: '8m' },
      'every read of one scrape failed': { series: { [`bullpen_scrape_failures_total${API}`]: '0x5 28x5' }, at: '8m' },
    },
  },
}
