// Implements the port for pipeline runs on Redis.
//
// A run has a hash tag of its own, so each of its scripts runs on one node, and none of them touches a queue. What a script makes possible
// is delivered by the process that has called it (./run-deliveries.ts). The leader completes what a dead process has left
// (./run-visits.ts).
import type { RunId } from '@bullpen/contract'
import type { NewTask, PayloadCodec } from '@bullpen/engine'
import {
  decodeValue,
  encodeValue,
  type Run,
  type RunSettings,
  type Runs,
  runNotEnded,
  runNotFound,
  runTemplates,
  startedRun,
  storedRunDefinition,
} from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'
import { type RunKeys, runChannels, runKeys } from '../keys.ts'
import type { VisitRegistry } from '../leader/visit-registry.ts'
import type { RedisAccess } from '../schema.ts'
import { runScript } from '../scripts/script.ts'
import { emitItemsScript, readRunScript, startRunScript, stopRunScript } from '../store/scripts.ts'
import type { GroupWaiters } from '../waiting/group-waiters.ts'
import { expireRunCancels, isCancelOver } from './run-cancels.ts'
import { runChange } from './run-change.ts'
import type { RunDeliveries } from './run-deliveries.ts'
import { runErrorOf, runOf, runQueues, settingsFields } from './run-record.ts'
import { VISIT_RUN_EVERY_MS } from './run-visits.ts'

export interface RunStoreOptions extends RedisAccess {
  readonly registry: Pick<VisitRegistry<RunId>, 'register' | 'forget' | 'count' | 'ids'>
  readonly codec: PayloadCodec | undefined
  readonly waiters: Pick<GroupWaiters, 'followRun'>
  readonly deliveries: Pick<RunDeliveries, 'deliver'>
  readonly now: () => number
  /** Checks whether the tasks' queues have room for them. Rejects with the error with which an enqueue would be refused. */
  readonly admit: (tasks: readonly NewTask[]) => Promise<void>
}

/** How long an unfinished run is kept after its total timeout, in ms. By then, the leader has ended it. */
const SPARE_MS = 2 * 86_400_000

export function createRunStore(options: RunStoreOptions): Runs {
  const { redis, namespace, registry, codec, waiters, deliveries, call, now, admit } = options
  const channels = runChannels(namespace)
  const keysOf = (id: RunId): RunKeys => runKeys(namespace, id)

  async function read(id: RunId): Promise<Run | undefined> {
    const stored = await call(() => runScript(redis, readRunScript, keysOf(id), {}))
    return stored === null ? undefined : decodeRun(stored)
  }

  async function known(id: RunId): Promise<Run> {
    const run = await read(id)
    if (run === undefined) throw runNotFound(id)
    return run
  }

  /** Calls `wake` whenever something about the run is announced, until the signal aborts. */
  function follow(id: RunId, wake: () => void, signal: AbortSignal): () => void {
    signal.addEventListener('abort', wake)
    const stop = waiters.followRun(id, wake)
    return () => {
      signal.removeEventListener('abort', wake)
      stop()
    }
  }

  return {
    async start(run) {
      const { settings } = run
      const { id, totalMs } = settings
      try {
        await admit(run.tasks)
      } catch (error) {
        // A repeated request gets the run that the first one has started, whether or not the queues accept tasks now.
        if ((await read(id)) === undefined) throw error
      }
      const args = { id, channels, settings: storedRunDefinition(run, codec), totalMs, spareMs: SPARE_MS }
      const change = await call(async () => {
        // Registered first, because the registry may be on another node.
        await registry.register(id, now() + VISIT_RUN_EVERY_MS)
        const started = await runScript(redis, startRunScript, keysOf(id), args, settingsFields(settings))
        // Registered again, because an earlier run with this id may have been deleted, and forgotten, between the two.
        await registry.register(id, now() + VISIT_RUN_EVERY_MS)
        return started
      })
      await deliveries.deliver(id, runChange(change))
      const stored = await call(() => runScript(redis, readRunScript, keysOf(id), {}))
      if (stored === null) throw runNotFound(id)
      const [, definition] = stored
      return startedRun(decodeRun(stored), runTemplates(definition).templates[0], run, codec)
    },

    async cancel(id, by) {
      const change = await call(() => runScript(redis, stopRunScript, keysOf(id), { id, channels, by }))
      if (change === null) throw runNotFound(id)
      await deliveries.deliver(id, runChange(change))
      return known(id)
    },

    async delete(id) {
      const run = await known(id)
      const { state, settings } = run
      if (state !== 'ended') throw runNotEnded(id, state)
      await call(async () => {
        // A run that has ended never changes again, so nothing can happen to it between these commands.
        if (isCancelOver(run)) await expireRunCancels(redis, namespace, settings, runQueues(settings))
        // Forgotten first, because the id can be used again as soon as the run is gone.
        await registry.forget(id)
        const { meta, definition, errors, outbox } = keysOf(id)
        await redis.unlink(meta, definition, errors, outbox)
      })
    },

    find: read,

    async waitUntilEnded(id, signal) {
      let changed = Promise.withResolvers<void>()
      const stop = follow(id, () => changed.resolve(), signal)
      try {
        for (;;) {
          // Created before the read, so that an end during the read is not missed.
          changed = Promise.withResolvers()
          const run = await read(id)
          if (run === undefined || run.state === 'ended' || signal.aborted) return run
          await changed.promise
        }
      } finally {
        stop()
      }
    },

    async output(id) {
      return decodeValue((await known(id)).output, codec)
    },

    async errors(id, from, limit) {
      const stored = await call(() => redis.lrange(keysOf(id).errors, from, from + limit - 1))
      return stored.map(runErrorOf)
    },

    async emit({ id, incarnation }, { segment, fencingToken: token, from, values, count, digest, cursor, isLast }) {
      const args = { id, channels, incarnation, segment, token, from, count, digest, cursor, isLast: isLast ? '1' : '' }
      const change = await call(() => runScript(redis, emitItemsScript, keysOf(id), args, values))
      await deliveries.deliver(id, runChange(change))
      const [, , position] = change
      if (typeof position === 'string') return position
      const [emitted, batch, free, lastDigest, lastCursor] = position
      return { emitted, batch, free, digest: lastDigest, cursor: lastCursor }
    },

    encode: (item) => encodeValue(item, codec),

    decode: (value) => decodeValue(value, codec),

    async untilCredits({ id }, signal) {
      const changed = Promise.withResolvers<void>()
      const stop = follow(id, () => changed.resolve(), signal)
      try {
        const run = await read(id)
        if (run?.source.isWaiting === true && !signal.aborted) await changed.promise
      } finally {
        stop()
      }
    },

    count: () => call(registry.count),

    async list(limit) {
      const unfinished: Run[] = []
      // Runs that have just ended are still registered.
      for (const id of await call(registry.ids)) {
        const run = await read(id)
        if (run !== undefined && run.state !== 'ended') unfinished.push(run)
        if (unfinished.length === limit) break
      }
      return unfinished
    },

    async results({ id, incarnation }, from, limit) {
      const { meta, results } = keysOf(id)
      const [current, stored] = await call(() =>
        Promise.all([redis.hget(meta, 'incarnation'), redis.lrange(results, from, from + limit - 1)]),
      )
      if (current !== incarnation) throw runNotFound(id)
      return stored.map((value) => decodeValue(value, codec))
    },
  }
}

function decodeRun([fields, definition, waiting]: readonly [string[], string, number[]]): Run {
  const { settings } = parseJson(definition) as { readonly settings: RunSettings }
  return runOf(settings, { fields, waiting })
}
