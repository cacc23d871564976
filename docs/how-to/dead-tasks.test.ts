// The commands of the page on dead tasks print what the page says, against a real API, a worker and 1,000 dead tasks.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { createWorker } from '@bullpen/worker'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'

const CLI = new URL('../../packages/cli/src/main.ts', import.meta.url).pathname
const TASKS = 1_000
const silent = { debug() {}, info() {}, warn() {}, error() {} }

const send = defineTask({
  name: 'invoice.send',
  queue: 'invoices',
  kind: 'short',
  input: z.object({ invoice: z.int(), address: z.object({ street: z.string() }).optional() }),
  output: z.object({ sent: z.literal(true) }),
  retry: { maxAttempts: 1 },
})

/** Starts an API and a worker, and returns once 1,000 tasks are dead. After `fix`, nine of ten can succeed. */
async function invoicesAfterABadNight() {
  let isFixed = false
  const key = randomUUID()
  const catalogue = defineCatalogue(send)
  const common = { redisUrl: inject('redisUrl'), namespace: `t-${key.slice(0, 8)}` }
  const keys = [`ops:${key}`]
  const api = await createApi({ catalogue, log: silent, config: { ...common, keys, port: 0, metricsPort: 0 } })
  onTestFinished(() => api.close())
  const handler = defineHandler(send, import.meta.url, ({ input: { invoice, address } }) => {
    if (invoice % 10 === 0) {
      throw new TaskError('customer_deleted', `customer ${invoice} was deleted`, { retryable: false })
    }
    if (isFixed) return { sent: true as const }
    if (invoice % 10 < 4) {
      throw Object.assign(new Error(`the mail service responded with 503 to message ${invoice}`), { status: 503 })
    }
    if (address === undefined) throw new TypeError("Cannot read properties of undefined (reading 'street')")
    return { sent: true as const }
  })
  const worker = createWorker({
    catalogue,
    handlers: { 'invoice.send': handler },
    config: { ...common, pools: { invoices: 4 }, port: 0, logLevel: 'silent' },
  })
  onTestFinished(async () => void (await worker.drain()))
  await worker.start()
  const { url } = await api.listen()
  const client = createClient({ transport: http(url, key) })
  await client.enqueueBulk(
    send,
    Array.from({ length: TASKS }, (_, n) => ({ invoice: n + 1 })),
  )
  const dead = async () => (await client.countDead()).reduce((sum, { count }) => sum + count, 0)
  await eventually(async () => (await dead()) === TASKS, 120_000)
  return {
    env: programEnv({ BULLPEN_API: url, BULLPEN_KEY: key, BULLPEN_BY: 'ann' }),
    fix: () => (isFixed = true),
    isIdle: async () => (await client.list({ queue: 'invoices', status: 'waiting' }).next()).done,
  }
}

async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, [CLI, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (out += text))
  await new Promise((resolve) => child.once('close', resolve))
  return out
}

/** An id or a fingerprint, which differ from run to run. */
const NAMES = /invoices-[0-9a-z]{26}|\b[0-9a-f]{16}\b/g

/** Replaces everything that differs from run to run. */
function comparable(text: string): string {
  return (
    text
      .replaceAll(NAMES, 'NAME')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/[\d.]+(ms|[smhd]) ago/g, 'AGO')
      .replaceAll(/\b\d+ms\b/g, 'LENGTH')
      // Which of several tasks has died last is not the same in every run.
      .replaceAll(/"invoice":\d+/g, '"invoice":NUMBER')
      // The worker may already be running the task.
      .replaceAll(/status (waiting|active|completed)/g, 'status STATUS')
      .replaceAll(/\S+:\d+:[0-9a-f]{8}/g, 'WORKER')
      .replaceAll(/key ops [0-9a-f]{8}/g, 'key ops HASH')
      .replaceAll(/ {2,}/g, '  ')
      .trim()
  )
}

it('the commands of the page print what the page says', async () => {
  const page = readFileSync(join(import.meta.dirname, 'dead-tasks.md'), 'utf8')
  const { env, fix, isIdle } = await invoicesAfterABadNight()
  const steps = [...page.matchAll(/^```sh\n([^`]*)```\n\n```text\n([^`]*)```$/gm)]
  expect(steps.length).toBeGreaterThan(8)
  /** The page's ids and fingerprints, and those of this run. */
  const names = new Map<string, string>()
  for (const [, commands = '', expected = ''] of steps) {
    if (commands.includes('dead retry')) fix()
    let out = ''
    for (const command of commands.trim().split('\n')) {
      await eventually(isIdle)
      const [program, ...args] = command.replaceAll(NAMES, (name) => names.get(name) ?? name).split(' ')
      expect(program).toBe('bullpen')
      out += await run(args, env)
    }
    expect(comparable(out), commands).toBe(comparable(expected))
    const [theirs, ours] = [expected.match(NAMES) ?? [], out.match(NAMES) ?? []]
    for (const [n, name] of theirs.entries()) names.set(name, ours[n] ?? name)
  }
})
