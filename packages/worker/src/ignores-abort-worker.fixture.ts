// A worker process with slow handlers: one obeys its signal, one ignores it, one ends when the test says so, and some throw outside
// their promise.
import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled } from './index.ts'
import openers, {
  deadly,
  deadlyHandler,
  inProcess,
  inThread,
  processHandler,
  threadHandler,
} from './isolated.fixture.ts'

const schemas = { input: z.object({ ms: z.int() }), output: z.object({ fencingToken: z.int() }) }
const listening = defineTask({ name: 'slow.listening', queue: 'slow', timeout: '1m', ...schemas })
const deaf = defineTask({ name: 'slow.deaf', queue: 'slow', timeout: '1m', ...schemas })
const gated = defineTask({ name: 'slow.gated', queue: 'slow', timeout: '1m', ...schemas })
const short = defineTask({ name: 'slow.short', queue: 'slow', kind: 'short', ...schemas })

const escapeTimer = defineTask({ name: 'slow.escape-timer', queue: 'slow', timeout: '1m', grace: '50ms', ...schemas })
const escapePromise = defineTask({
  name: 'slow.escape-promise',
  queue: 'slow',
  timeout: '1m',
  grace: '50ms',
  ...schemas,
})
const escapeEvent = defineTask({ name: 'slow.escape-event', queue: 'slow', timeout: '1m', grace: '50ms', ...schemas })

const escapeAbort = defineTask({ name: 'slow.escape-abort', queue: 'slow', timeout: '50ms', grace: '50ms', ...schemas })
const escapeBatch = defineTask({ name: 'slow.escape-batch', queue: 'slow', timeout: '1m', ...schemas })

export const slowTasks = defineCatalogue(
  listening,
  deaf,
  gated,
  short,
  escapeTimer,
  escapePromise,
  escapeEvent,
  escapeAbort,
  escapeBatch,
  inThread,
  inProcess,
  deadly,
)

const throwElsewhere = (): never => {
  throw new Error('escaped')
}

if (process.argv[1] === import.meta.filename) {
  const released = once(process, 'SIGHUP')
  const handlers = {
    'slow.listening': defineHandler(listening, import.meta.url, async ({ input, log, fencingToken, signal }) => {
      log.info('begun')
      await sleep(input.ms, undefined, { signal })
      return { fencingToken }
    }),
    // These two are slow at their first start only.
    'slow.short': defineHandler(short, import.meta.url, async ({ input, log, fencingToken }) => {
      log.info('begun')
      if (fencingToken === 1) await sleep(input.ms)
      return { fencingToken }
    }),
    'slow.deaf': defineHandler(deaf, import.meta.url, async ({ input, log, fencingToken }) => {
      log.info('begun')
      if (fencingToken === 1) await sleep(input.ms)
      return { fencingToken }
    }),
    // Ends once the process receives SIGHUP.
    'slow.gated': defineHandler(gated, import.meta.url, async ({ log, fencingToken }) => {
      log.info('begun')
      await released
      return { fencingToken }
    }),
  }
  const escaping = {
    'slow.escape-timer': defineHandler(escapeTimer, import.meta.url, async ({ input, fencingToken }) => {
      setTimeout(throwElsewhere, 10)
      await sleep(input.ms)
      return { fencingToken }
    }),
    'slow.escape-promise': defineHandler(escapePromise, import.meta.url, async ({ input, fencingToken }) => {
      void sleep(10).then(throwElsewhere)
      await sleep(input.ms)
      return { fencingToken }
    }),
    'slow.escape-event': defineHandler(escapeEvent, import.meta.url, async ({ input, fencingToken }) => {
      const emitter = new EventEmitter().on('data', throwElsewhere)
      setImmediate(() => emitter.emit('data'))
      await sleep(input.ms)
      return { fencingToken }
    }),
  }
  const aborting = {
    'slow.escape-abort': defineHandler(escapeAbort, import.meta.url, async ({ input, fencingToken, signal }) => {
      signal.addEventListener('abort', throwElsewhere)
      await sleep(input.ms)
      return { fencingToken }
    }),
  }
  // All handlers of the program share a batcher, whose timer belongs to no attempt.
  const batch: (() => void)[] = []
  setInterval(() => batch.pop()?.(), 20)
  const batching = {
    'slow.escape-batch': defineHandler(escapeBatch, import.meta.url, async ({ input, log, signal, fencingToken }) => {
      log.info('begun')
      batch.push(throwElsewhere)
      await sleep(input.ms, undefined, { signal })
      return { fencingToken }
    }),
  }
  const isolated = {
    'isolated.thread': threadHandler,
    'isolated.process': processHandler,
    'isolated.deadly': deadlyHandler,
  }
  const isolatedResources = new URL('./isolated.fixture.ts', import.meta.url).href
  // This throws outside any attempt.
  process.on('SIGUSR2', throwElsewhere)
  const [redisUrl, namespace, drainTimeout = '500ms', more = '{}'] = process.argv.slice(2)
  const config = {
    redisUrl,
    namespace,
    port: 0,
    drainTimeout,
    grace: '500ms',
    pools: { slow: 4 },
    terminationGrace: '2h',
    ...JSON.parse(more),
  } as const
  process.exit(
    await runUntilSignalled(
      createWorker({
        catalogue: slowTasks,
        resources: openers,
        isolatedResources,
        handlers: { ...handlers, ...escaping, ...aborting, ...batching, ...isolated },
        config,
      }),
    ),
  )
}
