// The commands of the runbook's page on orphaned keys do what the page says, against a real API and a worker that runs tasks.
import { randomUUID } from 'node:crypto'
import { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { blockingConnection } from '@bullpen/bullmq/internal'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { bullpen } from '../packages/cli/src/program.ts'

/** Between two tasks, so that the search gets its share of the processor. */
const PAUSE_MS = 5

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const send = defineTask({ name: 'invoice.send', queue: 'invoices', kind: 'short', input: z.object({ n: z.int() }) })

async function platform() {
  const key = randomUUID()
  const lines: { readonly message: string; readonly fields: object }[] = []
  const log = { ...silent, info: (fields: object, message: string) => void lines.push({ message, fields }) }
  const catalogue = defineCatalogue(send)
  const common = { redisUrl: inject('redisUrl'), namespace: `t-${key.slice(0, 8)}` }
  const api = await createApi({ catalogue, log, config: { ...common, keys: [`ops:${key}`], port: 0, metricsPort: 0 } })
  onTestFinished(() => api.close())
  const worker = createWorker({
    catalogue,
    handlers: { 'invoice.send': defineHandler(send, import.meta.url, () => undefined) },
    config: { ...common, pools: { invoices: 4 }, port: 0, logLevel: 'silent' },
  })
  onTestFinished(async () => void (await worker.drain()))
  await worker.start()
  const { url } = await api.listen()
  const redis = blockingConnection(common.redisUrl, silent)
  onTestFinished(() => redis.disconnect())
  return {
    ...common,
    redis,
    client: createClient({ transport: http(url, key) }),
    audited: () => lines.filter(({ message }) => message === 'orphaned keys: deleted').map(({ fields }) => fields),
    async run(...argv: readonly string[]) {
      let out = ''
      const write = () =>
        new Writable({
          write(chunk, _encoding, done) {
            out += chunk
            done()
          },
        })
      const env = { BULLPEN_API: url, BULLPEN_KEY: key, BULLPEN_BY: 'ann' }
      const streams = { stdin: Readable.from([]), stdout: write(), stderr: write() }
      const code = await bullpen({ argv, env, events: process, now: Date.now, ...streams })
      return { code, out }
    },
  }
}

it('doctor finds nothing while tasks run, and finds and deletes what another program has left', async () => {
  const { run, client, redis, namespace, audited } = await platform()
  let isOver = false
  const working = (async () => {
    for (let n = 0; !isOver; n++) {
      await client.enqueue(send, { n })
      await sleep(PAUSE_MS)
    }
  })()
  const busy = await run('doctor', '--orphans')
  isOver = true
  await working
  expect(busy).toEqual({
    code: 0,
    out: expect.stringMatching(/^no orphans: each of \d+ keys and entries has an owner\n$/),
  })

  const base = `{${namespace}.invoices}:invoices`
  await redis.rpush(`${base}:invoices-gone:logs`, 'a line')
  await redis.zadd(`${base}:completed`, Date.now(), 'invoices-gone')
  await redis.set(`${base}:x:unheard-of`, '1')
  const found = await run('doctor', '--orphans')
  expect(found.code).toBe(1)
  expect(found.out.split('\n').toSorted()).toEqual([
    '',
    expect.stringMatching(/^3 orphans among \d+ keys and entries: 2 without an owner, which --delete deletes$/),
    `no_owner       ${base}:completed  invoices-gone  (completed, owner: queue)`,
    `no_owner       ${base}:invoices-gone:logs  (<task>:logs, owner: task)`,
    `unknown_key    ${base}:x:unheard-of`,
  ])

  const deleted = await run('doctor', '--orphans', '--delete', '--yes')
  expect(deleted).toEqual({ code: 1, out: expect.stringContaining('deleted 2 of 2 orphans\n') })
  const [audit, ...others] = audited()
  expect(others).toEqual([])
  expect(audit).toMatchObject({ kept: 0, by: expect.stringMatching(/^ann \(key ops /) })
  const last = await run('doctor', '--orphans')
  expect(last.out).toContain('1 orphan among')
  await redis.del(`${base}:x:unheard-of`)
})
