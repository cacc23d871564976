// The janitor: moves what cancel rules cover out of where it waits, a little at a time, until a rule covers nothing any more.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, TaskId } from '@bullpen/contract'
import { type CancelRule, endWithoutStart, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { describeEnd } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { throttledLog } from '../throttled-log.ts'
import { BEGIN, FINISH, LEASE_MS, LOOK } from './bulk-cancel-scripts.ts'
import { KNOWN_TO_ALL_MS, readRules } from './cancel-rules.ts'

/** Tasks that one script looks at. */
const AT_ONCE = 200
/** From the end of one pass with nothing to move to the next. */
const IDLE_MS = 2_000
/** What a rule has come to is told for a day. */
const TOLD_MS = 86_400_000

/**
 * In the order in which a task moves on, and one that a rule covers moves in no other once all feeds know the rule: what is
 * not found where it was looked for first is found later on its way, or has ended.
 */
const PLACES = ['active', 'delayed', 'prioritized', 'wait'] as const

export interface Moved {
  readonly id: TaskId
  readonly task: string
}

interface Pass {
  /** Rules of which nothing was found. */
  readonly clean: readonly CancelRule[]
  readonly moved: number
}

interface JanitorOptions {
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly onMoved: (moved: Moved) => void
  readonly log: Log
}

export interface BulkCanceller {
  /** There is a new rule: it begins at once. */
  hurry(): void
  close(): void
}

/** Looks every two seconds whether there is something to do, and does it until it is done. Keeps no process alive. */
export function openBulkCanceller({ redis, keys, onMoved, log }: JanitorOptions): BulkCanceller {
  const failed = throttledLog((err: unknown, suppressed) =>
    log.debug({ err, suppressed }, 'the janitor of cancels failed'),
  )
  const janitor = randomUUID()
  let timer: NodeJS.Timeout | undefined
  let working = false
  let hurried = false
  let closed = false
  /** The pass before has moved nothing: only what runs keeps a rule. */
  let isQuiet = false

  const pass = async (): Promise<number> => {
    const begun = (await redis.eval(BEGIN, 2, keys.cancelJanitor, keys.cancelRules, janitor, LEASE_MS)) as Begun
    if (begun === null) return 0
    const [began, texts] = begun
    const rules = readRules(texts)
    const done = await goThrough({ redis, keys, onMoved }, janitor, rules, () => closed, isQuiet)
    if (done === undefined) return 0
    isQuiet = done.moved === 0
    const over = done.clean.filter(({ at }) => at + KNOWN_TO_ALL_MS <= began).map(({ id }) => id)
    if (over.length > 0) await redis.eval(FINISH, 1, keys.cancelRules, keys.cancelProgress(''), TOLD_MS, ...over)
    return done.moved
  }

  const work = (): void => {
    if (working) return
    clearTimeout(timer)
    working = true
    hurried = false
    pass()
      .catch((err: unknown) => {
        if (!closed) failed(err)
        return 0
      })
      .then((moved) => {
        working = false
        if (closed) return
        timer = setTimeout(work, moved > 0 || hurried ? 0 : IDLE_MS)
        timer.unref()
      })
  }
  timer = setTimeout(work, IDLE_MS)
  timer.unref()

  return {
    hurry() {
      hurried = true
      isQuiet = false
      work()
    },
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}

type Begun = readonly [now: number, rules: readonly string[]] | null
type Looked = readonly [from: string, before: string, found: readonly number[], ended: readonly string[]] | null

/** Undefined: it was stopped, or another janitor does it. */
async function goThrough(
  { redis, keys, onMoved }: Pick<JanitorOptions, 'redis' | 'keys' | 'onMoved'>,
  janitor: string,
  rules: readonly CancelRule[],
  isStopped: () => boolean,
  isQuiet: boolean,
): Promise<Pass | undefined> {
  const found = rules.map(() => 0)
  const said = JSON.stringify(rules.map(forScript))
  const { cancelJanitor, active, delayed, prioritized, wait, failed, events, expiries } = keys
  const names = [cancelJanitor, active, delayed, prioritized, wait, failed, events, expiries]
  const fixed = [janitor, LEASE_MS, keys.job(''), keys.cancelProgress(''), said]
  let moved = 0
  for (const place of PLACES) {
    let [from, before] = ['', '']
    do {
      const sentAt = performance.now()
      const args = [...fixed, place, from, before, AT_ONCE, MAX_ATTEMPT_RECORDS]
      const looked = (await redis.eval(LOOK, names.length, ...names, ...args)) as Looked
      if (looked === null) return undefined
      const ended = looked[3]
      for (let i = 0; i < ended.length; i += 2) onMoved({ id: ended[i] as TaskId, task: ended[i + 1] ?? '' })
      moved += ended.length / 2
      looked[2].forEach((count, i) => {
        found[i] = (found[i] ?? 0) + count
      })
      ;[from, before] = looked
      if (isStopped()) return undefined
      // As long as it took: half of the time is for others.
      await sleep(performance.now() - sentAt)
    } while (from !== '')
    // Going through all that waits, again and again, would not end what runs sooner.
    if (place === 'active' && isQuiet && found.every((count) => count > 0)) break
  }
  return { clean: rules.filter((_, i) => found[i] === 0), moved }
}

function forScript({ id, task, tag, before, at, reason, by }: CancelRule): object {
  const end = endWithoutStart(reason, { attempt: 1, process: by, now: at })
  const { attempt: _, startedAt: _began, endedAt: _ended, ...stored } = end
  return { id, task, tag, before, at, reason: describeEnd(end), end: JSON.stringify(stored).slice(1, -1) }
}
