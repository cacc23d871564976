// Tests the client in a real browser, on a page of another origin than the API's.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { type Page, sharedBrowser } from '@bullpen/testing'
import { createWorker } from '@bullpen/worker'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { servePage } from './browser.fixture.ts'

const double = defineTask({
  name: 'math.double',
  queue: 'math',
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
})
const catalogue = defineCatalogue(double)
const handlers = {
  'math.double': defineHandler(double, import.meta.url, ({ input: { n } }) => ({ n: 2 * n })),
}
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Runs calls of a client on the page, against an API that allows the page's origin or not. */
async function runOn({ open }: Page, calls: string, { isAllowed = true } = {}) {
  let api: { readonly url: string; readonly key: string } | undefined
  const page = await servePage(
    () => `
import { createClient, http } from '@bullpen/client'
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'
const double = defineTask({
  name: 'math.double', queue: 'math', input: z.object({ n: z.int() }), output: z.object({ n: z.int() }),
})
const client = createClient({ transport: http(${JSON.stringify(api?.url)}, ${JSON.stringify(api?.key)}), retryFor: '1s' })
export default async () => { ${calls} }`,
  )
  const key = randomUUID()
  const common = { redisUrl: inject('redisUrl'), namespace: `t-${randomUUID().slice(0, 12)}`, port: 0 }
  const corsOrigins = isAllowed ? [page.origin] : ['https://shop.example.com']
  const config = { ...common, keys: [key], metricsPort: 0, corsOrigins }
  const opened = await createApi({ catalogue, log: silent, config })
  onTestFinished(() => opened.close())
  api = { url: (await opened.listen()).url, key }
  const worker = createWorker({ catalogue, handlers, config: { ...common, logLevel: 'silent' } })
  onTestFinished(async () => void (await worker.drain()))
  await worker.start()
  await open(page.origin)
  return page.reported
}

describe('in a browser', () => {
  const openPage = sharedBrowser()

  test('the client enqueues a task and gets its result', async () => {
    const calls = `
      const task = await client.enqueue(double, { n: 21 })
      return { output: await task.result({ timeout: '2m' }), status: (await task.describe()).status }`
    expect(await runOn(await openPage(), calls)).toEqual({ output: { n: 42 }, status: 'completed' })
  })

  test('the client learns why a request was rejected', async () => {
    expect(await runOn(await openPage(), `return client.enqueue(double, { n: 0.5 })`)).toEqual({
      thrown: expect.objectContaining({
        ...{ name: 'ProblemError', code: 'invalid_input', outcome: 'refused', status: 422 },
        requestId: expect.stringMatching(/^[0-9a-f]{32}$/),
      }),
    })
  })

  test('the outcome of a call is unknown if the API does not allow the page’s origin', async () => {
    expect(await runOn(await openPage(), `return client.enqueue(double, { n: 1 })`, { isAllowed: false })).toEqual({
      thrown: expect.objectContaining({ name: 'ProblemError', code: 'unreachable', outcome: 'unknown' }),
    })
  })
})
