// Examines the queues that have reached a limit, and says why their tasks do not make room.
import type { DiagnosisFacts, QueueFacts } from './facts.ts'
import { causeOfBlock, ofEach, poolsOf, startLimits } from './queue-checks.ts'

/** Why a full queue stays full, and what to do. */
interface Cause {
  readonly why: string
  readonly advice: string
}

export const fullQueues = ofEach((queue, facts) => {
  const { maxTasks, maxBytes, bytes } = queue
  const length = lengthOf(queue)
  const reached = [
    ...(maxTasks !== undefined && length >= maxTasks ? [`${length} of at most ${maxTasks} tasks`] : []),
    ...(maxBytes !== undefined && bytes >= maxBytes ? [`${bytes} of at most ${maxBytes} bytes`] : []),
  ]
  const cause = causeOf(queue, facts)
  return reached.map((limit) => ({
    severity: 'error',
    problem: `${queue.queue} is full: it has ${limit}${cause === undefined ? '' : `, and ${cause.why}`}`,
    ...(cause && { advice: cause.advice }),
  }))
})

function lengthOf({ tasks: { waiting, scheduled, retrying } }: QueueFacts): number {
  return waiting + scheduled + retrying
}

/** Returns the first cause that applies. Without workers that could run more tasks, limits of starts do not matter. */
function causeOf(queue: QueueFacts, facts: DiagnosisFacts): Cause | undefined {
  const { queue: name, settings, tasks, oldestBlocked } = queue
  if (settings.paused || settings.drain !== undefined) {
    const why = `is ${settings.drain === undefined ? 'paused' : 'draining'}`
    return {
      why: `it ${why}`,
      advice: `see the finding paused_queues; more workers do not help while the queue ${why}`,
    }
  }
  if (2 * tasks.waiting < lengthOf(queue)) {
    const advice = `'bullpen list --queue ${name} --status ${tasks.retrying > tasks.scheduled ? 'retrying' : 'scheduled'}' shows them; they count towards the limit until they start: raise the limit with 'bullpen limit', or shorten their delays`
    return { why: 'most of its tasks are not due yet', advice }
  }
  const pools = poolsOf(queue, facts)
  const slots = pools.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const busy = pools.reduce((sum, pool) => sum + pool.busy, 0)
  if (slots === 0) return { why: 'no worker serves it', advice: 'start workers for the queue' }
  if (busy >= slots) {
    return { why: `all ${slots} slots of its workers are busy`, advice: 'add workers or slots, unless the tasks hang' }
  }
  const limits = startLimits(queue)
  const block = limits.length > 0 ? `a command limits its starts to ${limits.join(' and ')}` : blockOf(queue, facts)
  if (block === undefined) return undefined
  const raise =
    limits.length > 0
      ? `raise the limit with 'bullpen limit --queue ${name}'`
      : `'bullpen show ${oldestBlocked?.id}' and 'bullpen limits --queue ${name}' show what holds the tasks: raise that limit`
  return {
    why: `${block}, although ${slots - busy} of its ${slots} slots are free`,
    advice: `${raise}, or let the producers enqueue less; more workers do not help`,
  }
}

function blockOf({ oldestBlocked, tasks, blockedTasks }: QueueFacts, { now }: DiagnosisFacts): string | undefined {
  // If only a few tasks are blocked, the others make room.
  return oldestBlocked === undefined || 2 * blockedTasks < tasks.waiting ? undefined : causeOfBlock(oldestBlocked, now)
}
