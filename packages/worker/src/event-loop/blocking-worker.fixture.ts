// A worker process with handlers that block the event loop forever, until a file exists, in native code or after they have
// returned, and handlers that yield or wait.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled } from '../index.ts'

const schemas = { input: z.object({ ms: z.int() }), output: z.object({ fencingToken: z.int() }) }
const about = { queue: 'slow', timeout: '1m', ...schemas } as const
const forever = defineTask({ name: 'block.forever', ...about })
const untilReleased = defineTask({ name: 'block.until-released', ...about })
const afterReturn = defineTask({ name: 'block.after-return', ...about })
const native = defineTask({ name: 'block.native', ...about })
const yielding = defineTask({ name: 'block.yielding', ...about })
const waiting = defineTask({ name: 'block.waiting', ...about })

export const blockingTasks = defineCatalogue(forever, untilReleased, afterReturn, native, yielding, waiting)

/** Returns the path of a file. The event loop is blocked until that file exists. */
export const releaseFile = (id: string): string => join(tmpdir(), `bullpen-release-${id}`)

const nothing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/** Blocks the event loop without using the processor, which other tests need. */
function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until) Atomics.wait(nothing, 0, 0, 5)
}

if (process.argv[1] === import.meta.filename) {
  // Runs in no attempt, and before the event loop turns again.
  const returned = Promise.withResolvers<string>()
  void returned.promise.then((id) => {
    while (!existsSync(releaseFile(id))) block(50)
  })
  const handlers = {
    'block.forever': defineHandler(forever, import.meta.url, async ({ input }) => {
      await sleep(input.ms)
      while (true) {}
    }),
    'block.until-released': defineHandler(untilReleased, import.meta.url, async ({ id, input, fencingToken }) => {
      await sleep(20)
      while (!existsSync(releaseFile(id))) block(input.ms)
      return { fencingToken }
    }),
    'block.after-return': defineHandler(afterReturn, import.meta.url, async ({ id, input, fencingToken }) => {
      await sleep(20)
      while (!existsSync(releaseFile(id))) block(input.ms)
      returned.resolve(`${id}-after`)
      return { fencingToken }
    }),
    'block.native': defineHandler(native, import.meta.url, async ({ id, input, fencingToken }) => {
      await sleep(20)
      execFileSync('sh', ['-c', `until [ -e "$0" ]; do sleep 0.05; done; sleep ${input.ms / 1_000}`, releaseFile(id)])
      return { fencingToken }
    }),
    'block.yielding': defineHandler(yielding, import.meta.url, async ({ input, fencingToken }) => {
      const until = performance.now() + input.ms
      while (performance.now() < until) {
        block(30)
        await nextTurn()
      }
      return { fencingToken }
    }),
    'block.waiting': defineHandler(waiting, import.meta.url, async ({ input, fencingToken }) => {
      await sleep(input.ms)
      return { fencingToken }
    }),
  }
  const [redisUrl, namespace, eventLoopStallWarning] = process.argv.slice(2)
  const config = { redisUrl, namespace, port: 0, drainTimeout: '500ms', grace: '500ms', pools: { slow: 4 } } as const
  process.exit(
    await runUntilSignalled(
      createWorker({ catalogue: blockingTasks, handlers, config: { ...config, eventLoopStallWarning } }),
    ),
  )
}
