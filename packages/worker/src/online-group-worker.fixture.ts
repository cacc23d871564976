// A worker program that reads its settings from flags and the environment, with handlers for two queues.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled, workerConfig } from './index.ts'

const schemas = { input: z.object({ ms: z.int() }), output: z.object({}) }
export const page = defineTask({ name: 'batch.page', queue: 'pages', timeout: '1m', ...schemas })
export const cover = defineTask({ name: 'batch.cover', queue: 'covers', timeout: '1m', ...schemas })
export const batchCatalogue = defineCatalogue(page, cover)

if (process.argv[1] === import.meta.filename) {
  const handle = async ({
    input,
    signal,
  }: {
    input: { ms: number }
    signal: AbortSignal
  }): Promise<Record<string, never>> => {
    if (input.ms > 0) await sleep(input.ms, undefined, { signal })
    return {}
  }
  const handlers = {
    'batch.page': defineHandler(page, import.meta.url, handle),
    'batch.cover': defineHandler(cover, import.meta.url, handle),
  }
  const config = { ...workerConfig(), port: 0 }
  process.exit(await runUntilSignalled(() => createWorker({ catalogue: batchCatalogue, handlers, config })))
}
