// The tutorial, done as it says: two workers, a result, a retry, the tests, and a worker that is killed.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createClient, http } from '@bullpen/client'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { afterAll, expect, inject, it, onTestFinished } from 'vitest'
import { report, welcome } from './tutorial/two-tasks/catalogue.ts'

const project = mkdtempSync(join(tmpdir(), 'bullpen-tutorial-'))
const key = randomUUID()
const env = programEnv({
  REDIS_URL: inject('redisUrl'),
  BULLPEN_NAMESPACE: `tutorial-${key.slice(0, 8)}`,
  BULLPEN_API_KEYS: key,
  BULLPEN_API_PORT: '0',
  BULLPEN_API_METRICS_PORT: '0',
  BULLPEN_WORKER_PORT: '0',
})

cpSync(join(import.meta.dirname, 'tutorial'), project, { recursive: true })
symlinkSync(join(import.meta.dirname, '../node_modules'), join(project, 'node_modules'))
afterAll(() => rmSync(project, { recursive: true, force: true }))

/** Resolves with the first line that has the address where the program listens. */
async function start(file: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [file], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const text of createInterface({ input: child.stdout })) {
    const { url } = JSON.parse(text)
    if (url === undefined) continue
    child.stdout.resume()
    return { child, url }
  }
  throw new Error(`${file} ended before it listened`)
}

const exitOf = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve))

it('the handler’s tests pass', async () => {
  const child = spawn(process.execPath, ['--test', 'welcome.test.ts'], { cwd: project, stdio: 'ignore' })
  expect(await exitOf(child)).toBe(0)
})

it('a task survives the worker that ran it', async () => {
  for (const file of ['catalogue.ts', 'report.ts', 'worker.ts']) {
    cpSync(join(project, 'two-tasks', file), join(project, file))
  }
  const api = await start('api.ts')
  const workers = await Promise.all([start('worker.ts'), start('worker.ts')])
  const client = createClient({ transport: http(api.url, key) })

  const mail = await client.enqueue(welcome, { to: 'ann@example.com' })
  expect(await mail.result({ timeout: '2m' })).toEqual({ greeting: 'Hello, you' })
  const busy = await client.enqueue(welcome, { to: 'busy@example.com' })
  const retried = await busy.waitUntilFinished({ timeout: '30s' })
  expect(retried.attempts.map(({ error }) => error?.code)).toEqual(['server_busy', undefined])

  const task = await client.enqueue(report, { pages: 6 })
  const pidOf = async () => Number(/process (\d+)/.exec((await task.describe()).progress?.note ?? '')?.[1])
  const pid = await eventually(pidOf)
  process.kill(pid, 'SIGKILL')
  expect(await task.result({ timeout: '1m' })).toEqual({ pages: 6 })
  const survivor = workers.find(({ child }) => child.pid !== pid)?.child
  expect((await task.describe()).attemptsMade).toBe(1)

  for (const child of [survivor, api.child]) {
    if (child === undefined) throw new Error('both workers are gone')
    const exit = exitOf(child)
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
  }
})
