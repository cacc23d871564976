// Handlers that can run in threads and child processes: two may loop, and one kills its process. And their resources.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'

const schemas = { input: z.object({ ms: z.int().default(0) }), output: z.object({ pid: z.int(), opened: z.int() }) }
const limits = { queue: 'slow', timeout: '400ms', grace: '200ms', retry: { maxAttempts: 1 }, ...schemas } as const

export const inThread = defineTask({ name: 'isolated.thread', isolation: 'thread', ...limits })
export const inProcess = defineTask({ name: 'isolated.process', isolation: 'process', memoryLimit: '64MiB', ...limits })
export const deadly = defineTask({ name: 'isolated.deadly', ...limits, timeout: '1m' })

interface Isolated {
  readonly opened: { readonly times: number }
}

let times = 0
/** Opened once in each thread or process. */
export default { opened: { open: () => ({ times: ++times }) } }

/** Loops forever when `ms` is negative, and sleeps otherwise. */
async function work(ms: number, { opened }: Isolated) {
  while (ms < 0);
  await sleep(ms)
  return { pid: process.pid, opened: opened.times }
}

export const threadHandler = defineHandler(
  inThread,
  import.meta.url,
  ({ input, resources }: TaskContext<typeof inThread, Isolated>) => work(input.ms, resources),
)
export const processHandler = defineHandler(
  inProcess,
  import.meta.url,
  ({ input, resources }: TaskContext<typeof inProcess, Isolated>) => work(input.ms, resources),
)
/** Runs in the worker's own thread, except in quarantine. */
export const deadlyHandler = defineHandler(deadly, import.meta.url, async () => {
  process.kill(process.pid, 'SIGKILL')
  return await new Promise<never>(() => {})
})
