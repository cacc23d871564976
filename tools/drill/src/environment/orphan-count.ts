// Counts what a drill has left in Redis without an owner. Every setup does this at its end, and every drill's report contains the
// number.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { Log, Orphan } from '@bullpen/contract'
import { holdsWithin } from '../holds-within.ts'
import { PATIENT_MS } from './patience.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }
/** How long the leader has to delete what it deletes in the course of its work. */
const CLEAN_WITHIN_MS = 30_000
/** Longer than the broker's own patience, because a busy machine is no fault of the drill. */
const REACHABLE_WITHIN_MS = 60_000
const AGAIN_AFTER_MS = 1_000
/** How many orphans are printed. */
const PRINTED = 20

const running = new AsyncLocalStorage<{ orphans: number | undefined }>()

/** Runs a drill. `orphans` is undefined if the drill has not counted them. */
export async function countingOrphans<T>(
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly orphans: number | undefined }> {
  const count = { orphans: undefined }
  const result = await running.run(count, run)
  return { result, orphans: count.orphans }
}

/**
 * Counts the orphans of a namespace for the drill that is running, and prints them. A process leads the namespace meanwhile,
 * because the drill's own processes may have ended.
 */
export async function countOrphans(
  redisUrl: string,
  namespace: string,
  { cleanWithinMs = CLEAN_WITHIN_MS } = {},
): Promise<void> {
  const count = running.getStore()
  if (count === undefined) throw new Error('no drill is running')
  await expectUsed(redisUrl, namespace)
  const options = {
    redisUrl,
    namespace,
    queues: [],
    sizeLimit: 10_000,
    log: silent,
    allowEviction: true,
    commandTimeoutMs: PATIENT_MS,
  }
  const broker = openBroker(options)
  try {
    const isReachable = () =>
      broker.ping().then(
        () => true,
        () => false,
      )
    if (!(await holdsWithin(REACHABLE_WITHIN_MS, isReachable))) throw new Error('Redis is not reachable')
    const orphans = await lastingOrphans(broker, cleanWithinMs)
    for (const { key, entry = '', reason } of orphans.slice(0, PRINTED))
      console.error(`orphan: ${reason} ${key} ${entry}`)
    count.orphans = (count.orphans ?? 0) + orphans.length
  } finally {
    await broker.close()
  }
}

/** A search of the wrong namespace would find nothing. */
async function expectUsed(redisUrl: string, namespace: string): Promise<void> {
  const redis = blockingConnection(redisUrl, silent)
  const queues = await redis.hlen(`{${namespace}}:leader:registry`)
  redis.disconnect()
  if (queues === 0) throw new Error(`namespace ${namespace} has no queues, so the drill has not used it`)
}

async function lastingOrphans(broker: BullmqBroker, cleanWithinMs: number): Promise<readonly Orphan[]> {
  const deadline = performance.now() + cleanWithinMs
  for (;;) {
    const orphans: Orphan[] = []
    let cursor: string | undefined
    do {
      const page = await broker.orphans.search(cursor)
      orphans.push(...page.orphans)
      cursor = page.next
    } while (cursor !== undefined)
    if (orphans.length === 0 || performance.now() > deadline) return orphans
    await sleep(AGAIN_AFTER_MS)
  }
}
